const tagOf = (value) => Object.prototype.toString.call(value).slice(8, -1);
const kind = natives.kindOf;
const typed = Object.getPrototypeOf(Uint8Array).prototype;
const typedTag = Object.getOwnPropertyDescriptor(typed, Symbol.toStringTag).get;
const isTyped = (name) => (value) => typedTag.call(value) === name;
const types = {
  isAnyArrayBuffer: (value) => value instanceof ArrayBuffer, isArrayBuffer: (value) => value instanceof ArrayBuffer, isSharedArrayBuffer: () => false,
  isArrayBufferView: ArrayBuffer.isView, isTypedArray: (value) => typedTag.call(value) !== undefined, isDataView: (value) => value instanceof DataView,
  isAsyncFunction: (value) => tagOf(value) === "AsyncFunction" || tagOf(value) === "AsyncGeneratorFunction",
  isGeneratorFunction: (value) => tagOf(value) === "GeneratorFunction" || tagOf(value) === "AsyncGeneratorFunction",
  isGeneratorObject: (value) => tagOf(value) === "Generator", isPromise: (value) => value instanceof Promise, isProxy: (value) => kind(value) === "proxy",
  isRegExp: (value) => kind(value) === "regexp", isDate: (value) => kind(value) === "date", isMap: (value) => kind(value) === "map", isSet: (value) => kind(value) === "set",
  isWeakMap: (value) => value instanceof WeakMap, isWeakSet: (value) => value instanceof WeakSet, isNativeError: (value) => kind(value) === "error",
  isBoxedPrimitive: (value) => kind(value) === "boxed" || tagOf(value) === "Symbol" && typeof value === "object",
  isNumberObject: (value) => typeof value === "object" && value instanceof Number, isStringObject: (value) => typeof value === "object" && value instanceof String,
  isBooleanObject: (value) => typeof value === "object" && value instanceof Boolean, isBigIntObject: (value) => typeof value === "object" && value instanceof BigInt,
  isSymbolObject: (value) => typeof value === "object" && value instanceof Symbol, isArgumentsObject: (value) => tagOf(value) === "Arguments",
  isModuleNamespaceObject: (value) => tagOf(value) === "Module", isMapIterator: (value) => tagOf(value) === "Map Iterator", isSetIterator: (value) => tagOf(value) === "Set Iterator",
  isExternal: () => false, isKeyObject: () => false, isCryptoKey: (value) => value instanceof CryptoKey, isEventTarget: (value) => value instanceof EventTarget,
};
for (const name of ["Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array", "Int8Array", "Int16Array", "Int32Array", "Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"])
  types[`is${name}`] = isTyped(name);
module.exports = types;
