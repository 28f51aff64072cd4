// The URL Standard: parsing. A URL is a record of scheme, username, password, host (null or text), port (null or number),
// path (a text when opaque, else a list of segments), query and fragment (null or text). Section names are the standard's.
const SPECIAL = { __proto__: null, "http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": null };
const isSpecial = (url) => url.scheme in SPECIAL;

const isDigit = (c) => c >= 48 && c <= 57;
const isAlpha = (c) => (c | 32) >= 97 && (c | 32) <= 122;
const isHex = (c) => isDigit(c) || ((c | 32) >= 97 && (c | 32) <= 102);
const hexValue = (c) => (isDigit(c) ? c - 48 : (c | 32) - 87);

// ---- 1.3 percent-encoding

const charSet = (chars) => {
  const set = create(null);
  for (let i = 0; i < chars.length; i++) set[charCode(chars, i)] = true;
  return set;
};
const C0 = create(null);
const FRAGMENT = charSet(' "<>`');
const QUERY = charSet(' "#<>');
const SPECIAL_QUERY = charSet(" \"#<>'");
const PATH = charSet(' "#<>?^`{}');
const USERINFO = charSet(' "#<>?^`{}/:;=@[\\]|');

const HEX = "0123456789ABCDEF";
const percentByte = (byte) => `%${charAt(HEX, byte >> 4)}${charAt(HEX, byte & 15)}`;

const percentPoint = (point) => {
  if (point < 0x80) return percentByte(point);
  const bytes = natives.utf8Encode(fromCodePoint(point));
  let out = "";
  for (let i = 0; i < bytes.length; i++) out += percentByte(bytes[i]);
  return out;
};

const encodePoint = (point, set) =>
  point < 0x20 || point > 0x7e || set[point] ? percentPoint(point) : fromCharCode(point);

const encodeText = (text, set) => {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const point = codePoint(text, i);
    if (point > 0xffff) i++;
    out += encodePoint(point, set);
  }
  return out;
};

const percentDecode = (text) => {
  const bytes = natives.utf8Encode(text);
  let to = 0;
  for (let i = 0; i < bytes.length; i++) {
    let byte = bytes[i];
    if (byte === 37 && i + 2 < bytes.length && isHex(bytes[i + 1]) && isHex(bytes[i + 2])) {
      byte = hexValue(bytes[i + 1]) * 16 + hexValue(bytes[i + 2]);
      i += 2;
    }
    bytes[to++] = byte;
  }
  return new Uint8Array(typedBuffer(bytes), 0, to);
};

const utf8Text = (bytes) => natives.utf8Decode(bytes, false, false)[0];

// ---- 3.5 hosts

const punycodeDigit = (digit) => fromCharCode(digit < 26 ? digit + 97 : digit + 22);

// RFC 3492, or null when a number overflows.
const punycode = (label) => {
  const points = [];
  for (let i = 0; i < label.length; i++) {
    const point = codePoint(label, i);
    if (point > 0xffff) i++;
    push(points, point);
  }
  let out = "";
  for (let i = 0; i < points.length; i++) if (points[i] < 0x80) out += fromCharCode(points[i]);
  const basic = out.length;
  let handled = basic;
  if (basic) out += "-";
  let next = 0x80;
  let delta = 0;
  let bias = 72;
  while (handled < points.length) {
    let least = 0x7fffffff;
    for (let i = 0; i < points.length; i++) if (points[i] >= next && points[i] < least) least = points[i];
    delta += (least - next) * (handled + 1);
    if (delta > 0x7fffffff) return null;
    next = least;
    for (let i = 0; i < points.length; i++) {
      if (points[i] < next) delta++;
      if (points[i] !== next) continue;
      let q = delta;
      for (let k = 36; ; k += 36) {
        const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (q < t) break;
        out += punycodeDigit(t + ((q - t) % (36 - t)));
        q = floor((q - t) / (36 - t));
      }
      out += punycodeDigit(q);
      bias = adaptBias(delta, handled + 1, handled === basic);
      delta = 0;
      handled++;
    }
    delta++;
    next++;
  }
  return out;
};

// Whether the part after "xn--" stands for a label that needs it: what it decodes to must encode to it again.
const isPunycode = (encoded) => {
  const points = [];
  const dash = lastIndexOf(encoded, "-");
  for (let i = 0; i < dash; i++) push(points, charCode(encoded, i));
  let n = 0x80;
  let i = 0;
  let bias = 72;
  for (let at = dash < 0 ? 0 : dash + 1; at < encoded.length; ) {
    const before = i;
    for (let weight = 1, k = 36; ; k += 36) {
      const c = charCode(encoded, at++);
      const digit = isDigit(c) ? c - 22 : isAlpha(c) ? (c | 32) - 97 : 36;
      if (!(digit < 36)) return false;
      i += digit * weight;
      const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (digit < t) break;
      weight *= 36 - t;
      if (i > 0x7fffffff || weight > 0x7fffffff) return false;
    }
    bias = adaptBias(i - before, points.length + 1, before === 0);
    n += floor(i / (points.length + 1));
    i %= points.length + 1;
    if (n > 0x10ffff || (n >= 0xd800 && n < 0xe000)) return false;
    splice(points, i++, 0, n);
  }
  let label = "";
  for (let j = 0; j < points.length; j++) label += fromCodePoint(points[j]);
  return !isAscii(label) && mapDomain(label) === label && punycode(label) === encoded;
};

const adaptBias = (delta, count, first) => {
  delta = first ? floor(delta / 700) : delta >> 1;
  delta += floor(delta / count);
  let k = 0;
  for (; delta > 455; k += 36) delta = floor(delta / 35);
  return k + floor((36 * delta) / (delta + 38));
};

const splitText = (text, separator) => {
  const parts = [];
  let from = 0;
  for (let at = indexOf(text, separator); at >= 0; at = indexOf(text, separator, from)) {
    push(parts, slice(text, from, at));
    from = at + separator.length;
  }
  push(parts, slice(text, from));
  return parts;
};

const isAscii = (text) => {
  for (let i = 0; i < text.length; i++) if (charCode(text, i) > 0x7f) return false;
  return true;
};

// What Unicode's mapping drops (soft hyphen, zero-width and variation characters) or takes for a dot.
const mapDomain = (text) => {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const c = charCode(text, i);
    if (c === 0xad || c === 0x200b || c === 0x2060 || c === 0xfeff || (c >= 0xfe00 && c <= 0xfe0f)) continue;
    out += c === 0x3002 || c === 0xff0e || c === 0xff61 ? "." : c === 0x1e9e ? "ss" : charAt(text, i);
  }
  return normalize(lower(normalize(out, "NFKC")), "NFKC");
};

const domainToAscii = (domain) => {
  const labels = splitText(isAscii(domain) ? lower(domain) : mapDomain(domain), ".");
  for (let i = 0; i < labels.length; i++) {
    if (isAscii(labels[i])) {
      if (startsWith(labels[i], "xn--") && !isPunycode(slice(labels[i], 4))) return null;
      continue;
    }
    const encoded = punycode(labels[i]);
    if (encoded === null) return null;
    labels[i] = `xn--${encoded}`;
  }
  return join(labels, ".");
};

const FORBIDDEN_HOST = charSet("\0\t\n\r #/:<>?@[\\]^|");
const hasForbidden = (text, alsoDomain) => {
  for (let i = 0; i < text.length; i++) {
    const c = charCode(text, i);
    if (FORBIDDEN_HOST[c] || (alsoDomain && (c < 0x20 || c === 0x25 || c === 0x7f))) return true;
  }
  return false;
};

// A part of an IPv4 address: a number, or -1 when it is none.
const ipv4Number = (text) => {
  if (!text.length) return -1;
  let base = 10;
  let from = 0;
  if (text.length > 1 && charAt(text, 0) === "0") {
    base = (charCode(text, 1) | 32) === 120 ? 16 : 8;
    from = base === 16 ? 2 : 1;
  }
  let value = 0;
  for (let i = from; i < text.length; i++) {
    const c = charCode(text, i);
    if (base === 16 ? !isHex(c) : !(c >= 48 && c < 48 + base)) return -1;
    value = value * base + hexValue(c);
  }
  return value;
};

const endsInNumber = (labels) => {
  let last = labels[labels.length - 1];
  if (last === "" && labels.length > 1) last = labels[labels.length - 2];
  if (!last.length) return false;
  let digits = true;
  for (let i = 0; i < last.length; i++) if (!isDigit(charCode(last, i))) digits = false;
  return digits || (startsWith(last, "0x") && ipv4Number(last) >= 0);
};

const parseIpv4 = (labels) => {
  const count = labels[labels.length - 1] === "" && labels.length > 1 ? labels.length - 1 : labels.length;
  if (count > 4) return null;
  let address = 0;
  for (let i = 0; i < count; i++) {
    const number = ipv4Number(labels[i]);
    const last = i === count - 1;
    if (number < 0 || (last ? number >= 256 ** (5 - count) : number > 255)) return null;
    address += last ? number : number * 256 ** (3 - i);
  }
  return `${floor(address / 16777216)}.${floor(address / 65536) % 256}.${floor(address / 256) % 256}.${address % 256}`;
};

const parseIpv6 = (text) => {
  const pieces = [0, 0, 0, 0, 0, 0, 0, 0];
  let piece = 0;
  let compress = -1;
  let at = 0;
  const c = (i) => (i < text.length ? charCode(text, i) : -1);
  if (c(0) === 58) {
    if (c(1) !== 58) return null;
    at = 2;
    compress = ++piece;
  }
  while (at < text.length) {
    if (piece === 8) return null;
    if (c(at) === 58) {
      if (compress >= 0) return null;
      at++;
      compress = ++piece;
      continue;
    }
    let value = 0;
    let length = 0;
    for (; length < 4 && isHex(c(at)); at++, length++) value = value * 16 + hexValue(c(at));
    if (c(at) === 46) {
      if (!length || piece > 6) return null;
      if (!ipv6Tail(text, at - length, pieces, piece)) return null;
      piece += 2;
      break;
    }
    if (c(at) === 58) {
      if (++at >= text.length) return null;
    } else if (at < text.length) return null;
    pieces[piece++] = value;
  }
  if (compress >= 0) {
    for (let swaps = piece - compress, to = 7; to !== 0 && swaps > 0; to--, swaps--) {
      const kept = pieces[compress + swaps - 1];
      pieces[compress + swaps - 1] = pieces[to];
      pieces[to] = kept;
    }
  } else if (piece !== 8) return null;
  return pieces;
};

// The dotted end of an IPv6 address, as two pieces.
const ipv6Tail = (text, from, pieces, piece) => {
  const parts = splitText(slice(text, from), ".");
  if (parts.length !== 4) return false;
  for (let i = 0; i < 4; i++) {
    if (!parts[i].length || parts[i].length > 3 || (parts[i].length > 1 && charAt(parts[i], 0) === "0")) return false;
    const number = ipv4Number(parts[i]);
    if (number < 0 || number > 255) return false;
    pieces[piece + (i >> 1)] = (pieces[piece + (i >> 1)] << 8) | number;
  }
  return true;
};

const serializeIpv6 = (pieces) => {
  let best = -1;
  let bestLength = 1;
  for (let i = 0; i < 8; i++) {
    let length = 0;
    while (i + length < 8 && pieces[i + length] === 0) length++;
    if (length > bestLength) {
      best = i;
      bestLength = length;
    }
    i += length;
  }
  let out = "[";
  for (let i = 0; i < 8; i++) {
    if (i === best) {
      out += i === 0 ? "::" : ":";
      i += bestLength - 1;
      continue;
    }
    out += numberToString(pieces[i], 16) + (i < 7 ? ":" : "");
  }
  return `${out}]`;
};

// 3.5 host parser; null is failure.
const parseHost = (text, opaque) => {
  if (charAt(text, 0) === "[") {
    if (charAt(text, text.length - 1) !== "]") return null;
    const pieces = parseIpv6(slice(text, 1, -1));
    return pieces && serializeIpv6(pieces);
  }
  if (opaque) return hasForbidden(text, false) ? null : encodeText(text, C0);
  const domain = domainToAscii(utf8Text(percentDecode(text)));
  if (domain === null || !domain.length || hasForbidden(domain, true)) return null;
  const labels = splitText(domain, ".");
  return endsInNumber(labels) ? parseIpv4(labels) : domain;
};

// ---- 4.4 the basic URL parser

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

// ---- 4.5 serializing

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
