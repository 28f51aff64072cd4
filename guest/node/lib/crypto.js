// crypto: digests, HMAC, key derivation by PBKDF2, randomness from the run's seed.
const { Transform } = require("stream");
const NAMES = { __proto__: null, md5: "md5", sha1: "sha1", sha224: "sha224", sha256: "sha256", sha384: "sha384", sha512: "sha512" };
const algorithm = (name) => {
  const found = NAMES[`${name}`.toLowerCase().replace(/^rsa-/, "").replace(/^sha-/, "sha")];
  if (found === undefined) throw house.errorWith(Error, "ERR_OSSL_EVP_UNSUPPORTED", `Digest method not supported: ${name}`);
  return found;
};
const bytesOf = (data, encoding) => {
  if (typeof data === "string") {
    const bytes = Buffer.from(data, encoding === "buffer" ? undefined : encoding);
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  if (data instanceof KeyObject) return data.bytes;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw house.errorWith(TypeError, "ERR_INVALID_ARG_TYPE", `The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${data === null ? "null" : typeof data}`);
};
const encoded = (bytes, encoding) => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return encoding && encoding !== "buffer" ? buffer.toString(encoding) : buffer;
};

// What is hashed is kept until the end, and hashed at once.
class Hash extends Transform {
  #parts;
  #finish;
  #done = false;
  constructor(finish, parts = []) {
    super();
    this.#finish = finish;
    this.#parts = parts;
  }
  update(data, encoding) {
    if (this.#done) throw house.errorWith(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
    this.#parts.push(bytesOf(data, encoding).slice());
    return this;
  }
  digest(encoding) {
    if (this.#done) throw house.errorWith(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
    this.#done = true;
    return encoded(this.#finish(joined(this.#parts)), encoding);
  }
  copy() { return new this.constructor(this.#finish, [...this.#parts]); }
  _transform(chunk, encoding, done) {
    this.update(chunk, encoding);
    done();
  }
  _flush(done) {
    this.push(this.digest());
    done();
  }
}
class Hmac extends Hash {}
const joined = (parts) => {
  if (parts.length === 1) return parts[0];
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
};
class KeyObject {
  constructor(type, bytes) { Object.assign(this, { type }); house.hidden(this, "bytes", bytes); }
  get symmetricKeySize() { return this.bytes.length; }
  export(options) { return options?.format === "jwk" ? { kty: "oct", k: Buffer.from(this.bytes).toString("base64url") } : Buffer.from(this.bytes); }
  equals(other) { return Buffer.from(this.bytes).equals(other.bytes); }
}
const later = (work, callback) => {
  let error = null;
  let value;
  try {
    value = work();
  } catch (thrown) {
    error = thrown;
  }
  queueMicrotask(() => callback(error, value));
};
const filled = (bytes) => {
  for (let at = 0; at < bytes.length; at += 65536) globalThis.crypto.getRandomValues(bytes.subarray(at, at + 65536));
  return bytes;
};
const randomBytes = (size, callback) => {
  if (typeof size !== "number" || !(size >= 0) || size > 2 ** 31 - 1) throw house.errorWith(RangeError, "ERR_OUT_OF_RANGE", 'The value of "size" is out of range.');
  const make = () => Buffer.from(filled(new Uint8Array(size)).buffer);
  if (typeof callback !== "function") return make();
  return later(make, callback);
};
const randomInt = (least, most, callback) => {
  if (typeof most !== "number") return randomInt(0, least, most);
  const range = most - least;
  if (!(range > 0) || range > 2 ** 48) throw house.errorWith(RangeError, "ERR_OUT_OF_RANGE", 'The value of "max" is out of range.');
  const limit = 2 ** 48 - (2 ** 48 % range);
  let drawn;
  do drawn = randomBytes(6).readUIntBE(0, 6);
  while (drawn >= limit);
  const value = least + (drawn % range);
  return typeof callback === "function" ? later(() => value, callback) : value;
};
const randomFillSync = (target, offset = 0, size = target.byteLength - offset) => {
  filled(new Uint8Array(target.buffer ?? target, (target.byteOffset ?? 0) + offset, size));
  return target;
};
const pbkdf2Sync = (password, salt, iterations, length, digest) =>
  encoded(natives.derive(algorithm(digest), bytesOf(password), bytesOf(salt), iterations, length));
const hkdfSync = (digest, key, salt, info, length) => {
  const name = algorithm(digest);
  const size = natives.digest(name, new Uint8Array()).length;
  const secret = natives.hmac(name, bytesOf(salt).length ? bytesOf(salt) : new Uint8Array(size), bytesOf(key));
  const parts = [];
  let last = new Uint8Array();
  for (let i = 1; parts.length * size < length; i++) {
    last = natives.hmac(name, secret, joined([last, bytesOf(info), new Uint8Array([i])]));
    parts.push(last);
  }
  return joined(parts).slice(0, length).buffer;
};
const createHash = (name) => {
  const digest = algorithm(name);
  return new Hash((bytes) => natives.digest(digest, bytes));
};
const own = {
  Hash, Hmac, KeyObject, createHash,
  createHmac(name, key) {
    const digest = algorithm(name);
    const secret = bytesOf(key).slice();
    return new Hmac((bytes) => natives.hmac(digest, secret, bytes));
  },
  hash: (name, data, encoding = "hex") => createHash(name).update(data).digest(encoding),
  randomBytes, pseudoRandomBytes: randomBytes, prng: randomBytes, rng: randomBytes, randomInt, randomFillSync,
  randomFill(target, ...rest) {
    const callback = rest.pop();
    later(() => randomFillSync(target, ...rest), callback);
  },
  randomUUID: () => globalThis.crypto.randomUUID(), getRandomValues: (array) => globalThis.crypto.getRandomValues(array),
  webcrypto: globalThis.crypto, subtle: globalThis.crypto.subtle,
  timingSafeEqual(a, b) {
    const [one, other] = [bytesOf(a), bytesOf(b)];
    if (one.length !== other.length) throw house.errorWith(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
    let different = 0;
    for (let i = 0; i < one.length; i++) different |= one[i] ^ other[i];
    return different === 0;
  },
  pbkdf2Sync, pbkdf2(...args) {
    const callback = args.pop();
    later(() => pbkdf2Sync(...args), callback);
  },
  hkdfSync, hkdf(...args) {
    const callback = args.pop();
    later(() => hkdfSync(...args), callback);
  },
  createSecretKey: (key, encoding) => new KeyObject("secret", bytesOf(key, encoding).slice()),
  getHashes: () => Object.keys(NAMES), getCiphers: () => [], getCurves: () => [], getFips: () => 0, constants: require("constants"),
};
const refused = {};
for (const name of house.NAMES.crypto)
  refused[name] = Object.hasOwn(own, name) ? own[name] : { [name]: function () { throw house.unavailable(`node:crypto (${name})`); } }[name];
module.exports = Object.assign(refused, own);
