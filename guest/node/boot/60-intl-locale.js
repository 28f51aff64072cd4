// Intl: which locale a tag means, and the tables of the CLDR. CLDR says where in the image's blob each table is; a table
// is inflated when it is first asked for, and a text that it lacks is its parent's.
const NEXT = "\u0001";
const GONE = "\u0003";
const FORM = "\u0002";
const DEFAULT_LOCALE = "en-US";
const ROOT = "und";

const memo = (make) => {
  const made = new Map();
  return (key) => {
    if (!made.has(key)) made.set(key, make(key));
    return made.get(key);
  };
};

// Where things are: {at: area -> [offset, size] of its paths, world: name -> [offset, size]}.
const layout = (() => {
  let offset = 0;
  const take = (size) => {
    const place = [offset, Number(size)];
    offset += place[1];
    return place;
  };
  const [at, world] = [create(null), create(null)];
  CLDR.areas.forEach((area, i) => { at[area] = take(CLDR.paths[i]); });
  for (const name of keys(CLDR.world)) world[name] = take(CLDR.world[name]);
  return { at, world };
})();
// What stands for a name in lines of a name and its value.
const lineIn = (lines, name) => {
  const at = lines.indexOf(`\n${name} `);
  return at < 0 ? undefined : lines.slice(at + name.length + 2, lines.indexOf("\n", at + 1));
};
// {parent, offset, sizes}; undefined for what has no tables.
const localeOf = memo((tag) => {
  const line = lineIn(CLDR.locales, tag);
  if (line === undefined) return undefined;
  const [parent, offset, ...sizes] = line.split(" ");
  return { parent: parent === "-" ? undefined : parent, offset: Number(offset), sizes: sizes.map(Number) };
});
const inflated = ([offset, size]) => (size ? natives.table(offset, size) : "");
const worldOf = memo((name) => JSON.parse(inflated(layout.world[name])));
const linesOf = memo((name) => inflated(layout.world[name]));
const lineOf = (list, name) => lineIn(linesOf(list), name);
// Paths are in the order of their code units, so that one is found by halves, and those with a prefix are neighbours.
const pathsOf = memo((area) => inflated(layout.at[area]).split(NEXT));
const placeOf = (paths, path) => {
  let [low, high] = [0, paths.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (paths[middle] < path) low = middle + 1;
    else high = middle;
  }
  return low;
};
const pathsUnder = (area, prefix) => {
  const paths = pathsOf(area);
  const start = placeOf(paths, prefix);
  let end = start;
  while (end < paths.length && paths[end].startsWith(prefix)) end++;
  return paths.slice(start, end);
};
const tableAt = memo((key) => {
  const [area, tag] = key.split(" ");
  const { offset, sizes } = localeOf(tag);
  const at = CLDR.areas.indexOf(area);
  const before = sizes.slice(0, at).reduce((sum, size) => sum + size, 0);
  return sizes[at] ? inflated([offset + before, sizes[at]]).split(NEXT) : [];
});
// The text at a path and the locale that has it, for a locale that has tables; undefined when there is none.
const foundAt = (area, tag, path) => {
  const paths = pathsOf(area);
  const at = placeOf(paths, path);
  if (paths[at] !== path) return undefined;
  for (let one = tag; one !== undefined; one = localeOf(one).parent) {
    const text = tableAt(`${area} ${one}`)[at];
    if (text) return text === GONE ? undefined : { text, home: one };
  }
  return undefined;
};
const textAt = (area, tag, path) => foundAt(area, tag, path)?.text;
const FORMS = ["other", "zero", "one", "two", "few", "many"];
const formOf = (text, category) => {
  const forms = text.split(FORM);
  return forms[FORMS.indexOf(category)] || forms[0];
};

// Tags (BCP 47, UTS 35)

const wrongTag = () => new RangeError("Incorrect locale information provided");
const LANGUAGE_TAG = /^(?<language>[a-z]{2,3}|[a-z]{5,8})(?:-(?<script>[a-z]{4}))?(?:-(?<region>[a-z]{2}|\d{3}))?(?<variants>(?:-(?:[a-z\d]{5,8}|\d[a-z\d]{3}))*)(?<rest>(?:-[a-wyz\d](?:-[a-z\d]{2,8})+)*)(?<personal>(?:-x(?:-[a-z\d]{1,8})+)?)$/;
const GRANDFATHERED = { __proto__: null, "art-lojban": "jbo", "zh-guoyu": "zh", "zh-hakka": "hak", "zh-xiang": "hsn", "sgn-gr": "gss", "cel-gaulish": "xtg" };
const titled = (text) => text[0].toUpperCase() + text.slice(1);
const VALUES = { __proto__: null, ca: { gregorian: "gregory", "ethiopic-amete-alem": "ethioaa", islamicc: "islamic-civil" }, ks: { primary: "level1", tertiary: "level3" }, ms: { imperial: "uksystem" } };

const keywordsOf = (subtags) => {
  const attributes = [];
  const keywords = new Map();
  let at = 0;
  while (at < subtags.length && subtags[at].length > 2) attributes.push(subtags[at++]);
  while (at < subtags.length) {
    const key = subtags[at++];
    const parts = [];
    while (at < subtags.length && subtags[at].length > 2) parts.push(subtags[at++]);
    let value = parts.join("-");
    value = VALUES[key]?.[value] ?? value;
    if (value === "yes" && /^k[bchkn]$/.test(key)) value = "true";
    if (!keywords.has(key)) keywords.set(key, value === "true" ? "" : value);
  }
  return { attributes, keywords };
};

const replaced = (parts) => {
  const { language, script, region } = parts;
  for (const key of [[language, script, region], [language, region], [language, script], [language]].map((one) => one.filter(Boolean).join("-"))) {
    const found = lineOf("languages", key);
    if (found === undefined || (!key.includes("-") && found === language)) continue;
    const [newLanguage, ...rest] = found.split("-");
    parts.language = newLanguage === "und" ? language : newLanguage;
    parts.script ??= rest.find((one) => one.length === 4);
    const place = rest.find((one) => one.length === 2 || /^\d{3}$/.test(one));
    if (key.split("-").length > 1 && parts.region && key.includes(parts.region)) parts.region = place;
    else parts.region ??= place;
    break;
  }
  parts.script = (parts.script && lineOf("subtags", parts.script)) ?? parts.script;
  const places = (parts.region && lineOf("regions", parts.region))?.split(" ");
  if (places) {
    const likely = maximized({ language: parts.language, script: parts.script }).region;
    parts.region = places.includes(likely) ? likely : places[0];
  }
  parts.variants = parts.variants.map((one) => lineOf("subtags", one) ?? one).sort();
  return parts;
};

const tagParts = memo((tag) => {
  const lowered = tag.toLowerCase();
  const found = LANGUAGE_TAG.exec(GRANDFATHERED[lowered] ?? lowered);
  if (!found) throw wrongTag();
  const { language, script, region, variants, rest, personal } = found.groups;
  const parts = { language, script: script && titled(script), region: region?.toUpperCase(), variants: variants.split("-").slice(1), extensions: [], attributes: [], keywords: new Map(), personal };
  if (new Set(parts.variants).size !== parts.variants.length) throw wrongTag();
  for (const one of rest.split(/-(?=[a-z\d]-)/).filter(Boolean)) {
    const text = one.replace(/^-/, "");
    if (text[0] === "u" && parts.hasKeywords) throw wrongTag();
    if (text[0] === "u") assign(parts, keywordsOf(text.split("-").slice(1)), { hasKeywords: true });
    else if (parts.extensions.some((other) => other[0] === text[0])) throw wrongTag();
    else parts.extensions.push(text);
  }
  return replaced(parts);
});
const baseOf = ({ language, script, region, variants = [] }) => [language, script, region, ...variants].filter(Boolean).join("-");
const tagOf = (parts) => {
  const { attributes, keywords, extensions, personal } = parts;
  const words = [...attributes].sort().concat([...keywords].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([key, value]) => (value ? [key, value] : [key])));
  const all = words.length ? [...extensions, ["u", ...words].join("-")] : [...extensions];
  return [baseOf(parts), ...all.sort((a, b) => (a[0] < b[0] ? -1 : 1))].join("-") + personal;
};

const maximized = ({ language, script, region, variants }) => {
  for (const key of [[language, script, region], [language, region], [language, script], [language]].map((one) => one.filter(Boolean).join("-"))) {
    const found = lineOf("likely", key);
    if (!found) continue;
    const [newLanguage, newScript, newRegion] = found.split("-");
    return { language: language === "und" ? newLanguage : language, script: script ?? newScript, region: region ?? newRegion, variants };
  }
  return { language, script, region, variants };
};
const minimized = (parts) => {
  const full = maximized(parts);
  const { language, script, region } = full;
  const same = (one) => baseOf({ ...maximized(one), variants: [] }) === baseOf({ ...full, variants: [] });
  const short = [{ language }, { language, region }, { language, script }].find(same);
  return { script: undefined, region: undefined, ...(short ?? full), variants: parts.variants };
};

const canonical = (locales) => {
  if (locales === undefined) return [];
  if (locales === null) throw new TypeError("Cannot convert undefined or null to object");
  const list = typeof locales === "string" || locales instanceof Locale ? [locales] : Array.from(Object(locales));
  return [...new Set(list.map((one) => {
    if (typeof one !== "string" && (typeof one !== "object" || one === null)) throw new TypeError("Incorrect locale information provided");
    return tagOf(tagParts(`${one}`));
  }))];
};

// Negotiation (ECMA-402, ResolveLocale)

// The locale whose tables a supported tag has.
const dataOf = (tag) => (localeOf(tag) ? tag : lineIn(CLDR.tags, tag));
const lookup = (tag) => {
  for (let one = tag; one; one = one.slice(0, Math.max(one.lastIndexOf("-"), 0))) if (dataOf(one) && one !== ROOT) return one;
  return undefined;
};
const supported = (locales, options) => {
  if (options !== undefined && options !== null) chosen(options.localeMatcher, ["lookup", "best fit"], "localeMatcher");
  return canonical(locales).filter((tag) => lookup(baseOf(tagParts(tag))) !== undefined);
};
// {locale, data, parts: the tagParts tag that was asked for}
const negotiated = (locales, options) => {
  chosen(options?.localeMatcher, ["lookup", "best fit"], "localeMatcher");
  for (const tag of canonical(locales)) {
    const parts = tagParts(tag);
    const locale = lookup(baseOf(parts));
    if (locale) return { locale, data: dataOf(locale), parts };
  }
  return { locale: DEFAULT_LOCALE, data: dataOf(DEFAULT_LOCALE), parts: tagParts(DEFAULT_LOCALE) };
};
// A setting that an option or a keyword of the tag may choose: the option, then the keyword, then what is usual. What the
// tag chose is part of the resolved locale.
const setting = (found, key, option, allowed, usual) => {
  const keyword = found.parts.keywords.get(key);
  const asked = keyword === undefined ? undefined : keyword === "" ? "true" : keyword;
  const fromTag = asked !== undefined && allowed(asked) ? asked : undefined;
  const fromOption = option !== undefined && allowed(option) ? option : undefined;
  if (fromTag !== undefined && (fromOption === undefined || fromOption === fromTag)) (found.kept ??= new Map()).set(key, fromTag === "true" ? "" : fromTag);
  return fromOption ?? fromTag ?? usual;
};
const keptTag = ({ locale, kept }) => (kept ? tagOf({ ...tagParts(locale), keywords: kept }) : locale);
const regionOf = ({ locale, parts }) => parts.region ?? maximized(tagParts(locale)).region;

// Options

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
const objectOf = (options) => {
  if (options === undefined) return create(null);
  if (options === null) throw new TypeError("Cannot convert undefined or null to object");
  return Object(options);
};
const typed = (value, name) => {
  if (value !== undefined && !/^[a-z\d]{3,8}(?:-[a-z\d]{3,8})*$/i.test(`${value}`)) throw new RangeError(`Invalid ${name} : ${value}`);
  return value === undefined ? undefined : `${value}`.toLowerCase();
};
const tagged = (Class, name) => {
  hidden(Class.prototype, Symbol.toStringTag, `Intl.${name}`);
  hidden(Class, "supportedLocalesOf", supported);
  return Class;
};
// Callable without `new`, as the older constructors are.
const callable = (Class) => new Proxy(Class, { apply: (target, self, args) => new target(...args) });
const filled = (pattern, ...values) => pattern.replace(/\{(\d)\}/g, (_, at) => values[at]);
// A pattern with its places filled by lists of parts: literals between them.
const woven = (pattern, lists) => pattern.split(/(\{\d\})/).flatMap((piece) => (/^\{\d\}$/.test(piece) ? lists[piece[1]] : piece ? [{ type: "literal", value: piece }] : []));
const joinedText = (parts) => parts.map((part) => part.value).join("");
const digitsOf = (system) => {
  const digits = worldOf("numbers").digits[system];
  return digits === undefined ? undefined : [...digits];
};
const inDigits = (digits, text) => (digits[0] === "0" ? text : text.replace(/\d/g, (digit) => digits[digit]));
const hasDigits = (system) => worldOf("numbers").digits[system] !== undefined;

class Locale {
  #parts;
  constructor(tag, options) {
    if (typeof tag !== "string" && (typeof tag !== "object" || tag === null)) throw new TypeError("First argument to Intl.Locale constructor can't be empty or missing");
    const given = objectOf(options);
    const parts = { ...tagParts(`${tag}`) };
    parts.keywords = new Map(parts.keywords);
    const text = (name, pattern) => {
      if (given[name] === undefined) return parts[name];
      if (!pattern.test(`${given[name]}`)) throw wrongTag();
      return `${given[name]}`;
    };
    parts.language = text("language", /^(?:[a-z]{2,3}|[a-z]{5,8})$/i).toLowerCase();
    parts.script = text("script", /^[a-z]{4}$/i);
    parts.script &&= titled(parts.script.toLowerCase());
    parts.region = text("region", /^(?:[a-z]{2}|\d{3})$/i)?.toUpperCase();
    for (const [name, key] of KEYWORDS) {
      const value = given[name];
      if (value === undefined) continue;
      if (name === "numeric") parts.keywords.set(key, value ? "" : "false");
      else if (name === "hourCycle") parts.keywords.set(key, chosen(value, ["h11", "h12", "h23", "h24"], name));
      else if (name === "caseFirst") parts.keywords.set(key, chosen(value, ["upper", "lower", "false"], name));
      else parts.keywords.set(key, typed(value, name));
    }
    this.#parts = replaced(parts);
  }
  get language() { return this.#parts.language === ROOT ? undefined : this.#parts.language; }
  get script() { return this.#parts.script; }
  get region() { return this.#parts.region; }
  get baseName() { return baseOf(this.#parts); }
  get numeric() { return ["", "true"].includes(this.#parts.keywords.get("kn")); }
  #with(parts) { return new Locale(tagOf({ ...this.#parts, ...parts })); }
  maximize() { return this.#with(maximized(this.#parts)); }
  minimize() { return this.#with(minimized(this.#parts)); }
  getTextInfo() { return { direction: RIGHT_TO_LEFT.has(maximized(this.#parts).script) ? "rtl" : "ltr" }; }
  getHourCycles() { return [hourCycleOf({ locale: this.baseName, parts: this.#parts })]; }
  getCalendars() { return [worldOf("places").calendars[maximized(this.#parts).region] ?? "gregorian"].map((one) => (one === "gregorian" ? "gregory" : one)); }
  getNumberingSystems() { return [defaultSystem(dataOf(lookup(this.baseName) ?? DEFAULT_LOCALE))]; }
  getWeekInfo() {
    const { firstDay, weekendStart, weekendEnd } = worldOf("places").week;
    const region = maximized(this.#parts).region;
    const day = (of) => DAY_KEYS.indexOf(of[region] ?? of["001"]) || 7;
    const [first, last] = [day(weekendStart), day(weekendEnd)];
    return { firstDay: day(firstDay), weekend: first === last ? [first] : [first, last] };
  }
  toString() { return tagOf(this.#parts); }
}
const KEYWORDS = [["calendar", "ca"], ["collation", "co"], ["hourCycle", "hc"], ["caseFirst", "kf"], ["numeric", "kn"], ["numberingSystem", "nu"]];
for (const [name, key] of KEYWORDS)
  if (name !== "numeric") defineProperty(Locale.prototype, name, { get() { return tagParts(this.toString()).keywords.get(key); }, configurable: true });
hidden(Locale.prototype, Symbol.toStringTag, "Intl.Locale");
const RIGHT_TO_LEFT = new Set(["Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm", "Rohg", "Samr", "Mand"]);
const DAY_KEYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
