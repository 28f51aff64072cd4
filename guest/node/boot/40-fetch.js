// Headers, Request, Response and fetch. A fetch is a call of the host's, `$fetch`; what the host refuses is a rejected
// fetch like one that met no network, with the refusal as its cause.
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NULL_BODY = new Set([101, 103, 204, 205, 304]);
const METHODS = new Set(["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"]);

class Headers {
  #map = new Map();
  constructor(init) {
    if (init === undefined || init === null) return;
    if (typeof init !== "object") throw new TypeError("Headers: an object, pairs or Headers are expected");
    if (typeof init[Symbol.iterator] === "function")
      for (const pair of init) {
        const [name, value, ...rest] = pair;
        if (value === undefined || rest.length) throw new TypeError("Headers: each pair has a name and a value");
        this.append(name, value);
      }
    else for (const name of keys(init)) this.append(name, init[name]);
  }
  static #name(name) {
    if (!TOKEN.test(`${name}`)) throw new TypeError(`Headers: ${JSON.stringify(`${name}`.slice(0, 80))} is not a header name`);
    return `${name}`.toLowerCase();
  }
  static #value(value) {
    const text = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    if (/[\0\r\n]/.test(text) || /[^\0-\xff]/.test(text)) throw new TypeError("Headers: a value holds a character that no header may hold");
    return text;
  }
  append(name, value) {
    const key = Headers.#name(name);
    const values = this.#map.get(key);
    if (values) values.push(Headers.#value(value));
    else this.#map.set(key, [Headers.#value(value)]);
  }
  set(name, value) { this.#map.set(Headers.#name(name), [Headers.#value(value)]); }
  get(name) { return this.#map.get(Headers.#name(name))?.join(", ") ?? null; }
  has(name) { return this.#map.has(Headers.#name(name)); }
  delete(name) { this.#map.delete(Headers.#name(name)); }
  getSetCookie() { return [...(this.#map.get("set-cookie") ?? [])]; }
  forEach(callback, self) { for (const [name, value] of this) callback.call(self, value, name, this); }
  *entries() {
    for (const name of [...this.#map.keys()].sort()) {
      const values = this.#map.get(name);
      if (name === "set-cookie") for (const value of values) yield [name, value];
      else yield [name, values.join(", ")];
    }
  }
  *keys() { for (const [name] of this.entries()) yield name; }
  *values() { for (const [, value] of this.entries()) yield value; }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return "Headers"; }
}

const NOTHING = { bytes: null, stream: null, type: null };
const bodyOf = (body) => {
  if (body === undefined || body === null) return NOTHING;
  if (typeof body === "string") return { bytes: encoder.encode(body), stream: null, type: "text/plain;charset=UTF-8" };
  if (body instanceof ReadableStream) {
    if (body.locked) throw new TypeError("the body is a stream that is locked");
    return { bytes: null, stream: body, type: null };
  }
  if (body instanceof URLSearchParams)
    return { bytes: encoder.encode(`${body}`), stream: null, type: "application/x-www-form-urlencoded;charset=UTF-8" };
  if (body instanceof Blob) return { bytes: rawBlob(body), stream: null, type: body.type || null };
  if (body instanceof FormData) return { stream: null, ...multipart(body) };
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return { bytes: viewBytes(body).slice(), stream: null, type: null };
  if (typeof body === "object" && typeof body[Symbol.asyncIterator] === "function")
    return { bytes: null, stream: ReadableStream.from(body), type: null };
  return { bytes: encoder.encode(`${body}`), stream: null, type: "text/plain;charset=UTF-8" };
};

class Body {
  #bytes;
  #stream;
  #used = false;
  constructor({ bytes, stream }) {
    this.#bytes = bytes;
    this.#stream = stream;
  }
  get body() {
    if (this.#stream === null && this.#bytes !== null) {
      const bytes = this.#bytes;
      this.#stream = new ReadableStream({
        pull: (controller) => {
          this.#used = true;
          if (bytes.length) controller.enqueue(bytes.slice());
          controller.close();
        },
      }, { highWaterMark: 0 });
    }
    return this.#stream;
  }
  get bodyUsed() { return this.#used; }
  async bytes() {
    if (this.#used) throw new TypeError("Body is unusable: Body has already been read");
    if (this.#stream?.locked) throw new TypeError("Body is unusable: it is locked");
    if (this.#stream === null) {
      this.#used = this.#bytes !== null;
      return this.#bytes?.slice() ?? new Uint8Array();
    }
    this.#used = true;
    const reader = this.#stream.getReader();
    const all = [];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return joinedBytes(all);
      if (typeof value !== "string" && !ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) throw new TypeError("the stream of a body gives bytes");
      all.push(typeof value === "string" ? encoder.encode(value) : viewBytes(value));
    }
  }
  async arrayBuffer() { return (await this.bytes()).buffer; }
  async text() { return decoder.decode(await this.bytes()); }
  async json() { return JSON.parse(await this.text()); }
  async blob() { return new Blob([await this.bytes()], { type: this.headers.get("content-type") ?? "" }); }
  async formData() {
    const type = this.headers.get("content-type") ?? "";
    const bytes = await this.bytes();
    const boundary = /;\s*boundary="?([^";]+)/i.exec(type)?.[1];
    if (/^multipart\/form-data/i.test(type) && boundary) return parts(bytes, boundary);
    if (!/^application\/x-www-form-urlencoded/i.test(type)) throw new TypeError("the body is no form");
    const form = new FormData();
    for (const [name, value] of new URLSearchParams(decoder.decode(bytes))) form.append(name, value);
    return form;
  }
  static split(holder) {
    if (holder.#used || holder.#stream?.locked) throw new TypeError("the body was read already");
    if (holder.#stream === null) return { bytes: holder.#bytes, stream: null };
    const [mine, other] = holder.#stream.tee();
    holder.#stream = mine;
    return { bytes: null, stream: other };
  }
  static taken(holder) {
    if (holder.#used || holder.#stream?.locked) throw new TypeError("the body was read already");
    const { bytes, stream } = { bytes: holder.#bytes, stream: holder.#stream };
    holder.#used = bytes !== null || stream !== null;
    return { bytes, stream };
  }
}
const { split, taken } = Body;
delete Body.split;
delete Body.taken;

const located = (input) => {
  const url = new URL(`${input}`);
  if (url.username || url.password) throw new TypeError(`Request cannot be constructed from a URL that includes credentials: ${url.origin}`);
  return url.href;
};

class Request extends Body {
  #facts;
  constructor(input, init = {}) {
    const from = input instanceof Request ? input : null;
    const options = init ?? {};
    const given = `${options.method ?? from?.method ?? "GET"}`;
    if (!TOKEN.test(given) || /^(?:connect|trace|track)$/i.test(given)) throw new TypeError(`'${given.slice(0, 40)}' is not a valid HTTP method.`);
    const method = METHODS.has(given.toUpperCase()) ? given.toUpperCase() : given;
    const inherits = options.body === undefined || options.body === null;
    const body = inherits ? { ...(from === null ? NOTHING : taken(from)), type: null } : bodyOf(options.body);
    if ((body.bytes !== null || body.stream !== null) && (method === "GET" || method === "HEAD"))
      throw new TypeError("Request with GET/HEAD method cannot have body.");
    super(body);
    const headers = new Headers(options.headers ?? from?.headers);
    if (body.type !== null && !headers.has("content-type")) headers.set("content-type", body.type);
    this.#facts = {
      url: from === null ? located(input) : from.url, method, headers,
      signal: options.signal ?? from?.signal ?? new AbortController().signal,
      redirect: options.redirect ?? from?.redirect ?? "follow",
    };
  }
  get url() { return this.#facts.url; }
  get method() { return this.#facts.method; }
  get headers() { return this.#facts.headers; }
  get signal() { return this.#facts.signal; }
  get redirect() { return this.#facts.redirect; }
  get credentials() { return "same-origin"; }
  get mode() { return "cors"; }
  get cache() { return "default"; }
  get referrer() { return "about:client"; }
  get referrerPolicy() { return ""; }
  get integrity() { return ""; }
  get keepalive() { return false; }
  get destination() { return ""; }
  get duplex() { return "half"; }
  clone() {
    const { bytes, stream } = split(this);
    const { url, method, headers, signal, redirect } = this.#facts;
    return new Request(url, { method, headers, signal, redirect, body: stream ?? bytes });
  }
  get [Symbol.toStringTag]() { return "Request"; }
}

class Response extends Body {
  #facts;
  constructor(body, init = {}, answer) {
    const options = init ?? {};
    const status = options.status === undefined ? 200 : Number(options.status);
    if (answer === undefined && !(status >= 200 && status <= 599)) throw new RangeError("init[\"status\"] must be in the range of 200 to 599, inclusive.");
    const given = bodyOf(body);
    if (given !== NOTHING && NULL_BODY.has(status)) throw new TypeError(`Response: a response of status ${status} has no body`);
    super(given);
    const headers = new Headers(options.headers);
    if (given.type !== null && !headers.has("content-type")) headers.set("content-type", given.type);
    this.#facts = { status: Math.floor(status), statusText: `${options.statusText ?? ""}`, headers, url: "", redirected: false, type: "default", ...answer };
  }
  static json(data, init = {}) {
    const text = JSON.stringify(data);
    if (text === undefined) throw new TypeError("Value is not JSON serializable");
    const headers = new Headers(init?.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(text, { ...init, headers });
  }
  static error() { return new Response(null, {}, { status: 0, type: "error" }); }
  static redirect(url, status = 302) {
    if (![301, 302, 303, 307, 308].includes(status)) throw new RangeError(`Invalid status code ${status}`);
    return new Response(null, { status, headers: { location: new URL(`${url}`).href } });
  }
  get status() { return this.#facts.status; }
  get ok() { return this.status >= 200 && this.status <= 299; }
  get statusText() { return this.#facts.statusText; }
  get headers() { return this.#facts.headers; }
  get url() { return this.#facts.url; }
  get redirected() { return this.#facts.redirected; }
  get type() { return this.#facts.type; }
  clone() {
    const { bytes, stream } = split(this);
    const { status, statusText, headers, url, redirected, type } = this.#facts;
    const copy = new Response(NULL_BODY.has(status) ? null : (stream ?? bytes), { status: status || 200, statusText, headers }, { status, url, redirected, type });
    return copy;
  }
  get [Symbol.toStringTag]() { return "Response"; }
}

let asked = 0; // fetches so far: an image is taken of a package only when it made none while it was loaded
const failure = (mold, message, cause) => {
  hidden(mold, "message", message);
  if (cause !== undefined) hidden(mold, "cause", cause);
  return mold;
};
const raced = (promise, signal) =>
  new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });

const send = async (request, mold) => {
  const body = request.body === null ? null : await request.bytes();
  const redirect = request.redirect;
  let answer;
  try {
    answer = await natives.call("$fetch", {
      url: request.url.replace(/#.*$/, ""), method: request.method, headers: Object.fromEntries(request.headers), body, follow: redirect === "follow",
    }, false);
  } catch (error) {
    const cause = error instanceof Error ? errorWith(Error, error.code === "egress_denied" ? "EACCES" : "ECONNREFUSED", error.message, { reason: error.code }) : error;
    throw failure(mold, "fetch failed", cause);
  }
  if (redirect === "error" && answer.status >= 300 && answer.status <= 399 && answer.status !== 304)
    throw failure(mold, "fetch failed", new Error("unexpected redirect"));
  return new Response(NULL_BODY.has(answer.status) ? null : answer.body, { headers: answer.headers, statusText: answer.reason },
    { status: answer.status, url: answer.url, redirected: answer.redirected, type: "basic" });
};

const fetch = async (input, init) => {
  const mold = new TypeError("fetch failed");
  asked += 1;
  const request = new Request(input, init);
  request.signal.throwIfAborted();
  return raced(send(request, mold), request.signal);
};
class WebSocket extends EventTarget {
  constructor() {
    super();
    throw unavailable("WebSocket");
  }
}
provide({ Headers, Request, Response, fetch, WebSocket });
