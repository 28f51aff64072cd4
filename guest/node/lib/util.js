// util: inspecting, formatting, comparing, adapting.
const types = require("util/types");
const inherits = require("inherits");
const CUSTOM = Symbol.for("nodejs.util.inspect.custom");
const PROMISIFY = Symbol.for("nodejs.util.promisify.custom");

const quoted = (text) => {
  const quote = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes("`") && !text.includes("${") ? "`" : "'";
  const plain = text.replace(/[\\\n\r\t\b\f\v\0]/g, (c) => ({ "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\0": "\\x00" })[c]);
  return `${quote}${quote === "'" ? plain.replaceAll("'", "\\'") : plain}${quote}`;
};
const keyText = (key) => (typeof key === "symbol" ? `[${String(key)}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key));
const numberText = (value) => (Object.is(value, -0) ? "-0" : `${value}`);
const nameOf = (value) => {
  for (let at = value; at !== null; at = Object.getPrototypeOf(at)) {
    const found = Object.getOwnPropertyDescriptor(at, "constructor")?.value;
    if (typeof found === "function" && found.name !== "") return found.name;
  }
  return null;
};

class Inspector {
  constructor(options) {
    this.options = { depth: 2, compact: 3, breakLength: 80, maxArrayLength: 100, maxStringLength: 10000, showHidden: false, sorted: false, customInspect: true, getters: false, ...options };
    this.seen = [];
    this.circular = new Map();
  }
  show(value, depth = 0, top = true) {
    switch (typeof value) {
      case "string": return this.text(value);
      case "number": return numberText(value);
      case "bigint": return `${value}n`;
      case "symbol": return String(value);
      case "undefined": case "boolean": return `${value}`;
      default: return value === null ? "null" : this.object(value, depth, top);
    }
  }
  text(value) {
    const most = this.options.maxStringLength ?? Infinity;
    return value.length > most ? `${quoted(value.slice(0, most))}... ${value.length - most} more characters` : quoted(value);
  }
  object(value, depth) {
    const custom = this.options.customInspect && kindOf(value) !== "proxy" ? value[CUSTOM] : undefined;
    if (typeof custom === "function" && custom !== inspect) {
      const left = this.options.depth === null ? null : this.options.depth - depth;
      const made = custom.call(value, left, { ...this.options, stylize: (text) => text }, inspect);
      return typeof made === "string" ? made : this.show(made, depth);
    }
    if (this.seen.includes(value)) {
      if (!this.circular.has(value)) this.circular.set(value, this.circular.size + 1);
      return `[Circular *${this.circular.get(value)}]`;
    }
    this.seen.push(value);
    const shown = this.parts(value, depth);
    this.seen.pop();
    return this.circular.has(value) ? `<ref *${this.circular.get(value)}> ${shown}` : shown;
  }
  parts(value, depth) {
    const kind = kindOf(value);
    if (kind === "proxy") return this.record({}, depth, "");
    const name = nameOf(value);
    const tag = value[Symbol.toStringTag];
    const label = `${name ?? "[Object: null prototype]"}${typeof tag === "string" && tag !== "" && tag !== name ? ` [${tag}]` : ""}`;
    const deep = this.options.depth !== null && depth > this.options.depth;
    if (Array.isArray(value)) {
      if (deep) return `[${name ?? "Array"}]`;
      return this.list(value, depth, name === "Array" ? "" : `${label}(${value.length}) `, [...Array(Math.min(value.length, this.options.maxArrayLength ?? Infinity)).keys()]);
    }
    if (kind === "error") return this.error(value, depth);
    if (kind === "date") return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
    if (kind === "regexp") return `${RegExp.prototype.toString.call(value)}`;
    if (kind === "promise") return this.promise(value, depth, label);
    if (kind === "function") {
      const what = /^class\b/.test(Function.prototype.toString.call(value))
        ? `[class ${value.name || "(anonymous)"}${typeof Object.getPrototypeOf(value) === "function" && Object.getPrototypeOf(value).name ? ` extends ${Object.getPrototypeOf(value).name}` : ""}]`
        : `[${types.isAsyncFunction(value) ? "AsyncFunction" : types.isGeneratorFunction(value) ? "GeneratorFunction" : "Function"}${value.name ? `: ${value.name}` : " (anonymous)"}]`;
      return Object.keys(value).length && !deep ? this.record(value, depth, `${what} `) : what;
    }
    if (kind === "boxed") return `[${name}: ${this.show(value.valueOf(), depth)}]`;
    if (deep) return `[${label}]`;
    if (kind === "map") return this.wrap(`${label}(${value.size}) {`, [...value].map(([k, v]) => `${this.show(k, depth + 1)} => ${this.show(v, depth + 1)}`), "}", depth);
    if (kind === "set") return this.wrap(`${label}(${value.size}) {`, [...value].map((one) => this.show(one, depth + 1)), "}", depth);
    if (ArrayBuffer.isView(value) && kind !== "view")
      return this.list(value, depth, `${label}(${value.length}) `, [...Array(Math.min(value.length, this.options.maxArrayLength ?? Infinity)).keys()]);
    if (value instanceof ArrayBuffer)
      return `ArrayBuffer { [Uint8Contents]: <${[...new Uint8Array(value).subarray(0, 50)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ")}>, byteLength: ${value.byteLength} }`;
    return this.record(value, depth, label === "Object" ? "" : `${label} `);
  }
  promise(value, depth, label) {
    const [state, result] = natives.peek(value);
    const body = state === 0 ? "<pending>" : `${state === 2 ? "<rejected> " : ""}${this.show(result, depth + 1)}`;
    return `${label} { ${body} }`;
  }
  error(value, depth) {
    const name = value.name ?? "Error";
    const head = `${name}${value.message ? `: ${value.message}` : ""}`;
    const stack = typeof value.stack === "string" && value.stack !== "" ? value.stack.replace(/\n$/, "") : "";
    let text = stack === "" ? `[${head}]` : stack.startsWith(head) ? stack : `${head}\n${stack}`;
    const facts = Object.keys(value).filter((key) => key !== "stack" && key !== "message" && key !== "name");
    if (Object.hasOwn(value, "cause") && !facts.includes("cause")) facts.push("cause");
    if (facts.length) text += ` ${this.wrap("{", facts.map((key) => `${key === "cause" ? "[cause]" : keyText(key)}: ${this.show(value[key], depth + 1)}`), "}", depth)}`;
    return text;
  }
  property(value, key, depth) {
    const found = Object.getOwnPropertyDescriptor(value, key);
    const shown = found === undefined || Object.hasOwn(found, "value") ? this.show(found?.value, depth + 1)
      : found.get ? (found.set ? "[Getter/Setter]" : "[Getter]") : "[Setter]";
    return `${keyText(key)}: ${shown}`;
  }
  keys(value) {
    const keys = this.options.showHidden ? Object.getOwnPropertyNames(value) : Object.keys(value);
    for (const symbol of Object.getOwnPropertySymbols(value)) if (Object.prototype.propertyIsEnumerable.call(value, symbol)) keys.push(symbol);
    return this.options.sorted ? keys.sort() : keys;
  }
  record(value, depth, prefix) { return this.wrap(`${prefix}{`, this.keys(value).map((key) => this.property(value, key, depth)), "}", depth); }
  list(value, depth, prefix, indices) {
    const parts = [];
    let holes = 0;
    const flush = () => {
      if (holes) parts.push(`<${holes} empty item${holes > 1 ? "s" : ""}>`);
      holes = 0;
    };
    for (const index of indices) {
      if (!(index in value)) {
        holes += 1;
        continue;
      }
      flush();
      parts.push(this.show(value[index], depth + 1));
    }
    flush();
    if (value.length > indices.length) parts.push(`... ${value.length - indices.length} more item${value.length - indices.length > 1 ? "s" : ""}`);
    if (Array.isArray(value)) for (const key of this.keys(value)) if (typeof key === "symbol" || !/^\d+$/.test(key)) parts.push(this.property(value, key, depth));
    return this.wrap(`${prefix}[`, parts, "]", depth, value.length > 6);
  }
  wrap(open, parts, close, depth, many = false) {
    if (!parts.length) return `${open}${close}`;
    const line = `${open} ${parts.join(", ")} ${close}`;
    const limit = this.options.breakLength ?? Infinity;
    if (!many && line.length + 2 * depth <= Math.min(limit, 76) && !line.includes("\n")) return line;
    if (many && line.length <= 16 * 4.5 && !line.includes("\n") && parts.length <= 6) return line;
    const indent = "  ".repeat(depth + 1);
    return `${open}\n${(many ? this.rows(parts, depth) : parts).map((part) => indent + part).join(",\n")}\n${"  ".repeat(depth)}${close}`;
  }
  // Short items of a long array in columns, as wide as Node makes them.
  rows(parts, depth) {
    const total = parts.reduce((sum, part) => sum + part.length + 2, 0);
    const widest = Math.max(...parts.map((part) => part.length)) + 2;
    if (widest * 3 + 2 * depth >= (this.options.breakLength ?? 80) || (total / widest <= 5 && widest > 6) === true) return parts;
    const columns = Math.max(1, Math.min(Math.round(Math.sqrt(2.5 * Math.max(widest - total / parts.length, 1) * parts.length) / widest), Math.floor((80 - 2 * depth) / widest), 16, 15));
    if (columns <= 1) return parts;
    const widths = [...Array(columns).keys()].map((column) => Math.max(...parts.filter((_, i) => i % columns === column).map((part) => part.length + 2)));
    const right = parts.every((part) => /^-?[\d.]+n?$/.test(part));
    const rows = [];
    for (let at = 0; at < parts.length; at += columns) {
      const row = parts.slice(at, at + columns);
      rows.push(row.map((part, i) => {
        const cell = i === row.length - 1 ? part : `${part}, `;
        return right ? cell.padStart(i === row.length - 1 ? widths[i] - 2 : widths[i]) : i === row.length - 1 ? cell : cell.padEnd(widths[i]);
      }).join(""));
    }
    return rows;
  }
}
const kindOf = natives.kindOf;
const inspect = (value, options, ...rest) => {
  const given = typeof options === "boolean" ? { showHidden: options, depth: rest[0] } : { ...options };
  for (const name of Object.keys(given)) if (given[name] === undefined) delete given[name];
  if (given.depth === Infinity) given.depth = null;
  return new Inspector(given).show(value);
};
Object.assign(inspect, { custom: CUSTOM, defaultOptions: {}, colors: Object.create(null), styles: Object.create(null), replDefaults: {} });

const formatWith = (options, ...args) => {
  let text = "";
  let at = 0;
  if (typeof args[0] === "string") {
    if (args.length === 1) return args[0];
    at = 1;
    text = args[0].replace(/%[sdifjoOc%]/g, (mark) => {
      if (mark === "%%") return "%";
      if (at >= args.length) return mark;
      const value = args[at++];
      switch (mark) {
        case "%s": return typeof value === "string" ? value : typeof value === "bigint" ? `${value}n` : typeof value === "object" && value !== null && !Object.hasOwn(value, "toString") && ["Object", "Array", null].includes(nameOf(value)) ? inspect(value, { ...options, depth: 0, compact: 3 }) : typeof value === "number" ? numberText(value) : String(value);
        case "%d": return typeof value === "bigint" ? `${value}n` : typeof value === "symbol" ? "NaN" : numberText(Number(value));
        case "%i": return typeof value === "bigint" ? `${value}n` : typeof value === "symbol" ? "NaN" : numberText(parseInt(value, 10));
        case "%f": return typeof value === "symbol" ? "NaN" : numberText(parseFloat(value));
        case "%j": try { return JSON.stringify(value); } catch { return "[Circular]"; }
        case "%o": return inspect(value, { ...options, showHidden: true, depth: 4 });
        case "%O": return inspect(value, options);
        default: return "";
      }
    });
  }
  for (; at < args.length; at++) text += `${text === "" && at === 0 ? "" : " "}${typeof args[at] === "string" ? args[at] : inspect(args[at], options)}`;
  return text;
};
const format = (...args) => formatWith({}, ...args);

const promisify = (original) => {
  if (typeof original !== "function") throw house.errorWith(TypeError, "ERR_INVALID_ARG_TYPE", 'The "original" argument must be of type function');
  if (original[PROMISIFY]) return original[PROMISIFY];
  const made = function (...args) {
    return new Promise((resolve, reject) => original.call(this, ...args, (error, value) => (error ? reject(error) : resolve(value))));
  };
  Object.setPrototypeOf(made, Object.getPrototypeOf(original));
  return Object.defineProperties(made, Object.getOwnPropertyDescriptors(original));
};
promisify.custom = PROMISIFY;
const callbackify = (original) => function (...args) {
  const callback = args.pop();
  original.apply(this, args).then((value) => queueMicrotask(() => callback(null, value)), (error) => queueMicrotask(() => callback(error ?? new Error("rejected without a reason"))));
};
Object.defineProperty(setTimeout, PROMISIFY, { get: () => require("timers/promises").setTimeout, configurable: true });
Object.defineProperty(setImmediate, PROMISIFY, { get: () => require("timers/promises").setImmediate, configurable: true });

// Whether two values are equal in all that can be seen of them; loosely, primitives are compared with ==.
const equal = (a, b, strict = true, seen = []) => {
  if (a === b) return strict ? a !== 0 || Object.is(a, b) : true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null)
    return strict ? Object.is(a, b) : a == b || (a !== a && b !== b);
  if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  const kind = kindOf(a);
  if (kind !== kindOf(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  if (seen.some(([x, y]) => x === a && y === b)) return true;
  const deeper = [...seen, [a, b]];
  if (kind === "date" && a.getTime() !== b.getTime()) return false;
  if (kind === "regexp" && String(a) !== String(b)) return false;
  if (kind === "error" && (a.message !== b.message || a.name !== b.name)) return false;
  if (kind === "boxed" && !equal(a.valueOf(), b.valueOf(), strict)) return false;
  if (kind === "set") {
    if (a.size !== b.size) return false;
    for (const one of a) if (!b.has(one) && ![...b].some((other) => typeof one === "object" && equal(one, other, strict, deeper))) return false;
  }
  if (kind === "map") {
    if (a.size !== b.size) return false;
    for (const [key, value] of a) {
      const found = b.has(key) ? [key, b.get(key)] : [...b].find(([other]) => typeof key === "object" && equal(key, other, strict, deeper));
      if (!found || !equal(value, found[1], strict, deeper)) return false;
    }
  }
  if (a instanceof ArrayBuffer) return equal(new Uint8Array(a), new Uint8Array(b), strict, deeper);
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key], strict, deeper));
};

const debuglog = () => Object.assign(() => {}, { enabled: false });
const STYLES = { reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39] };
Object.assign(inspect.colors, STYLES);
module.exports = {
  types, inherits, inspect, format, formatWithOptions: formatWith, promisify, callbackify, debuglog, debug: debuglog, TextEncoder, TextDecoder,
  isDeepStrictEqual: (a, b) => equal(a, b), deprecate: (original) => original, isArray: Array.isArray,
  stripVTControlCharacters: (text) => text.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007]*\u0007/g, ""),
  styleText: (style, text) => [style].flat().reduceRight((inner, name) => `\u001b[${STYLES[name]?.[0] ?? 0}m${inner}\u001b[${STYLES[name]?.[1] ?? 0}m`, text),
  toUSVString: (text) => `${text}`.toWellFormed(), getSystemErrorName: (number) => `Unknown system error ${number}`, getSystemErrorMap: () => new Map(),
  aborted: (signal) => new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })),
  parseEnv: (text) => Object.fromEntries([...text.matchAll(/^\s*(?:export\s+)?([\w.-]+)\s*=\s*("(?:[^"])*"|'[^']*'|[^#\n]*)/gm)].map((found) => [found[1], found[2].trim().replace(/^(["'])(.*)\1$/s, "$2")])),
  isBoolean: (value) => typeof value === "boolean", isFunction: (value) => typeof value === "function", isNull: (value) => value === null,
  isNullOrUndefined: (value) => value === null || value === undefined, isNumber: (value) => typeof value === "number", isObject: (value) => value !== null && typeof value === "object",
  isPrimitive: (value) => value === null || (typeof value !== "object" && typeof value !== "function"), isString: (value) => typeof value === "string",
  isSymbol: (value) => typeof value === "symbol", isUndefined: (value) => value === undefined, isRegExp: types.isRegExp, isDate: types.isDate,
  isError: (value) => types.isNativeError(value) || value instanceof Error, isBuffer: (value) => Buffer.isBuffer(value), log: (...args) => console.log(...args),
  _extend: (target, source) => Object.assign(target, source), transferableAbortController: () => new AbortController(), transferableAbortSignal: (signal) => signal,
  MIMEType: class MIMEType {
    constructor(text) {
      const [, type, subtype, rest] = /^\s*([^/;\s]+)\/([^;\s]+)\s*(.*)$/.exec(`${text}`) ?? [];
      if (type === undefined) throw house.errorWith(TypeError, "ERR_INVALID_MIME_SYNTAX", `The MIME syntax is invalid: ${text}`);
      Object.assign(this, { type: type.toLowerCase(), subtype: subtype.toLowerCase(), params: new Map([...rest.matchAll(/;\s*([^=;\s]+)=("[^"]*"|[^;]*)/g)].map((found) => [found[1].toLowerCase(), found[2].replace(/^"|"$/g, "")])) });
    }
    get essence() { return `${this.type}/${this.subtype}`; }
    toString() { return this.essence + [...this.params].map(([name, value]) => `;${name}=${value}`).join(""); }
  },
  parseArgs() { throw house.unavailable("util.parseArgs"); },
};
house.equal = equal;
