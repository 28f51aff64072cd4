// Which pattern a choice of fields gets: the matching of skeletons as ICU's DateTimePatternGenerator does it (UTS 35, part 4).

const [NARROW, SHORTER, SHORT, LONG, NUMERIC, APART] = [-0x101, -0x102, -0x103, -0x104, 0x100, 0x10];
const [ERA, YEAR, QUARTER, MONTH, WEEK_OF_YEAR, WEEK_OF_MONTH, WEEKDAY, DAY_OF_YEAR, WEEKDAY_IN_MONTH, DAY, DAY_PERIOD, HOUR, MINUTE, SECOND, FRACTION, ZONE] = Array(16).keys();
const APPENDED = ["Era", "Year", "Quarter", "Month", "Week", "Week", "Day-Of-Week", "Day", "Day-Of-Week", "Day", "Hour", "Hour", "Minute", "Second", "Second", "Timezone"];
const APPENDED_NAMES = ["era", "year", "quarter", "month", "week", "weekOfMonth", "weekday", "day", "weekday", "day", "dayperiod", "hour", "minute", "second", "second", "zone"];
const worded = (length) => (length <= 3 ? SHORT : { 4: LONG, 5: NARROW, 6: SHORTER }[length]);
const either = (length, numeric, word) => (length <= 2 ? NUMERIC + numeric * APART + length : worded(length) - word * APART);
const KINDS = {
  __proto__: null,
  G: (n) => [ERA, worded(n)], y: (n) => [YEAR, NUMERIC + n], Y: (n) => [YEAR, NUMERIC + APART + n], u: (n) => [YEAR, NUMERIC + 2 * APART + n], Q: (n) => [QUARTER, either(n, 0, 0)], q: (n) => [QUARTER, either(n, 1, 1)],
  M: (n) => [MONTH, either(n, 0, 0)], L: (n) => [MONTH, either(n, 1, 1)], w: (n) => [WEEK_OF_YEAR, NUMERIC + n], W: (n) => [WEEK_OF_MONTH, NUMERIC + n],
  E: (n) => [WEEKDAY, worded(n)], c: (n) => [WEEKDAY, either(n, 2, 2)], e: (n) => [WEEKDAY, either(n, 1, 1)], d: (n) => [DAY, NUMERIC + n], D: (n) => [DAY_OF_YEAR, NUMERIC + n], F: (n) => [WEEKDAY_IN_MONTH, NUMERIC + n],
  a: (n) => [DAY_PERIOD, worded(n)], b: (n) => [DAY_PERIOD, worded(n) - APART], B: (n) => [DAY_PERIOD, worded(n) - 3 * APART],
  h: (n) => [HOUR, NUMERIC + n], K: (n) => [HOUR, NUMERIC + APART + n], H: (n) => [HOUR, NUMERIC + 10 * APART + n], k: (n) => [HOUR, NUMERIC + 11 * APART + n],
  m: (n) => [MINUTE, NUMERIC + n], s: (n) => [SECOND, NUMERIC + n], S: (n) => [FRACTION, NUMERIC + n],
  z: (n) => [ZONE, worded(n)], Z: () => [ZONE, NARROW - APART], O: (n) => [ZONE, worded(n) - APART], v: (n) => [ZONE, worded(n) - 2 * APART],
};

// A pattern as pieces: {letter, length} or {text}.
const piecesOf = memo((pattern) => {
  const pieces = [];
  const plain = (text) => {
    if (pieces.at(-1)?.text !== undefined) pieces.at(-1).text += text;
    else if (text) pieces.push({ text });
  };
  for (let i = 0; i < pattern.length;) {
    const c = pattern[i];
    if (c === "'") {
      let text = "";
      let at = i + 1;
      while (at < pattern.length && (pattern[at] !== "'" || pattern[at + 1] === "'")) {
        text += pattern[at];
        at += pattern[at] === "'" ? 2 : 1;
      }
      plain(at === i + 1 ? "'" : text);
      i = at + 1;
    } else if (/[A-Za-z]/.test(c)) {
      let length = 1;
      while (pattern[i + length] === c) length++;
      pieces.push({ letter: c, length });
      i += length;
    } else {
      plain(c);
      i++;
    }
  }
  return pieces;
});
const quoted = (text) => text.replace(/'/g, "''").replace(/[A-Za-z]+(?:[^A-Za-z]*[A-Za-z]+)*/, "'$&'");
const patternText = (pieces) => pieces.map(({ letter, length, text }) => (letter ? letter.repeat(length) : quoted(text))).join("");

// A skeleton as {types: field -> type, letters: field -> [letter, length]}.
const skeletonOf = memo((text) => {
  const types = Array(16).fill(0);
  const letters = Array(16);
  for (const { letter, length } of piecesOf(text)) {
    const kind = KINDS[letter]?.(length);
    if (kind === undefined) continue;
    [types[kind[0]]] = [kind[1]];
    letters[kind[0]] = [letter, length];
  }
  if (types[MINUTE] && types[FRACTION] && !types[SECOND]) [types[SECOND], letters[SECOND]] = [NUMERIC + 1, ["s", 1]];
  if (letters[HOUR]) {
    const half = "hK".includes(letters[HOUR][0]);
    if (half && !types[DAY_PERIOD]) [types[DAY_PERIOD], letters[DAY_PERIOD]] = [SHORT, ["a", 1]];
    if (!half) [types[DAY_PERIOD], letters[DAY_PERIOD]] = [0, undefined];
  }
  return { types, letters };
});
const maskOf = ({ types }) => types.reduce((mask, type, field) => (type ? mask | (1 << field) : mask), 0);

// Every pattern that a locale has, as [skeleton, pattern]. Of two for the same skeleton that of `availableFormats` counts;
// of two at the same distance the first does, and those of the styles come first.
const availableIn = memo((key) => {
  const [data, calendar] = key.split(" ");
  const found = new Map();
  const add = (text, pattern) => {
    const skeleton = skeletonOf(text);
    const id = skeleton.types.join();
    const before = found.get(id);
    if (!before) found.set(id, [skeleton, pattern, text]);
    else if (!before[3]) before.splice(0, 3, skeleton, pattern, text);
    return found.get(id);
  };
  for (const letter of "GyQMwWEdDFHmsSv") add(letter, letter);
  // of the styles only the first that has its fields, whatever their lengths as numbers
  const bases = new Set();
  for (const style of ["full", "long", "medium", "short"])
    for (const kind of ["date", "time"]) {
      const pattern = textAt("dates", data, `${kind === "date" ? calendar : ""}${kind}/${style}`);
      const text = patternText(piecesOf(pattern).filter((piece) => piece.letter));
      const base = skeletonOf(text).letters.map(([letter, length] = [], field) => (KINDS[letter]?.(length)[1] > 0 ? `${field}${letter}` : `${field}${letter}${length}`)).join();
      if (!bases.has(base)) add(text, pattern);
      bases.add(base);
    }
  for (const path of pathsUnder("dates", `${calendar}skeleton/`)) {
    const pattern = textAt("dates", data, path);
    if (pattern !== undefined) add(path.slice(calendar.length + 9), pattern)[3] = true;
  }
  const first = ([, , skeleton]) => skeleton.codePointAt(0);
  return [...found.values()].sort((a, b) => first(a) - first(b));
});
const distanceBetween = (wanted, other, mask) => {
  let [distance, missing, extra] = [0, 0, 0];
  for (let field = 0; field < 16; field++) {
    const mine = mask & (1 << field) ? wanted.types[field] : 0;
    const theirs = other.types[field];
    if (mine === theirs) continue;
    if (!mine) {
      distance += 0x10000;
      extra |= 1 << field;
    } else if (!theirs) {
      distance += 0x1000;
      missing |= 1 << field;
    } else distance += Math.abs(mine - theirs);
  }
  return { distance, missing, extra };
};
const nearest = (available, wanted, mask) => {
  let best;
  for (const [skeleton, pattern, , specified] of available) {
    const trial = distanceBetween(wanted, skeleton, mask);
    if (best && !(trial.distance < best.distance || (trial.distance === best.distance && best.missing < trial.missing))) continue;
    best = { ...trial, skeleton: specified ? skeleton : undefined, pattern };
    if (trial.distance === 0) break;
  }
  return best;
};
// The pattern with the lengths that were asked for; of hours only where `hours` says so.
const adjusted = (pattern, skeleton, wanted, hours, fraction) => patternText(piecesOf(pattern).flatMap((piece) => {
  const kind = piece.letter && KINDS[piece.letter]?.(piece.length);
  if (!kind) return [piece];
  const [field, type] = kind;
  if (fraction && field === SECOND) return [piece, { text: fraction }, { letter: "S", length: wanted.letters[FRACTION][1] }];
  if (!wanted.types[field]) return [piece];
  const [letter] = wanted.letters[field];
  const asked = letter === "E" ? Math.max(wanted.letters[field][1], 3) : wanted.letters[field][1];
  let length = asked;
  if (field === MINUTE || field === SECOND || (field === HOUR && !hours)) length = piece.length;
  else if (skeleton && letter !== "c" && letter !== "e") {
    const own = skeleton.letters[field]?.[1] ?? 0;
    const [numeric, ownNumeric] = [type > 0, (skeleton.types[field] ?? 0) > 0];
    if (own === asked || numeric !== ownNumeric) ({ length } = piece);
  }
  let kept = [HOUR, MONTH, WEEKDAY].includes(field) || (field === YEAR && letter !== "Y") ? piece.letter : letter;
  if (kept === "E" && length < 3) kept = "e";
  return [{ letter: kept, length }];
}));
const appending = (available, data, wanted, fields, hours, point) => {
  if (!fields) return "";
  let found = nearest(available, wanted, fields);
  let pattern = adjusted(found.pattern, found.skeleton, wanted, hours);
  let { missing } = found;
  while (missing) {
    if (missing & (1 << FRACTION) && !(missing & (1 << SECOND)) && fields & (1 << SECOND)) {
      pattern = adjusted(pattern, undefined, { ...wanted, types: wanted.types.map((type, field) => (field === SECOND ? type : 0)) }, hours, point);
      missing &= ~(1 << FRACTION);
      continue;
    }
    const before = missing;
    found = nearest(available, wanted, missing);
    ({ missing } = found);
    const field = 31 - Math.clz32(before & ~missing);
    if (before === missing) break;
    const name = quoted(textAt("words", data, `${APPENDED_NAMES[field]}/field`) ?? "");
    pattern = filled(textAt("dates", data, `append/${APPENDED[field]}`) ?? "{0} {1}", pattern, adjusted(found.pattern, found.skeleton, wanted, hours), name);
  }
  return pattern;
};
const glued = (data, style, date, time) => filled(textAt("dates", data, `at/${style}`), time, date);
// The best pattern for a skeleton; `point` is the decimal mark between seconds and their fraction.
const bestPattern = memo((key) => {
  const [data, calendar, skeleton, point, lengths] = key.split("\u0000");
  const hours = lengths === "hours";
  const available = availableIn(`${data} ${calendar}`);
  const wanted = skeletonOf(skeleton);
  const whole = nearest(available, wanted, -1);
  if (!whole.missing && !whole.extra) return adjusted(whole.pattern, whole.skeleton, wanted, hours);
  const all = maskOf(wanted);
  const dates = (1 << DAY_PERIOD) - 1;
  const date = appending(available, data, wanted, all & dates, hours, point);
  const time = appending(available, data, wanted, all & ~dates, hours, point);
  if (!date || !time) return date || time;
  const month = wanted.letters[MONTH]?.[1] ?? 0;
  return glued(data, month === 4 ? (wanted.types[WEEKDAY] ? "full" : "long") : month === 3 ? "medium" : "short", date, time);
});
