// The loader: which module an import or a require means, and what is in it. Everything that can be loaded came with the
// input, with its resolutions already worked out by the host; nothing is looked for while code runs.
const { create, keys, defineProperty, getOwnPropertyNames, hasOwn, assign } = Object;
const hidden = (target, name, value) => defineProperty(target, name, { value, writable: true, enumerable: false, configurable: true });

const PARAMETERS = "exports, require, module, __filename, __dirname";
const records = create(null); // id -> {format, source, imports, requires, statics}
const loaded = create(null); // id -> the CommonJS module
const walked = new Set(); // ES modules whose CommonJS dependencies have run
const errorWith = (Kind, code, message, facts) => assign(new Kind(message), { code }, facts);

// What Node has and an isolate cannot have: said with the same words everywhere.
const unavailable = (what) => errorWith(Error, "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM", `${what} is not available in an isolate`);

const dirname = (id) => id.slice(0, Math.max(id.lastIndexOf("/"), 0)) || "/";
const joined = (folder, path) => {
  const parts = [];
  for (const part of (path.startsWith("/") ? path : `${folder}/${path}`).split("/"))
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  return `/${parts.join("/")}`;
};

const builtinOf = (specifier) => {
  const name = specifier.startsWith("node:") ? specifier.slice(5) : specifier;
  return hasOwn(NAMES, name) ? `node:${name}` : undefined;
};

const ENDINGS = ["", ".js", ".json", ".cjs", ".mjs", "/index.js", "/index.json", "/index.cjs"];
// A path that was put together while code ran, among the files that are there.
const byPath = (base, specifier) => {
  if (specifier.startsWith("file://")) specifier = decodeURIComponent(new URL(specifier).pathname);
  if (!/^\.{0,2}\//.test(specifier) && specifier !== "." && specifier !== "..") return undefined;
  const path = joined(dirname(base), specifier);
  const ending = ENDINGS.find((one) => path + one in records);
  return ending === undefined ? undefined : path + ending;
};

const notFound = (base, specifier, code) => {
  const from = code === "MODULE_NOT_FOUND" ? `\nRequire stack:\n- ${base}` : ` imported from ${base}`;
  const what = code === "MODULE_NOT_FOUND" || /^\.{0,2}\//.test(specifier) ? "module" : "package";
  return errorWith(Error, code, `Cannot find ${what} '${specifier}'${from}`);
};

const resolveImport = (base, specifier) => {
  const found = builtinOf(specifier) ?? records[base]?.imports[specifier] ?? byPath(base, specifier);
  if (found !== undefined) return found;
  if (/^(?:https?|data|blob):/.test(specifier))
    throw errorWith(Error, "ERR_UNSUPPORTED_ESM_URL_SCHEME", `'${specifier.slice(0, 200)}' cannot be imported: only what was installed can be`);
  throw notFound(base, specifier, "ERR_MODULE_NOT_FOUND");
};

const resolveRequire = (base, specifier) => {
  if (typeof specifier !== "string")
    throw errorWith(TypeError, "ERR_INVALID_ARG_TYPE", `The "id" argument must be of type string. Received ${typeof specifier}`);
  const found = builtinOf(specifier) ?? records[base]?.requires[specifier] ?? byPath(base, specifier);
  if (found === undefined) throw notFound(base, specifier, "MODULE_NOT_FOUND");
  return found;
};

class Module {
  constructor(id = "", parent) {
    this.id = id;
    this.path = dirname(id);
    this.exports = {};
    this.parent = parent;
    this.filename = id;
    this.loaded = false;
    this.children = [];
    this.paths = [];
  }
  require(specifier) { return requireId(resolveRequire(this.filename, specifier)); }
}

const requireFrom = (base) => {
  const require = (specifier) => requireId(resolveRequire(base, specifier));
  require.resolve = (specifier) => resolveRequire(base, specifier).replace(/^node:/, (prefix) => (`${specifier}`.startsWith(prefix) ? prefix : ""));
  require.resolve.paths = () => [];
  require.cache = loaded;
  require.main = undefined;
  require.extensions = create(null);
  return require;
};

const run = (module, source) => {
  const compiled = natives.compile(source, module.filename, PARAMETERS);
  module.require = requireFrom(module.filename);
  compiled.call(module.exports, module.exports, module.require, module, module.filename, module.path);
};

// A CommonJS view of an ES module, as Node gives it: its namespace, marked where it has a default export.
const viewOf = (namespace) => {
  if (hasOwn(namespace, "module.exports")) return namespace["module.exports"];
  if (!hasOwn(namespace, "default") || hasOwn(namespace, "__esModule")) return namespace;
  const view = create(null, { __esModule: { value: true, enumerable: false } });
  for (const name of getOwnPropertyNames(namespace)) defineProperty(view, name, { get: () => namespace[name], enumerable: true });
  return view;
};

const requireModule = (id) => {
  const [promise, namespace] = natives.evaluate(id);
  const [state, result] = natives.peek(promise);
  if (state === 1) return viewOf(namespace);
  promise.catch(() => {});
  if (state === 2) throw result;
  throw errorWith(Error, "ERR_REQUIRE_ASYNC_MODULE", `require() cannot be used on an ES module with top-level await: ${id}`);
};

const parsed = (id, source) => {
  try {
    return JSON.parse(source);
  } catch (error) {
    error.message = `${id}: ${error.message}`;
    throw error;
  }
};

const requireId = (id) => {
  if (id.startsWith("node:")) return builtin(id);
  if (loaded[id]) return loaded[id].exports;
  const record = records[id];
  if (record === undefined) throw notFound(id, id, "MODULE_NOT_FOUND");
  const module = (loaded[id] = new Module(id));
  try {
    if (record.format === "esm") module.exports = requireModule(id);
    else if (record.format === "json") module.exports = parsed(id, record.source);
    else if (record.format === "native") throw errorWith(Error, "ERR_DLOPEN_FAILED", unavailable(`the native addon ${id}`).message);
    else run(module, record.source);
    module.loaded = true;
  } catch (error) {
    delete loaded[id];
    throw error;
  }
  return module.exports;
};

// The parts of Node's library, each run when it is first asked for; all of them have been when the image is taken.
const builtins = create(null);
const builtin = (id) => {
  if (id in builtins) return builtins[id].exports;
  const module = (builtins[id] = new Module(id));
  const source = LIBRARY[id];
  if (source === undefined) module.exports = absent(id.slice(5));
  else natives.compile(source, id, `${PARAMETERS}, natives, house`).call(module.exports, module.exports, inLibrary(id), module, id, "/", natives, house);
  return module.exports;
};
const ALIASES = { __proto__: null, "safe-buffer": "node:buffer", "process/": "node:process", process: "node:process", "abort-controller": "web:abort", inherits: "node:inherits" };
const inLibrary = (base) => (specifier) => {
  if (ALIASES[specifier] === "web:abort") return { AbortController, AbortSignal };
  const relative = /^\.{1,2}(?:\/|$)/.test(specifier) ? joined(dirname(`/${base}`), specifier).slice(1) : undefined;
  if (relative !== undefined) return fromLibrary([`${relative}.js`, relative, `${relative}/index.js`].find((id) => id in LIBRARY) ?? relative);
  if (OWN_PACKAGES[specifier] && base !== OWN_PACKAGES[specifier] && !base.startsWith("node:")) return fromLibrary(OWN_PACKAGES[specifier]);
  return builtin(ALIASES[specifier] ?? `node:${specifier.replace(/^node:/, "").replace(/\/$/, "")}`);
};
const OWN_PACKAGES = { __proto__: null, "base64-js": "base64-js/index.js", ieee754: "ieee754/index.js" };
const fromLibrary = (id) => {
  if (id.startsWith("node:")) return builtin(id);
  if (id in builtins) return builtins[id].exports;
  const module = (builtins[id] = new Module(id));
  natives.compile(LIBRARY[id], id, PARAMETERS).call(module.exports, module.exports, inLibrary(id), module, id, dirname(id));
  return module.exports;
};

// A part of Node's library that an isolate cannot have: it loads, and each of its functions says so when it is called.
const absent = (name) => {
  const exports = {};
  for (const key of NAMES[name] ?? []) {
    const refuse = { [key]: function () { throw unavailable(`node:${name} (${key})`); } }[key];
    exports[key] = refuse;
  }
  return exports;
};

const namesOf = (id, value) => {
  const names = new Set(id.startsWith("node:") ? NAMES[id.slice(5)] : []);
  if (value !== null && (typeof value === "object" || typeof value === "function") && records[id]?.format !== "json") {
    for (const name in value) names.add(name);
    for (const name of getOwnPropertyNames(value)) names.add(name);
    if (typeof value === "function") for (const name of ["length", "name", "prototype", "arguments", "caller"]) names.delete(name);
  }
  names.delete("default");
  return ["default", "module.exports", ...names];
};

// CommonJS modules run before the ES modules that import them are linked, so that the names of their exports are known.
const walk = (id) => {
  if (walked.has(id)) return;
  walked.add(id);
  for (const next of records[id].statics) {
    const record = records[next];
    if (record === undefined) continue;
    if (record.format === "esm") {
      walk(next);
      continue;
    }
    try {
      requireId(next);
    } catch {
      // It is met again, and reported, where the import stands.
    }
  }
};

const loader = {
  __proto__: null,
  resolve: resolveImport,
  load(id) {
    const record = records[id];
    if (id.startsWith("node:") || (record !== undefined && record.format !== "esm")) return namesOf(id, requireId(id));
    if (record === undefined) throw notFound(id, id, "ERR_MODULE_NOT_FOUND");
    walk(id);
    return record.source;
  },
  exported(id) {
    const value = requireId(id);
    const pairs = [];
    for (const name of namesOf(id, value)) {
      let item = value;
      if (name !== "default" && name !== "module.exports") {
        try {
          item = value[name];
        } catch {
          item = undefined;
        }
      }
      pairs.push(name, item);
    }
    return pairs;
  },
  describe(id, meta) {
    assign(meta, { dirname: dirname(id), filename: id, url: `file://${encodeURI(id)}` });
    meta.resolve = (specifier) => {
      const found = resolveImport(id, `${specifier}`);
      return found.startsWith("node:") ? found : `file://${encodeURI(found)}`;
    };
  },
};
const house = { unavailable, errorWith, hidden, requireFrom, requireId, builtin, builtinOf, fromLibrary, records, Module, NAMES, joined };
