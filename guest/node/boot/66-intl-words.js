// Intl.RelativeTimeFormat, ListFormat and DisplayNames.

const RELATIVE_UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"];
class RelativeTimeFormat {
  #o;
  #data;
  #numbers;
  constructor(locales, options) {
    const given = objectOf(options);
    const found = negotiated(locales, given);
    this.#data = found.data;
    const numberingSystem = setting(found, "nu", typed(given.numberingSystem, "numberingSystem"), hasDigits, defaultSystem(found.data));
    const style = chosen(given.style, ["long", "short", "narrow"], "style", "long");
    this.#o = { locale: keptTag(found), style, numeric: chosen(given.numeric, ["always", "auto"], "numeric", "always"), numberingSystem };
    this.#numbers = new NumberFormat(found.locale, { numberingSystem });
  }
  // [pattern, category-chosen number parts] or the whole text
  #parts(value, unit) {
    const name = `${unit}`.replace(/s$/, "");
    if (!RELATIVE_UNITS.includes(name)) throw new RangeError(`Invalid unit argument for format() '${unit}'`);
    const number = Number(value);
    if (!Number.isFinite(number)) throw new RangeError("The value need to be finite number for Intl.RelativeTimeFormat.prototype.format()");
    const { style, numeric } = this.#o;
    const field = style === "long" ? name : `${name}-${style}`;
    const near = numeric === "auto" ? textAt("words", this.#data, `${field}/${Object.is(number, -0) ? "-0" : number}`) ?? (number === 0 ? textAt("words", this.#data, `${field}/0`) : undefined) : undefined;
    if (near !== undefined) return [literal(near)];
    const past = number < 0 || Object.is(number, -0);
    const digits = shownDigits({ minimumIntegerDigits: 1 }, roundedBy({ maximumFractionDigits: 3, minimumFractionDigits: 0, roundingMode: "halfExpand", roundingIncrement: 1 }, decimalOf(number), false));
    const pattern = formOf(textAt("words", this.#data, `${field}/${past ? "past" : "future"}`), categoryOf("cardinal", this.#data, ...digits));
    const size = this.#numbers.formatToParts(Math.abs(number)).map((part) => ({ ...part, unit: name }));
    return woven(pattern, [size]);
  }
  format(value, unit) { return joinedText(this.#parts(value, unit)); }
  formatToParts(value, unit) { return this.#parts(value, unit); }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(RelativeTimeFormat, "RelativeTimeFormat");

const LIST_KINDS = { __proto__: null, conjunction: "standard", disjunction: "or", unit: "unit" };
// Words that change before certain sounds: Spanish y and o, Hebrew and before other scripts.
const soundsLike = (language, pattern, next) => {
  if (language === "es" && /^(?:i|hi(?!a|e))/i.test(next)) return pattern.replace("} y {", "} e {");
  if (language === "es" && /^(?:o|ho|8|11(?!\d)|11(?:\d{3})+(?!\d))/i.test(next)) return pattern.replace("} o {", "} u {");
  if (language === "he" && !/^\p{Script=Hebrew}/u.test(next)) return pattern.replace(" ו{1}", " ו-{1}");
  return pattern;
};
class ListFormat {
  #o;
  #data;
  constructor(locales, options) {
    const given = objectOf(options);
    if (options !== undefined && typeof options !== "object") throw new TypeError("Incorrect ListFormat information provided");
    const found = negotiated(locales, given);
    this.#data = found.data;
    this.#o = { locale: found.locale, type: chosen(given.type, keys(LIST_KINDS), "type", "conjunction"), style: chosen(given.style, ["long", "short", "narrow"], "style", "long") };
  }
  formatToParts(list) {
    const items = list === undefined ? [] : Array.from(list[Symbol.iterator] ? list : Object(list), (item) => {
      if (typeof item !== "string") throw new TypeError("Iterable yielded a non-String value");
      return [{ type: "element", value: item }];
    });
    if (list !== undefined && !list?.[Symbol.iterator]) throw new TypeError(`${typeof list} is not iterable`);
    if (items.length < 2) return items.flat();
    const { type, style } = this.#o;
    const pattern = (part, next) => soundsLike(this.#data.split("-")[0], textAt("words", this.#data, `${LIST_KINDS[type]}${style === "long" ? "" : `-${style}`}/${part}`), next);
    const last = items.at(-1)[0].value;
    if (items.length === 2) return woven(pattern("2", last), items);
    let all = woven(pattern("end", last), [items.at(-2), items.at(-1)]);
    for (let i = items.length - 3; i >= 0; i--) all = woven(pattern(i === 0 ? "start" : "middle", items[i + 1][0].value), [items[i], all]);
    return all;
  }
  format(list) { return joinedText(this.formatToParts(list)); }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(ListFormat, "ListFormat");

const DATE_TIME_FIELDS = { __proto__: null, era: "era", year: "year", quarter: "quarter", month: "month", weekOfYear: "week", weekday: "weekday", day: "day", dayPeriod: "dayperiod", hour: "hour", minute: "minute", second: "second", timeZoneName: "zone" };
class DisplayNames {
  #o;
  #data;
  constructor(locales, options) {
    if (options === undefined || typeof options !== "object") throw new TypeError("Incorrect DisplayNames information provided");
    const found = negotiated(locales, options);
    this.#data = found.data;
    const style = chosen(options.style, ["long", "short", "narrow"], "style", "long");
    const type = chosen(options.type, ["language", "region", "script", "currency", "calendar", "dateTimeField"], "type");
    if (type === undefined) throw new TypeError("Required option \"type\" must not be undefined");
    const fallback = chosen(options.fallback, ["code", "none"], "fallback", "code");
    const languageDisplay = chosen(options.languageDisplay, ["dialect", "standard"], "languageDisplay", "dialect");
    this.#o = { locale: found.locale, style, type, fallback, ...(type === "language" ? { languageDisplay } : {}) };
  }
  #name(kind, code) {
    const text = (suffix) => textAt("names", this.#data, `${kind}/${code}${suffix}`);
    return (this.#o.style === "long" ? undefined : text("/short")) ?? text("");
  }
  #language(code) {
    const parts = tagParts(code);
    const whole = baseOf(parts);
    const { language, script, region, variants } = parts;
    if (this.#o.languageDisplay === "dialect") {
      const found = this.#name("languages", whole);
      if (found !== undefined && !variants.length) return found;
    }
    const tries = this.#o.languageDisplay === "dialect" ? [[language, script], [language, region]] : [];
    const best = tries.find((one) => one[1] && this.#name("languages", one.join("-")) !== undefined) ?? [language];
    const name = this.#name("languages", best.join("-")) ?? (best.length === 1 && (script || region || variants.length) ? language : undefined);
    const rest = [script, region, ...variants].filter((one) => one && !best.slice(1).includes(one))
      .map((one) => (one === script ? this.#name("scripts", one) : one === region ? this.#name("territories", one) : undefined) ?? one);
    if (name === undefined || !rest.length) return name;
    const inside = rest.map((one) => one.replaceAll("(", "[").replaceAll(")", "]")).reduce((a, b) => filled(textAt("names", this.#data, "localeSeparator"), a, b));
    return filled(textAt("names", this.#data, "localePattern"), name.replaceAll("(", "[").replaceAll(")", "]"), inside);
  }
  of(given) {
    const code = `${given}`;
    const { type, style, fallback } = this.#o;
    const right = { language: /^[a-z]{2,8}(?:-[a-z\d]+)*$/i, region: /^(?:[a-z]{2}|\d{3})$/i, script: /^[a-z]{4}$/i, currency: /^[a-z]{3}$/i, calendar: /^[a-z\d]{3,8}(?:-[a-z\d]{3,8})*$/i, dateTimeField: new RegExp(`^(?:${keys(DATE_TIME_FIELDS).join("|")})$`) }[type];
    if (!right.test(code)) throw new RangeError(`Invalid argument to Intl.DisplayNames.prototype.of`);
    const upper = code.toUpperCase();
    let found;
    let shown = code;
    if (type === "language") [found, shown] = [this.#language(code), tagOf(tagParts(code))];
    else if (type === "region") [found, shown] = [this.#name("territories", upper), upper];
    else if (type === "script") [found, shown] = [this.#name("scripts", titled(code.toLowerCase())), titled(code.toLowerCase())];
    // V8 gives the name whatever the style
    else if (type === "currency") [found, shown] = [textAt("currencies", this.#data, `name/${upper}`), upper];
    else if (type === "dateTimeField") {
      const field = DATE_TIME_FIELDS[code];
      found = textAt("words", this.#data, `${field}${style === "long" ? "" : `-${style}`}/field`);
    }
    return found ?? (fallback === "code" ? shown : undefined);
  }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(DisplayNames, "DisplayNames");
