const promises = require("timers/promises");
module.exports = { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, promises, active() {}, enroll() {}, unenroll() {}, _unrefActive() {} };
