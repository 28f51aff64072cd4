// AsyncLocalStorage holds for what runs within `run`, and for the promises and timers that begin there, as far as the
// store's value is taken up again by hand: the engine has no hook where a promise goes on.
class AsyncLocalStorage {
  #store;
  run(store, callback, ...args) {
    const before = this.#store;
    this.#store = store;
    let result;
    try {
      result = callback(...args);
    } catch (error) {
      this.#store = before;
      throw error;
    }
    if (typeof result?.then === "function") return result.then((value) => { this.#store = before; return value; }, (error) => { this.#store = before; throw error; });
    this.#store = before;
    return result;
  }
  exit(callback, ...args) { return this.run(undefined, callback, ...args); }
  getStore() { return this.#store; }
  enterWith(store) { this.#store = store; }
  disable() { this.#store = undefined; }
  static bind(callback) { return callback; }
  static snapshot() { return (callback, ...args) => callback(...args); }
}
class AsyncResource {
  constructor(type) { this.type = type; }
  runInAsyncScope(callback, self, ...args) { return callback.apply(self, args); }
  emitDestroy() { return this; }
  asyncId() { return 1; }
  triggerAsyncId() { return 0; }
  bind(callback) { return callback; }
  static bind(callback) { return callback; }
}
module.exports = {
  AsyncLocalStorage, AsyncResource, createHook: () => ({ enable() { return this; }, disable() { return this; } }), executionAsyncId: () => 1, triggerAsyncId: () => 0,
  executionAsyncResource: () => ({}), asyncWrapProviders: {},
};
