// crypto.subtle, as far as it is digests and HMAC; what else it has rejects as not supported.
const DIGESTS = { __proto__: null, "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512" };
const BLOCKS = { __proto__: null, "SHA-1": 64, "SHA-256": 64, "SHA-384": 128, "SHA-512": 128 };
const notSupported = (what) => new DOMException(`${what} is not supported in an isolate`, "NotSupportedError");
const algorithmName = (algorithm) => `${typeof algorithm === "object" && algorithm !== null ? algorithm.name : algorithm}`.toUpperCase();
const digestName = (algorithm) => {
  const name = algorithmName(algorithm);
  if (!DIGESTS[name]) throw notSupported(`the digest ${name.slice(0, 40)}`);
  return name;
};
const plainBytes = (source) => {
  const bytes = viewBytes(source);
  return Object.getPrototypeOf(bytes) === Uint8Array.prototype ? bytes : new Uint8Array(bytes);
};

class CryptoKey {
  #facts;
  #bytes;
  constructor(token, facts, bytes) {
    if (token !== KEY) throw new TypeError("Illegal constructor");
    this.#facts = facts;
    this.#bytes = bytes;
  }
  get type() { return this.#facts.type; }
  get extractable() { return this.#facts.extractable; }
  get algorithm() { return this.#facts.algorithm; }
  get usages() { return [...this.#facts.usages]; }
  get [Symbol.toStringTag]() { return "CryptoKey"; }
  static bytes(key, usage) {
    if (!(#bytes in key)) throw new TypeError("a CryptoKey is expected");
    if (usage !== undefined && !key.#facts.usages.includes(usage)) throw new DOMException(`the key may not be used to ${usage}`, "InvalidAccessError");
    return key.#bytes;
  }
}
const KEY = {};
const { bytes: keyBytes } = CryptoKey;
delete CryptoKey.bytes;

const imported = (format, data, algorithm, extractable, usages) => {
  const name = algorithmName(algorithm);
  let bytes;
  if (format === "raw") bytes = plainBytes(data).slice();
  else if (format === "jwk" && data?.kty === "oct") bytes = Uint8Array.fromBase64(data.k, { alphabet: "base64url" });
  else throw notSupported(`a key of the format ${format}`);
  if (name === "HMAC") {
    const hash = digestName(algorithm.hash ?? "");
    return new CryptoKey(KEY, { type: "secret", extractable, usages, algorithm: { name, hash: { name: hash }, length: bytes.length * 8 } }, bytes);
  }
  if (name === "PBKDF2") return new CryptoKey(KEY, { type: "secret", extractable: false, usages, algorithm: { name } }, bytes);
  throw notSupported(`a key for ${name.slice(0, 40)}`);
};
const signed = (key, data, usage) => natives.hmac(DIGESTS[key.algorithm.hash.name], keyBytes(key, usage), plainBytes(data));
const derived = (algorithm, key, bits, usage) =>
  natives.derive(DIGESTS[digestName(algorithm.hash)], keyBytes(key, usage), plainBytes(algorithm.salt), algorithm.iterations, bits / 8);

class SubtleCrypto {
  async digest(algorithm, data) { return natives.digest(DIGESTS[digestName(algorithm)], plainBytes(data)).buffer; }
  async importKey(format, data, algorithm, extractable, usages) { return imported(format, data, algorithm, Boolean(extractable), [...usages]); }
  async generateKey(algorithm, extractable, usages) {
    if (algorithmName(algorithm) !== "HMAC") throw notSupported(`generating a key for ${algorithmName(algorithm).slice(0, 40)}`);
    const bytes = crypto.getRandomValues(new Uint8Array(algorithm.length ? algorithm.length / 8 : BLOCKS[digestName(algorithm.hash)]));
    return imported("raw", bytes, algorithm, Boolean(extractable), [...usages]);
  }
  async exportKey(format, key) {
    const bytes = keyBytes(key);
    if (!key.extractable) throw new DOMException("the key may not be exported", "InvalidAccessError");
    if (format === "raw") return bytes.slice().buffer;
    if (format === "jwk") return { kty: "oct", k: bytes.toBase64({ alphabet: "base64url", omitPadding: true }), ext: true, key_ops: key.usages };
    throw notSupported(`a key of the format ${format}`);
  }
  async sign(algorithm, key, data) {
    if (key?.algorithm?.name !== "HMAC") throw notSupported(`signing with ${algorithmName(algorithm).slice(0, 40)}`);
    return signed(key, data, "sign").buffer;
  }
  async verify(algorithm, key, signature, data) {
    if (key?.algorithm?.name !== "HMAC") throw notSupported(`verifying with ${algorithmName(algorithm).slice(0, 40)}`);
    const expected = signed(key, data, "verify");
    const given = plainBytes(signature);
    let different = expected.length ^ given.length;
    for (let i = 0; i < expected.length; i++) different |= expected[i] ^ (given[i] ?? 0);
    return different === 0;
  }
  async deriveBits(algorithm, key, length) {
    if (algorithmName(algorithm) !== "PBKDF2") throw notSupported(`deriving with ${algorithmName(algorithm).slice(0, 40)}`);
    return derived(algorithm, key, length, "deriveBits").buffer;
  }
}
for (const name of ["encrypt", "decrypt", "deriveKey", "wrapKey", "unwrapKey"])
  hidden(SubtleCrypto.prototype, name, { async [name]() { throw notSupported(`crypto.subtle.${name}`); } }[name]);
hidden(crypto, "subtle", new SubtleCrypto());
provide({ CryptoKey, SubtleCrypto, Crypto: crypto.constructor });
