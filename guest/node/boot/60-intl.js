// Intl for one locale, en-US: the only one that `supportedLocalesOf` names, so that every other one is answered with it,
// as the specification has it for what is not supported. Time zones are those of the tz database.
const LOCALE = "en-US";
const canonical = (locales) => {
  if (locales === undefined) return [];
  const list = typeof locales === "string" || locales instanceof Locale ? [locales] : [...locales];
  return [...new Set(list.map((one) => {
    const tag = one instanceof Locale ? one.toString() : one;
    if (typeof tag !== "string") throw new TypeError("Incorrect locale information provided");
    if (!/^[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*$/.test(tag)) throw new RangeError(`Incorrect locale information provided`);
    return tag.split(/[-_]/).map((part, i) => (i === 0 ? part.toLowerCase() : part.length === 2 ? part.toUpperCase() : part.length === 4 ? part[0].toUpperCase() + part.slice(1).toLowerCase() : part)).join("-");
  }))];
};
const supported = (locales) => canonical(locales).filter((tag) => /^en(?:-US)?(?:-u-|$)/.test(tag));
const chosen = (value, allowed, name, otherwise) => {
  if (value === undefined) return otherwise;
  const text = `${value}`;
  if (!allowed.includes(text)) throw new RangeError(`Value ${text} out of range for Intl options property ${name}`);
  return text;
};
const counted = (value, least, most, name, otherwise) => {
  if (value === undefined) return otherwise;
  const number = Number(value);
  if (!(number >= least && number <= most)) throw new RangeError(`${name} value is out of range.`);
  return Math.floor(number);
};
const tagged = (Class, name) => {
  hidden(Class.prototype, Symbol.toStringTag, `Intl.${name}`);
  hidden(Class, "supportedLocalesOf", supported);
  return Class;
};
// Callable without `new`, as the older constructors are.
const callable = (Class) => new Proxy(Class, { apply: (target, self, args) => new target(...args) });

class Locale {
  #parts;
  constructor(tag, options = {}) {
    const [name] = canonical(tag instanceof Locale ? tag.toString() : tag);
    const [language, ...rest] = name.split("-u-")[0].split("-");
    this.#parts = { language: options.language ?? language, script: options.script ?? rest.find((one) => one.length === 4), region: options.region ?? rest.find((one) => one.length === 2 || /^\d{3}$/.test(one)) };
  }
  get language() { return this.#parts.language; }
  get script() { return this.#parts.script; }
  get region() { return this.#parts.region; }
  get baseName() { return [this.language, this.script, this.region].filter(Boolean).join("-"); }
  toString() { return this.baseName; }
  maximize() { return new Locale(this.language === "en" && !this.region ? "en-Latn-US" : this.baseName); }
  minimize() { return new Locale(this.language); }
}

// Numbers

const CURRENCIES = { __proto__: null, USD: "$", EUR: "€", GBP: "£", JPY: "¥", INR: "₹", CNY: "CN¥", KRW: "₩", BRL: "R$", CAD: "CA$", AUD: "A$", MXN: "MX$", NZD: "NZ$", ILS: "₪", VND: "₫", TWD: "NT$", HKD: "HK$", PHP: "₱", XAF: "FCFA", XOF: "F CFA", XCD: "EC$", XPF: "CFPF" };
const CURRENCY_NAMES = { __proto__: null, USD: ["US dollar", "US dollars"], EUR: ["euro", "euros"], GBP: ["British pound", "British pounds"], JPY: ["Japanese yen", "Japanese yen"], INR: ["Indian rupee", "Indian rupees"], CNY: ["Chinese yuan", "Chinese yuan"], CAD: ["Canadian dollar", "Canadian dollars"], AUD: ["Australian dollar", "Australian dollars"], CHF: ["Swiss franc", "Swiss francs"] };
const WITHOUT_CENTS = new Set(["JPY", "KRW", "VND", "CLP", "ISK", "PYG", "UGX", "XAF", "XOF", "XPF", "BIF", "DJF", "GNF", "KMF", "RWF", "VUV"]);
const UNITS = {
  __proto__: null, acre: ["ac", "acre"], bit: ["bit", "bit"], byte: ["byte", "byte"], celsius: ["°C", "degree Celsius", "degrees Celsius"], centimeter: ["cm", "centimeter"], day: ["day", "day"], degree: ["deg", "degree"],
  fahrenheit: ["°F", "degree Fahrenheit", "degrees Fahrenheit"], foot: ["ft", "foot", "feet"], gallon: ["gal", "gallon"], gigabit: ["Gb", "gigabit"], gigabyte: ["GB", "gigabyte"], gram: ["g", "gram"], hectare: ["ha", "hectare"], hour: ["hr", "hour"],
  inch: ["in", "inch", "inches"], kilobit: ["kb", "kilobit"], kilobyte: ["kB", "kilobyte"], kilogram: ["kg", "kilogram"], kilometer: ["km", "kilometer"], liter: ["L", "liter"], megabit: ["Mb", "megabit"], megabyte: ["MB", "megabyte"], meter: ["m", "meter"],
  mile: ["mi", "mile"], milliliter: ["mL", "milliliter"], millimeter: ["mm", "millimeter"], millisecond: ["ms", "millisecond"], minute: ["min", "minute"], month: ["mth", "month"], ounce: ["oz", "ounce"], percent: ["%", "percent", "percent"],
  petabyte: ["PB", "petabyte"], pound: ["lb", "pound"], second: ["sec", "second"], stone: ["st", "stone", "stones"], terabit: ["Tb", "terabit"], terabyte: ["TB", "terabyte"], week: ["wk", "week"], yard: ["yd", "yard"], year: ["yr", "year"],
};
const SPACELESS = new Set(["celsius", "fahrenheit", "percent"]);
const PLURAL_SHORT = new Set(["bit", "byte", "day", "week", "month", "year"]);
const COMPACT = [[1e12, "T", " trillion"], [1e9, "B", " billion"], [1e6, "M", " million"], [1e3, "K", " thousand"]];

// The digits of a number: without an exponent, rounded half away from zero at `places` behind the point.
const rounded = (text, places) => {
  let [whole, fraction = ""] = text.split(".");
  if (fraction.length <= places) return [whole, fraction];
  const up = fraction[places] >= "5";
  fraction = fraction.slice(0, places);
  if (up) {
    const digits = String(BigInt(`1${whole}${fraction}`) + 1n);
    const grown = digits[0] === "2";
    const all = grown ? `1${digits.slice(1)}` : digits.slice(1);
    whole = all.slice(0, all.length - places);
    fraction = places ? all.slice(-places) : "";
  }
  return [whole, fraction];
};
const plainDigits = (value) => {
  const text = typeof value === "bigint" ? `${value < 0n ? -value : value}` : `${Math.abs(value)}`;
  const found = /^(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
  if (!found) return text;
  const digits = found[1] + (found[2] ?? "");
  const point = found[1].length + Number(found[3]);
  if (point <= 0) return `0.${"0".repeat(-point)}${digits}`;
  return point >= digits.length ? digits.padEnd(point, "0") : `${digits.slice(0, point)}.${digits.slice(point)}`;
};
const significant = (text, least, most) => {
  const [before, after = ""] = text.split(".");
  const all = before + after;
  const lead = all.search(/[1-9]/);
  if (lead < 0) return ["0", "0".repeat(least - 1)];
  let point = before.length - lead;
  let digits = all.slice(lead).replace(/0+$/, "");
  if (digits.length > most) {
    const kept = String(BigInt(digits.slice(0, most)) + (digits[most] >= "5" ? 1n : 0n));
    if (kept.length > most) point += 1;
    digits = kept.replace(/0+$/, "");
  }
  digits = digits.padEnd(least, "0");
  if (point <= 0) return ["0", "0".repeat(-point) + digits];
  return [digits.slice(0, point).padEnd(point, "0"), digits.slice(point)];
};

class NumberFormat {
  #o;
  constructor(locales, options = {}) {
    canonical(locales);
    const given = options ?? {};
    const style = chosen(given.style, ["decimal", "percent", "currency", "unit"], "style", "decimal");
    const notation = chosen(given.notation, ["standard", "scientific", "engineering", "compact"], "notation", "standard");
    const currency = given.currency === undefined ? undefined : `${given.currency}`.toUpperCase();
    if (style === "currency" && currency === undefined) throw new TypeError("Currency code is required with currency style.");
    if (currency !== undefined && !/^[A-Z]{3}$/.test(currency)) throw new RangeError(`Invalid currency code : ${given.currency}`);
    if (style === "unit" && given.unit === undefined) throw new TypeError("Unit is required with unit style.");
    const cents = WITHOUT_CENTS.has(currency) ? 0 : 2;
    const [low, high] = style === "currency" && notation === "standard" ? [cents, cents] : [0, style === "percent" || notation === "compact" ? 0 : 3];
    let least = counted(given.minimumFractionDigits, 0, 100, "minimumFractionDigits");
    let most = counted(given.maximumFractionDigits, 0, 100, "maximumFractionDigits");
    if (least === undefined) least = Math.min(low, most ?? low);
    if (most === undefined) most = Math.max(high, least);
    if (least > most) throw new RangeError("maximumFractionDigits value is out of range.");
    const byDigits = given.minimumSignificantDigits !== undefined || given.maximumSignificantDigits !== undefined;
    const leastDigits = counted(given.minimumSignificantDigits, 1, 21, "minimumSignificantDigits", 1);
    this.#o = {
      locale: LOCALE, numberingSystem: "latn", style,
      ...(style === "currency" ? { currency, currencyDisplay: chosen(given.currencyDisplay, ["symbol", "narrowSymbol", "code", "name"], "currencyDisplay", "symbol"), currencySign: chosen(given.currencySign, ["standard", "accounting"], "currencySign", "standard") } : {}),
      ...(style === "unit" ? { unit: `${given.unit}`, unitDisplay: chosen(given.unitDisplay, ["short", "narrow", "long"], "unitDisplay", "short") } : {}),
      minimumIntegerDigits: counted(given.minimumIntegerDigits, 1, 21, "minimumIntegerDigits", 1),
      ...(byDigits ? { minimumSignificantDigits: leastDigits, maximumSignificantDigits: counted(given.maximumSignificantDigits, leastDigits, 21, "maximumSignificantDigits", 21) } : { minimumFractionDigits: least, maximumFractionDigits: most }),
      useGrouping: given.useGrouping === undefined ? (notation === "compact" ? "min2" : "auto") : given.useGrouping === false || given.useGrouping === "false" ? false : given.useGrouping === true ? "always" : `${given.useGrouping}`,
      notation, ...(notation === "compact" ? { compactDisplay: chosen(given.compactDisplay, ["short", "long"], "compactDisplay", "short") } : {}),
      signDisplay: chosen(given.signDisplay, ["auto", "never", "always", "exceptZero", "negative"], "signDisplay", "auto"),
      roundingIncrement: 1, roundingMode: "halfExpand", roundingPriority: "auto", trailingZeroDisplay: given.trailingZeroDisplay ?? "auto",
    };
    const explicit = byDigits || given.minimumFractionDigits !== undefined || given.maximumFractionDigits !== undefined;
    hidden(this.#o, "explicit", explicit);
    hidden(this, "format", (value) => this.#parts(value).map((part) => part.value).join(""));
  }
  #digits(text, compact) {
    const o = this.#o;
    if (compact && !o.explicit) return text.split(".")[0].length >= 2 && text.split(".")[0] !== "0" ? rounded(text, 0) : significant(text, 1, 2);
    if (o.maximumSignificantDigits !== undefined) return significant(text, o.minimumSignificantDigits, o.maximumSignificantDigits);
    let [whole, fraction] = rounded(text, o.maximumFractionDigits);
    while (fraction.length > o.minimumFractionDigits && fraction.endsWith("0")) fraction = fraction.slice(0, -1);
    return [whole, fraction.padEnd(o.minimumFractionDigits, "0")];
  }
  #body(value) {
    const o = this.#o;
    if (typeof value === "number" && Number.isNaN(value)) return { parts: [{ type: "nan", value: "NaN" }], zero: false };
    if (value === Infinity || value === -Infinity) return { parts: [{ type: "infinity", value: "∞" }], zero: false };
    let text = plainDigits(value);
    if (o.style === "percent") text = shifted(text, 2);
    const size = Number(text);
    let at = COMPACT.findIndex(([scale]) => size >= scale);
    let exponent = size === 0 ? 0 : Math.floor(Math.log10(size));
    if (o.notation === "engineering") exponent = Math.floor(exponent / 3) * 3;
    const powers = () => (o.notation === "compact" ? (at < 0 ? 0 : Math.round(Math.log10(COMPACT[at][0]))) : o.notation === "standard" ? 0 : exponent);
    let [whole, fraction] = this.#digits(shifted(text, -powers()), o.notation === "compact");
    // Rounding may have made it a thousand of the next.
    if (o.notation === "compact" && whole.length > 3 && at !== 0) at = at < 0 ? COMPACT.length - 1 : at - 1;
    else if (o.notation === "scientific" && whole.length > 1) exponent += 1;
    else if (o.notation === "engineering" && whole.length > 3) exponent += 3;
    [whole, fraction] = this.#digits(shifted(text, -powers()), o.notation === "compact");
    const suffix = o.notation === "compact" && at >= 0 ? COMPACT[at][o.compactDisplay === "long" ? 2 : 1] : undefined;
    if (o.trailingZeroDisplay === "stripIfInteger" && /^0*$/.test(fraction)) fraction = "";
    whole = whole.padStart(o.minimumIntegerDigits, "0");
    const parts = [];
    const grouped = o.useGrouping !== false && whole.length > (o.useGrouping === "min2" ? 4 : 3);
    if (grouped) {
      const head = whole.length % 3 || 3;
      parts.push({ type: "integer", value: whole.slice(0, head) });
      for (let at = head; at < whole.length; at += 3) parts.push({ type: "group", value: "," }, { type: "integer", value: whole.slice(at, at + 3) });
    } else parts.push({ type: "integer", value: whole });
    if (fraction) parts.push({ type: "decimal", value: "." }, { type: "fraction", value: fraction });
    if (o.notation === "scientific" || o.notation === "engineering") {
      parts.push({ type: "exponentSeparator", value: "E" });
      if (exponent < 0) parts.push({ type: "exponentMinusSign", value: "-" });
      parts.push({ type: "exponentInteger", value: `${Math.abs(exponent)}` });
    }
    if (suffix !== undefined) {
      if (suffix.startsWith(" ")) parts.push({ type: "literal", value: " " });
      parts.push({ type: "compact", value: suffix.trim() });
    }
    return { parts, zero: /^0*$/.test(whole + fraction), one: whole === "1" && !fraction && suffix === undefined };
  }
  #parts(given) {
    const o = this.#o;
    const value = typeof given === "bigint" ? given : typeof given === "string" && /^\s*-?\d+\s*$/.test(given) && !Number.isSafeInteger(Number(given)) ? BigInt(given) : Number(given);
    const { parts, zero, one } = this.#body(value);
    const negative = typeof value === "bigint" ? value < 0n : value < 0 || Object.is(value, -0);
    const shows = { auto: negative, negative: negative && !zero, never: false, always: true, exceptZero: !zero && !Number.isNaN(value) }[o.signDisplay];
    const sign = shows ? [{ type: negative ? "minusSign" : "plusSign", value: negative ? "-" : "+" }] : [];
    if (o.style === "percent") return [...sign, ...parts, { type: "percentSign", value: "%" }];
    if (o.style === "unit") return [...sign, ...parts, ...this.#unit(one)];
    if (o.style !== "currency") return [...sign, ...parts];
    const code = o.currency;
    if (o.currencyDisplay === "name")
      return [...sign, ...parts, { type: "literal", value: " " }, { type: "currency", value: CURRENCY_NAMES[code]?.[one ? 0 : 1] ?? code }];
    const narrow = o.currencyDisplay === "narrowSymbol" ? (CURRENCIES[code] ?? code).replace(/^[A-Z]{1,2}(?=[^A-Z])/, "") : (CURRENCIES[code] ?? code);
    const symbol = { type: "currency", value: o.currencyDisplay === "code" ? code : narrow };
    const gap = /[A-Za-z]$/.test(symbol.value) && parts[0].type === "integer" ? [{ type: "literal", value: "\u00a0" }] : [];
    if (o.currencySign === "accounting" && negative && shows) return [{ type: "literal", value: "(" }, symbol, ...gap, ...parts, { type: "literal", value: ")" }];
    return [...sign, symbol, ...gap, ...parts];
  }
  #unit(one) {
    const { unit, unitDisplay } = this.#o;
    const [first, per] = unit.split("-per-");
    const found = UNITS[first];
    if (!found) throw new RangeError(`Invalid unit argument for Intl.NumberFormat() '${unit}'`);
    const name = unitDisplay === "long" ? (one ? found[1] : (found[2] ?? `${found[1]}s`)) : !one && PLURAL_SHORT.has(first) || (first === "month" && !one) ? `${found[0]}s` : first === "week" && !one ? "wks" : first === "year" && !one ? "yrs" : found[0];
    const short = unitDisplay === "narrow" ? { day: "d", hour: "h", minute: "m", second: "s", celsius: "°C", fahrenheit: "°", byte: "B", kilometer: "km", mile: "mi" }[first] ?? found[0] : name;
    const rest = per === undefined ? "" : unitDisplay === "long" ? ` per ${UNITS[per]?.[1] ?? per}` : `/${{ hour: "h", second: "s", minute: "min", day: "d" }[per] ?? UNITS[per]?.[0] ?? per}`;
    if (first === "kilometer" && per === "hour" && unitDisplay !== "long") return [{ type: "literal", value: unitDisplay === "narrow" ? "" : " " }, { type: "unit", value: "km/h" }];
    if (first === "mile" && per === "hour" && unitDisplay !== "long") return [{ type: "literal", value: unitDisplay === "narrow" ? "" : " " }, { type: "unit", value: "mph" }];
    const space = (unitDisplay !== "long" && SPACELESS.has(first)) || unitDisplay === "narrow" ? [] : [{ type: "literal", value: " " }];
    return [...space, { type: "unit", value: `${short}${rest}` }];
  }
  formatToParts(value) { return this.#parts(value); }
  formatRange(from, to) { return `${this.format(from)}–${this.format(to)}`; }
  resolvedOptions() { return { ...this.#o }; }
}
const shifted = (text, places) => {
  const [whole, fraction = ""] = text.split(".");
  if (places >= 0) {
    const all = fraction.padEnd(places, "0");
    return `${`${whole}${all.slice(0, places)}`.replace(/^0+(?=\d)/, "")}${all.length > places ? `.${all.slice(places)}` : ""}`;
  }
  const padded = whole.padStart(-places + 1, "0");
  const rest = `${padded.slice(places)}${fraction}`.replace(/0+$/, "");
  return `${padded.slice(0, places)}${rest ? `.${rest}` : ""}`;
};
tagged(NumberFormat, "NumberFormat");

// Time zones: ZONES has, by name, the index of [rule, times, offsets]; times are in seconds, offsets in seconds too.

const zoneNames = create(null);
for (const name of keys(ZONES.names)) zoneNames[name.toLowerCase()] = name;
const zoneOf = (name) => {
  if (name === undefined) return "UTC";
  const found = zoneNames[`${name}`.toLowerCase()];
  const offset = /^([+-])(\d{2}):?(\d{2})?$/.exec(`${name}`);
  if (found === undefined && offset) return `${offset[1]}${offset[2]}:${offset[3] ?? "00"}`;
  if (found === undefined) throw new RangeError(`Invalid time zone specified: ${name}`);
  return /^(?:etc\/)?(?:utc|gmt|uct|zulu|universal|greenwich)$/i.test(found) ? "UTC" : found;
};
// A date of a POSIX rule, `M3.2.0/2` or the like, as seconds from the start of the year.
const ruleDay = (year, rule) => {
  const [, month, week, weekday, , sign, hours, minutes] = /^M(\d+)\.(\d)\.(\d)(\/([+-]?)(\d+)(?::(\d+))?)?$/.exec(rule);
  const first = new Date(Date.UTC(year, month - 1, 1)).getUTCDay();
  let day = 1 + ((7 + Number(weekday) - first) % 7) + (week - 1) * 7;
  if (day > new Date(Date.UTC(year, month, 0)).getUTCDate()) day -= 7;
  const time = hours === undefined ? 7200 : (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes ?? 0) * 60);
  return Date.UTC(year, month - 1, day) / 1000 + time;
};
const posixOffset = (text) => {
  const [, sign, hours, minutes] = /^([+-]?)(\d+)(?::(\d+))?/.exec(text);
  return (sign === "-" ? 1 : -1) * (Number(hours) * 3600 + Number(minutes ?? 0) * 60);
};
const RULE = /^(<[^>]+>|[A-Za-z]+)([+-]?\d+(?::\d+)?)(?:(<[^>]+>|[A-Za-z]+)([+-]?\d+(?::\d+)?)?,([^,]+),([^,]+))?$/;
const fact = (offset, name, daylight) => ({ offset, name: name.replace(/[<>]/g, ""), daylight });
const zoneAt = (zone, ms) => {
  if (zone === "UTC") return fact(0, "UTC", false);
  if (/^[+-]/.test(zone)) return fact((zone[0] === "-" ? -1 : 1) * (Number(zone.slice(1, 3)) * 3600 + Number(zone.slice(4)) * 60), "", false);
  const [rule, times, kinds, chosenKinds] = ZONES.data[ZONES.names[zone]];
  const seconds = Math.floor(ms / 1000);
  if (times.length && seconds < times.at(-1)) {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= seconds) low = middle + 1;
      else high = middle;
    }
    const [offset, daylight, name] = kinds[low === 0 ? 0 : chosenKinds[low - 1]];
    return fact(offset, name, Boolean(daylight));
  }
  const found = RULE.exec(rule);
  if (!found) {
    const [offset, daylight, name] = kinds[chosenKinds.at(-1) ?? 0];
    return fact(offset, name, Boolean(daylight));
  }
  const standard = posixOffset(found[2]);
  if (found[5] === undefined) return fact(standard, found[1], false);
  const summer = found[4] === undefined ? standard + 3600 : posixOffset(found[4]);
  const year = new Date(ms + standard * 1000).getUTCFullYear();
  const begins = ruleDay(year, found[5]) - standard;
  const ends = ruleDay(year, found[6]) - summer;
  const daylight = begins < ends ? seconds >= begins && seconds < ends : seconds >= begins || seconds < ends;
  return daylight ? fact(summer, found[3], true) : fact(standard, found[1], false);
};
const AMERICAN = /^(?:[ECMPA]|AK|H)[SD]T$|^AK[SD]T$|^UTC$/;
const LONG_NAMES = { __proto__: null, E: "Eastern", C: "Central", M: "Mountain", P: "Pacific", AK: "Alaska", H: "Hawaii-Aleutian", A: "Atlantic" };
const offsetName = (seconds, long) => {
  if (seconds === 0) return "GMT";
  const size = Math.abs(seconds);
  const [hours, minutes] = [Math.floor(size / 3600), Math.floor((size % 3600) / 60)];
  return `GMT${seconds < 0 ? "-" : "+"}${long ? String(hours).padStart(2, "0") : hours}${minutes || long ? `:${String(minutes).padStart(2, "0")}` : ""}`;
};
const zoneName = (zone, ms, style) => {
  const { offset, name, daylight } = zoneAt(zone, ms);
  if (style === "shortOffset") return offsetName(offset, false);
  if (style === "longOffset") return offsetName(offset, true);
  if (zone === "UTC") return style.startsWith("long") ? "Coordinated Universal Time" : "UTC";
  const found = /^(E|C|M|P|AK|H|A)[SD]T$/.exec(name);
  if (!found || (!zone.startsWith("America/") && !zone.startsWith("US/") && !zone.startsWith("Pacific/Honolulu"))) return offsetName(offset, style === "long" && false);
  if (style.startsWith("short")) return style === "shortGeneric" ? `${found[1]}T` : name;
  return `${LONG_NAMES[found[1]]} ${style === "longGeneric" ? "" : daylight ? "Daylight " : "Standard "}Time`;
};

// Dates

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const STYLES = { __proto__: null, full: { weekday: "long", month: "long", day: "numeric", year: "numeric" }, long: { month: "long", day: "numeric", year: "numeric" }, medium: { month: "short", day: "numeric", year: "numeric" }, short: { month: "numeric", day: "numeric", year: "2-digit" } };
const TIMES = { __proto__: null, full: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "long" }, long: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" }, medium: { hour: "numeric", minute: "2-digit", second: "2-digit" }, short: { hour: "numeric", minute: "2-digit" } };
const DATE_FIELDS = ["weekday", "era", "year", "month", "day"];
const TIME_FIELDS = ["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"];
const two = (number) => String(number).padStart(2, "0");

const fieldsAt = (zone, ms) => {
  const date = new Date(ms + zoneAt(zone, ms).offset * 1000);
  return { year: date.getUTCFullYear(), month: date.getUTCMonth(), day: date.getUTCDate(), weekday: date.getUTCDay(), hour: date.getUTCHours(), minute: date.getUTCMinutes(), second: date.getUTCSeconds(), millisecond: date.getUTCMilliseconds() };
};

class DateTimeFormat {
  #o;
  #f;
  constructor(locales, options, wanted = "any", defaults = "date") {
    canonical(locales);
    const given = { ...(options ?? {}) };
    const zone = zoneOf(given.timeZone);
    const { dateStyle, timeStyle } = given;
    for (const [name, value] of [["dateStyle", dateStyle], ["timeStyle", timeStyle]]) chosen(value, ["full", "long", "medium", "short"], name);
    const styled = dateStyle !== undefined || timeStyle !== undefined;
    if ((wanted === "date" && timeStyle !== undefined) || (wanted === "time" && dateStyle !== undefined)) throw new TypeError("Invalid option : dateStyle or timeStyle");
    if (styled && [...DATE_FIELDS, ...TIME_FIELDS, "timeZoneName"].some((name) => given[name] !== undefined))
      throw new TypeError("Can't set option when dateStyle or timeStyle is used");
    let fields = {};
    if (styled) fields = { ...(dateStyle ? STYLES[dateStyle] : {}), ...(timeStyle ? TIMES[timeStyle] : {}) };
    else {
      for (const name of [...DATE_FIELDS, ...TIME_FIELDS, "timeZoneName"]) if (given[name] !== undefined) fields[name] = given[name];
      const has = (names) => names.some((name) => fields[name] !== undefined);
      const needs = !((wanted !== "time" && has(["weekday", "year", "month", "day"])) || (wanted !== "date" && has(TIME_FIELDS)));
      if (needs && defaults !== "time") assign(fields, { year: "numeric", month: "numeric", day: "numeric" });
      if (needs && defaults !== "date") assign(fields, { hour: "numeric", minute: "2-digit", second: "2-digit" });
    }
    const hours = given.hour12 === undefined ? (given.hourCycle ?? "h12") : given.hour12 ? "h12" : "h23";
    this.#f = fields;
    this.#o = { locale: LOCALE, calendar: "gregory", numberingSystem: "latn", timeZone: zone, ...(fields.hour === undefined ? {} : { hourCycle: hours, hour12: hours === "h12" || hours === "h11" }), ...(styled ? { ...(dateStyle && { dateStyle }), ...(timeStyle && { timeStyle }) } : fields) };
    hidden(this.#o, "hours", given.hour12 === false && given.hourCycle === undefined ? "h23" : hours);
    hidden(this, "format", (date) => this.formatToParts(date).map((part) => part.value).join(""));
  }
  #month(at) {
    const { month } = this.#f;
    if (month === "long") return MONTHS[at.month];
    if (month === "short") return MONTHS[at.month].slice(0, 3);
    if (month === "narrow") return MONTHS[at.month][0];
    return month === "2-digit" ? two(at.month + 1) : `${at.month + 1}`;
  }
  #weekday(at) {
    const { weekday } = this.#f;
    return weekday === "long" ? DAYS[at.weekday] : weekday === "narrow" ? DAYS[at.weekday][0] : DAYS[at.weekday].slice(0, 3);
  }
  #date(at) {
    const f = this.#f;
    const texts = f.month !== undefined && !["numeric", "2-digit"].includes(f.month);
    const bc = at.year <= 0 && f.era !== undefined;
    const shown = bc ? 1 - at.year : at.year;
    const year = f.year === undefined ? [] : [{ type: "year", value: f.year === "2-digit" ? two(Math.abs(shown) % 100) : `${shown}` }];
    const day = f.day === undefined ? [] : [{ type: "day", value: f.day === "2-digit" ? two(at.day) : `${at.day}` }];
    const month = f.month === undefined ? [] : [{ type: "month", value: this.#month(at) }];
    const weekday = f.weekday === undefined ? [] : [{ type: "weekday", value: this.#weekday(at) }];
    const between = (text, ...groups) => groups.filter((one) => one.length).flatMap((one, i) => (i ? [{ type: "literal", value: text }, ...one] : one));
    let main;
    if (texts) main = between(day.length ? ", " : " ", between(" ", month, day), year);
    else main = between("/", month, day, year);
    if (f.era !== undefined) main = between(" ", main, [{ type: "era", value: { long: ["Before Christ", "Anno Domini"], short: ["BC", "AD"], narrow: ["B", "A"] }[f.era][bc ? 0 : 1] }]);
    if (weekday.length && main.length === 1 && day.length) return between(" ", main, weekday);
    return between(", ", weekday, main);
  }
  #time(at) {
    const f = this.#f;
    const parts = [];
    const cycle = this.#o.hours;
    const half = cycle === "h12" || cycle === "h11";
    if (f.hour !== undefined) {
      const hour = cycle === "h12" ? at.hour % 12 || 12 : cycle === "h11" ? at.hour % 12 : cycle === "h24" ? at.hour || 24 : at.hour;
      parts.push({ type: "hour", value: f.hour === "2-digit" || (!half && f.minute !== undefined) || !half ? two(hour) : `${hour}` });
    }
    if (f.minute !== undefined) {
      if (parts.length) parts.push({ type: "literal", value: ":" });
      parts.push({ type: "minute", value: parts.length || f.second !== undefined ? two(at.minute) : `${at.minute}` });
    }
    if (f.second !== undefined) {
      if (parts.length) parts.push({ type: "literal", value: ":" });
      parts.push({ type: "second", value: parts.length ? two(at.second) : `${at.second}` });
    }
    if (f.fractionalSecondDigits !== undefined) {
      if (parts.length) parts.push({ type: "literal", value: "." });
      parts.push({ type: "fractionalSecond", value: String(at.millisecond).padStart(3, "0").slice(0, f.fractionalSecondDigits) });
    }
    if (half && f.hour !== undefined) parts.push({ type: "literal", value: " " }, { type: "dayPeriod", value: at.hour < 12 ? "AM" : "PM" });
    return parts;
  }
  formatToParts(given) {
    const ms = given === undefined ? Date.now() : Number(given instanceof Date ? given.getTime() : given);
    if (!(Math.abs(ms) <= 8.64e15)) throw new RangeError("Invalid time value");
    const at = fieldsAt(this.#o.timeZone, ms);
    const [date, time] = [this.#date(at), this.#time(at)];
    if (this.#f.timeZoneName !== undefined) time.push(...(date.length || time.length ? [{ type: "literal", value: time.length ? " " : ", " }] : []), { type: "timeZoneName", value: zoneName(this.#o.timeZone, ms, this.#f.timeZoneName) });
    if (!date.length || !time.length || (time[0].type === "literal")) return [...date, ...time];
    if (date.length === 1 && date[0].type === "weekday") return [...date, { type: "literal", value: " " }, ...time];
    const words = this.#o.dateStyle ? ["full", "long"].includes(this.#o.dateStyle) : this.#f.month === "long";
    return [...date, { type: "literal", value: words ? " at " : ", " }, ...time];
  }
  formatRange(from, to) { return this.format(from) === this.format(to) ? this.format(from) : `${this.format(from)} – ${this.format(to)}`; }
  formatRangeToParts(from, to) { return [...this.formatToParts(from), { type: "literal", value: " – " }, ...this.formatToParts(to)]; }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(DateTimeFormat, "DateTimeFormat");

// Words

class PluralRules {
  #type;
  constructor(locales, options = {}) {
    canonical(locales);
    this.#type = chosen(options?.type, ["cardinal", "ordinal"], "type", "cardinal");
  }
  select(value) {
    const number = Number(value);
    if (this.#type === "cardinal") return number === 1 ? "one" : "other";
    const [ten, hundred] = [number % 10, number % 100];
    return ten === 1 && hundred !== 11 ? "one" : ten === 2 && hundred !== 12 ? "two" : ten === 3 && hundred !== 13 ? "few" : "other";
  }
  selectRange(from, to) { return this.select(to); }
  resolvedOptions() { return { locale: LOCALE, type: this.#type, pluralCategories: this.#type === "cardinal" ? ["one", "other"] : ["few", "one", "two", "other"], minimumIntegerDigits: 1, minimumFractionDigits: 0, maximumFractionDigits: 3 }; }
}
tagged(PluralRules, "PluralRules");

const NEAR = { __proto__: null, day: { "-1": "yesterday", 0: "today", 1: "tomorrow" }, year: { "-1": "last year", 0: "this year", 1: "next year" }, month: { "-1": "last month", 0: "this month", 1: "next month" }, week: { "-1": "last week", 0: "this week", 1: "next week" }, quarter: { "-1": "last quarter", 0: "this quarter", 1: "next quarter" }, hour: { 0: "this hour" }, minute: { 0: "this minute" }, second: { 0: "now" } };
const SHORT_UNITS = { __proto__: null, second: "sec.", minute: "min.", hour: "hr.", day: "day", week: "wk.", month: "mo.", quarter: "qtr.", year: "yr." };
class RelativeTimeFormat {
  #o;
  constructor(locales, options = {}) {
    canonical(locales);
    this.#o = { locale: LOCALE, style: chosen(options?.style, ["long", "short", "narrow"], "style", "long"), numeric: chosen(options?.numeric, ["always", "auto"], "numeric", "always"), numberingSystem: "latn" };
  }
  format(value, unit) {
    const name = `${unit}`.replace(/s$/, "");
    if (!(name in SHORT_UNITS)) throw new RangeError(`Invalid unit argument for format() '${unit}'`);
    const number = Number(value);
    if (!Number.isFinite(number)) throw new RangeError("The value need to be finite number for Intl.RelativeTimeFormat.prototype.format()");
    const near = this.#o.numeric === "auto" ? NEAR[name][Object.is(number, -0) ? "0" : `${number}`] : undefined;
    if (near !== undefined) return near;
    const size = Math.abs(number);
    const text = new NumberFormat(LOCALE).format(size);
    const past = number < 0 || Object.is(number, -0);
    const word = this.#o.style === "long" ? `${name}${size === 1 ? "" : "s"}` : size === 1 ? SHORT_UNITS[name] : { day: "days", quarter: "qtrs." }[name] ?? SHORT_UNITS[name];
    if (this.#o.style === "narrow") {
      const letter = { second: "s", minute: "min", hour: "h", day: "d", week: "w", month: "mo", quarter: "q", year: "y" }[name];
      return past ? `${text}${letter} ago` : `in ${text}${letter}`;
    }
    return past ? `${text} ${word} ago` : `in ${text} ${word}`;
  }
  formatToParts(value, unit) { return [{ type: "literal", value: this.format(value, unit) }]; }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(RelativeTimeFormat, "RelativeTimeFormat");

class ListFormat {
  #o;
  constructor(locales, options = {}) {
    canonical(locales);
    this.#o = { locale: LOCALE, type: chosen(options?.type, ["conjunction", "disjunction", "unit"], "type", "conjunction"), style: chosen(options?.style, ["long", "short", "narrow"], "style", "long") };
  }
  formatToParts(list) {
    const items = [...list].map((item) => {
      if (typeof item !== "string") throw new TypeError("Iterable yielded a non-String value");
      return { type: "element", value: item };
    });
    const { type, style } = this.#o;
    const word = type === "disjunction" ? "or" : type === "unit" ? "" : style === "long" ? "and" : style === "short" ? "&" : "";
    const comma = type === "unit" && style === "narrow" ? " " : ", ";
    const last = word === "" ? comma : items.length > 2 ? `, ${word} ` : ` ${word} `;
    return items.flatMap((item, i) => (i === 0 ? [item] : [{ type: "literal", value: i === items.length - 1 ? last : comma }, item]));
  }
  format(list) { return this.formatToParts(list).map((part) => part.value).join(""); }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(ListFormat, "ListFormat");

// An order like that of the root collation: letters by themselves first, then accents, then case, lower before upper.
const CLASSES = [/[\s_\-,;:!?.'"()[\]{}@*/\\&#%`^+<=>|~$]/u, /\p{N}/u, /\p{L}/u];
const classOf = (c) => CLASSES.findIndex((pattern) => pattern.test(c));
const PUNCTUATION = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
const weight = (c) => {
  const kind = classOf(c);
  if (kind === 0) return PUNCTUATION.indexOf(c);
  return kind < 0 ? c.codePointAt(0) + 100 : kind * 0x200000 + c.codePointAt(0);
};
const compareWith = (o) => (first, second) => {
  const [a, b] = [`${first}`.normalize("NFD"), `${second}`.normalize("NFD")];
  if (a === b) return 0;
  const base = (text) => text.replace(/\p{M}/gu, "").toLowerCase();
  const [x, y] = [base(a), base(b)];
  const pieces = (text) => (o.numeric ? (text.match(/\d+|[^\d]/gu) ?? []) : [...text]);
  const [p, q] = [pieces(x), pieces(y)];
  for (let i = 0; i < p.length && i < q.length; i++) {
    if (p[i] === q[i]) continue;
    if (o.numeric && /^\d/.test(p[i]) && /^\d/.test(q[i])) {
      const [m, n] = [BigInt(p[i]), BigInt(q[i])];
      if (m !== n) return m < n ? -1 : 1;
      continue;
    }
    const difference = weight(p[i]) - weight(q[i]);
    if (difference) return difference < 0 ? -1 : 1;
  }
  if (p.length !== q.length) return p.length < q.length ? -1 : 1;
  if (o.sensitivity === "base") return 0;
  if (o.sensitivity !== "case") {
    const accents = (text) => text.replace(/[^\p{M}]/gu, " ");
    const [m, n] = [accents(a), accents(b)];
    if (m !== n) return m < n ? -1 : 1;
    if (o.sensitivity === "accent") return 0;
  }
  const [s, t] = [[...a], [...b]];
  for (let i = 0; i < s.length; i++) {
    if (s[i] === t[i]) continue;
    const lower = s[i] === s[i].toLowerCase();
    return lower === (o.caseFirst !== "upper") ? -1 : 1;
  }
  return 0;
};
class Collator {
  #o;
  constructor(locales, options = {}) {
    const numeric = canonical(locales).some((tag) => /-u-(?:.*-)?kn(?:-true)?(?:-|$)/i.test(tag));
    this.#o = { locale: LOCALE, usage: "sort", sensitivity: chosen(options?.sensitivity, ["base", "accent", "case", "variant"], "sensitivity", "variant"), ignorePunctuation: Boolean(options?.ignorePunctuation), collation: "default", numeric: Boolean(options?.numeric ?? numeric), caseFirst: options?.caseFirst ?? "false" };
    hidden(this, "compare", compareWith(this.#o));
  }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(Collator, "Collator");

const GRAPHEME = /\r\n|\p{RI}\p{RI}|\p{Emoji}(?:\p{EMod}|\uFE0F\u20E3?|[\u{E0020}-\u{E007E}]+\u{E007F})?(?:\u200D\p{Emoji}(?:\p{EMod}|\uFE0F)?)+|.[\p{M}\p{EMod}\uFE0F\u200D\u20E3]*/gsu;
const WORD = /[\p{L}\p{N}\p{M}_]+(?:['’.][\p{L}\p{N}\p{M}_]+)*|\r\n|\s|[^]/gu;
const SENTENCE = /[^.!?]*(?:[.!?]+["'”’)\]]*\s*|$)/gu;
class Segmenter {
  #granularity;
  constructor(locales, options = {}) {
    canonical(locales);
    this.#granularity = chosen(options?.granularity, ["grapheme", "word", "sentence"], "granularity", "grapheme");
  }
  segment(input) {
    const text = `${input}`;
    const granularity = this.#granularity;
    const all = () => [...text.matchAll({ grapheme: GRAPHEME, word: WORD, sentence: SENTENCE }[granularity])].filter((found) => found[0] !== "")
      .map((found) => ({ segment: found[0], index: found.index, input: text, ...(granularity === "word" ? { isWordLike: /^[\p{L}\p{N}_]/u.test(found[0]) } : {}) }));
    return { [Symbol.iterator]: () => all()[Symbol.iterator](), containing: (index = 0) => all().findLast((one) => one.index <= index && index < one.index + one.segment.length) };
  }
  resolvedOptions() { return { locale: LOCALE, granularity: this.#granularity }; }
}
tagged(Segmenter, "Segmenter");

const NAMES_OF = {
  __proto__: null,
  region: { US: "United States", GB: "United Kingdom", DE: "Germany", FR: "France", ES: "Spain", IT: "Italy", CA: "Canada", AU: "Australia", JP: "Japan", CN: "China", IN: "India", BR: "Brazil", MX: "Mexico" },
  language: { en: "English", "en-US": "American English", "en-GB": "British English", de: "German", fr: "French", es: "Spanish", it: "Italian", ja: "Japanese", zh: "Chinese", ko: "Korean", pt: "Portuguese", ru: "Russian", ar: "Arabic", hi: "Hindi" },
};
class DisplayNames {
  #o;
  constructor(locales, options) {
    canonical(locales);
    if (options?.type === undefined) throw new TypeError("Required option \"type\" must not be undefined");
    this.#o = { locale: LOCALE, style: options.style ?? "long", type: options.type, fallback: options.fallback ?? "code" };
  }
  of(code) {
    const found = this.#o.type === "currency" ? CURRENCY_NAMES[code]?.[0].replace(/^(.*) (\w)(\w*)$/, (_, a, b, c) => `${a} ${b.toUpperCase()}${c}`) : NAMES_OF[this.#o.type]?.[code];
    return found ?? (this.#o.fallback === "code" ? `${code}` : undefined);
  }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(DisplayNames, "DisplayNames");

const Intl = {};
const constructors = { NumberFormat: callable(NumberFormat), DateTimeFormat: callable(DateTimeFormat), Collator: callable(Collator), PluralRules, RelativeTimeFormat, ListFormat, Segmenter, DisplayNames, Locale };
for (const name of keys(constructors)) hidden(Intl, name, constructors[name]);
hidden(Intl, "getCanonicalLocales", canonical);
hidden(Intl, "supportedValuesOf", (kind) => ({ timeZone: keys(ZONES.names).filter((name) => name.includes("/") && !name.startsWith("Etc/")).sort(), currency: keys(CURRENCIES).sort(), unit: keys(UNITS).sort(), calendar: ["gregory"], collation: [], numberingSystem: ["latn"] })[kind] ?? []);
hidden(Intl, Symbol.toStringTag, "Intl");
provide({ Intl });

const localDate = (wanted, defaults) => function (locales, options) {
  if (Number.isNaN(this.getTime())) return "Invalid Date";
  return new DateTimeFormat(locales, options, wanted, defaults).format(this);
};
hidden(Date.prototype, "toLocaleString", localDate("any", "all"));
hidden(Date.prototype, "toLocaleDateString", localDate("date", "date"));
hidden(Date.prototype, "toLocaleTimeString", localDate("time", "time"));
hidden(Number.prototype, "toLocaleString", function toLocaleString(locales, options) { return new NumberFormat(locales, options).format(this.valueOf()); });
hidden(BigInt.prototype, "toLocaleString", function toLocaleString(locales, options) { return new NumberFormat(locales, options).format(this.valueOf()); });
hidden(String.prototype, "localeCompare", function localeCompare(other, locales, options) { return new Collator(locales, options).compare(String(this), `${other}`); });
