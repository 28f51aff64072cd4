// What a package finds as globals, beyond those of a script; and what a script has that a package must not have.
for (const name of ["tools", "emit", "ToolError", "input"]) delete globalThis[name];

const provide = (values) => { for (const name of keys(values)) hidden(globalThis, name, values[name]); };

const { apply } = Reflect;
// What is called later runs under the stores (node:async_hooks) of the moment at which that was asked for.
const within = (context, callback, self, args) => {
  const before = natives.context();
  natives.setContext(context);
  try {
    return apply(callback, self, args);
  } finally {
    natives.setContext(before);
  }
};
const bound = (callback) => {
  const context = natives.context();
  if (context === undefined || typeof callback !== "function") return callback;
  return function (...args) { return within(context, callback, this, args); };
};
assign(house, { within, bound });

const setOnce = globalThis.setTimeout;
const setOften = globalThis.setInterval;
const clearOne = globalThis.clearTimeout;

class Timeout {
  #id;
  #again;
  constructor(set, callback, delay, args) {
    const called = bound(callback);
    this.#again = () => set(called, delay, ...args);
    this.#id = this.#again();
  }
  ref() { return this; }
  unref() { return this; }
  hasRef() { return true; }
  refresh() {
    clearOne(this.#id);
    this.#id = this.#again();
    return this;
  }
  close() {
    clearOne(this.#id);
    return this;
  }
  [Symbol.toPrimitive]() { return this.#id; }
  [Symbol.dispose]() { clearOne(this.#id); }
}
class Immediate extends Timeout {}
const clearAny = (timer) => clearOne(typeof timer === "object" && timer !== null ? Number(timer) : typeof timer === "string" ? Number(timer) : timer);

const enqueue = globalThis.queueMicrotask;
provide({
  global: globalThis,
  queueMicrotask(callback) { enqueue(bound(callback)); },
  setTimeout(callback, delay, ...args) { return new Timeout(setOnce, callback, delay, args); },
  setInterval(callback, delay, ...args) { return new Timeout(setOften, callback, delay, args); },
  setImmediate(callback, ...args) { return new Immediate(setOnce, callback, 0, args); },
  clearTimeout: clearAny,
  clearInterval: clearAny,
  clearImmediate: clearAny,
  navigator: { userAgent: "Node.js/22", language: "en-US", languages: ["en-US"], hardwareConcurrency: 1, platform: "linux" },
});
assign(performance, {
  mark: (name) => ({ name, entryType: "mark", startTime: performance.now(), duration: 0 }),
  measure: (name) => ({ name, entryType: "measure", startTime: 0, duration: 0 }),
  clearMarks() {},
  clearMeasures() {},
  getEntries: () => [],
  getEntriesByName: () => [],
  getEntriesByType: () => [],
  timerify: (f) => f,
  eventLoopUtilization: () => ({ idle: 0, active: 0, utilization: 0 }),
  toJSON: () => ({}),
});

class MessageEvent extends Event {
  constructor(type, options = {}) {
    super(type, options);
    assign(this, { data: null, origin: "", lastEventId: "", source: null, ports: [] }, options);
  }
}
class ErrorEvent extends Event {
  constructor(type, options = {}) {
    super(type, options);
    assign(this, { message: "", filename: "", lineno: 0, colno: 0, error: undefined }, options);
  }
}
class CloseEvent extends Event {
  constructor(type, options = {}) {
    super(type, options);
    assign(this, { code: 0, reason: "", wasClean: false }, options);
  }
}

// A channel within the isolate; what is posted arrives as a copy, in a later turn.
class MessagePort extends EventTarget {
  #other;
  #closed = false;
  onmessage = null;
  static pair(one, other) {
    one.#other = other;
    other.#other = one;
  }
  postMessage(data) {
    const copy = structuredClone(data);
    const to = this.#other;
    setOnce(() => {
      if (to === undefined || to.#closed) return;
      const event = new MessageEvent("message", { data: copy });
      to.onmessage?.(event);
      to.dispatchEvent(event);
    }, 0);
  }
  start() {}
  close() { this.#closed = true; }
  ref() { return this; }
  unref() { return this; }
  on(type, listener) {
    this.addEventListener(type, (event) => listener(event.data));
    return this;
  }
}
const { pair } = MessagePort;
delete MessagePort.pair;
class MessageChannel {
  port1 = new MessagePort();
  port2 = new MessagePort();
  constructor() { pair(this.port1, this.port2); }
}
class BroadcastChannel extends EventTarget {
  constructor(name) {
    super();
    this.name = `${name}`;
  }
  postMessage() {}
  close() {}
  ref() { return this; }
  unref() { return this; }
}
provide({
  MessageEvent, ErrorEvent, CloseEvent, MessagePort, MessageChannel, BroadcastChannel,
  reportError: (error) => console.error(error),
});

// One agent, no shared memory: the operations are plain ones. Packages test for the object when they load.
const checked = (operation) => (array, index, value) => {
  const before = array[index];
  array[index] = operation(before, value);
  return before;
};
hidden(globalThis, "Atomics", {
  add: checked((a, b) => a + b), sub: checked((a, b) => a - b), and: checked((a, b) => a & b), or: checked((a, b) => a | b),
  xor: checked((a, b) => a ^ b), exchange: checked((_, b) => b), load: (array, index) => array[index],
  store: (array, index, value) => (array[index] = value),
  compareExchange(array, index, expected, value) {
    const before = array[index];
    if (before === expected) array[index] = value;
    return before;
  },
  isLockFree: () => true, notify: () => 0,
  wait(array, index, value, timeout = Infinity) {
    if (array[index] !== value) return "not-equal";
    if (timeout === Infinity) throw unavailable("Atomics.wait without a timeout");
    return "timed-out";
  },
});
// A buffer that is shared with nobody, for there is one agent; its accessors refuse other buffers, as packages expect.
const lengthOf = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "byteLength").get;
const sharedOnes = new WeakSet();
hidden(globalThis, "SharedArrayBuffer", class SharedArrayBuffer extends ArrayBuffer {
  constructor(length) {
    super(length);
    sharedOnes.add(this);
  }
  get byteLength() {
    if (!sharedOnes.has(this)) throw new TypeError("not a SharedArrayBuffer");
    return apply(lengthOf, this, []);
  }
  get growable() {
    if (!sharedOnes.has(this)) throw new TypeError("not a SharedArrayBuffer");
    return false;
  }
  get [Symbol.toStringTag]() { return "SharedArrayBuffer"; }
});
if (globalThis.FinalizationRegistry === undefined)
  hidden(globalThis, "FinalizationRegistry", class FinalizationRegistry {
    register() {}
    unregister() { return false; }
  });
