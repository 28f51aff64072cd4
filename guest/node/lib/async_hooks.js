// The stores of a moment are a map that is never changed, only replaced: the engine keeps the one at which `then`, `await`,
// a timer or a task was asked for, and has it back in place when that goes on.
const storesWith = (storage, store) => new Map(natives.context()).set(storage, store);

class AsyncLocalStorage {
  #defaultValue;
  constructor(options) {
    this.#defaultValue = options?.defaultValue;
    this.name = options?.name ?? "";
  }
  run(store, callback, ...args) { return house.within(storesWith(this, store), callback, undefined, args); }
  exit(callback, ...args) { return house.within(this.#without(), callback, undefined, args); }
  getStore() {
    const stores = natives.context();
    return stores?.has(this) ? stores.get(this) : this.#defaultValue;
  }
  enterWith(store) { natives.setContext(storesWith(this, store)); }
  disable() { natives.setContext(this.#without()); }
  #without() {
    const stores = new Map(natives.context());
    stores.delete(this);
    return stores.size ? stores : undefined;
  }
  static bind(callback) { return new AsyncResource("bound").bind(callback); }
  static snapshot() {
    const stores = natives.context();
    return (callback, ...args) => house.within(stores, callback, undefined, args);
  }
}
class AsyncResource {
  #stores = natives.context();
  constructor(type) { this.type = type; }
  runInAsyncScope(callback, self, ...args) { return house.within(this.#stores, callback, self, args); }
  emitDestroy() { return this; }
  asyncId() { return 1; }
  triggerAsyncId() { return 0; }
  bind(callback, self) {
    const resource = this;
    return function (...args) { return resource.runInAsyncScope(callback, self ?? this, ...args); };
  }
  static bind(callback, type, self) { return new AsyncResource(type).bind(callback, self); }
}
module.exports = {
  AsyncLocalStorage, AsyncResource, createHook: () => ({ enable() { return this; }, disable() { return this; } }), executionAsyncId: () => 1, triggerAsyncId: () => 0,
  executionAsyncResource: () => ({}), asyncWrapProviders: {},
};
