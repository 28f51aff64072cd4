// Intl.DateTimeFormat: patterns of the CLDR (UTS 35, part 4).

const DATE_FIELDS = ["weekday", "era", "year", "month", "day"];
const TIME_FIELDS = ["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"];
const WIDTHS = { __proto__: null, narrow: 5, short: 1, long: 4 };
const CHOICES = {
  __proto__: null, weekday: keys(WIDTHS), era: keys(WIDTHS), year: ["2-digit", "numeric"], month: ["2-digit", "numeric", ...keys(WIDTHS)], day: ["2-digit", "numeric"],
  dayPeriod: keys(WIDTHS), hour: ["2-digit", "numeric"], minute: ["2-digit", "numeric"], second: ["2-digit", "numeric"],
  timeZoneName: ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"],
};
const HOUR_LETTERS = { __proto__: null, h11: "K", h12: "h", h23: "H", h24: "k" };
const CYCLES = { __proto__: null, K: "h11", h: "h12", H: "h23", k: "h24" };
const hourCycleOf = (found) => {
  const { hours } = worldOf("times");
  const region = regionOf(found);
  const known = hours[`${tagParts(found.locale).language}-${region}`] ?? hours[region] ?? hours["001"];
  return CYCLES[known[0]];
};
const skeletonFor = (fields, cycle) => {
  const repeated = (letter, value) => (value === undefined ? "" : letter.repeat(value === "2-digit" ? 2 : value === "numeric" ? 1 : WIDTHS[value]));
  const { timeZoneName: zone } = fields;
  return [
    fields.era === "short" ? "GGG" : repeated("G", fields.era), repeated("y", fields.year), fields.month === "short" ? "MMM" : repeated("M", fields.month), fields.weekday === "short" ? "EEE" : repeated("E", fields.weekday), repeated("d", fields.day),
    repeated("B", fields.dayPeriod), repeated(HOUR_LETTERS[cycle], fields.hour), repeated("m", fields.minute), repeated("s", fields.second), "S".repeat(fields.fractionalSecondDigits ?? 0),
    zone === undefined ? "" : { short: "z", long: "zzzz", shortOffset: "O", longOffset: "OOOO", shortGeneric: "v", longGeneric: "vvvv" }[zone],
  ].join("");
};
const cycled = (pattern, cycle) => patternText(piecesOf(pattern).map((piece) => ("hHkK".includes(piece.letter ?? "-") ? { ...piece, letter: HOUR_LETTERS[cycle] } : piece)));

const fieldsAt = (zone, ms) => {
  const date = new Date(ms + zoneAt(zone, ms).offset * 1000);
  return { year: date.getUTCFullYear(), month: date.getUTCMonth(), day: date.getUTCDate(), weekday: date.getUTCDay(), hour: date.getUTCHours(), minute: date.getUTCMinutes(), second: date.getUTCSeconds(), millisecond: date.getUTCMilliseconds() };
};
const minutesOf = (time) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
// The name of the part of the day that a time is in.
const periodAt = (data, at) => {
  const { periods } = worldOf("times");
  const rules = periods[data] ?? periods[data.split("-")[0]];
  const now = at.hour * 60 + at.minute;
  for (const name of keys(rules ?? {})) {
    const [exact, from, before] = rules[name];
    if (exact !== "") {
      // ICU says noon and never midnight
      if (name === "noon" && minutesOf(exact) === now) return name;
    } else {
      const [first, end] = [minutesOf(from), minutesOf(before)];
      if (first < end ? now >= first && now < end : now >= first || now < end) return name;
    }
  }
  return at.hour < 12 ? "am" : "pm";
};
const widthOf = (length) => ({ 4: "wide", 5: "narrow", 6: "short" })[length] ?? "abbreviated";
const PART_TYPES = { __proto__: null, G: "era", y: "year", M: "month", L: "month", E: "weekday", c: "weekday", e: "weekday", d: "day", a: "dayPeriod", b: "dayPeriod", B: "dayPeriod", h: "hour", H: "hour", K: "hour", k: "hour", m: "minute", s: "second", S: "fractionalSecond", z: "timeZoneName", O: "timeZoneName", v: "timeZoneName" };

class DateTimeFormat {
  #o;
  #data;
  #digits;
  #zone;
  #pattern;
  #skeleton;
  #calendar;
  constructor(locales, options, wanted = "any", defaults = "date") {
    const given = options === undefined || options === null ? create(null) : Object(options);
    if (options === null) throw new TypeError("Cannot convert undefined or null to object");
    const found = negotiated(locales, given);
    this.#data = found.data;
    const asked = typed(given.numberingSystem, "numberingSystem");
    const calendar = setting(found, "ca", typed(given.calendar, "calendar"), hasCalendar(found.data), usualCalendar(found));
    this.#calendar = CALENDARS[calendar];
    const numberingSystem = setting(found, "nu", asked, hasDigits, defaultSystem(found.data));
    this.#digits = digitsOf(numberingSystem);
    const hour12 = given.hour12 === undefined ? undefined : Boolean(given.hour12);
    const hourCycle = chosen(given.hourCycle, keys(HOUR_LETTERS), "hourCycle");
    this.#zone = zoneOf(given.timeZone);
    const usual = hourCycleOf(found);
    const half = usual === "h12" || usual === "h11";
    const fromTag = hour12 === undefined ? setting(found, "hc", hourCycle, (one) => one in HOUR_LETTERS) : undefined;
    const cycle = hour12 === undefined ? fromTag ?? usual : hour12 ? (half ? usual : "h12") : half ? "h23" : usual;
    const { dateStyle, timeStyle } = given;
    for (const [name, value] of [["dateStyle", dateStyle], ["timeStyle", timeStyle]]) chosen(value, ["full", "long", "medium", "short"], name);
    const styled = dateStyle !== undefined || timeStyle !== undefined;
    if ((wanted === "date" && timeStyle !== undefined) || (wanted === "time" && dateStyle !== undefined)) throw new TypeError(`Invalid option : ${wanted === "date" ? "timeStyle" : "dateStyle"}`);
    const fields = {};
    for (const name of keys(CHOICES)) {
      const value = chosen(given[name], CHOICES[name], name);
      if (value !== undefined) fields[name] = value;
    }
    const fraction = counted(given.fractionalSecondDigits, 1, 3, "fractionalSecondDigits");
    if (fraction !== undefined) fields.fractionalSecondDigits = fraction;
    chosen(given.formatMatcher, ["basic", "best fit"], "formatMatcher");
    if (styled && keys(fields).length) throw new TypeError(`Can't set option ${keys(fields)[0]} when ${dateStyle === undefined ? "timeStyle" : "dateStyle"} is used`);
    if (!styled) {
      const has = (names) => names.some((name) => fields[name] !== undefined);
      const needs = !((wanted !== "time" && has(["weekday", "year", "month", "day"])) || (wanted !== "date" && has(TIME_FIELDS)));
      if (needs && defaults !== "time") assign(fields, { year: "numeric", month: "numeric", day: "numeric" });
      if (needs && defaults !== "date") assign(fields, { hour: "numeric", minute: "numeric", second: "numeric" });
    }
    this.#pattern = styled ? this.#styled(dateStyle, timeStyle, cycle) : this.#best(skeletonFor(fields, cycle));
    if (/[hHkK]/.test(patternText(piecesOf(this.#pattern).filter((piece) => piece.letter)))) this.#pattern = cycled(this.#pattern, cycle);
    // ranges go by what is shown
    this.#skeleton = patternText(piecesOf(this.#pattern).filter(({ letter }) => letter && letter !== "a" && letter !== "O"));
    const timed = piecesOf(this.#pattern).some(({ letter }) => letter && "hHkK".includes(letter));
    this.#o = {
      locale: keptTag(found), calendar, numberingSystem, timeZone: this.#zone === "UTC" ? "UTC" : cldrZone(this.#zone),
      ...(timed ? { hourCycle: cycle, hour12: cycle === "h12" || cycle === "h11" } : {}),
      ...(styled ? {} : this.#resolvedFields(fields)),
      ...(dateStyle === undefined ? {} : { dateStyle }), ...(timeStyle === undefined ? {} : { timeStyle }),
    };
    // V8 writes a plain space here and leaves the narrow one in parts
    hidden(this, "format", (date) => joinedText(this.#parts(timeOf(date))).replaceAll("\u202f", " "));
  }
  #best(skeleton, lengths = "hours") { return bestPattern([this.#data, this.#calendar.prefix, skeleton, numberText(`${this.#data} ${defaultSystem(this.#data)} decimal`), lengths].join("\u0000")); }
  #styled(dateStyle, timeStyle, cycle) {
    const { prefix } = this.#calendar;
    const date = dateStyle && textAt("dates", this.#data, `${prefix}date/${dateStyle}`);
    const time = timeStyle && textAt("dates", this.#data, `time/${timeStyle}`);
    const pattern = date && time ? glued(this.#data, dateStyle, date, time) : date ?? time;
    const own = piecesOf(pattern).find(({ letter }) => letter && "hHkK".includes(letter))?.letter;
    if (own === undefined || CYCLES[own] === cycle) return pattern;
    const skeleton = patternText(piecesOf(pattern).filter(({ letter }) => letter && !"abB".includes(letter)));
    return this.#best(skeleton.replace(/[hHkK]/g, HOUR_LETTERS[cycle]));
  }
  // What the pattern made of the fields that were asked for.
  #resolvedFields(fields) {
    const found = {};
    for (const { letter, length } of piecesOf(this.#pattern)) {
      const name = PART_TYPES[letter];
      if (name === undefined || found[name] !== undefined) continue;
      if (name === "fractionalSecond") found.fractionalSecondDigits = length;
      else if (name === "timeZoneName") found.timeZoneName = fields.timeZoneName;
      else if (name === "dayPeriod") found.dayPeriod = fields.dayPeriod;
      else found[name] = length > 3 ? { 4: "long", 5: "narrow" }[length] : length === 3 || "GE".includes(letter) ? "short" : length === 2 ? "2-digit" : "numeric";
    }
    const order = ["weekday", "era", "year", "month", "day", "dayPeriod", "hour", "minute", "second", "fractionalSecondDigits", "timeZoneName"];
    return Object.fromEntries(order.filter((name) => found[name] !== undefined).map((name) => [name, found[name]]));
  }
  #number(value, length) { return inDigits(this.#digits, `${value}`.padStart(length, "0")); }
  #text(path) { return textAt("dates", this.#data, path); }
  #field(letter, length, at, ms) {
    const calendar = this.#calendar;
    switch (letter) {
      case "G": return this.#text(`${calendar.prefix}${{ 4: "eraNames", 5: "eraNarrow" }[length] ?? "eraAbbr"}/${at.era}`);
      case "y": return length === 2 ? this.#number(Math.abs(at.shownYear) % 100, 2) : this.#number(at.shownYear, length);
      case "M": case "L":
        if (length <= 2) return this.#number(at.month + 1, length);
        return this.#text(`${calendar.prefix}months/${letter === "M" ? "format" : "stand-alone"}/${widthOf(length)}/${at.month + 1}`);
      case "E": case "e": case "c":
        if (letter !== "E" && length <= 2) return this.#number(at.weekday + 1, length);
        return this.#text(`days/${letter === "c" ? "stand-alone" : "format"}/${widthOf(length)}/${DAY_KEYS[at.weekday]}`);
      case "d": return this.#number(at.day, length);
      case "a": return this.#text(`dayPeriods/format/${widthOf(length)}/${at.hour < 12 ? "am" : "pm"}`);
      case "b": case "B": {
        const path = (name) => this.#text(`dayPeriods/format/${widthOf(length)}/${name}`);
        return path(periodAt(this.#data, at)) ?? path(at.hour < 12 ? "am" : "pm");
      }
      case "h": return this.#number(at.hour % 12 || 12, length);
      case "K": return this.#number(at.hour % 12, length);
      case "H": return this.#number(at.hour, length);
      case "k": return this.#number(at.hour || 24, length);
      case "m": return this.#number(at.minute, length);
      case "s": return this.#number(at.second, length);
      case "S": return inDigits(this.#digits, String(at.millisecond).padStart(3, "0").slice(0, length));
      case "z": case "O": case "v": return zoneName(this.#data, this.#digits, this.#zone, ms, letter, length);
      default: return "";
    }
  }
  #at(ms) {
    const at = fieldsAt(this.#zone, ms);
    return { ...at, ...this.#calendar.of(at) };
  }
  #parts(ms, pattern = this.#pattern) {
    const at = this.#at(ms);
    return piecesOf(pattern).map(({ letter, length, text }) => (letter ? { type: PART_TYPES[letter] ?? "literal", value: this.#field(letter, length, at, ms) } : literal(text)));
  }
  formatToParts(date) { return this.#parts(timeOf(date)); }
  // [[parts, source], …] in order. As ICU does it: the smallest pattern that shows the greatest field that differs; two
  // times of different days have their dates; of a time and a date with one day the day is said once.
  #range(from, to) {
    if (from === undefined || to === undefined) throw new TypeError("startDate or endDate cannot be undefined");
    const [first, last] = [timeOf(from), timeOf(to)];
    const [a, b] = [this.#at(first), this.#at(last)];
    const greatest = GREATEST.find(([, name]) => (name === "half" ? a.hour < 12 !== b.hour < 12 : a[name] !== b[name]))?.[0];
    const whole = (ms, pattern) => this.#parts(ms, pattern);
    const wanted = skeletonOf(this.#skeleton);
    const all = maskOf(wanted);
    const timed = all & ~DATE_MASK;
    const dated = all & DATE_MASK;
    const calendarDiffers = greatest !== undefined && "GyMd".includes(greatest);
    if (joinedText(whole(first)) === joinedText(whole(last)) && !(timed && !dated && calendarDiffers)) return [[whole(first), "shared"]];
    const apart = (pattern) => woven(this.#text(`${this.#calendar.prefix}between`), [[{ side: 0 }], [{ side: 1 }]]).map((part) => (part.side === undefined ? [[part], "shared"] : [whole(part.side ? last : first, pattern), part.side ? "endRange" : "startRange"]));
    if (timed && calendarDiffers) {
      const missing = dated & ~(1 << DAY_PERIOD) ? ["d", "M", "y"].slice(0, "dMyG".indexOf(greatest) + 1).filter((letter) => !(all & (1 << KINDS[letter](1)[0]))).join("") : "yMd";
      return apart(this.#cycledLike(this.#best(missing + this.#skeleton, "")));
    }
    if (!timed) {
      const widens = this.#interval(wanted, all & (1 << DAY) ? "d" : "M") !== undefined;
      const missing = ["M", "y"].slice(0, "My".indexOf(greatest) + 1).filter((letter) => widens && !(all & (1 << KINDS[letter](1)[0])) && !(letter === "M" && !(all & (1 << DAY))));
      const skeleton = missing.join("") + this.#skeleton;
      const pattern = this.#interval(skeletonOf(skeleton), greatest);
      return pattern === undefined ? apart(missing.length ? this.#best(skeleton, "") : undefined) : this.#halves(pattern, first, last);
    }
    const times = { types: wanted.types.map((type, field) => (timed & (1 << field) || field === DAY_PERIOD ? type : 0)), letters: wanted.letters };
    const pattern = this.#interval(times, greatest);
    if (!dated || !(dated & ~(1 << DAY_PERIOD))) return pattern === undefined ? apart() : this.#halves(this.#cycledLike(pattern), first, last);
    const time = this.#cycledLike(this.#best(patternText(keptLetters(wanted, timed)).replace("zzzz", "z"), ""));
    const parts = pattern === undefined ? apart(time) : this.#halves(this.#cycledLike(pattern), first, last);
    const dateOnly = patternText(keptLetters(wanted, dated & ~(1 << DAY_PERIOD)));
    const date = whole(first, this.#best(pattern === undefined ? plainLengths(dateOnly) : dateOnly, ""));
    return woven(this.#text("joined/medium"), [[{ time: true }], [{ date: true }]]).flatMap((part) => (part.time ? parts : part.date ? [[date, "shared"]] : [[[part], "shared"]]));
  }
  // The pattern of an interval for a skeleton's fields, by the field that differs.
  #interval(wanted, greatest) {
    if (letterOf(wanted, MONTH) === "L" || letterOf(wanted, WEEKDAY) === "c") return undefined;
    const hour = letterOf(wanted, HOUR);
    const field = greatest === "a" || greatest === "H" ? (hour === "h" || hour === "K" ? (greatest === "H" ? "h" : "a") : "H") : greatest;
    const generic = { types: wanted.types.map((type, at) => (at === ZONE && type ? SHORT - 2 * APART : type)), letters: wanted.letters };
    let best;
    for (const path of pathsUnder("dates", `${this.#calendar.prefix}interval/`)) {
      if (!path.endsWith(`/${field}`)) continue;
      const skeleton = skeletonOf(path.slice(this.#calendar.prefix.length + 9, -2));
      const trial = distanceBetween(generic, skeleton, -1);
      if (trial.missing || trial.extra || (best && best.distance <= trial.distance)) continue;
      const pattern = this.#text(path);
      if (pattern !== undefined) best = { ...trial, skeleton, pattern };
    }
    // names of zones are short
    return best && adjusted(best.pattern, best.skeleton, { ...wanted, letters: wanted.letters.map((one, at) => (at === ZONE && one ? [one[0], 1] : one)) }, false);
  }
  // An interval's pattern in two halves: the second begins where a field is said again.
  #halves(pattern, first, last) {
    const pieces = piecesOf(pattern);
    const seen = new Set();
    let second = pieces.findIndex(({ letter }) => {
      const again = letter && seen.has(PART_TYPES[letter]);
      if (letter) seen.add(PART_TYPES[letter]);
      return again;
    });
    if (second < 0) second = pieces.length;
    let end = second;
    while (end > 0 && !pieces[end - 1].letter) end--;
    const side = (list, ms) => this.#parts(ms, patternText(list));
    const middle = pieces.slice(end, second).map(({ text }) => literal(text));
    const repeated = new Set(pieces.slice(second).map(({ letter }) => PART_TYPES[letter]).filter((type) => pieces.slice(0, end).some(({ letter }) => PART_TYPES[letter] === type)));
    // what stands before the first, or behind the last, field that is said twice is of both
    const twice = ({ letter }) => letter && repeated.has(PART_TYPES[letter]);
    const start = pieces.findIndex(twice);
    const stop = pieces.findLastIndex(twice) + 1;
    return [[pieces.slice(0, start), first, "shared"], [pieces.slice(start, end), first, "startRange"], [undefined, middle, "shared"], [pieces.slice(second, stop), last, "endRange"], [pieces.slice(stop), last, "shared"]]
      .map(([list, at, source]) => [list ? (list.length ? side(list, at) : []) : at, source]).filter(([parts]) => parts.length);
  }
  #cycledLike(pattern) {
    const cycle = CYCLES[piecesOf(this.#pattern).find(({ letter }) => letter && "hHkK".includes(letter))?.letter];
    return cycle ? cycled(pattern, cycle) : pattern;
  }
  formatRange(from, to) {
    const pieces = this.#range(from, to);
    return pieces.length === 1 ? this.format(from) : pieces.map(([parts]) => joinedText(parts)).join("");
  }
  formatRangeToParts(from, to) { return this.#range(from, to).flatMap(([parts, source]) => parts.map((part) => ({ ...part, source }))); }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(DateTimeFormat, "DateTimeFormat");
const GREATEST = [["G", "era"], ["y", "shownYear"], ["M", "month"], ["d", "day"], ["a", "half"], ["H", "hour"], ["m", "minute"], ["s", "second"], ["S", "millisecond"]];
const DATE_MASK = (1 << DAY_PERIOD) - 1;
// A skeleton of a date with numbers as short as they are.
const plainLengths = (skeleton) => skeleton.replace(/dd/, "d").replace(/(^|[^M])MM(?!M)/, "$1M");
const letterOf = (skeleton, field) => skeleton.letters[field]?.[0];
const keptLetters = (skeleton, mask) => skeleton.letters.flatMap((one, field) => (one && mask & (1 << field) ? [{ letter: one[0], length: one[1] }] : []));
const timeOf = (given) => {
  const ms = given === undefined ? Date.now() : Number(given);
  if (!(Math.abs(ms) <= 8.64e15)) throw new RangeError("Invalid time value");
  return Math.trunc(ms);
};

// Calendars: what the fields of a day are called; `prefix` is where the texts of one are.
const inEras = (year) => (year > 0 ? { era: 1, shownYear: year } : { era: 0, shownYear: 1 - year });
const persian = ({ year, month, day }) => {
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  const since = date.getTime() / 864e5 + 492268; // days since 19 March 622, Julian
  const shownYear = 1 + Math.floor((33 * since + 3) / 12053);
  const at = since - (365 * (shownYear - 1) + Math.floor((8 * shownYear + 21) / 33));
  const own = at < 216 ? Math.floor(at / 31) : Math.floor((at - 6) / 30);
  return { era: 0, shownYear, month: own, day: at - (own < 7 ? 31 * own : 30 * own + 6) + 1 };
};
const CALENDARS = {
  __proto__: null,
  gregory: { prefix: "", of: ({ year }) => inEras(year) },
  buddhist: { prefix: "buddhist/", of: ({ year }) => ({ era: 0, shownYear: year + 543 }) },
  persian: { prefix: "persian/", of: persian },
};
const hasCalendar = (data) => (name) => name in CALENDARS && textAt("dates", data, `${CALENDARS[name].prefix}date/full`) !== undefined;
const usualCalendar = (found) => {
  const usual = worldOf("places").calendars[regionOf(found)] ?? "gregorian";
  return hasCalendar(found.data)(usual) ? usual : "gregory";
};
