// Channels within the isolate: who subscribes hears what is published.
const channels = new Map();
class Channel {
  #subscribers = new Set();
  constructor(name) { this.name = name; }
  get hasSubscribers() { return this.#subscribers.size > 0; }
  subscribe(listener) { this.#subscribers.add(listener); }
  unsubscribe(listener) { return this.#subscribers.delete(listener); }
  publish(message) { for (const listener of this.#subscribers) listener(message, this.name); }
  bindStore() {}
  unbindStore() {}
  runStores(data, callback, self, ...args) { return callback.apply(self, args); }
}
const channel = (name) => {
  if (!channels.has(name)) channels.set(name, new Channel(name));
  return channels.get(name);
};
module.exports = {
  Channel, channel, hasSubscribers: (name) => channel(name).hasSubscribers, subscribe: (name, listener) => channel(name).subscribe(listener), unsubscribe: (name, listener) => channel(name).unsubscribe(listener),
  tracingChannel(name) {
    const parts = Object.fromEntries(["start", "end", "asyncStart", "asyncEnd", "error"].map((part) => [part, channel(`tracing:${name}:${part}`)]));
    return { ...parts, hasSubscribers: false, subscribe() {}, unsubscribe() {}, traceSync: (work, context, self, ...args) => work.apply(self, args), tracePromise: (work, context, self, ...args) => work.apply(self, args), traceCallback: (work, at, context, self, ...args) => work.apply(self, args) };
  },
  BoundedChannel: class BoundedChannel extends Channel {}, boundedChannel: channel,
};
