// zlib: gzip and deflate in all their forms. Brotli and Zstandard load, and say that they are not there.
const { Transform } = require("stream");
const constants = {
  Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1,
  Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6, Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9,
  Z_DEFAULT_COMPRESSION: -1, Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0, Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15,
  Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384, Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8,
  Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1, BROTLI_OPERATION_PROCESS: 0, BROTLI_OPERATION_FLUSH: 1, BROTLI_OPERATION_FINISH: 2, BROTLI_PARAM_MODE: 0,
  BROTLI_PARAM_QUALITY: 1, BROTLI_PARAM_SIZE_HINT: 5, BROTLI_MODE_TEXT: 1, BROTLI_MODE_GENERIC: 0, BROTLI_DEFAULT_QUALITY: 11, BROTLI_MAX_QUALITY: 11, BROTLI_MIN_QUALITY: 0,
  ZSTD_e_continue: 0, ZSTD_e_flush: 1, ZSTD_e_end: 2, ZSTD_c_compressionLevel: 100, ZSTD_CLEVEL_DEFAULT: 3,
};
const bytesOf = (data, encoding) => {
  const bytes = typeof data === "string" ? Buffer.from(data, encoding) : data instanceof ArrayBuffer ? new Uint8Array(data) : data;
  if (!ArrayBuffer.isView(bytes))
    throw house.errorWith(TypeError, "ERR_INVALID_ARG_TYPE", 'The "buffer" argument must be of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer.');
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
};
const wrong = (code, message, errno) => house.errorWith(Error, code, message, { errno });
const cutOff = () => wrong("Z_BUF_ERROR", "unexpected end of file", -5);
const plain = (bytes) => new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const levelOf = (options) => {
  const level = options?.level ?? -1;
  if (!Number.isInteger(level) || level < -1 || level > 9)
    throw house.errorWith(RangeError, "ERR_OUT_OF_RANGE", `The value of "options.level" is out of range. It must be >= -1 and <= 9. Received ${String(level)}`);
  return level === -1 ? 6 : level;
};
const deflated = (given, options) => natives.deflate(plain(bytesOf(given)), levelOf(options));
const word = (value) => [value & 255, (value >>> 8) & 255, (value >>> 16) & 255, value >>> 24];
// RFC 1952, 2.3: the time is none, the system Unix.
const gzip = (given, options) => {
  const bytes = bytesOf(given);
  const level = levelOf(options);
  const header = [31, 139, 8, 0, 0, 0, 0, 0, level === 9 ? 2 : level === 1 ? 4 : 0, 3];
  return Buffer.concat([Buffer.from(header), deflated(bytes, options), Buffer.from([...word(natives.crc32(plain(bytes), 0)), ...word(bytes.length)])]);
};
// RFC 1950, 2.2.
const deflate = (given, options) => {
  const bytes = bytesOf(given);
  const level = levelOf(options);
  const header = [120, level < 2 ? 1 : level < 6 ? 94 : level === 6 ? 156 : 218];
  return Buffer.concat([Buffer.from(header), deflated(bytes, options), Buffer.from(word(natives.adler32(plain(bytes))).reverse())]);
};
const inflated = (bytes) => {
  const found = natives.inflate(plain(bytes));
  if (found === null) throw cutOff();
  if (found === false) throw wrong("Z_DATA_ERROR", "invalid stored block lengths", -3);
  return found;
};
const number = (bytes, at) => (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
// Where the data of a gzip member begins (RFC 1952, 2.3).
const afterHeader = (bytes) => {
  if (bytes.length < 10) throw cutOff();
  if (bytes[0] !== 31 || bytes[1] !== 139 || bytes[2] !== 8) throw wrong("Z_DATA_ERROR", "incorrect header check", -3);
  const flags = bytes[3];
  let at = 10;
  if (flags & 4) at += 2 + (bytes[at] | (bytes[at + 1] << 8));
  for (const flag of [8, 16]) if (flags & flag) at = bytes.indexOf(0, at) + 1 || bytes.length;
  return at + (flags & 2 ? 2 : 0);
};
const gunzip = (given) => {
  const parts = [];
  for (let bytes = bytesOf(given); bytes.length === 0 ? !parts.length : !parts.length || bytes[0] === 31; ) {
    const start = afterHeader(bytes);
    const [part, used] = inflated(bytes.subarray(start));
    const end = start + used;
    if (bytes.length < end + 8) throw cutOff();
    if (natives.crc32(part, 0) !== number(bytes, end)) throw wrong("Z_DATA_ERROR", "incorrect data check", -3);
    parts.push(part);
    bytes = bytes.subarray(end + 8);
    if (!bytes.length) break;
  }
  return Buffer.concat(parts);
};
const inflate = (given) => {
  const bytes = bytesOf(given);
  if (bytes.length < 2) throw cutOff();
  if ((bytes[0] & 15) !== 8 || ((bytes[0] << 8) | bytes[1]) % 31) throw wrong("Z_DATA_ERROR", "incorrect header check", -3);
  if (bytes[1] & 32) throw wrong("Z_NEED_DICT", "Missing dictionary", 2);
  const [part, used] = inflated(bytes.subarray(2));
  const end = 2 + used;
  if (bytes.length < end + 4) throw cutOff();
  const sum = natives.adler32(part);
  if (word(sum).reverse().some((value, at) => value !== bytes[end + at])) throw wrong("Z_DATA_ERROR", "incorrect data check", -3);
  return Buffer.from(part.buffer);
};
const METHODS = {
  gzip, deflate, gunzip, inflate,
  deflateRaw: (given, options) => {
    const made = deflated(given, options);
    return Buffer.from(made.buffer, made.byteOffset, made.byteLength);
  },
  inflateRaw: (given) => Buffer.from(inflated(bytesOf(given))[0].buffer),
  unzip: (given) => (bytesOf(given)[0] === 31 ? gunzip(given) : inflate(given)),
};
const zlib = { constants, codes: { Z_OK: 0, Z_STREAM_END: 1, Z_DATA_ERROR: -3, Z_BUF_ERROR: -5 } };
const classes = (method, name, run) => {
  const Class = { [name]: class extends Transform {
    #parts = [];
    #options;
    constructor(options = {}) {
      super(options);
      this.#options = options;
    }
    _transform(chunk, encoding, done) {
      this.#parts.push(Buffer.from(bytesOf(chunk, encoding)));
      done();
    }
    _flush(done) {
      try {
        this.push(run(Buffer.concat(this.#parts), this.#options));
        done();
      } catch (error) {
        done(error);
      }
    }
    flush(kind, callback) { queueMicrotask(typeof kind === "function" ? kind : (callback ?? (() => {}))); }
    close(callback) {
      this.destroy();
      if (callback) queueMicrotask(callback);
    }
    reset() { this.#parts = []; }
  } }[name];
  zlib[name] = new Proxy(Class, { apply: (target, self, args) => new target(...args) });
  zlib[`create${name}`] = (options) => new Class(options);
  zlib[`${method}Sync`] = run;
  zlib[method] = (data, options, callback) => {
    const done = typeof options === "function" ? options : callback;
    let error = null;
    let value;
    try {
      value = run(data, typeof options === "function" ? {} : options);
    } catch (thrown) {
      error = thrown;
    }
    queueMicrotask(() => done(error, value));
  };
};
const title = (name) => name[0].toUpperCase() + name.slice(1);
for (const name of Object.keys(METHODS)) classes(name, title(name), METHODS[name]);
for (const name of ["brotliCompress", "brotliDecompress", "zstdCompress", "zstdDecompress"]) classes(name, title(name), () => { throw house.unavailable(`node:zlib (${name})`); });
zlib.crc32 = (data, value = 0) => natives.crc32(plain(bytesOf(data)), value);
module.exports = Object.assign(zlib, constants);
