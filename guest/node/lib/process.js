// process: what a package may look at. The environment is what the call gave, and nothing of the host.
const EventEmitter = require("events");

const read = new Set();
let recording = false;
const noted = (key) => { if (recording && typeof key === "string") read.add(key); };
const env = new Proxy({}, {
  get(target, key) {
    noted(key);
    return target[key];
  },
  has(target, key) {
    noted(key);
    return key in target;
  },
  getOwnPropertyDescriptor(target, key) {
    noted(key);
    return Reflect.getOwnPropertyDescriptor(target, key);
  },
  ownKeys(target) {
    noted("*");
    return Reflect.ownKeys(target);
  },
  set(target, key, value) {
    if (typeof key !== "string") return false;
    return Reflect.defineProperty(target, key, { value: `${value}`, writable: true, enumerable: true, configurable: true });
  },
  defineProperty: (target, key, found) => Reflect.defineProperty(target, key, { ...found, value: `${found.value}`, writable: true, enumerable: true, configurable: true }),
});

const writer = (level) => {
  let rest = "";
  return Object.assign(new EventEmitter(), {
    isTTY: false, columns: 80, writable: true, fd: level === "log" ? 1 : 2,
    write(chunk, encoding, callback) {
      rest += typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
      const lines = rest.split("\n");
      rest = lines.pop();
      for (const line of lines) console[level](line);
      const done = typeof encoding === "function" ? encoding : callback;
      if (typeof done === "function") queueMicrotask(done);
      return true;
    },
    end() { return this; },
    cork() {},
    uncork() {},
    getColorDepth: () => 1,
    hasColors: () => false,
  });
};

const process = Object.assign(Object.create(EventEmitter.prototype), {
  title: "node", version: "v22.14.0", versions: { node: "22.14.0", v8: "12.4.254.21-node.33", modules: "127", uv: "1.49.2" },
  arch: "x64", platform: "linux", release: { name: "node", lts: "Jod" }, argv: ["/usr/local/bin/node", "/index.js"], argv0: "node",
  execArgv: [], execPath: "/usr/local/bin/node", pid: 1, ppid: 0, exitCode: undefined, features: { inspector: false, tls: false },
  config: { target_defaults: {}, variables: {} }, allowedNodeEnvironmentFlags: new Set(), report: { getReport: () => ({ header: { glibcVersionRuntime: "2.36" }, sharedObjects: [] }), excludeNetwork: true }, debugPort: 0, noDeprecation: false,
  env,
  stdout: writer("log"),
  stderr: writer("error"),
  stdin: Object.assign(new EventEmitter(), { isTTY: false, fd: 0, read: () => null, setEncoding() { return this; }, resume() { return this; }, pause() { return this; } }),
  cwd: () => "/",
  umask: () => 0o22,
  uptime: () => performance.now() / 1000,
  nextTick(callback, ...args) { queueMicrotask(() => callback(...args)); },
  hrtime: Object.assign((before) => {
    const now = performance.now();
    let seconds = Math.floor(now / 1000);
    let rest = Math.floor((now % 1000) * 1e6);
    if (before) {
      seconds -= before[0];
      rest -= before[1];
      if (rest < 0) {
        seconds -= 1;
        rest += 1e9;
      }
    }
    return [seconds, rest];
  }, { bigint: () => BigInt(Math.floor(performance.now() * 1e6)) }),
  memoryUsage: Object.assign(() => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }), { rss: () => 0 }),
  cpuUsage: () => ({ user: 0, system: 0 }),
  resourceUsage: () => ({}),
  getuid: () => 1000, geteuid: () => 1000, getgid: () => 1000, getegid: () => 1000, getgroups: () => [1000],
  emitWarning(warning) { console.warn(typeof warning === "string" ? warning : (warning?.message ?? warning)); },
  getBuiltinModule: (name) => (house.builtinOf(`${name}`) ? house.builtin(house.builtinOf(`${name}`)) : undefined),
  exit(code) { throw house.errorWith(Error, "ERR_PROCESS_EXIT", `process.exit(${code ?? ""}) was called`); },
});
for (const name of ["abort", "binding", "_linkedBinding", "chdir", "dlopen", "kill", "setuid", "setgid"])
  house.hidden(process, name, { [name]() { throw house.unavailable(`process.${name}`); } }[name]);
EventEmitter.call(process);
house.hidden(process, Symbol.toStringTag, "process");
house.env = { record(on) { recording = on; }, read: () => [...read], set(values) { for (const name of Object.keys(values)) env[name] = values[name]; } };
module.exports = process;
