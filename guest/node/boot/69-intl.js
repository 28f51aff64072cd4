// Intl and the methods that format by it.
const Intl = {};
const constructors = { NumberFormat: callable(NumberFormat), DateTimeFormat: callable(DateTimeFormat), Collator: callable(Collator), PluralRules, RelativeTimeFormat, ListFormat, Segmenter, DisplayNames, Locale };
for (const name of keys(constructors)) hidden(Intl, name, constructors[name]);
const SUPPORTED = {
  __proto__: null,
  timeZone: () => keys(ZONES.names).filter((name) => name.includes("/") && !name.startsWith("Etc/")),
  currency: () => pathsUnder("currencies", "name/").map((path) => path.slice(5)),
  unit: () => SIMPLE_UNITS, calendar: () => keys(CALENDARS), collation: () => [], numberingSystem: () => keys(worldOf("numbers").digits),
};
hidden(Intl, "getCanonicalLocales", canonical);
hidden(Intl, "supportedValuesOf", (kind) => {
  const found = SUPPORTED[kind];
  if (found === undefined) throw new RangeError(`Invalid key : ${kind}`);
  return [...found()].sort();
});
hidden(Intl, Symbol.toStringTag, "Intl");
provide({ Intl });

// A formatter for each call, or the one that there was for the same locale when nothing else is asked for.
const reused = (make) => {
  const usual = memo((locale) => make(locale, undefined));
  return (locales, options) => (options === undefined && (locales === undefined || typeof locales === "string") ? usual(locales) : make(locales, options));
};
const localDate = (wanted, defaults) => {
  const formatFor = reused((locales, options) => new DateTimeFormat(locales, options, wanted, defaults));
  return function (locales, options) {
    return Number.isNaN(this.getTime()) ? "Invalid Date" : formatFor(locales, options).format(this);
  };
};
const numberFor = reused((locales, options) => new NumberFormat(locales, options));
const orderFor = reused((locales, options) => new Collator(locales, options));
hidden(Date.prototype, "toLocaleString", localDate("any", "all"));
hidden(Date.prototype, "toLocaleDateString", localDate("date", "date"));
hidden(Date.prototype, "toLocaleTimeString", localDate("time", "time"));
hidden(Number.prototype, "toLocaleString", function toLocaleString(locales, options) { return numberFor(locales, options).format(this.valueOf()); });
hidden(BigInt.prototype, "toLocaleString", function toLocaleString(locales, options) { return numberFor(locales, options).format(this.valueOf()); });
hidden(Array.prototype, "toLocaleString", function toLocaleString(locales, options) {
  return Array.from(this, (one) => (one === undefined || one === null ? "" : `${one.toLocaleString(locales, options)}`)).join(",");
});
hidden(String.prototype, "localeCompare", function localeCompare(other, locales, options) { return orderFor(locales, options).compare(String(this), `${other}`); });
const languageOf = (locales) => tagParts(canonical(locales)[0] ?? DEFAULT_LOCALE).language;
hidden(String.prototype, "toLocaleUpperCase", function toLocaleUpperCase(locales) { return upperIn(languageOf(locales), String(this)); });
hidden(String.prototype, "toLocaleLowerCase", function toLocaleLowerCase(locales) { return lowerIn(languageOf(locales), String(this)); });

// What most packages ask for is looked up already.
new NumberFormat(undefined, { style: "currency", currency: "USD" }).format(1234.5);
(0).toLocaleString();
"".localeCompare("");
for (const format of [Date.prototype.toLocaleString, Date.prototype.toLocaleDateString]) format.call(new Date(0));
