// Intl.NumberFormat: patterns of the CLDR (UTS 35, part 3), as ICU puts them together.

const SIMPLE_UNITS = ["acre", "bit", "byte", "celsius", "centimeter", "day", "degree", "fahrenheit", "fluid-ounce", "foot", "gallon", "gigabit", "gigabyte", "gram", "hectare", "hour", "inch", "kilobit", "kilobyte", "kilogram", "kilometer", "liter", "megabit", "megabyte", "meter", "microsecond", "mile", "mile-scandinavian", "milliliter", "millimeter", "millisecond", "minute", "month", "nanosecond", "ounce", "percent", "petabyte", "pound", "second", "stone", "terabit", "terabyte", "week", "yard", "year"];
// What was looked up for a locale and a numbering system.
const symbolsOf = memo(() => new Map());
const centsOf = (currency) => worldOf("numbers").fractions[currency] ?? worldOf("numbers").fractions.DEFAULT;
const defaultSystem = (data) => {
  const system = textAt("numbers", data, "system");
  return hasDigits(system) ? system : "latn";
};
// Where the symbols of digits that are written with other marks are to be found, for a locale that has none of its own.
const SYSTEM_HOMES = { __proto__: null, arab: "ar-EG", arabext: "fa" };
// A symbol or pattern of a numbering system: in the locale's own, or else that of Latin digits.
const numberText = memo((key) => {
  const [data, system, path] = key.split(" ");
  const place = system === "latn" ? "latn" : system === textAt("numbers", data, "system") ? "default" : system === textAt("numbers", data, "native") ? "native" : "latn";
  const elsewhere = place === "latn" && SYSTEM_HOMES[system];
  return (elsewhere ? textAt("numbers", elsewhere, `default/${path}`) : textAt("numbers", data, `${place}/${path}`)) ?? textAt("numbers", data, `latn/${path}`);
});

// A pattern as {prefix, suffix, negative: [prefix, suffix]?, groups: [first, others], zeros}; affixes are lists of tokens: a
// sign or "¤" or "%" by its character, or {text}.
const affix = (text) => {
  const tokens = [];
  let plain = "";
  const flush = () => {
    if (plain) tokens.push({ text: plain });
    plain = "";
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "'") {
      const end = text.indexOf("'", i + 1);
      plain += end === i + 1 ? "'" : text.slice(i + 1, end);
      i = end;
    } else if ("¤%+-".includes(c)) {
      flush();
      tokens.push(c);
    } else plain += c;
  }
  flush();
  return tokens;
};
const patternOf = memo((pattern) => {
  const [positive, negative] = pattern.split(/;(?=(?:[^']*'[^']*')*[^']*$)/);
  const split = (text) => /^((?:'[^']*'|[^#0'])*)([#0,.]*(?:E[0+]+)?)(.*)$/s.exec(text).slice(1);
  const [prefix, number, suffix] = split(positive);
  const [whole] = number.split(/[.E]/);
  const commas = whole.split(",").map((one) => one.length);
  const groups = commas.length > 1 ? [commas.at(-1), commas.length > 2 ? commas.at(-2) : commas.at(-1)] : undefined;
  const sides = negative === undefined ? undefined : split(negative);
  return { prefix: affix(prefix), suffix: affix(suffix), negative: sides && [affix(sides[0]), affix(sides[2])], groups, zeros: (whole.match(/0/g) ?? []).length };
});

const LETTER_END = /[^\p{S}\p{Z}]$/u;
const LETTER_START = /^[^\p{S}\p{Z}]/u;
const literal = (value) => ({ type: "literal", value });
const surrounded = (pattern, type, parts) => pattern.split(/(\{0\})/).flatMap((piece) => (piece === "{0}" ? parts : piece ? [{ type, value: piece }] : []));
// Spaces and marks of direction at the ends of a part are literals, and neighbouring literals are one.
const ENDS = /^([\s\u200e\u200f\u061c]*)(.*?)([\s\u200e\u200f\u061c]*)$/su;
const tidied = (parts) => {
  const all = [];
  const add = (type, value) => {
    if (value === "") return;
    if (type === "literal" && all.at(-1)?.type === "literal") all.at(-1).value += value;
    else all.push({ type, value });
  };
  for (const { type, value } of parts) {
    if (PLAIN_PARTS.has(type)) add(type, value);
    else {
      const [, before, inside, after] = ENDS.exec(value);
      add("literal", before);
      add(type, inside);
      add("literal", after);
    }
  }
  return all;
};
const EURO_REGIONS = new Set("AD AT BE CY DE EE ES FI FR GR HR IE IT LT LU LV MC ME MT NL PT SI SK SM VA XK".split(" "));
const LARGEST_COMPACT = 19;
const PLAIN_PARTS = new Set(["integer", "group", "decimal", "fraction"]);
const itself = (parts) => parts;
const isPlus = (token) => token === "+";

class NumberFormat {
  #o;
  #data;
  #system;
  #digits;
  #symbols;
  #plain;
  #own; // how a currency is written otherwise than others: {text, home, currency}
  constructor(locales, options) {
    const given = objectOf(options);
    const found = negotiated(locales, given);
    const asked = typed(given.numberingSystem, "numberingSystem");
    this.#data = found.data;
    const system = setting(found, "nu", asked, hasDigits, defaultSystem(found.data));
    this.#system = system;
    this.#digits = digitsOf(system);
    this.#symbols = symbolsOf(`${found.data} ${system}`);
    const style = chosen(given.style, ["decimal", "percent", "currency", "unit"], "style", "decimal");
    const currency = given.currency === undefined ? undefined : `${given.currency}`.toUpperCase();
    if (currency !== undefined && !/^[A-Z]{3}$/.test(currency)) throw new RangeError(`Invalid currency code : ${given.currency}`);
    if (style === "currency" && currency === undefined) throw new TypeError("Currency code is required with currency style.");
    const currencyDisplay = chosen(given.currencyDisplay, ["symbol", "narrowSymbol", "code", "name"], "currencyDisplay", "symbol");
    const currencySign = chosen(given.currencySign, ["standard", "accounting"], "currencySign", "standard");
    const unit = given.unit === undefined ? undefined : `${given.unit}`;
    const [above, below] = unit?.split("-per-") ?? [];
    if (unit !== undefined && !(SIMPLE_UNITS.includes(above) && (below === undefined || SIMPLE_UNITS.includes(below)))) throw new RangeError(`Invalid unit argument for Intl.NumberFormat() '${unit}'`);
    if (style === "unit" && unit === undefined) throw new TypeError("Required option \"unit\" must not be undefined");
    const unitDisplay = chosen(given.unitDisplay, ["short", "narrow", "long"], "unitDisplay", "short");
    const notation = chosen(given.notation, ["standard", "scientific", "engineering", "compact"], "notation", "standard");
    const cents = style === "currency" && notation === "standard" ? centsOf(currency) : 0;
    const digits = digitOptions(given, cents, style === "currency" && notation === "standard" ? cents : style === "percent" ? 0 : 3, notation === "compact");
    const compactDisplay = chosen(given.compactDisplay, ["short", "long"], "compactDisplay", "short");
    const usual = notation === "compact" ? "min2" : "auto";
    const grouping = given.useGrouping;
    const useGrouping = grouping === undefined ? usual : grouping === true ? "always" : !grouping ? false : ["true", "false"].includes(`${grouping}`) ? usual : chosen(grouping, ["min2", "auto", "always"], "useGrouping");
    const { roundingIncrement, roundingMode, roundingPriority, trailingZeroDisplay, ...counts } = digits;
    this.#o = {
      locale: keptTag(found), numberingSystem: system, style,
      ...(style === "currency" ? { currency, currencyDisplay, currencySign } : {}),
      ...(style === "unit" ? { unit, unitDisplay } : {}),
      ...counts, useGrouping, notation, ...(notation === "compact" ? { compactDisplay } : {}),
      signDisplay: chosen(given.signDisplay, ["auto", "never", "always", "exceptZero", "negative"], "signDisplay", "auto"),
      roundingIncrement, roundingMode, roundingPriority, trailingZeroDisplay,
    };
    if (style === "currency" && currencyDisplay !== "name") {
      // as ICU does it, a pattern of the currency of the region is that of all
      const patternFor = (code) => assign(foundAt("currencies", found.data, `pattern/${code}`) ?? {}, { currency: code });
      this.#own = [EURO_REGIONS.has(regionOf(found)) ? "EUR" : currency, currency].map(patternFor).find((one) => one.text);
    }
    this.#plain = this.#plainPattern();
    hidden(this, "format", (value) => joinedText(this.#parts(numeric(value))));
  }
  #symbol(name) {
    const known = this.#symbols.get(name);
    if (known !== undefined) return known;
    const text = numberText(`${this.#data} ${this.#system} ${name}`);
    this.#symbols.set(name, text);
    return text;
  }
  #money(name, category) {
    const { currency } = this.#o;
    const text = (kind) => textAt("currencies", this.#data, `${kind}/${currency}`);
    if (name === "code") return currency;
    if (name === "narrowSymbol") return text("narrow") ?? text("symbol") ?? currency;
    if (name === "name") return formOf(text("named") || text("name") || currency, category);
    return text("symbol") ?? currency;
  }
  // Percent as a unit is written as a percentage, but for its long name.
  #isPlainPercent() { return this.#o.unit === "percent" && this.#o.unitDisplay !== "long" && this.#o.notation !== "compact"; }
  // The pattern that affixes and grouping come from when nothing is compact.
  #plainPattern() {
    const { style, currencyDisplay, currencySign } = this.#o;
    if (style === "percent" || this.#isPlainPercent()) return patternOf(this.#symbol("percent"));
    if (style !== "currency" || currencyDisplay === "name") return patternOf(this.#symbol("plain"));
    return patternOf(this.#own?.text ?? this.#symbol(currencySign === "accounting" ? "accounting" : "standard"));
  }
  #mark(kind) {
    if (this.#o.style !== "currency") return this.#symbol(kind);
    const { currency, home } = this.#own ?? { currency: this.#o.currency };
    const own = textAt("currencies", this.#data, `${kind}/${currency}`) ?? (home && numberText(`${home} latn ${kind}`));
    return own ?? this.#symbol(kind === "group" ? "currencyGroup" : "currencyDecimal") ?? this.#symbol(kind);
  }
  // The compact pattern of a power of ten: its text with all plural forms, and by how much it scales; none for small ones.
  #compact(magnitude) {
    const { style, currencyDisplay, compactDisplay } = this.#o;
    if (magnitude < 3) return undefined;
    const kind = style === "currency" && currencyDisplay !== "name" ? "money" : compactDisplay;
    // the largest that the locale has a word for; what it lacks in words it has in abbreviations
    const find = (of) => {
      for (let zeros = Math.min(magnitude, LARGEST_COMPACT); zeros >= 3; zeros--) {
        const text = this.#symbol(`${of}/${zeros}`);
        if (text !== undefined) return { text, zeros };
      }
      return undefined;
    };
    const { text, zeros: size } = find(kind) ?? find("short") ?? {};
    if (text === undefined || formOf(text, "other") === "0") return undefined;
    const { zeros } = patternOf(formOf(text, "other"));
    return { text, power: size - zeros + 1 };
  }
  // How the number's digits are: {digits: [whole, fraction], decimal, power, compact}
  #sized(decimal, negative) {
    const o = this.#o;
    const powerAt = (magnitude) => {
      if (o.notation === "compact") return this.#compact(magnitude)?.power ?? 0;
      return o.notation === "engineering" ? Math.floor(magnitude / 3) * 3 : o.notation === "scientific" ? magnitude : 0;
    };
    const start = isZero(decimal) ? 0 : magnitudeOf(decimal);
    let magnitude = start;
    let power = powerAt(start);
    let shown = roundedBy(o, scaledBy(decimal, -power), negative);
    if (!isZero(shown.rounded) && magnitudeOf(shown.rounded) + power > start) {
      magnitude = start + 1;
      if (powerAt(magnitude) !== power) {
        power = powerAt(magnitude);
        shown = roundedBy(o, scaledBy(decimal, -power), negative);
      }
    }
    return { digits: shownDigits(o, shown), zero: isZero(shown.rounded), power, compact: o.notation === "compact" ? this.#compact(magnitude) : undefined };
  }
  #grouped(whole, groups) {
    const { useGrouping } = this.#o;
    if (useGrouping === false) return [{ type: "integer", value: inDigits(this.#digits, whole) }];
    const [first, others] = groups ?? (useGrouping === "always" ? [3, 3] : [0, 0]);
    const own = Number(textAt("numbers", this.#data, "min"));
    const least = useGrouping === "always" ? 1 : useGrouping === "min2" ? Math.max(2, own) : own;
    if (!first || whole.length < first + least) return [{ type: "integer", value: inDigits(this.#digits, whole) }];
    const pieces = [whole.slice(-first)];
    for (let rest = whole.slice(0, -first); rest; rest = rest.slice(0, -others)) pieces.unshift(rest.slice(-others));
    const mark = this.#mark("group");
    return pieces.flatMap((piece, i) => [...(i ? [{ type: "group", value: mark }] : []), { type: "integer", value: inDigits(this.#digits, piece) }]);
  }
  #written({ digits: [whole, fraction], power }, groups) {
    const o = this.#o;
    const parts = this.#grouped(whole, groups);
    const point = this.#mark("decimal");
    if (fraction) parts.push({ type: "decimal", value: point }, { type: "fraction", value: inDigits(this.#digits, fraction) });
    if (o.notation === "scientific" || o.notation === "engineering") {
      parts.push({ type: "exponentSeparator", value: this.#symbol("exponential") });
      if (power < 0) parts.push({ type: "exponentMinusSign", value: this.#symbol("minusSign") });
      parts.push({ type: "exponentInteger", value: inDigits(this.#digits, `${Math.abs(power)}`) });
    }
    return parts;
  }
  // The parts of an affix. In a compact pattern, text is the compact word.
  #affixed(tokens, sign, compact) {
    return tokens.flatMap((token) => {
      if (token === "¤") return [{ type: "currency", value: this.#money(this.#o.currencyDisplay) }];
      if (token === "%") return [{ type: this.#o.style === "unit" ? "unit" : "percentSign", value: this.#symbol("percentSign") }];
      if (token === "-") return sign ? [sign] : [];
      if (token === "+") return [{ type: "plusSign", value: this.#symbol("plusSign") }];
      return [compact ? { type: "compact", value: token.text } : literal(token.text)];
    });
  }
  // [parts before the number, parts behind it]
  #around(pattern, shows, negative, compact, digits) {
    const sign = shows ? { type: negative ? "minusSign" : "plusSign", value: this.#symbol(negative ? "minusSign" : "plusSign") } : undefined;
    const own = shows && pattern.negative && (negative || pattern.negative.some((side) => side.includes("-")));
    const signed = shows && !own && !(pattern.prefix.some(isPlus) || pattern.suffix.some(isPlus));
    const [prefix, suffix] = own ? pattern.negative : [pattern.prefix, pattern.suffix];
    const before = [...(signed ? [sign] : []), ...this.#affixed(prefix, sign, compact)];
    const after = this.#affixed(suffix, sign, compact);
    if (digits && before.at(-1)?.type === "currency" && LETTER_END.test(before.at(-1).value)) before.push(literal("\u00a0"));
    if (digits && after[0]?.type === "currency" && LETTER_START.test(after[0].value)) after.unshift(literal("\u00a0"));
    return [before, after];
  }
  // {before, number, after, outside}: `outside` puts a name around it all
  #pieces(value) {
    const o = this.#o;
    const negative = typeof value === "bigint" ? value < 0n : typeof value === "string" ? value.startsWith("-") : value < 0 || Object.is(value, -0);
    const special = typeof value === "number" && !Number.isFinite(value);
    let sized = { digits: ["0", ""], zero: false, power: 0 };
    let number;
    if (special) number = [Number.isNaN(value) ? { type: "nan", value: this.#symbol("nan") } : { type: "infinity", value: this.#symbol("infinity") }];
    else {
      const decimal = decimalOf(typeof value === "string" ? value.replace(/^-/, "") : value);
      sized = this.#sized(o.style === "percent" ? scaledBy(decimal, 2) : decimal, negative);
    }
    const zero = sized.zero || (special && Number.isNaN(value));
    const shows = { auto: negative, negative: negative && !zero, never: false, always: true, exceptZero: !zero }[o.signDisplay];
    const plain = this.#plain;
    number ??= this.#written(sized, plain.groups);
    const counts = sized.compact || (o.style === "unit" && !this.#isPlainPercent()) || o.currencyDisplay === "name";
    const category = special || !counts ? "other" : categoryOf("cardinal", this.#data, ...sized.digits, o.notation === "compact" ? sized.power : 0);
    let [before, after] = [[], []];
    if (sized.compact) {
      const pattern = patternOf(formOf(sized.compact.text, category));
      [before, after] = this.#around(pattern, shows && o.style !== "percent", negative, true, !special);
      if (o.style === "percent") {
        const [first, last] = this.#around(plain, shows, negative, false, !special);
        [before, after] = [[...first, ...before], [...after, ...last]];
      }
    } else [before, after] = this.#around(plain, shows, negative, false, !special);
    return { before, number, after, outside: this.#outside(category) };
  }
  #outside(category) {
    const o = this.#o;
    if (o.style === "currency" && o.currencyDisplay === "name") {
      const pattern = formOf(textAt("numbers", this.#data, "latn/named"), category).replace("{1}", () => this.#money("name", category));
      return (parts) => surrounded(pattern, "currency", parts);
    }
    if (o.style !== "unit" || this.#isPlainPercent()) return itself;
    const pattern = this.#unitPattern(category);
    return (parts) => surrounded(pattern, "unit", parts);
  }
  #unitPattern(category) {
    const { unit, unitDisplay } = this.#o;
    const text = (path) => textAt("units", this.#data, `${unitDisplay}/${path}`);
    const whole = text(unit);
    if (whole) return formOf(whole, category);
    const [above, below] = unit.split("-per-");
    const first = formOf(text(above) ?? "{0}", category);
    const per = text(`${below}/per`);
    if (per) return filled(per, first);
    const second = formOf(text(below) ?? "{0}", categoryOf("cardinal", this.#data, "1", "")).replace("{0}", "").trim();
    return filled(text("per"), first, second);
  }
  #parts(value) {
    const { before, number, after, outside } = this.#pieces(value);
    return before.length || after.length || outside !== itself ? tidied(outside([...before, ...number, ...after])) : number;
  }
  formatToParts(value) { return this.#parts(numeric(value)); }
  // [parts shared at the start, first, between, last, parts shared at the end]: a unit of more than one character is said once.
  #range(from, to) {
    if (from === undefined || to === undefined) throw new TypeError("Invalid argument");
    const [first, last] = [from, to].map((one) => {
      const value = numeric(one);
      if (typeof value === "number" && Number.isNaN(value)) throw new RangeError("Invalid argument");
      return this.#pieces(value);
    });
    const text = (one) => joinedText(one.outside([...one.before, ...one.number, ...one.after]));
    if (text(first) === text(last)) return [[], [{ type: "approximatelySign", value: this.#symbol("approximatelySign") ?? "~" }], [], last.outside([...last.before, ...last.number, ...last.after]), []];
    const named = this.#o.style === "unit" || (this.#o.style === "currency" && this.#o.currencyDisplay === "name");
    const same = joinedText(first.before) === joinedText(last.before) && joinedText(first.after) === joinedText(last.after);
    const around = joinedText(first.before) + joinedText(first.after);
    const between = this.#symbol("range").replace("{0}", "").replace("{1}", "");
    if (named && around === "") {
      const shared = last.outside([{ type: "hole", value: "" }]);
      const hole = shared.findIndex((part) => part.type === "hole");
      return [shared.slice(0, hole), first.number, [literal(between)], last.number, shared.slice(hole + 1)];
    }
    if (same && ([...around].length > 1 || around === "")) return [first.before, first.number, [literal(between)], last.number, last.after];
    return [[], [...first.before, ...first.number, ...first.after], [literal(/\s/.test(between) ? between : ` ${between} `)], [...last.before, ...last.number, ...last.after], []];
  }
  formatRange(from, to) { return this.#range(from, to).map(joinedText).join(""); }
  formatRangeToParts(from, to) {
    const sources = ["shared", "startRange", "shared", "endRange", "shared"];
    return this.#range(from, to).flatMap((parts, i) => tidied(parts).map((part) => ({ ...part, source: sources[i] })));
  }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(NumberFormat, "NumberFormat");

// A number, a BigInt, or the text of a decimal that no number holds exactly.
const numeric = (value) => {
  if (typeof value === "bigint" || typeof value === "number") return value;
  const primitive = typeof value === "object" && value !== null ? value[Symbol.toPrimitive]?.("number") ?? value.valueOf() : value;
  if (typeof primitive === "bigint") return primitive;
  const text = typeof primitive === "string" ? primitive.trim() : typeof primitive === "object" ? `${primitive}`.trim() : undefined;
  if (text !== undefined && /^[+-]?(?:\d+\.?\d*|\.\d+)$/.test(text)) return text.replace(/^\+/, "");
  return Number(primitive);
};
