// The URL Standard: parsing (4.4) and serializing (4.5). A URL is a record of scheme, username, password, host (null or
// text), port (null or number), path (a text when opaque, else a list of segments), query and fragment (null or text).
const SPECIAL = { __proto__: null, "http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": null };
const isSpecial = (url) => url.scheme in SPECIAL;

const isDriveLetter = (text) =>
  text.length === 2 && isAlpha(charCode(text, 0)) && (charAt(text, 1) === ":" || charAt(text, 1) === "|");
const isNormalDriveLetter = (text) => isDriveLetter(text) && charAt(text, 1) === ":";
const startsWithDriveLetter = (text, at) => {
  if (!isDriveLetter(slice(text, at, at + 2))) return false;
  const c = charAt(text, at + 2);
  return c === "" || c === "/" || c === "\\" || c === "?" || c === "#";
};
const isSingleDot = (segment) => {
  const text = lower(segment);
  return text === "." || text === "%2e";
};
const isDoubleDot = (segment) => {
  const text = lower(segment);
  return text === ".." || text === ".%2e" || text === "%2e." || text === "%2e%2e";
};

const shorten = (url) => {
  if (url.scheme === "file" && url.path.length === 1 && isNormalDriveLetter(url.path[0])) return;
  if (url.path.length) url.path.length--;
};

const newUrl = () => ({
  __proto__: null, scheme: "", username: "", password: "", host: null, port: null, path: [], query: null, fragment: null,
});

const strip = (text) => {
  let from = 0;
  let to = text.length;
  while (from < to && charCode(text, from) <= 0x20) from++;
  while (to > from && charCode(text, to - 1) <= 0x20) to--;
  return slice(text, from, to);
};
const withoutTabs = (text) => {
  if (indexOf(text, "\t") < 0 && indexOf(text, "\n") < 0 && indexOf(text, "\r") < 0) return text;
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const c = charCode(text, i);
    if (c !== 9 && c !== 10 && c !== 13) out += charAt(text, i);
  }
  return out;
};

// Parses one URL. `override` is the state a setter starts in; parse() is then true when the setter took effect.
class UrlParser {
  constructor(text, base, url, override) {
    this.text = withoutTabs(override ? text : strip(text));
    this.base = base;
    this.url = url ?? newUrl();
    this.override = override;
    this.at = 0;
    this.buffer = "";
    this.atSign = false;
    this.brackets = false;
    this.passwordSeen = false;
  }

  char(offset = 0) { return charAt(this.text, this.at + offset); }

  // true: done, false: failure
  parse() {
    let state = this.override ?? "scheme start";
    for (; ; this.at++) {
      const next = this[state](this.char());
      if (next === true || next === false) return next;
      if (next) state = next;
      if (this.at >= this.text.length) return this.finish(state);
    }
  }

  // The states see the end of the text as an empty character, so that one who moved back sees it once more.
  finish(state) {
    for (let i = 0; i < 16; i++) {
      this.at = this.text.length;
      const next = this[state]("");
      if (next === true || next === false) return next;
      if (!next || next === state) return true;
      state = next;
    }
    return true;
  }

  back(state) {
    this.at--;
    return state;
  }

  special() { return isSpecial(this.url); }
  slash(c) { return c === "/" || (c === "\\" && this.special()); }
  ends(c) { return c === "" || c === "?" || c === "#" || this.slash(c); }

  "scheme start"(c) {
    if (c && isAlpha(charCode(c, 0))) {
      this.buffer = lower(c);
      return "scheme";
    }
    return this.override ? false : this.back("no scheme");
  }

  "scheme"(c) {
    const code = c ? charCode(c, 0) : 0;
    if (isAlpha(code) || isDigit(code) || c === "+" || c === "-" || c === ".") {
      this.buffer += lower(c);
      return undefined;
    }
    if (c === ":") return this.schemeDone();
    if (this.override) return false;
    this.buffer = "";
    this.at = -1;
    return "no scheme";
  }

  schemeDone() {
    const { url, buffer } = this;
    if (this.override) {
      if (url.scheme in SPECIAL !== buffer in SPECIAL) return true;
      if (buffer === "file" && (url.username || url.password || url.port !== null)) return true;
      if (url.scheme === "file" && !url.host) return true;
      url.scheme = buffer;
      if (url.port === SPECIAL[url.scheme]) url.port = null;
      return true;
    }
    url.scheme = buffer;
    this.buffer = "";
    if (url.scheme === "file") return "file";
    if (this.special()) {
      return this.base && this.base.scheme === url.scheme ? "special relative or authority" : "special authority slashes";
    }
    if (this.char(1) === "/") {
      this.at++;
      return "path or authority";
    }
    url.path = "";
    return "opaque path";
  }

  "no scheme"(c) {
    const { base, url } = this;
    if (!base || (typeof base.path === "string" && c !== "#")) return false;
    if (typeof base.path === "string") {
      url.scheme = base.scheme;
      url.path = base.path;
      url.query = base.query;
      url.fragment = "";
      return "fragment";
    }
    return this.back(base.scheme === "file" ? "file" : "relative");
  }

  "special relative or authority"(c) {
    if (c === "/" && this.char(1) === "/") {
      this.at++;
      return "special authority ignore slashes";
    }
    return this.back("relative");
  }

  "path or authority"(c) { return c === "/" ? "authority" : this.back("path"); }

  takeBase(withPath) {
    const { base, url } = this;
    url.username = base.username;
    url.password = base.password;
    url.host = base.host;
    url.port = base.port;
    if (withPath) {
      url.path = arraySlice(base.path);
      url.query = base.query;
    }
  }

  "relative"(c) {
    const { base, url } = this;
    url.scheme = base.scheme;
    if (this.slash(c)) return "relative slash";
    this.takeBase(true);
    if (c === "?") return this.openQuery();
    if (c === "#") return this.openFragment();
    if (c === "") return true;
    url.query = null;
    shorten(url);
    return this.back("path");
  }

  "relative slash"(c) {
    if (this.special() && (c === "/" || c === "\\")) return "special authority ignore slashes";
    if (c === "/") return "authority";
    this.takeBase(false);
    return this.back("path");
  }

  "special authority slashes"(c) {
    if (c === "/" && this.char(1) === "/") {
      this.at++;
      return "special authority ignore slashes";
    }
    return this.back("special authority ignore slashes");
  }

  "special authority ignore slashes"(c) {
    return c === "/" || c === "\\" ? undefined : this.back("authority");
  }

  "authority"(c) {
    const { url } = this;
    if (c === "@") {
      if (this.atSign) this.buffer = `%40${this.buffer}`;
      this.atSign = true;
      this.credentials();
      this.buffer = "";
      return undefined;
    }
    if (!this.ends(c)) {
      this.buffer += c;
      return undefined;
    }
    if (this.atSign && this.buffer === "") return false;
    this.at -= this.buffer.length + 1;
    this.buffer = "";
    return "host";
  }

  credentials() {
    const { url, buffer } = this;
    for (let i = 0; i < buffer.length; i++) {
      const point = codePoint(buffer, i);
      if (point > 0xffff) i++;
      if (point === 58 && !this.passwordSeen) {
        this.passwordSeen = true;
        continue;
      }
      if (this.passwordSeen) url.password += encodePoint(point, USERINFO);
      else url.username += encodePoint(point, USERINFO);
    }
  }

  "host"(c) {
    const { url } = this;
    if (this.override && url.scheme === "file") return this.back("file host");
    if (c === ":" && !this.brackets) {
      if (this.buffer === "" || this.override === "hostname") return false;
      const host = parseHost(this.buffer, !this.special());
      if (host === null) return false;
      url.host = host;
      this.buffer = "";
      return "port";
    }
    if (this.ends(c)) {
      if (this.special() && this.buffer === "") return false;
      if (this.override && this.buffer === "" && (url.username || url.password || url.port !== null)) return false;
      const host = parseHost(this.buffer, !this.special());
      if (host === null) return false;
      url.host = host;
      this.buffer = "";
      return this.override ? true : this.back("path start");
    }
    if (c === "[") this.brackets = true;
    if (c === "]") this.brackets = false;
    this.buffer += c;
    return undefined;
  }

  "hostname"(c) { return this.host(c); }

  "port"(c) {
    if (c && isDigit(charCode(c, 0))) {
      this.buffer += c;
      return undefined;
    }
    if (!this.ends(c) && !this.override) return false;
    if (this.buffer !== "") {
      let port = 0;
      for (let i = 0; i < this.buffer.length && port <= 65535; i++) port = port * 10 + charCode(this.buffer, i) - 48;
      if (port > 65535) return false;
      this.url.port = port === SPECIAL[this.url.scheme] ? null : port;
      this.buffer = "";
      if (this.override) return true;
    }
    return this.override ? false : this.back("path start");
  }

  "file"(c) {
    const { base, url } = this;
    url.scheme = "file";
    url.host = "";
    if (c === "/" || c === "\\") return "file slash";
    if (!base || base.scheme !== "file") return this.back("path");
    url.host = base.host;
    url.path = arraySlice(base.path);
    url.query = base.query;
    if (c === "?") return this.openQuery();
    if (c === "#") return this.openFragment();
    if (c === "") return true;
    url.query = null;
    if (startsWithDriveLetter(this.text, this.at)) url.path = [];
    else shorten(url);
    return this.back("path");
  }

  "file slash"(c) {
    const { base, url } = this;
    if (c === "/" || c === "\\") return "file host";
    if (base && base.scheme === "file") {
      url.host = base.host;
      if (!startsWithDriveLetter(this.text, this.at) && base.path.length && isNormalDriveLetter(base.path[0]))
        push(url.path, base.path[0]);
    }
    return this.back("path");
  }

  "file host"(c) {
    const { url } = this;
    if (!(c === "" || c === "/" || c === "\\" || c === "?" || c === "#")) {
      this.buffer += c;
      return undefined;
    }
    if (!this.override && isDriveLetter(this.buffer)) return this.back("path");
    if (this.buffer === "") {
      url.host = "";
      return this.override ? true : this.back("path start");
    }
    const host = parseHost(this.buffer, !this.special());
    if (host === null) return false;
    url.host = host === "localhost" ? "" : host;
    this.buffer = "";
    return this.override ? true : this.back("path start");
  }

  "path start"(c) {
    if (this.special()) return this.slash(c) ? "path" : this.back("path");
    if (!this.override && c === "?") return this.openQuery();
    if (!this.override && c === "#") return this.openFragment();
    if (c !== "") return c === "/" ? "path" : this.back("path");
    if (this.override && this.url.host === null) push(this.url.path, "");
    return true;
  }

  "path"(c) {
    const { url } = this;
    const ending = c === "" || this.slash(c) || (!this.override && (c === "?" || c === "#"));
    if (!ending) {
      const point = codePoint(this.text, this.at);
      if (point > 0xffff) this.at++;
      this.buffer += encodePoint(point, PATH);
      return undefined;
    }
    this.endSegment(this.slash(c));
    this.buffer = "";
    if (c === "?") return this.openQuery();
    if (c === "#") return this.openFragment();
    return c === "" ? true : undefined;
  }

  endSegment(slash) {
    const { url, buffer } = this;
    if (isDoubleDot(buffer)) {
      shorten(url);
      if (!slash) push(url.path, "");
    } else if (isSingleDot(buffer)) {
      if (!slash) push(url.path, "");
    } else {
      const drive = url.scheme === "file" && !url.path.length && isDriveLetter(buffer);
      push(url.path, drive ? `${charAt(buffer, 0)}:` : buffer);
    }
  }

  openQuery() {
    this.url.query = "";
    return "query";
  }

  openFragment() {
    this.url.fragment = "";
    return "fragment";
  }

  "opaque path"(c) {
    if (c === "?") return this.openQuery();
    if (c === "#") return this.openFragment();
    if (c === "") return true;
    const rest = charAt(this.text, this.at + 1);
    // a space in front of the query or fragment would be lost when the text is parsed again
    if (c === " " && (rest === "?" || rest === "#")) this.url.path += "%20";
    else this.url.path += this.encoded(C0);
    return undefined;
  }

  encoded(set) {
    const point = codePoint(this.text, this.at);
    if (point > 0xffff) this.at++;
    return encodePoint(point, set);
  }

  "query"(c) {
    if (c === "") return true;
    if (c === "#" && !this.override) return this.openFragment();
    this.url.query += this.encoded(this.special() ? SPECIAL_QUERY : QUERY);
    return undefined;
  }

  "fragment"(c) {
    if (c === "") return true;
    this.url.fragment += this.encoded(FRAGMENT);
    return undefined;
  }
}
// a script's own properties on Object.prototype are none of the parser's business
Object.setPrototypeOf(UrlParser.prototype, null);

const parseUrl = (text, base) => {
  const parser = new UrlParser(text, base);
  return parser.parse() ? parser.url : null;
};

const parseInto = (url, text, state) => new UrlParser(text, null, url, state).parse();

// 4.5 serializing

const serializePath = (url) => {
  if (typeof url.path === "string") return url.path;
  let out = "";
  for (let i = 0; i < url.path.length; i++) out += `/${url.path[i]}`;
  return out;
};

const serializeUrl = (url, withoutFragment) => {
  let out = `${url.scheme}:`;
  if (url.host !== null) {
    out += "//";
    if (url.username || url.password) out += `${url.username}${url.password ? `:${url.password}` : ""}@`;
    out += url.host + (url.port === null ? "" : `:${url.port}`);
  } else if (typeof url.path !== "string" && url.path.length > 1 && url.path[0] === "") {
    out += "/.";
  }
  out += serializePath(url);
  if (url.query !== null) out += `?${url.query}`;
  if (!withoutFragment && url.fragment !== null) out += `#${url.fragment}`;
  return out;
};
