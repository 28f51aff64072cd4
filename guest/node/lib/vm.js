// vm runs code in the one realm that there is. It has never been a wall.
const run = (code) => (0, eval)(`${code}`);
class Script {
  #code;
  constructor(code) { this.#code = code; }
  runInThisContext() { return run(this.#code); }
  runInNewContext() { throw house.unavailable("a context of its own"); }
  runInContext() { throw house.unavailable("a context of its own"); }
  createCachedData() { return Buffer.alloc(0); }
}
const refuse = () => { throw house.unavailable("a context of its own"); };
module.exports = {
  Script, runInThisContext: run, runInNewContext: refuse, runInContext: refuse, createContext: refuse, createScript: (code) => new Script(code), isContext: () => false, constants: {}, measureMemory: refuse,
  compileFunction: (code, parameters = []) => new Function(...parameters, code),
};
