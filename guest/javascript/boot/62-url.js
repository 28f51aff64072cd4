// URLSearchParams and URL, over the parser.

// application/x-www-form-urlencoded

const FORM_PLAIN = charSet("*-._");
const formEncode = (text) => {
  const bytes = natives.utf8Encode(text);
  let out = "";
  for (let i = 0; i < bytes.length; i++) {
    const c = bytes[i];
    out += c === 32 ? "+" : isDigit(c) || isAlpha(c) || FORM_PLAIN[c] ? fromCharCode(c) : percentByte(c);
  }
  return out;
};

const formDecode = (text) => utf8Text(percentDecode(join(splitText(text, "+"), " ")));

const parseForm = (text) => {
  const pairs = [];
  const parts = splitText(text, "&");
  for (let i = 0; i < parts.length; i++) {
    if (!parts[i].length) continue;
    const at = indexOf(parts[i], "=");
    const name = at < 0 ? parts[i] : slice(parts[i], 0, at);
    push(pairs, { __proto__: null, name: formDecode(name), value: at < 0 ? "" : formDecode(slice(parts[i], at + 1)) });
  }
  return pairs;
};

const serializeForm = (pairs) => {
  let out = "";
  for (let i = 0; i < pairs.length; i++)
    out += `${i ? "&" : ""}${formEncode(pairs[i].name)}=${formEncode(pairs[i].value)}`;
  return out;
};

const scalar = (value) => toWellFormed(`${value}`);

const pairsOf = (init) => {
  const pairs = [];
  const iterate = init[Symbol.iterator];
  if (iterate !== undefined && iterate !== null) {
    const items = listOf(init);
    for (let i = 0; i < items.length; i++) {
      const pair = listOf(items[i]);
      if (pair.length !== 2) throw new TypeError("URLSearchParams: each pair must have a name and a value");
      push(pairs, { __proto__: null, name: scalar(pair[0]), value: scalar(pair[1]) });
    }
    return pairs;
  }
  const names = ownKeys(init);
  for (let i = 0; i < names.length; i++) {
    const found = getOwnPropertyDescriptor(init, names[i]);
    if (!found || !found.enumerable) continue;
    push(pairs, { __proto__: null, name: scalar(names[i]), value: scalar(init[names[i]]) });
  }
  return pairs;
};

class PairIterator {
  #list;
  #at = 0;
  #give;
  constructor(list, give) {
    this.#list = list;
    this.#give = give;
  }
  next() {
    const list = this.#list();
    if (this.#at >= list.length) return { value: undefined, done: true };
    return { value: this.#give(list[this.#at++]), done: false };
  }
}
Object.setPrototypeOf(PairIterator.prototype, getPrototypeOf(getPrototypeOf([][Symbol.iterator]())));
tag(PairIterator.prototype, "URLSearchParams Iterator");
delete PairIterator.prototype.constructor;

class URLSearchParams {
  #pairs = [];
  #changed = null;
  constructor(init = "") {
    if (typeof init === "object" || typeof init === "function") {
      if (init !== null) this.#pairs = pairsOf(init);
      else this.#pairs = parseForm("null");
      return;
    }
    const text = scalar(init);
    this.#pairs = parseForm(charAt(text, 0) === "?" ? slice(text, 1) : text);
  }
  #update() { if (this.#changed) this.#changed(serializeForm(this.#pairs)); }
  get size() { return this.#pairs.length; }
  append(name, value) {
    need(arguments.length, 2, "append");
    push(this.#pairs, { __proto__: null, name: scalar(name), value: scalar(value) });
    this.#update();
  }
  delete(name, value) {
    need(arguments.length, 1, "delete");
    const key = scalar(name);
    const only = value === undefined ? undefined : scalar(value);
    const kept = [];
    for (let i = 0; i < this.#pairs.length; i++) {
      const pair = this.#pairs[i];
      if (pair.name !== key || (only !== undefined && pair.value !== only)) push(kept, pair);
    }
    this.#pairs = kept;
    this.#update();
  }
  get(name) {
    need(arguments.length, 1, "get");
    const key = scalar(name);
    for (let i = 0; i < this.#pairs.length; i++) if (this.#pairs[i].name === key) return this.#pairs[i].value;
    return null;
  }
  getAll(name) {
    need(arguments.length, 1, "getAll");
    const key = scalar(name);
    const found = [];
    for (let i = 0; i < this.#pairs.length; i++) if (this.#pairs[i].name === key) push(found, this.#pairs[i].value);
    return found;
  }
  has(name, value) {
    need(arguments.length, 1, "has");
    const key = scalar(name);
    const only = value === undefined ? undefined : scalar(value);
    for (let i = 0; i < this.#pairs.length; i++)
      if (this.#pairs[i].name === key && (only === undefined || this.#pairs[i].value === only)) return true;
    return false;
  }
  set(name, value) {
    need(arguments.length, 2, "set");
    const key = scalar(name);
    const text = scalar(value);
    const kept = [];
    let done = false;
    for (let i = 0; i < this.#pairs.length; i++) {
      const pair = this.#pairs[i];
      if (pair.name !== key) push(kept, pair);
      else if (!done) {
        done = true;
        push(kept, { __proto__: null, name: key, value: text });
      }
    }
    if (!done) push(kept, { __proto__: null, name: key, value: text });
    this.#pairs = kept;
    this.#update();
  }
  sort() {
    sort(this.#pairs, (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    this.#update();
  }
  forEach(callback, self) {
    need(arguments.length, 1, "forEach");
    for (let i = 0; i < this.#pairs.length; i++) apply(callback, self, [this.#pairs[i].value, this.#pairs[i].name, this]);
  }
  keys() { return new PairIterator(() => this.#pairs, (pair) => pair.name); }
  values() { return new PairIterator(() => this.#pairs, (pair) => pair.value); }
  entries() { return new PairIterator(() => this.#pairs, (pair) => [pair.name, pair.value]); }
  toString() { return serializeForm(this.#pairs); }
  // no web standard has this: as the result of a script it would otherwise be an object without properties
  toJSON() { return serializeForm(this.#pairs); }
  static bind(params, changed) { params.#changed = changed; }
  static reset(params, text) { params.#pairs = parseForm(text); }
}
const { bind: bindParams, reset: resetParams } = URLSearchParams;
delete URLSearchParams.bind;
delete URLSearchParams.reset;
defineProperty(URLSearchParams.prototype, Symbol.iterator, { __proto__: null, value: URLSearchParams.prototype.entries, writable: true, configurable: true });
tag(URLSearchParams.prototype, "URLSearchParams");

const parseWithBase = (text, base) => {
  let from = null;
  if (base !== undefined) {
    from = parseUrl(scalar(base), null);
    if (!from) return null;
  }
  return parseUrl(scalar(text), from);
};

class URL {
  #url;
  #params = null;
  constructor(url, base) {
    need(arguments.length, 1, "URL");
    const parsed = parseWithBase(url, base);
    if (!parsed) throw new TypeError(`Invalid URL: ${slice(`${url}`, 0, 200)}`);
    this.#url = parsed;
  }
  static parse(url, base) {
    try {
      return new URL(url, base);
    } catch {
      return null;
    }
  }
  static canParse(url, base) {
    need(arguments.length, 1, "canParse");
    return parseWithBase(url, base) !== null;
  }
  #queryChanged() { if (this.#params) resetParams(this.#params, this.#url.query ?? ""); }
  #hasNoCredentials() { return this.#url.host === null || this.#url.host === "" || this.#url.scheme === "file"; }
  get href() { return serializeUrl(this.#url); }
  set href(value) {
    const parsed = parseUrl(scalar(value), null);
    if (!parsed) throw new TypeError(`Invalid URL: ${slice(`${value}`, 0, 200)}`);
    this.#url = parsed;
    this.#queryChanged();
  }
  get origin() {
    const url = this.#url;
    if (url.scheme === "blob") {
      const inner = parseUrl(serializePath(url), null);
      return inner && (inner.scheme === "http" || inner.scheme === "https") ? new URL(serializePath(url)).origin : "null";
    }
    if (!isSpecial(url) || url.scheme === "file") return "null";
    return `${url.scheme}://${url.host}${url.port === null ? "" : `:${url.port}`}`;
  }
  get protocol() { return `${this.#url.scheme}:`; }
  set protocol(value) { parseInto(this.#url, `${scalar(value)}:`, "scheme start"); }
  get username() { return this.#url.username; }
  set username(value) { if (!this.#hasNoCredentials()) this.#url.username = encodeText(scalar(value), USERINFO); }
  get password() { return this.#url.password; }
  set password(value) { if (!this.#hasNoCredentials()) this.#url.password = encodeText(scalar(value), USERINFO); }
  get host() {
    const { host, port } = this.#url;
    return host === null ? "" : port === null ? host : `${host}:${port}`;
  }
  set host(value) { this.#setHost(value, "host"); }
  get hostname() { return this.#url.host ?? ""; }
  set hostname(value) { this.#setHost(value, "hostname"); }
  #setHost(value, state) {
    if (typeof this.#url.path === "string") return;
    // a setter that fails half way leaves the URL as it was, but for what it had set already
    const { host } = this.#url;
    const text = scalar(value);
    if (!parseInto(this.#url, text, state) && state === "hostname") this.#url.host = host;
  }
  get port() { return this.#url.port === null ? "" : `${this.#url.port}`; }
  set port(value) {
    if (this.#hasNoCredentials()) return;
    const text = scalar(value);
    if (text === "") this.#url.port = null;
    else parseInto(this.#url, text, "port");
  }
  get pathname() { return serializePath(this.#url); }
  set pathname(value) {
    if (typeof this.#url.path === "string") return;
    this.#url.path = [];
    parseInto(this.#url, scalar(value), "path start");
  }
  get search() { return this.#url.query ? `?${this.#url.query}` : ""; }
  set search(value) {
    const text = scalar(value);
    if (text === "") this.#url.query = null;
    else {
      this.#url.query = "";
      parseInto(this.#url, charAt(text, 0) === "?" ? slice(text, 1) : text, "query");
    }
    this.#queryChanged();
  }
  get searchParams() {
    if (!this.#params) {
      this.#params = new URLSearchParams(this.#url.query ?? "");
      bindParams(this.#params, (text) => { this.#url.query = text === "" ? null : text; });
    }
    return this.#params;
  }
  get hash() { return this.#url.fragment ? `#${this.#url.fragment}` : ""; }
  set hash(value) {
    const text = scalar(value);
    if (text === "") this.#url.fragment = null;
    else {
      this.#url.fragment = "";
      parseInto(this.#url, charAt(text, 0) === "#" ? slice(text, 1) : text, "fragment");
    }
  }
  toString() { return serializeUrl(this.#url); }
  toJSON() { return serializeUrl(this.#url); }
}
tag(URL.prototype, "URL");
