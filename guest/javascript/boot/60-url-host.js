// The URL Standard: percent-encoding and hosts. Section numbers are the standard's.
const isDigit = (c) => c >= 48 && c <= 57;
const isAlpha = (c) => (c | 32) >= 97 && (c | 32) <= 122;
const isHex = (c) => isDigit(c) || ((c | 32) >= 97 && (c | 32) <= 102);
const hexValue = (c) => (isDigit(c) ? c - 48 : (c | 32) - 87);

// 1.3 percent-encoding

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

// 3.5 hosts

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
