// structuredClone. Shared parts stay shared and cycles stay cycles, so its cost is that of the parts.
const cannotClone = (what) => new DOMExceptionClass(`${what} could not be cloned.`, "DataCloneError");

const ERROR_CLASSES = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const TYPED_CLASSES = { __proto__: null };
for (const typed of [
  Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array,
  Float16Array, Float32Array, Float64Array,
])
  TYPED_CLASSES[typed.name] = typed;
const isDomException = (value) => getPrototypeOf(value) === DOMExceptionClass.prototype;
const MapClass = Map;
const SetClass = Set;
const DateClass = Date;
const RegExpClass = RegExp;
const DataViewClass = DataView;
const ObjectFunction = Object;

class Cloner {
  seen = new MapClass();

  clone(value) {
    if (typeof value === "symbol") throw cannotClone(symbolToString(value));
    if (typeof value === "function") throw cannotClone(describeFunction(value));
    if (typeof value !== "object" || value === null) return value;
    if (mapHas(this.seen, value)) return mapGet(this.seen, value);
    return this.object(value);
  }

  remember(value, copy) {
    mapSet(this.seen, value, copy);
    return copy;
  }

  object(value) {
    switch (kindOf(value)) {
      case "date": return this.remember(value, new DateClass(dateTime(value)));
      case "regexp": return this.remember(value, new RegExpClass(regexpSource(value), regexpFlags(value)));
      case "boxed": return this.remember(value, ObjectFunction(natives.unbox(value)));
      case "buffer": return this.remember(value, bufferSlice(value, 0));
      case "typed": return this.remember(value, construct(TYPED_CLASSES[typedTag(value)],
        [this.clone(typedBuffer(value)), typedByteOffset(value), typedLength(value)]));
      case "view": return this.remember(value, new DataViewClass(this.clone(viewBuffer(value)), viewByteOffset(value), viewByteLength(value)));
      case "map": return this.map(value);
      case "set": return this.set(value);
      case "error": return this.error(value);
      case "array": return this.own(value, this.remember(value, this.emptyArray(value.length)));
      case "plain": return this.own(value, this.remember(value, {}));
      default: throw cannotClone(objectToString(value));
    }
  }

  emptyArray(length) {
    const copy = [];
    copy.length = length;
    return copy;
  }

  own(value, copy) {
    const names = keysOf(value);
    for (let i = 0; i < names.length; i++)
      defineProperty(copy, names[i], { __proto__: null, value: this.clone(value[names[i]]), writable: true, enumerable: true, configurable: true });
    return copy;
  }

  map(value) {
    const copy = this.remember(value, new MapClass());
    const entries = [];
    mapForEach(value, (item, key) => push(entries, key, item));
    for (let i = 0; i < entries.length; i += 2) mapSet(copy, this.clone(entries[i]), this.clone(entries[i + 1]));
    return copy;
  }

  set(value) {
    const copy = this.remember(value, new SetClass());
    const items = [];
    setForEach(value, (item) => push(items, item));
    for (let i = 0; i < items.length; i++) setAdd(copy, this.clone(items[i]));
    return copy;
  }

  error(value) {
    const name = natives.factOf(value, "name");
    const message = natives.factOf(value, "message") ?? "";
    const ErrorClass = (name !== null && ERROR_CLASSES[name]) || ERROR_CLASSES.Error;
    const copy = this.remember(value, isDomException(value) ? new DOMExceptionClass(message, name) : new ErrorClass(message));
    const cause = getOwnPropertyDescriptor(value, "cause");
    if (cause && hasOwn(cause, "value"))
      defineProperty(copy, "cause", { __proto__: null, value: this.clone(cause.value), writable: true, configurable: true });
    return copy;
  }
}
Object.setPrototypeOf(Cloner.prototype, null);

function structuredClone(value, options) {
  need(arguments.length, 1, "structuredClone");
  const cloner = new Cloner();
  const transfer = options?.transfer === undefined ? [] : listOf(options.transfer);
  for (let i = 0; i < transfer.length; i++)
    if (kindOf(transfer[i]) !== "buffer") throw cannotClone("A value that is no ArrayBuffer");
  for (let i = 0; i < transfer.length; i++) cloner.remember(transfer[i], bufferTransfer(transfer[i]));
  return cloner.clone(value);
}
