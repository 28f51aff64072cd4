class PerformanceEntry {}
class PerformanceObserver {
  observe() {}
  disconnect() {}
  takeRecords() { return []; }
  static supportedEntryTypes = [];
}
const histogram = () => ({ min: 0, max: 0, mean: 0, stddev: 0, count: 0, enable() {}, disable() {}, reset() {}, record() {}, recordDelta() {}, percentile: () => 0 });
module.exports = {
  performance, PerformanceEntry, PerformanceObserver, PerformanceMark: class extends PerformanceEntry {}, PerformanceMeasure: class extends PerformanceEntry {}, Performance: performance.constructor,
  PerformanceObserverEntryList: class {}, PerformanceResourceTiming: class extends PerformanceEntry {}, createHistogram: histogram, monitorEventLoopDelay: histogram, constants: {},
  eventLoopUtilization: performance.eventLoopUtilization, timerify: performance.timerify,
};
