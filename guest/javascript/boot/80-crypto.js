// Randomness comes from the run's seed: the same run draws the same numbers again when it is replayed.
const INTEGER_ARRAYS = {
  __proto__: null, Int8Array: 1, Uint8Array: 1, Uint8ClampedArray: 1, Int16Array: 1, Uint16Array: 1, Int32Array: 1, Uint32Array: 1,
  BigInt64Array: 1, BigUint64Array: 1,
};

const HEX_DIGITS = "0123456789abcdef";
const hexOf = (bytes, from, to) => {
  let out = "";
  for (let i = from; i < to; i++) out += charAt(HEX_DIGITS, bytes[i] >> 4) + charAt(HEX_DIGITS, bytes[i] & 15);
  return out;
};

class Crypto {
  getRandomValues(array) {
    if (!isView(array) || !INTEGER_ARRAYS[typedTag(array)])
      throw new DOMExceptionClass("getRandomValues: an array of integers is expected", "TypeMismatchError");
    const bytes = bytesOf(array, "getRandomValues");
    if (bytes.length > 65536) throw new DOMExceptionClass("getRandomValues: more than 65536 bytes at once", "QuotaExceededError");
    natives.randomFill(bytes);
    return array;
  }
  randomUUID() {
    const bytes = new Uint8Array(16);
    natives.randomFill(bytes);
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    return `${hexOf(bytes, 0, 4)}-${hexOf(bytes, 4, 6)}-${hexOf(bytes, 6, 8)}-${hexOf(bytes, 8, 10)}-${hexOf(bytes, 10, 16)}`;
  }
}
tag(Crypto.prototype, "Crypto");
