// Every builtin that the boot code uses, taken before any script can change one. The files of this folder are joined in
// the order of their names into one strict function of `natives`, so what one file declares the next ones see.
//
// Rules for the code here: no method is called on a value (a script may have replaced it); no iteration, spread or array
// destructuring (they go through Symbol.iterator); objects that are looked into have no prototype.
const { bind, call } = Function.prototype;
const uncurry = bind.bind(call);
const getter = (prototype, key) => uncurry(Object.getOwnPropertyDescriptor(prototype, key).get);

const { apply, construct, ownKeys } = Reflect;
const {
  assign, create, defineProperty, freeze, getOwnPropertyDescriptor, getOwnPropertyNames, getPrototypeOf, hasOwn, keys: keysOf,
  prototype: objectPrototype,
} = Object;
const objectToString = uncurry(objectPrototype.toString);
const functionToString = uncurry(Function.prototype.toString);

const { isArray } = Array;
const push = uncurry(Array.prototype.push);
const join = uncurry(Array.prototype.join);
const arraySlice = uncurry(Array.prototype.slice);
const splice = uncurry(Array.prototype.splice);
const sort = uncurry(Array.prototype.sort);

const { fromCharCode, fromCodePoint } = String;
const charAt = uncurry(String.prototype.charAt);
const charCode = uncurry(String.prototype.charCodeAt);
const codePoint = uncurry(String.prototype.codePointAt);
const indexOf = uncurry(String.prototype.indexOf);
const lastIndexOf = uncurry(String.prototype.lastIndexOf);
const lower = uncurry(String.prototype.toLowerCase);
const normalize = uncurry(String.prototype.normalize);
const padStart = uncurry(String.prototype.padStart);
const repeat = uncurry(String.prototype.repeat);
const slice = uncurry(String.prototype.slice);
const startsWith = uncurry(String.prototype.startsWith);
const upper = uncurry(String.prototype.toUpperCase);
const toWellFormed = uncurry(String.prototype.toWellFormed);

const numberToString = uncurry(Number.prototype.toString);
const { isNaN: isNotANumber } = Number;
const { floor, min } = Math;
const parseNumber = parseFloat;
const parseWhole = parseInt;
const symbolToString = uncurry(Symbol.prototype.toString);
const bigintToString = uncurry(BigInt.prototype.toString);
const dateTime = uncurry(Date.prototype.getTime);
const dateToIso = uncurry(Date.prototype.toISOString);
const { parse: parseJson, stringify: jsonStringify } = JSON;
const regexpSource = getter(RegExp.prototype, "source");
const regexpFlags = getter(RegExp.prototype, "flags");

const mapGet = uncurry(Map.prototype.get);
const mapSet = uncurry(Map.prototype.set);
const mapDelete = uncurry(Map.prototype.delete);
const mapHas = uncurry(Map.prototype.has);
const mapForEach = uncurry(Map.prototype.forEach);
const mapSize = getter(Map.prototype, "size");
const setAdd = uncurry(Set.prototype.add);
const setForEach = uncurry(Set.prototype.forEach);
const setSize = getter(Set.prototype, "size");

const typedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const typedBuffer = getter(typedArrayPrototype, "buffer");
const typedLength = getter(typedArrayPrototype, "length");
const typedByteLength = getter(typedArrayPrototype, "byteLength");
const typedByteOffset = getter(typedArrayPrototype, "byteOffset");
const typedTag = getter(typedArrayPrototype, Symbol.toStringTag);
const typedSet = uncurry(typedArrayPrototype.set);
const viewBuffer = getter(DataView.prototype, "buffer");
const viewByteLength = getter(DataView.prototype, "byteLength");
const viewByteOffset = getter(DataView.prototype, "byteOffset");
const bufferByteLength = getter(ArrayBuffer.prototype, "byteLength");
const bufferSlice = uncurry(ArrayBuffer.prototype.slice);
const bufferTransfer = uncurry(ArrayBuffer.prototype.transfer);
const { isView } = ArrayBuffer;

const PromiseClass = Promise;
const DOMExceptionClass = DOMException;
const promiseThen = uncurry(PromiseClass.prototype.then);
const promiseReject = (reason) => new PromiseClass((_, reject) => reject(reason));

const { kindOf, toolName } = natives;

const readOnly = { __proto__: null, writable: false, enumerable: false, configurable: true };
const tag = (target, name) => defineProperty(target, Symbol.toStringTag, { ...readOnly, value: name });

// Whether a call is missing arguments, as Web IDL words it.
const need = (given, wanted, name) => {
  if (given < wanted) throw new TypeError(`${name}: ${wanted} argument${wanted > 1 ? "s" : ""} required, but only ${given} present`);
};

// The bytes of a buffer or a view, not copied.
const bytesOf = (value, name) => {
  if (kindOf(value) === "buffer") return new Uint8Array(value);
  if (!isView(value)) throw new TypeError(`${name}: an ArrayBuffer or a view of one is expected`);
  if (typedTag(value) === undefined) return new Uint8Array(viewBuffer(value), viewByteOffset(value), viewByteLength(value));
  return new Uint8Array(typedBuffer(value), typedByteOffset(value), typedByteLength(value));
};
