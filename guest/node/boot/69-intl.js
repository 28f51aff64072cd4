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

const localDate = (wanted, defaults) => function (locales, options) {
  if (Number.isNaN(this.getTime())) return "Invalid Date";
  return new DateTimeFormat(locales, options, wanted, defaults).format(this);
};
hidden(Date.prototype, "toLocaleString", localDate("any", "all"));
hidden(Date.prototype, "toLocaleDateString", localDate("date", "date"));
hidden(Date.prototype, "toLocaleTimeString", localDate("time", "time"));
hidden(Number.prototype, "toLocaleString", function toLocaleString(locales, options) { return new NumberFormat(locales, options).format(this.valueOf()); });
hidden(BigInt.prototype, "toLocaleString", function toLocaleString(locales, options) { return new NumberFormat(locales, options).format(this.valueOf()); });
hidden(Array.prototype, "toLocaleString", function toLocaleString(locales, options) {
  return Array.from(this, (one) => (one === undefined || one === null ? "" : `${one.toLocaleString(locales, options)}`)).join(",");
});
const usualOrder = new Collator().compare;
hidden(String.prototype, "localeCompare", function localeCompare(other, locales, options) {
  const compare = locales === undefined && options === undefined ? usualOrder : new Collator(locales, options).compare;
  return compare(String(this), `${other}`);
});
const languageOf = (locales) => tagParts(canonical(locales)[0] ?? DEFAULT_LOCALE).language;
hidden(String.prototype, "toLocaleUpperCase", function toLocaleUpperCase(locales) { return upperIn(languageOf(locales), String(this)); });
hidden(String.prototype, "toLocaleLowerCase", function toLocaleLowerCase(locales) { return lowerIn(languageOf(locales), String(this)); });

// What most packages ask for is looked up already.
new NumberFormat(undefined, { style: "currency", currency: "USD" }).format(1234.5);
for (const format of [Date.prototype.toLocaleString, Date.prototype.toLocaleDateString]) format.call(new Date(0));
