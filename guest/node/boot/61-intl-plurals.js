// Decimal numbers as text with exact rounding, and the plural rules of languages (UTS 35, part 3).

// A number without sign: value = digits * 10^scale. Zero has the digits "0".
const decimalOf = (value) => {
  if (Number.isInteger(value) && value < 1e21 && value > -1e21) return trimmed({ digits: `${Math.abs(value)}`, scale: 0 });
  const text = typeof value === "bigint" ? `${value < 0n ? -value : value}` : typeof value === "string" ? value : `${Math.abs(value)}`;
  const [, whole, fraction = "", exponent = "0"] = /^(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text);
  return trimmed({ digits: `${whole}${fraction}`, scale: Number(exponent) - fraction.length });
};
const trimmed = ({ digits, scale }) => {
  let [start, end] = [0, digits.length];
  while (start < end && digits[start] === "0") start++;
  if (start === end) return { digits: "0", scale: 0 };
  while (digits[end - 1] === "0") end--;
  return { digits: digits.slice(start, end), scale: scale + digits.length - end };
};
const isZero = (decimal) => decimal.digits === "0";
// The power of ten of the first digit.
const magnitudeOf = ({ digits, scale }) => digits.length - 1 + scale;
const scaledBy = (decimal, power) => (isZero(decimal) ? decimal : { digits: decimal.digits, scale: decimal.scale + power });

// Rounded to a multiple of increment * 10^place.
const roundedTo = (decimal, place, mode, negative, increment = 1) => {
  if (decimal.scale >= place && increment === 1) return decimal;
  if (place - magnitudeOf(decimal) > 3) {
    const up = !isZero(decimal) && (mode === "expand" || (mode === "ceil" && !negative) || (mode === "floor" && negative));
    return up ? trimmed({ digits: `${increment}`, scale: place }) : { digits: "0", scale: 0 };
  }
  const shift = decimal.scale - place;
  const value = BigInt(decimal.digits) * 10n ** BigInt(Math.max(shift, 0));
  const unit = BigInt(increment) * 10n ** BigInt(Math.max(-shift, 0));
  let whole = value / unit;
  const twice = 2n * (value % unit);
  const up = {
    ceil: twice > 0n && !negative, floor: twice > 0n && negative, expand: twice > 0n, trunc: false,
    halfCeil: twice > unit || (twice === unit && !negative), halfFloor: twice > unit || (twice === unit && negative),
    halfExpand: twice >= unit, halfTrunc: twice > unit, halfEven: twice > unit || (twice === unit && whole % 2n === 1n),
  }[mode];
  if (up) whole += 1n;
  return trimmed({ digits: `${whole * BigInt(increment)}`, scale: place });
};
// [digits before the point, digits behind it]
const writtenOut = ({ digits, scale }) => {
  if (scale >= 0) return [digits === "0" ? "0" : digits + "0".repeat(scale), ""];
  const padded = digits.padStart(1 - scale, "0");
  return [padded.slice(0, scale), padded.slice(scale)];
};

// How many digits are shown (ECMA-402, SetNumberFormatDigitOptions).
const MODES = ["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"];
const INCREMENTS = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000];
const digitOptions = (given, least, most, compact) => {
  const o = { minimumIntegerDigits: counted(given.minimumIntegerDigits, 1, 21, "minimumIntegerDigits", 1) };
  const priority = chosen(given.roundingPriority, ["auto", "morePrecision", "lessPrecision"], "roundingPriority", "auto");
  const increment = given.roundingIncrement === undefined ? 1 : Number(given.roundingIncrement);
  if (!INCREMENTS.includes(increment)) throw new RangeError("roundingIncrement value is out of range.");
  const mode = chosen(given.roundingMode, MODES, "roundingMode", "halfExpand");
  const zeros = chosen(given.trailingZeroDisplay, ["auto", "stripIfInteger"], "trailingZeroDisplay", "auto");
  const bySignificant = given.minimumSignificantDigits !== undefined || given.maximumSignificantDigits !== undefined;
  const byFraction = given.minimumFractionDigits !== undefined || given.maximumFractionDigits !== undefined;
  const significant = priority !== "auto" || bySignificant;
  const fraction = priority !== "auto" || !(bySignificant || (!byFraction && compact));
  if (significant) {
    o.minimumSignificantDigits = counted(given.minimumSignificantDigits, 1, 21, "minimumSignificantDigits", 1);
    o.maximumSignificantDigits = counted(given.maximumSignificantDigits, o.minimumSignificantDigits, 21, "maximumSignificantDigits", 21);
  }
  if (fraction) {
    const low = counted(given.minimumFractionDigits, 0, 100, "minimumFractionDigits");
    const high = counted(given.maximumFractionDigits, 0, 100, "maximumFractionDigits");
    o.minimumFractionDigits = low ?? Math.min(least, high ?? least);
    o.maximumFractionDigits = high ?? Math.max(most, o.minimumFractionDigits);
    if (o.minimumFractionDigits > o.maximumFractionDigits) throw new RangeError("maximumFractionDigits value is out of range.");
  }
  const automatic = !significant && !fraction;
  if (automatic) assign(o, { minimumFractionDigits: 0, maximumFractionDigits: 0, minimumSignificantDigits: 1, maximumSignificantDigits: 2 });
  if (increment !== 1) {
    if (significant) throw new TypeError("roundingIncrement value is invalid.");
    if (o.minimumFractionDigits !== o.maximumFractionDigits && given.maximumFractionDigits !== undefined && given.minimumFractionDigits !== undefined) throw new RangeError("roundingIncrement value is out of range.");
    o.minimumFractionDigits = o.maximumFractionDigits;
  }
  const rounding = { roundingIncrement: increment, roundingMode: mode, roundingPriority: automatic ? "morePrecision" : priority, trailingZeroDisplay: zeros };
  return { ...o, ...rounding };
};
// The rounded number and how many digits behind the point it has at least.
const roundedBy = (o, decimal, negative) => {
  const bySignificant = () => {
    const place = isZero(decimal) ? 0 : magnitudeOf(decimal) - o.maximumSignificantDigits + 1;
    const rounded = roundedTo(decimal, place, o.roundingMode, negative);
    return { rounded, place, least: o.minimumSignificantDigits - 1 - (isZero(rounded) ? 0 : magnitudeOf(rounded)) };
  };
  const byFraction = () => ({ rounded: roundedTo(decimal, -o.maximumFractionDigits, o.roundingMode, negative, o.roundingIncrement), place: -o.maximumFractionDigits, least: o.minimumFractionDigits });
  if (o.maximumSignificantDigits === undefined) return byFraction();
  if (o.maximumFractionDigits === undefined) return bySignificant();
  const [significant, fraction] = [bySignificant(), byFraction()];
  const finer = significant.place <= fraction.place ? significant : fraction;
  const coarser = finer === significant ? fraction : significant;
  return o.roundingPriority === "lessPrecision" ? coarser : finer;
};
// [whole, fraction] as they are shown.
const shownDigits = (o, { rounded, least }) => {
  let [whole, fraction] = writtenOut(rounded);
  fraction = fraction.padEnd(least, "0");
  if (o.trailingZeroDisplay === "stripIfInteger" && /^0*$/.test(fraction)) fraction = "";
  return [whole.padStart(o.minimumIntegerDigits, "0"), fraction];
};

// Plural rules: `n % 10 = 2..4 and n % 100 != 12..14 or …`

const operand = (name, whole, fraction, exponent) => {
  const short = fraction.replace(/0+$/, "");
  switch (name) {
    case "n": return Number(`${whole}.${short}`);
    case "i": return Number(whole.slice(-15));
    case "v": return fraction.length;
    case "w": return short.length;
    case "f": return Number(fraction);
    case "t": return Number(short);
    default: return exponent;
  }
};
const holds = (condition, operands) => condition.split(" or ").some((either) => either.split(" and ").every((relation) => {
  const [, name, divisor, not, list] = /^([a-z]) ?(?:% ?(\d+))? ?(!?=) ?(.+)$/.exec(relation.trim());
  const value = operand(name, ...operands);
  const left = divisor ? value % divisor : value;
  const within = list.split(",").some((range) => {
    const [from, to = from] = range.split("..").map(Number);
    return Number.isInteger(left) && left >= from && left <= to;
  });
  return within === (not === "=");
}));
const rulesOf = (type, tag) => {
  const all = worldOf("plurals")[type];
  for (let one = tag; one; one = one.slice(0, Math.max(one.lastIndexOf("-"), 0))) if (all[one]) return all[one];
  return {};
};
// The category of a number that is shown with these digits; `exponent` is that of a compact form.
const categoryOf = (type, tag, whole, fraction, exponent = 0) => {
  const rules = rulesOf(type, tag);
  for (const name of keys(rules)) if (holds(rules[name], [whole, fraction, exponent])) return name;
  return "other";
};

// The tag as far as there are rules for it.
const ruledTag = (tag) => {
  const { cardinal } = worldOf("plurals");
  for (let one = tag; one; one = one.slice(0, Math.max(one.lastIndexOf("-"), 0))) if (cardinal[one]) return one;
  return tag;
};
class PluralRules {
  #o;
  #data;
  constructor(locales, options) {
    const given = objectOf(options);
    const found = negotiated(locales, given);
    this.#data = found.data;
    const type = chosen(given.type, ["cardinal", "ordinal"], "type", "cardinal");
    const notation = chosen(given.notation, ["standard", "compact", "scientific", "engineering"], "notation", "standard");
    this.#o = { locale: ruledTag(found.locale), type, ...digitOptions(given, 0, 3, notation === "compact") };
  }
  select(value) {
    const number = Number(value);
    if (!Number.isFinite(number)) return "other";
    const digits = shownDigits({ ...this.#o, minimumIntegerDigits: 1 }, roundedBy(this.#o, decimalOf(number), number < 0));
    return categoryOf(this.#o.type, this.#data, ...digits);
  }
  selectRange(from, to) {
    if (from === undefined || to === undefined) throw new TypeError("Invalid argument");
    if (Number.isNaN(Number(from)) || Number.isNaN(Number(to))) throw new RangeError("Invalid argument");
    const [first, last] = [this.select(from), this.select(to)];
    return worldOf("plurals").ranges[this.#data.split("-")[0]]?.[`${first} ${last}`] ?? "other";
  }
  resolvedOptions() {
    const names = keys(rulesOf(this.#o.type, this.#data));
    const { locale, type, roundingIncrement, roundingMode, roundingPriority, trailingZeroDisplay, ...digits } = this.#o;
    const pluralCategories = ["zero", "one", "two", "few", "many"].filter((name) => names.includes(name)).concat("other");
    return { locale, type, ...digits, pluralCategories, roundingIncrement, roundingMode, roundingPriority, trailingZeroDisplay };
  }
}
tagged(PluralRules, "PluralRules");
