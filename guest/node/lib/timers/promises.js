const after = (set) => (value, options = {}) =>
  new Promise((resolve, reject) => {
    if (options.signal?.aborted) {
      reject(options.signal.reason);
      return;
    }
    const timer = set(() => resolve(value));
    options.signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(options.signal.reason);
    }, { once: true });
  });
const wait = (delay, value, options) => after((done) => setTimeout(done, delay))(value, options);
module.exports = {
  setTimeout: wait,
  setImmediate: (value, options) => after((done) => setImmediate(done))(value, options),
  async *setInterval(delay, value, options) { for (;;) yield wait(delay, value, options); },
  scheduler: { wait: (delay, options) => wait(delay, undefined, options), yield: () => wait(0) },
};
