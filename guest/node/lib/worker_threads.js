module.exports = {
  isMainThread: true, isInternalThread: false, parentPort: null, workerData: null, threadId: 0, threadName: "", resourceLimits: {}, SHARE_ENV: Symbol("nodejs.worker_threads.SHARE_ENV"), MessageChannel, MessagePort,
  BroadcastChannel, Worker: class Worker { constructor() { throw house.unavailable("node:worker_threads (Worker)"); } }, markAsUntransferable() {}, markAsUncloneable() {}, isMarkedAsUntransferable: () => false,
  moveMessagePortToContext: (port) => port, receiveMessageOnPort: () => undefined, getEnvironmentData: () => undefined, setEnvironmentData() {}, locks: {}, postMessageToThread() {},
};
