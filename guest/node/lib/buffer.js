// Buffer: the package, with text and base64 at the engine's own speed.
const { Buffer, SlowBuffer, kMaxLength } = house.fromLibrary("buffer/index.js");
const { utf8Encode, utf8Decode } = natives;

const wrapped = (bytes) => Object.setPrototypeOf(bytes, Buffer.prototype);
const isUtf8 = (encoding) => encoding === undefined || /^utf-?8$/i.test(encoding);
const base64 = (text) => {
  const clean = text.replace(/-/g, "+").replace(/_/g, "/").replace(/=[^]*$/, "").replace(/[^A-Za-z0-9+/]/g, "");
  return Uint8Array.fromBase64(clean.slice(0, clean.length % 4 === 1 ? -1 : undefined));
};
const hex = (text) => {
  const valid = /^(?:[0-9a-f]{2})*/i.exec(text)[0];
  return Uint8Array.fromHex(valid);
};
const ENCODERS = { __proto__: null, base64, base64url: base64, hex };

const from = Buffer.from;
Buffer.from = function (value, encoding, length) {
  if (typeof value === "string") {
    if (isUtf8(encoding)) return wrapped(utf8Encode(value.toWellFormed()));
    const encode = ENCODERS[`${encoding}`.toLowerCase()];
    if (encode) return wrapped(encode(value));
  }
  return from(value, encoding, length);
};
const byteLength = Buffer.byteLength;
Buffer.byteLength = (value, encoding) =>
  typeof value === "string" && isUtf8(encoding) ? utf8Encode(value.toWellFormed()).length : byteLength(value, encoding);

const plain = (buffer, start, end) => {
  const from = start === undefined ? 0 : Math.max(0, Math.min(buffer.length, Math.trunc(Number(start)) || 0));
  const to = end === undefined ? buffer.length : Math.max(from, Math.min(buffer.length, Math.trunc(Number(end)) || 0));
  return new Uint8Array(buffer.buffer, buffer.byteOffset + from, to - from);
};
const toString = Buffer.prototype.toString;
Buffer.prototype.toString = function (encoding, start, end) {
  if (isUtf8(encoding ?? undefined)) return utf8Decode(plain(this, start, end), false, false)[0];
  const name = `${encoding}`.toLowerCase();
  if (name === "base64") return plain(this, start, end).toBase64();
  if (name === "base64url") return plain(this, start, end).toBase64({ alphabet: "base64url", omitPadding: true });
  if (name === "hex") return plain(this, start, end).toHex();
  return toString.call(this, encoding, start, end);
};
Buffer.prototype.utf8Slice = function (start, end) { return this.toString("utf8", start, end); };
Buffer.prototype.latin1Slice = function (start, end) { return this.toString("latin1", start, end); };
Buffer.prototype.hexSlice = function (start, end) { return this.toString("hex", start, end); };
Buffer.prototype.base64Slice = function (start, end) { return this.toString("base64", start, end); };
Buffer.isEncoding = (name) => typeof name === "string" && /^(?:utf-?8|utf-?16le|ucs-?2|latin1|binary|ascii|hex|base64|base64url)$/i.test(name);
Buffer.copyBytesFrom = (view, offset = 0, length = view.length - offset) => {
  const part = view.subarray(offset, offset + length);
  return Buffer.from(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
};
Object.defineProperty(Buffer.prototype, Symbol.for("nodejs.util.inspect.custom"), {
  value() { return `<Buffer${[...this.subarray(0, 50)].map((byte) => ` ${byte.toString(16).padStart(2, "0")}`).join("")}${this.length > 50 ? ` ... ${this.length - 50} more bytes` : ""}>`; },
  configurable: true, writable: true,
});

module.exports = {
  Buffer, SlowBuffer, kMaxLength, kStringMaxLength: 536870888, INSPECT_MAX_BYTES: 50, Blob: globalThis.Blob, File: globalThis.File, atob, btoa,
  constants: { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: 536870888 },
  isAscii: (bytes) => [...new Uint8Array(bytes.buffer ?? bytes)].every((byte) => byte < 128),
  isUtf8(bytes) { return utf8Decode(new Uint8Array(bytes.buffer ?? bytes), true, false) !== null; },
  transcode: (bytes, fromName, toName) => Buffer.from(Buffer.from(bytes).toString(fromName), toName),
};
