// A value as one line that a person reads, for the console and for what was thrown. Runs no getter; stops at `limit`
// characters, however large the value is.
const MAX_INSPECT_DEPTH = 5;
const MAX_INSPECT_ITEMS = 100;

const quoted = (text, limit) => {
  if (text.length > limit) text = slice(text, 0, limit) + "…";
  const json = jsonStringify(text);
  return indexOf(text, "'") < 0 ? `'${unescapeQuotes(slice(json, 1, -1))}'` : json;
};

const unescapeQuotes = (json) => {
  let out = "";
  let from = 0;
  for (let at = indexOf(json, '\\"'); at >= 0; at = indexOf(json, '\\"', at + 2)) {
    // an escaped backslash in front of a quote is not this quote's
    let slashes = 0;
    while (charCode(json, at - 1 - slashes) === 92) slashes++;
    if (slashes % 2) continue;
    out += slice(json, from, at) + '"';
    from = at + 2;
  }
  return out + slice(json, from);
};

const isPlainName = (key) => {
  if (!key.length) return false;
  for (let i = 0; i < key.length; i++) {
    const c = charCode(key, i);
    const letter = (c | 32) >= 97 && (c | 32) <= 122;
    if (!(letter || c === 95 || c === 36 || c > 127 || (i > 0 && c >= 48 && c <= 57))) return false;
  }
  return true;
};

const dataOf = (object, key) => {
  for (let at = object, hops = 0; at !== null && at !== undefined && hops < 100; at = getPrototypeOf(at), hops++) {
    if (kindOf(at) === "proxy") return undefined;
    const found = getOwnPropertyDescriptor(at, key);
    if (found) return hasOwn(found, "value") ? found.value : undefined;
  }
  return undefined;
};

const classNameOf = (object) => {
  const prototype = getPrototypeOf(object);
  if (prototype === null) return null;
  const constructor = dataOf(prototype, "constructor");
  const name = typeof constructor === "function" ? dataOf(constructor, "name") : undefined;
  return typeof name === "string" && name ? name : "Object";
};

const isClass = (value) => startsWith(functionToString(value), "class");

const describeFunction = (value) => {
  const path = toolName(value);
  if (path !== undefined) return `[Tool ${path}]`;
  const name = dataOf(value, "name");
  const shown = typeof name === "string" && name ? name : "(anonymous)";
  return isClass(value) ? `[class ${shown}]` : `[Function: ${shown}]`;
};

class Inspector {
  room;
  seen = [];
  constructor(limit) {
    this.room = limit;
  }

  // Counts what is written; false when there is no room for more.
  spend(text) {
    this.room -= text.length;
    return text;
  }

  value(value, depth) {
    if (this.room <= 0) return "…";
    switch (typeof value) {
      case "string": return this.spend(quoted(value, this.room));
      case "number": return this.spend(value === 0 && 1 / value < 0 ? "-0" : `${value}`);
      case "bigint": return this.spend(slice(bigintToString(value), 0, this.room) + "n");
      case "symbol": return this.spend(symbolToString(value));
      case "function": return this.spend(describeFunction(value));
      case "object": return value === null ? this.spend("null") : this.object(value, depth);
      default: return this.spend(`${value}`);
    }
  }

  object(value, depth) {
    for (let i = 0; i < this.seen.length; i++) if (this.seen[i] === value) return this.spend("[Circular]");
    if (kindOf(value) === "proxy") return this.spend("[Proxy]");
    push(this.seen, value);
    const text = this.container(value, depth);
    this.seen.length--;
    return text;
  }

  container(value, depth) {
    const kind = kindOf(value);
    const name = classNameOf(value);
    switch (kind) {
      case "date": return this.spend(isNotANumber(dateTime(value)) ? "Invalid Date" : dateToIso(value));
      case "regexp": return this.spend(`/${regexpSource(value)}/${regexpFlags(value)}`);
      case "error": return this.error(value, depth);
      case "promise": return this.spend("Promise { … }");
      case "opaque": return this.spend(`[${name}]`);
      case "boxed": return this.spend(`[${name}: ${value[Symbol.toPrimitive] ? "…" : jsonStringify(natives.unbox(value)) ?? name}]`);
    }
    if (depth >= MAX_INSPECT_DEPTH) return this.spend(kind === "array" ? "[Array]" : `[${name ?? "Object"}]`);
    switch (kind) {
      case "array": return this.list(value, value.length, name === "Array" ? "" : `${name}(${value.length}) `, depth);
      case "typed": return this.list(value, typedLength(value), `${typedTag(value)}(${typedLength(value)}) `, depth);
      case "buffer": return this.spend(`ArrayBuffer { byteLength: ${bufferByteLength(value)} }`);
      case "view": return this.spend(`DataView { byteLength: ${viewByteLength(value)} }`);
      case "map": return this.map(value, depth);
      case "set": return this.set(value, depth);
      default: return this.record(value, name === "Object" ? "" : name === null ? "[Object: null prototype] " : `${name} `, depth);
    }
  }

  list(value, length, prefix, depth) {
    const parts = [];
    for (let i = 0; i < length && this.room > 0; i++) {
      if (i >= MAX_INSPECT_ITEMS) {
        push(parts, `… ${length - i} more`);
        break;
      }
      const found = getOwnPropertyDescriptor(value, i);
      push(parts, !found ? this.spend("<empty>") : hasOwn(found, "value") ? this.value(found.value, depth + 1) : "[Getter]");
    }
    return length ? `${this.spend(prefix)}[ ${join(parts, ", ")} ]` : `${prefix}[]`;
  }

  map(value, depth) {
    const parts = [];
    mapForEach(value, (item, key) => {
      if (parts.length < MAX_INSPECT_ITEMS && this.room > 0)
        push(parts, `${this.value(key, depth + 1)} => ${this.value(item, depth + 1)}`);
    });
    return `Map(${mapSize(value)}) {${this.body(parts, mapSize(value))}}`;
  }

  set(value, depth) {
    const parts = [];
    setForEach(value, (item) => {
      if (parts.length < MAX_INSPECT_ITEMS && this.room > 0) push(parts, this.value(item, depth + 1));
    });
    return `Set(${setSize(value)}) {${this.body(parts, setSize(value))}}`;
  }

  body(parts, total) {
    if (parts.length < total) push(parts, `… ${total - parts.length} more`);
    return parts.length ? ` ${join(parts, ", ")} ` : "";
  }

  record(value, prefix, depth) {
    const names = keysOf(value);
    const parts = [];
    for (let i = 0; i < names.length && i < MAX_INSPECT_ITEMS && this.room > 0; i++) {
      const found = getOwnPropertyDescriptor(value, names[i]);
      if (!found) continue;
      const shown = hasOwn(found, "value") ? this.value(found.value, depth + 1) : this.spend("[Getter]");
      push(parts, `${this.spend(isPlainName(names[i]) ? names[i] : quoted(names[i], 200))}: ${shown}`);
    }
    return `${this.spend(prefix)}{${this.body(parts, names.length)}}`;
  }

  error(value, depth) {
    const message = natives.factOf(value, "message");
    const head = `${natives.factOf(value, "name") ?? "Error"}${message ? `: ${slice(message, 0, this.room)}` : ""}`;
    const stack = natives.stackOf(value);
    let text = this.spend(stack ? `${head}\n${slice(stack, 0, -1)}` : head);
    const names = keysOf(value);
    const facts = create(null);
    let any = false;
    for (let i = 0; i < names.length; i++) {
      if (names[i] === "name" || names[i] === "message" || names[i] === "stack") continue;
      const fact = dataOf(value, names[i]);
      if (fact === undefined) continue;
      facts[names[i]] = fact;
      any = true;
    }
    if (any) text += ` ${this.record(facts, "", depth)}`;
    const cause = getOwnPropertyDescriptor(value, "cause");
    if (depth < MAX_INSPECT_DEPTH && cause && hasOwn(cause, "value")) text += `\n  [cause]: ${this.value(cause.value, depth + 1)}`;
    return text;
  }
}

// A value as text: strings as they are, anything else inspected. Never throws what a script could catch.
const shown = (value, limit) => {
  if (typeof value === "string") return value.length > limit ? slice(value, 0, limit) : value;
  try {
    return new Inspector(limit).value(value, 0);
  } catch {
    return "[a value that cannot be shown]";
  }
};

const inspect = (value) => shown(value, 4096);
