const EventEmitter = require("events");
class Interface extends EventEmitter {
  constructor(options) {
    super();
    const input = options?.input ?? options;
    let rest = "";
    input?.on?.("data", (chunk) => {
      const lines = (rest + chunk).split(/\r?\n/);
      rest = lines.pop();
      for (const line of lines) this.emit("line", line);
    });
    input?.on?.("end", () => {
      if (rest) this.emit("line", rest);
      this.emit("close");
    });
  }
  close() { this.emit("close"); }
  setPrompt() {}
  prompt() {}
  pause() { return this; }
  resume() { return this; }
  question() { throw house.unavailable("a question at a terminal"); }
  async *[Symbol.asyncIterator]() {
    for await (const [line] of EventEmitter.on(this, "line", {})) yield line;
  }
}
module.exports = { Interface, createInterface: (options) => new Interface(options), clearLine: () => true, clearScreenDown: () => true, cursorTo: () => true, moveCursor: () => true, emitKeypressEvents() {} };
