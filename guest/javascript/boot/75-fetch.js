// fetch, Headers, Request and Response, as far as a script without streams can use them. The classes are made when one of
// them is first used, so that a script without them does not pay for them.
//
// A fetch is a call of the host's, `$fetch`, which answers with {status, reason, headers, url, redirected, body} or refuses
// with a ToolError; the script gets that as the `cause` of a TypeError, which is what fetch rejects with anywhere.
const decode = uncurry(TextDecoder.prototype.decode);
const paramsToString = uncurry(URLSearchParams.prototype.toString);
const urlPart = { __proto__: null };
for (const part of ["href", "username", "password"]) urlPart[part] = getter(URL.prototype, part);

let webParts;
const web = () => webParts ?? (webParts = makeWeb());

const makeWeb = () => {
  const NULL_BODY = { __proto__: null, 101: true, 103: true, 204: true, 205: true, 304: true };
  const FORBIDDEN = { __proto__: null, CONNECT: true, TRACE: true, TRACK: true };
  const MADE = {};
  const decoder = new TextDecoder();

  const isToken = (text) => {
    for (let i = 0; i < text.length; i++) {
      const c = charCode(text, i);
      if (!isDigit(c) && !isAlpha(c) && indexOf("!#$%&'*+-.^_`|~", charAt(text, i)) < 0) return false;
    }
    return text.length > 0;
  };
  const headerName = (name) => {
    const text = `${name}`;
    if (!isToken(text)) throw new TypeError(`Headers: ${jsonStringify(slice(text, 0, 80))} is not a header name`);
    return lower(text);
  };
  const headerValue = (value) => {
    const text = `${value}`;
    let from = 0;
    let to = text.length;
    const space = (c) => c === 32 || c === 9 || c === 10 || c === 13;
    while (from < to && space(charCode(text, from))) from++;
    while (to > from && space(charCode(text, to - 1))) to--;
    for (let i = from; i < to; i++) {
      const c = charCode(text, i);
      if (c === 0 || c === 10 || c === 13 || c > 255) throw new TypeError("Headers: a value holds a character that no header may hold");
    }
    return slice(text, from, to);
  };

  class Headers {
    #map = new MapClass();
    constructor(init) {
      if (init === undefined || init === null) return;
      if (typeof init !== "object") throw new TypeError("Headers: an object, pairs or Headers are expected");
      if (#map in init) {
        mapForEach(init.#map, (value, name) => mapSet(this.#map, name, value));
        return;
      }
      const pairs = pairsOf(init);
      for (let i = 0; i < pairs.length; i++) this.append(pairs[i].name, pairs[i].value);
    }
    append(name, value) {
      need(arguments.length, 2, "append");
      const key = headerName(name);
      const text = headerValue(value);
      mapSet(this.#map, key, mapHas(this.#map, key) ? `${mapGet(this.#map, key)}, ${text}` : text);
    }
    set(name, value) {
      need(arguments.length, 2, "set");
      mapSet(this.#map, headerName(name), headerValue(value));
    }
    get(name) {
      need(arguments.length, 1, "get");
      return mapGet(this.#map, headerName(name)) ?? null;
    }
    has(name) {
      need(arguments.length, 1, "has");
      return mapHas(this.#map, headerName(name));
    }
    delete(name) {
      need(arguments.length, 1, "delete");
      mapDelete(this.#map, headerName(name));
    }
    getSetCookie() { return []; }
    #sorted() {
      const names = [];
      mapForEach(this.#map, (_, name) => push(names, name));
      sort(names);
      const list = [];
      for (let i = 0; i < names.length; i++) push(list, { __proto__: null, name: names[i], value: mapGet(this.#map, names[i]) });
      return list;
    }
    forEach(callback, self) {
      const list = this.#sorted();
      for (let i = 0; i < list.length; i++) apply(callback, self, [list[i].value, list[i].name, this]);
    }
    entries() { return new PairIterator(() => this.#sorted(), (pair) => [pair.name, pair.value]); }
    keys() { return new PairIterator(() => this.#sorted(), (pair) => pair.name); }
    values() { return new PairIterator(() => this.#sorted(), (pair) => pair.value); }
    [Symbol.iterator]() { return this.entries(); }
    toJSON() { return ownHeaders(this); }
    static own(headers) {
      const all = {};
      mapForEach(headers.#map, (value, name) =>
        defineProperty(all, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true }));
      return all;
    }
    static default(headers, name, value) { if (!mapHas(headers.#map, name)) mapSet(headers.#map, name, value); }
    static add(headers, name, value) {
      mapSet(headers.#map, name, mapHas(headers.#map, name) ? `${mapGet(headers.#map, name)}, ${value}` : value);
    }
  }
  const { own: ownHeaders, default: defaultHeader, add: addHeader } = Headers;
  delete Headers.own;
  delete Headers.default;
  delete Headers.add;
  tag(Headers.prototype, "Headers");

  // The bytes of a body and the type that it has by itself.
  const bodyOf = (body, what) => {
    if (body === undefined || body === null) return { __proto__: null, bytes: null, type: null };
    if (typeof body === "object") {
      if (getPrototypeOf(body) === URLSearchParams.prototype)
        return { __proto__: null, bytes: natives.utf8Encode(paramsToString(body)), type: "application/x-www-form-urlencoded;charset=UTF-8" };
      if (kindOf(body) === "buffer" || isView(body)) {
        const bytes = bytesOf(body, what);
        const copy = new Uint8Array(bytes.length);
        typedSet(copy, bytes);
        return { __proto__: null, bytes: copy, type: null };
      }
      throw new TypeError(`${what}: a body is a string, bytes or URLSearchParams; send an object as JSON.stringify(object)`);
    }
    return { __proto__: null, bytes: natives.utf8Encode(toWellFormed(`${body}`)), type: "text/plain;charset=UTF-8" };
  };

  class Body {
    #bytes;
    #used = false;
    #what;
    constructor(made, bytes, what) {
      if (made !== MADE) throw new TypeError("Illegal constructor");
      this.#bytes = bytes;
      this.#what = what;
    }
    get bodyUsed() { return this.#used; }
    get body() {
      if (this.#bytes === null) return null;
      throw new TypeError(`${this.#what}.body: there are no streams here; await text(), json(), bytes() or arrayBuffer()`);
    }
    #take() {
      if (this.#used) throw new TypeError(`${this.#what}: the body was read already; read a clone() instead`);
      this.#used = this.#bytes !== null;
      return this.#bytes ?? NO_BYTES;
    }
    async text() { return decode(decoder, this.#take()); }
    async json() {
      const text = decode(decoder, this.#take());
      return parseJson(text);
    }
    async bytes() {
      const bytes = this.#take();
      const copy = new Uint8Array(bytes.length);
      typedSet(copy, bytes);
      return copy;
    }
    async arrayBuffer() {
      const bytes = this.#take();
      return bufferSlice(typedBuffer(bytes), typedByteOffset(bytes), typedByteOffset(bytes) + typedByteLength(bytes));
    }
    static whole(holder) {
      if (holder.#used) throw new TypeError(`${holder.#what}: the body was read already`);
      return holder.#bytes;
    }
    static taken(holder) { return apply(takeBody, holder, []); }
    static take() { return this.#bytes === null ? null : this.#take(); }
  }
  const { whole: wholeBody, taken: takenBody, take: takeBody } = Body;
  delete Body.whole;
  delete Body.taken;
  delete Body.take;

  class Request extends Body {
    #url;
    #method;
    #headers;
    #signal;
    #redirect;
    constructor(input, init) {
      need(arguments.length, 1, "Request");
      const from = typeof input === "object" && input !== null && #url in input ? input : null;
      const options = init ?? {};
      if (typeof options !== "object") throw new TypeError("Request: the options are an object");
      let method = `${options.method ?? from?.method ?? "GET"}`;
      if (!isToken(method) || FORBIDDEN[upper(method)]) throw new TypeError(`Request: the method ${jsonStringify(slice(method, 0, 40))} cannot be used`);
      method = upper(method);
      const inherits = options.body === undefined || options.body === null;
      const body = inherits
        ? { __proto__: null, bytes: from === null ? null : takenBody(from), type: null }
        : bodyOf(options.body, "Request");
      if (body.bytes !== null && (method === "GET" || method === "HEAD")) throw new TypeError(`Request: a ${method} has no body`);
      super(MADE, body.bytes, "Request");
      this.#url = from === null ? locate(input) : from.#url;
      this.#method = method;
      this.#headers = new Headers(options.headers ?? from?.headers);
      if (body.type !== null) defaultHeader(this.#headers, "content-type", body.type);
      this.#signal = options.signal === undefined ? (from?.signal ?? null) : options.signal;
      if (this.#signal !== null && !isSignal(this.#signal)) throw new TypeError("Request: signal is an AbortSignal");
      this.#redirect = `${options.redirect ?? from?.redirect ?? "follow"}`;
      if (this.#redirect !== "follow" && this.#redirect !== "error" && this.#redirect !== "manual")
        throw new TypeError('Request: redirect is "follow", "error" or "manual"');
    }
    get url() { return this.#url; }
    get method() { return this.#method; }
    get headers() { return this.#headers; }
    get signal() { return this.#signal; }
    get redirect() { return this.#redirect; }
    clone() {
      const body = wholeBody(this);
      return new Request(this.#url, {
        method: this.#method, headers: this.#headers, body, signal: this.#signal, redirect: this.#redirect,
      });
    }
  }
  tag(Request.prototype, "Request");

  const locate = (input) => {
    const url = new URL(`${input}`);
    const href = urlPart.href(url);
    if (urlPart.username(url) || urlPart.password(url)) throw new TypeError("fetch: a URL holds no user name or password; use the authorization header");
    const hash = indexOf(href, "#");
    return hash < 0 ? href : slice(href, 0, hash);
  };

  class Response extends Body {
    #status = 200;
    #reason = "";
    #headers;
    #url = "";
    #redirected = false;
    constructor(body, init, made, answer) {
      if (made === MADE) {
        super(MADE, answer.body, "Response");
        this.#status = answer.status;
        this.#reason = answer.reason;
        this.#headers = answer.headers;
        this.#url = answer.url;
        this.#redirected = answer.redirected;
        return;
      }
      const options = init ?? {};
      const status = options.status === undefined ? 200 : +options.status;
      if (!(status >= 200 && status <= 599)) throw new RangeError("Response: the status is a number from 200 to 599");
      const given = bodyOf(body, "Response");
      if (given.bytes !== null && NULL_BODY[status]) throw new TypeError(`Response: a response of status ${status} has no body`);
      super(MADE, given.bytes, "Response");
      this.#status = floor(status);
      this.#reason = `${options.statusText ?? ""}`;
      this.#headers = new Headers(options.headers);
      if (given.type !== null) defaultHeader(this.#headers, "content-type", given.type);
    }
    static json(data, init) {
      const text = jsonStringify(data);
      if (text === undefined) throw new TypeError("Response.json: this value is not JSON");
      const response = new Response(text, init);
      if (init?.headers === undefined || !new Headers(init.headers).has("content-type"))
        response.#headers.set("content-type", "application/json");
      return response;
    }
    get status() { return this.#status; }
    get ok() { return this.#status >= 200 && this.#status <= 299; }
    get statusText() { return this.#reason; }
    get headers() { return this.#headers; }
    get url() { return this.#url; }
    get redirected() { return this.#redirected; }
    get type() { return this.#url === "" ? "default" : "basic"; }
    clone() {
      return new Response(null, null, MADE, {
        __proto__: null, body: wholeBody(this), status: this.#status, reason: this.#reason, headers: new Headers(this.#headers),
        url: this.#url, redirected: this.#redirected,
      });
    }
  }
  tag(Response.prototype, "Response");

  // `mold` is an error made where fetch was called, for that is the place to show.
  const failure = (mold, message, cause) => {
    defineProperty(mold, "message", { __proto__: null, value: message, writable: true, configurable: true });
    if (cause !== undefined) defineProperty(mold, "cause", { __proto__: null, value: cause, writable: true, configurable: true });
    return mold;
  };
  const refused = (mold, error) => {
    const hint = getOwnPropertyDescriptor(error, "hint")?.value;
    const message = natives.factOf(error, "message");
    return failure(mold, typeof hint === "string" ? `${message} ${hint}` : `${message}`, error);
  };

  const answered = (answer) => {
    const headers = new Headers();
    for (let i = 0; i < answer.headers.length; i++) addHeader(headers, answer.headers[i][0], answer.headers[i][1]);
    const body = NULL_BODY[answer.status] ? null : answer.body;
    return new Response(null, null, MADE, {
      __proto__: null, body, status: answer.status, reason: answer.reason, headers, url: answer.url, redirected: answer.redirected,
    });
  };

  const send = (request) => {
    const args = create(null);
    args.url = request.url;
    args.method = request.method;
    args.headers = ownHeaders(request.headers);
    args.body = takenBody(request);
    args.follow = request.redirect === "follow";
    return natives.call("$fetch", args, false);
  };

  const fetch = (input, init) => {
    const mold = new TypeError();
    let request;
    let call;
    try {
      request = new Request(input, init);
      if (request.signal !== null && signalAborted(request.signal)) return promiseReject(request.signal.reason);
      call = send(request);
    } catch (error) {
      return promiseReject(error);
    }
    return new PromiseClass((resolve, reject) => {
      const signal = request.signal;
      if (signal !== null) signalThen(signal, () => reject(signal.reason));
      promiseThen(call, (answer) => {
        if (request.redirect === "error" && answer.status >= 300 && answer.status <= 399 && answer.status !== 304)
          reject(failure(mold, `${request.url} redirects, and redirect is "error"`));
        else resolve(answered(answer));
      }, (error) => reject(refused(mold, error)));
    });
  };

  return { __proto__: null, Headers, Request, Response, fetch };
};
