// EventEmitter: the package, with what Node has added since.
const EventEmitter = house.fromLibrary("events/events.js");
const { once } = EventEmitter;

const errorMonitor = Symbol("events.errorMonitor");
const emit = EventEmitter.prototype.emit;
EventEmitter.prototype.emit = function (type, ...args) {
  if (type === "error" && this._events?.[errorMonitor]) emit.call(this, errorMonitor, ...args);
  return emit.call(this, type, ...args);
};
const listenerCount = EventEmitter.prototype.listenerCount;

async function* on(emitter, name, options = {}) {
  const queue = [];
  let wake;
  let failed;
  const put = (...args) => {
    queue.push(args);
    wake?.();
  };
  const fail = (error) => {
    failed = { error };
    wake?.();
  };
  emitter.on(name, put);
  if (name !== "error") emitter.on("error", fail);
  options.signal?.addEventListener("abort", () => fail(options.signal.reason), { once: true });
  try {
    for (;;) {
      while (queue.length) yield queue.shift();
      if (failed) throw failed.error;
      await new Promise((resolve) => { wake = resolve; });
    }
  } finally {
    emitter.off(name, put);
    emitter.off("error", fail);
  }
}

const isTarget = (value) => value instanceof EventTarget;
class EventEmitterAsyncResource extends EventEmitter {
  asyncId() { return 0; }
  triggerAsyncId() { return 0; }
  emitDestroy() {}
}
module.exports = Object.assign(EventEmitter, {
  EventEmitter, EventEmitterAsyncResource, once, on, errorMonitor, usingDomains: false, captureRejections: false,
  captureRejectionSymbol: Symbol.for("nodejs.rejection"),
  getEventListeners: (emitter, name) => (isTarget(emitter) ? [] : emitter.listeners(name)),
  getMaxListeners: (emitter) => (isTarget(emitter) ? 10 : emitter.getMaxListeners()),
  setMaxListeners(count, ...emitters) { for (const one of emitters) if (!isTarget(one)) one.setMaxListeners(count); },
  listenerCount: (emitter, name) => listenerCount.call(emitter, name),
  addAbortListener(signal, listener) {
    if (signal.aborted) queueMicrotask(() => listener());
    else signal.addEventListener("abort", listener, { once: true });
    return { [Symbol.dispose]() { signal.removeEventListener("abort", listener); } };
  },
});
