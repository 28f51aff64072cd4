class Event {
  #type;
  #cancelable;
  #prevented = false;
  #stopped = false;
  #target = null;
  #time = natives.elapsed();
  constructor(type, options) {
    need(arguments.length, 1, "Event");
    this.#type = `${type}`;
    this.#cancelable = !!options?.cancelable;
    defineProperty(this, "isTrusted", { __proto__: null, value: false, enumerable: true });
  }
  get type() { return this.#type; }
  get target() { return this.#target; }
  get currentTarget() { return this.#target; }
  get srcElement() { return this.#target; }
  get bubbles() { return false; }
  get composed() { return false; }
  get cancelable() { return this.#cancelable; }
  get defaultPrevented() { return this.#prevented; }
  get timeStamp() { return this.#time; }
  preventDefault() { if (this.#cancelable) this.#prevented = true; }
  stopPropagation() {}
  stopImmediatePropagation() { this.#stopped = true; }
  static at(event, target) { event.#target = target; }
  static stopped(event) { return event.#stopped; }
}
// what only the boot code may do leaves the class
const { at: eventAt, stopped: eventStopped } = Event;
delete Event.at;
delete Event.stopped;
tag(Event.prototype, "Event");

class CustomEvent extends Event {
  #detail;
  constructor(type, options) {
    super(type, options);
    this.#detail = options?.detail ?? null;
  }
  get detail() { return this.#detail; }
}
tag(CustomEvent.prototype, "CustomEvent");

const reportListener = (error) => natives.log("error", slice(`Uncaught in an event listener: ${inspect(error)}`, 0, 4096));

class EventTarget {
  #listeners = [];
  addEventListener(type, listener, options) {
    if (listener === null || listener === undefined) return;
    const once = typeof options === "object" && options !== null && !!options.once;
    const signal = typeof options === "object" && options !== null ? options.signal : undefined;
    if (signal && signalAborted(signal)) return;
    type = `${type}`;
    for (let i = 0; i < this.#listeners.length; i++)
      if (this.#listeners[i].type === type && this.#listeners[i].listener === listener) return;
    push(this.#listeners, { __proto__: null, type, listener, once, gone: false });
    if (signal) signalThen(signal, () => this.removeEventListener(type, listener));
  }
  removeEventListener(type, listener) {
    type = `${type}`;
    for (let i = 0; i < this.#listeners.length; i++) {
      const entry = this.#listeners[i];
      if (entry.type !== type || entry.listener !== listener) continue;
      entry.gone = true;
      splice(this.#listeners, i, 1);
      return;
    }
  }
  dispatchEvent(event) {
    eventAt(event, this);
    const type = event.type;
    const entries = arraySlice(this.#listeners);
    for (let i = 0; i < entries.length && !eventStopped(event); i++) {
      const entry = entries[i];
      if (entry.type !== type || entry.gone) continue;
      if (entry.once) this.removeEventListener(type, entry.listener);
      try {
        if (typeof entry.listener === "function") apply(entry.listener, this, [event]);
        else apply(entry.listener.handleEvent, entry.listener, [event]);
      } catch (error) {
        reportListener(error);
      }
    }
    return !event.defaultPrevented;
  }
}
tag(EventTarget.prototype, "EventTarget");
const { dispatchEvent: dispatch } = EventTarget.prototype;

let mayConstructSignal = false;
class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;
  #steps = [];
  #onabort = null;
  constructor() {
    if (!mayConstructSignal) throw new TypeError("Illegal constructor: use new AbortController().signal");
    super();
  }
  get aborted() { return this.#aborted; }
  get reason() { return this.#reason; }
  get onabort() { return this.#onabort; }
  set onabort(listener) { this.#onabort = typeof listener === "function" ? listener : null; }
  throwIfAborted() { if (this.#aborted) throw this.#reason; }
  static abort(reason) {
    const signal = newSignal();
    signalAbort(signal, reason);
    return signal;
  }
  static timeout(milliseconds) {
    const ms = +milliseconds;
    if (!(ms >= 0)) throw new TypeError("AbortSignal.timeout: a number of milliseconds is expected");
    const signal = newSignal();
    natives.setTimer(() => signalAbort(signal, new DOMExceptionClass("The operation timed out", "TimeoutError")), ms, false);
    return signal;
  }
  static any(signals) {
    const all = listOf(signals);
    const signal = newSignal();
    for (let i = 0; i < all.length; i++) {
      if (!(#aborted in all[i])) throw new TypeError("AbortSignal.any: signals are expected");
      if (all[i].#aborted) {
        signalAbort(signal, all[i].#reason);
        return signal;
      }
    }
    for (let i = 0; i < all.length; i++) signalThen(all[i], () => signalAbort(signal, all[i].#reason));
    return signal;
  }
  static run(signal, reason) {
    if (signal.#aborted) return;
    signal.#aborted = true;
    signal.#reason = reason === undefined ? new DOMExceptionClass("This operation was aborted", "AbortError") : reason;
    const steps = signal.#steps;
    signal.#steps = [];
    for (let i = 0; i < steps.length; i++) steps[i]();
    const event = new Event("abort");
    if (signal.#onabort) {
      eventAt(event, signal);
      try {
        apply(signal.#onabort, signal, [event]);
      } catch (error) {
        reportListener(error);
      }
    }
    apply(dispatch, signal, [event]);
  }
  static has(signal) { return #aborted in signal && signal.#aborted; }
  static then(signal, step) { if (#aborted in signal) push(signal.#steps, step); }
  static is(value) { return typeof value === "object" && value !== null && #aborted in value; }
}
const { run: signalAbort, has: signalAborted, then: signalThen, is: isSignal } = AbortSignal;
delete AbortSignal.run;
delete AbortSignal.has;
delete AbortSignal.then;
delete AbortSignal.is;
tag(AbortSignal.prototype, "AbortSignal");

const newSignal = () => {
  mayConstructSignal = true;
  const signal = new AbortSignal();
  mayConstructSignal = false;
  return signal;
};

class AbortController {
  #signal = newSignal();
  get signal() { return this.#signal; }
  abort(reason) { signalAbort(this.#signal, reason); }
}
tag(AbortController.prototype, "AbortController");

// What an iterable of a script gives; running the script's code is the point here.
const listOf = (iterable) => {
  const list = [];
  for (const item of iterable) push(list, item);
  return list;
};
