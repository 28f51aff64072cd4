// module: what a package may ask about the loader.
const { Module } = house;
const createRequire = (from) => {
  const text = from instanceof URL ? from.href : `${from}`;
  return house.requireFrom(text.startsWith("file://") ? decodeURIComponent(new URL(text).pathname) : text);
};
Object.assign(Module, {
  Module, createRequire, builtinModules: Object.keys(house.NAMES), isBuiltin: (name) => house.builtinOf(`${name}`) !== undefined, globalPaths: [], _extensions: Object.create(null),
  _cache: Object.create(null), _pathCache: Object.create(null), wrap: (text) => `(function (exports, require, module, __filename, __dirname) { ${text}\n});`, _nodeModulePaths: () => [],
  _resolveFilename: (name, parent) => house.requireFrom(parent?.filename ?? "/").resolve(name), _load: (name, parent) => house.requireFrom(parent?.filename ?? "/")(name),
  findSourceMap: () => undefined, syncBuiltinESMExports() {}, enableCompileCache: () => ({ status: 3 }), getCompileCacheDir: () => undefined, flushCompileCache() {}, constants: { compileCacheStatus: {} },
  register() { throw house.unavailable("module.register"); }, registerHooks() { throw house.unavailable("module.registerHooks"); },
});
module.exports = Module;
