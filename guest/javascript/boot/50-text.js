class TextEncoder {
  get encoding() { return "utf-8"; }
  encode(input = "") { return natives.utf8Encode(`${input}`); }
  encodeInto(source, destination) {
    need(arguments.length, 2, "encodeInto");
    const text = `${source}`;
    const room = typedLength(destination);
    let read = 0;
    let written = 0;
    while (read < text.length) {
      const point = codePoint(text, read);
      const width = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
      if (written + width > room) break;
      written += width;
      read += point > 0xffff ? 2 : 1;
    }
    typedSet(destination, natives.utf8Encode(slice(text, 0, read)));
    return { read, written };
  }
}
tag(TextEncoder.prototype, "TextEncoder");

const ENCODINGS = { __proto__: null };
const name = (encoding, labels) => {
  for (let i = 0; i < labels.length; i++) ENCODINGS[labels[i]] = encoding;
};
name("utf-8", ["utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8"]);
name("utf-16le", ["utf-16le", "utf-16", "ucs-2", "iso-10646-ucs-2", "unicode", "unicodefeff", "csunicode"]);
name("utf-16be", ["utf-16be", "unicodefffe"]);
name("windows-1252", [
  "latin1", "iso-8859-1", "iso8859-1", "iso88591", "iso_8859-1", "windows-1252", "cp1252", "x-cp1252", "ascii", "us-ascii", "l1",
  "ansi_x3.4-1968", "cp819", "ibm819", "iso-ir-100", "csisolatin1", "iso_8859-1:1987",
]);
// 0x80–0x9f; the rest of windows-1252 is Latin-1
const WINDOWS_1252 =
  "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f" +
  "\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";

const trimmedLabel = (label) => {
  let from = 0;
  let to = label.length;
  const space = (c) => c === 32 || (c >= 9 && c <= 13 && c !== 11);
  while (from < to && space(charCode(label, from))) from++;
  while (to > from && space(charCode(label, to - 1))) to--;
  return lower(slice(label, from, to));
};

const joined = (left, right) => {
  if (!left.length) return right;
  const all = new Uint8Array(left.length + right.length);
  typedSet(all, left);
  typedSet(all, right, left.length);
  return all;
};
const NO_BYTES = new Uint8Array(0);

class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBom;
  #kept = NO_BYTES;
  #begun = false;
  constructor(label = "utf-8", options = {}) {
    const encoding = ENCODINGS[trimmedLabel(`${label}`)];
    if (!encoding) throw new RangeError(`TextDecoder: the encoding "${label}" is not supported`);
    this.#encoding = encoding;
    this.#fatal = !!options?.fatal;
    this.#ignoreBom = !!options?.ignoreBOM;
  }
  get encoding() { return this.#encoding; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#ignoreBom; }
  decode(input, options) {
    const more = !!options?.stream;
    const given = input === undefined ? NO_BYTES : bytesOf(input, "decode");
    const bytes = joined(this.#kept, given);
    this.#kept = NO_BYTES;
    let text = this.#encoding === "utf-8" ? this.#utf8(bytes, more) : this.#encoding === "windows-1252" ? this.#latin(bytes) : this.#utf16(bytes, more);
    if (!this.#begun && text.length) {
      if (!this.#ignoreBom && charCode(text, 0) === 0xfeff && this.#encoding !== "windows-1252") text = slice(text, 1);
      this.#begun = true;
    }
    if (!more) this.#begun = false;
    return text;
  }
  #fail() {
    this.#begun = false;
    throw new TypeError(`the bytes are not ${this.#encoding}`);
  }
  #utf8(bytes, more) {
    const decoded = natives.utf8Decode(bytes, this.#fatal, more);
    if (decoded === null) this.#fail();
    if (decoded[1]) this.#kept = new Uint8Array(bufferSlice(typedBuffer(bytes), typedByteOffset(bytes) + bytes.length - decoded[1], typedByteOffset(bytes) + bytes.length));
    return decoded[0];
  }
  #latin(bytes) {
    let text = "";
    for (let i = 0; i < bytes.length; i++) {
      const c = bytes[i];
      text += c >= 0x80 && c < 0xa0 ? charAt(WINDOWS_1252, c - 0x80) : fromCharCode(c);
    }
    return text;
  }
  #utf16(bytes, more) {
    const big = this.#encoding === "utf-16be";
    const end = bytes.length - (bytes.length % 2);
    let text = "";
    let high = 0;
    for (let i = 0; i < end; i += 2) {
      const unit = big ? (bytes[i] << 8) | bytes[i + 1] : bytes[i] | (bytes[i + 1] << 8);
      const isLow = (unit & 0xfc00) === 0xdc00;
      if (high) text += isLow ? fromCharCode(high, unit) : this.#bad();
      else if (isLow) text += this.#bad();
      const consumed = high && isLow;
      high = (unit & 0xfc00) === 0xd800 ? unit : 0;
      if (!consumed && !isLow && !high) text += fromCharCode(unit);
    }
    const left = end < bytes.length ? [bytes[end]] : [];
    if (!more) return high || left.length ? text + this.#bad() : text;
    const kept = high ? (big ? [high >> 8, high & 255] : [high & 255, high >> 8]) : [];
    this.#kept = new Uint8Array(kept.length + left.length);
    for (let i = 0; i < kept.length; i++) this.#kept[i] = kept[i];
    if (left.length) this.#kept[kept.length] = left[0];
    return text;
  }
  #bad() {
    if (this.#fatal) this.#fail();
    return "\ufffd";
  }
}
tag(TextDecoder.prototype, "TextDecoder");
