// http: requests go out by fetch, and so through the host's gate. There are no servers.
const { Readable, Writable } = require("stream");
const EventEmitter = require("events");
const METHODS = ["ACL", "CONNECT", "DELETE", "GET", "HEAD", "LINK", "MERGE", "OPTIONS", "PATCH", "POST", "PROPFIND", "PUT", "SEARCH", "TRACE", "UNLINK"];
const STATUS_CODES = {
  100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content",
  206: "Partial Content", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect",
  308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
  406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large",
  414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a Teapot", 422: "Unprocessable Entity",
  425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
  451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
};
const OWN_HEADERS = /^(?:host|connection|content-length|transfer-encoding|keep-alive|upgrade|te|trailer)$/i;

class Socket extends EventEmitter {
  encrypted = true;
  authorized = true;
  remoteAddress = "";
  destroyed = false;
  setKeepAlive() { return this; }
  setNoDelay() { return this; }
  setTimeout() { return this; }
  ref() { return this; }
  unref() { return this; }
  destroy() { return this; }
}
class IncomingMessage extends Readable {
  constructor(response, body) {
    super({ read() {} });
    const headers = {};
    const rawHeaders = [];
    for (const [name, value] of response?.headers ?? []) {
      rawHeaders.push(name, value);
      if (name === "set-cookie") (headers[name] ??= []).push(value);
      else headers[name] = value;
    }
    Object.assign(this, {
      statusCode: response?.status, statusMessage: response?.statusText, headers, rawHeaders, trailers: {}, rawTrailers: [], httpVersion: "1.1", httpVersionMajor: 1,
      httpVersionMinor: 1, complete: true, url: "", socket: new Socket(), aborted: false,
    });
    this.connection = this.socket;
    if (body?.length) this.push(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
    if (body !== undefined) this.push(null);
  }
  setTimeout() { return this; }
}
class OutgoingMessage extends Writable {
  #headers = new Map();
  setHeader(name, value) {
    this.#headers.set(`${name}`.toLowerCase(), [name, value]);
    return this;
  }
  setHeaders(headers) {
    for (const [name, value] of headers) this.setHeader(name, value);
    return this;
  }
  appendHeader(name, value) { return this.setHeader(name, [this.getHeader(name) ?? [], value].flat()); }
  getHeader(name) { return this.#headers.get(`${name}`.toLowerCase())?.[1]; }
  hasHeader(name) { return this.#headers.has(`${name}`.toLowerCase()); }
  removeHeader(name) { this.#headers.delete(`${name}`.toLowerCase()); }
  getHeaders() { return Object.fromEntries([...this.#headers].map(([name, [, value]]) => [name, value])); }
  getHeaderNames() { return [...this.#headers.keys()]; }
  getRawHeaderNames() { return [...this.#headers.values()].map(([name]) => name); }
  flushHeaders() {}
  get headersSent() { return false; }
}
class ClientRequest extends OutgoingMessage {
  #parts = [];
  #options;
  #aborting = new AbortController();
  constructor(options, callback) {
    super({ autoDestroy: false });
    this.#options = options;
    for (const name of Object.keys(options.headers ?? {})) if (options.headers[name] !== undefined) this.setHeader(name, options.headers[name]);
    if (options.auth) this.setHeader("authorization", `Basic ${Buffer.from(options.auth).toString("base64")}`);
    Object.assign(this, { method: `${options.method ?? "GET"}`.toUpperCase(), path: options.path ?? "/", host: options.hostname ?? options.host, protocol: options.protocol, aborted: false, reusedSocket: false, maxHeadersCount: null });
    if (callback) this.once("response", callback);
    options.signal?.addEventListener("abort", () => this.destroy(options.signal.reason), { once: true });
    queueMicrotask(() => {
      this.socket = this.connection = new Socket();
      this.emit("socket", this.socket);
    });
  }
  setTimeout() { return this; }
  setNoDelay() {}
  setSocketKeepAlive() {}
  abort() {
    this.aborted = true;
    this.destroy();
  }
  _write(chunk, encoding, done) {
    this.#parts.push(typeof chunk === "string" ? Buffer.from(chunk, encoding) : Buffer.from(chunk));
    done();
  }
  _destroy(error, done) {
    this.#aborting.abort(error ?? undefined);
    done(error);
  }
  _final(done) {
    done();
    this.#sent().catch((error) => {
      if (!this.destroyed) this.emit("error", Object.assign(error, { code: error.code ?? error.cause?.code ?? "ECONNREFUSED" }));
    });
  }
  async #sent() {
    const { protocol, hostname, host, port, path } = this.#options;
    const name = `${hostname ?? host ?? "localhost"}`.replace(/:\d+$/, "");
    const url = new URL(`${protocol ?? "http:"}//${name.includes(":") ? `[${name}]` : name}${port ? `:${port}` : ""}${path ?? "/"}`);
    const headers = new Headers();
    for (const [key, value] of Object.entries(this.getHeaders())) if (!OWN_HEADERS.test(key)) for (const one of [value].flat()) headers.append(key, one);
    const body = this.#parts.length && this.method !== "GET" && this.method !== "HEAD" ? Buffer.concat(this.#parts) : undefined;
    const response = await fetch(url, { method: this.method, headers, body, redirect: "manual", signal: this.#aborting.signal });
    const message = new IncomingMessage(response, await response.bytes());
    message.req = this;
    this.res = message;
    if (!this.emit("response", message)) message.resume();
    queueMicrotask(() => this.emit("close"));
  }
}
class Agent extends EventEmitter {
  constructor(options = {}) {
    super();
    Object.assign(this, { options: { ...options }, defaultPort: 80, protocol: "http:", maxSockets: options.maxSockets ?? Infinity, maxFreeSockets: 256, keepAlive: Boolean(options.keepAlive), sockets: {}, requests: {}, freeSockets: {}, totalSocketCount: 0 });
  }
  destroy() {}
  getName() { return ""; }
  createConnection() { throw house.unavailable("a connection of one's own"); }
}
const made = (protocol) => {
  const request = (first, second, third) => {
    let options = {};
    if (typeof first === "string" || first instanceof URL) Object.assign(options, require("url").urlToHttpOptions(new URL(first)));
    else options = { ...first };
    if (second && typeof second === "object") Object.assign(options, second);
    options.protocol ??= options.agent?.protocol ?? protocol;
    return new ClientRequest(options, typeof second === "function" ? second : third);
  };
  const get = (...args) => {
    const sent = request(...args);
    sent.end();
    return sent;
  };
  const Own = class Agent_ extends Agent {
    constructor(options) {
      super(options);
      Object.assign(this, { protocol, defaultPort: protocol === "https:" ? 443 : 80 });
    }
  };
  house.hidden(Own, "name", "Agent");
  return { request, get, Agent: Own, globalAgent: new Own() };
};
const refused = (name) => ({ [name]: function () { throw house.unavailable(`node:http (${name})`); } })[name];
house.http = made;
module.exports = {
  ...made("http:"), ClientRequest, IncomingMessage, OutgoingMessage, METHODS, STATUS_CODES, maxHeaderSize: 16384, setMaxIdleHTTPParsers() {},
  validateHeaderName(name) { new Headers().set(name, ""); }, validateHeaderValue(name, value) { new Headers().set(name, value); },
  Server: refused("Server"), ServerResponse: class ServerResponse extends OutgoingMessage {}, createServer: refused("createServer"), WebSocket, _connectionListener() {}, CloseEvent, MessageEvent,
};
