// Intl.Collator and Segmenter, and letters that change their case by the language.

// An order like that of the CLDR's root collation, without its tables: spaces and marks, then digits, then letters by
// script in the order of code points, then accents, then case, lower before upper. TAILORED puts letters where languages
// have them: `&base<letter` right behind the base, `&base=letter` with the accents of it.
const MARKS = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
const EXPANDED = { __proto__: null, "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ð": "d", "ς": "σ" };
const CYRILLIC = "аәбвгѓғґдђеёєжзѕийіїјкқлљмнңњоөпрстћќуұүўфхһцчџшщъыьэюя";
const NORDIC = "&z<æ<ø<å &æ=ä &ø=ö";
const FINNIC = "&z<å<ä<ö &ä=æ &ö=ø";
const SERBO = "&c<č<ć &d<dž<đ &l<lj &n<nj &s<š &z<ž";
const TAILORED = {
  __proto__: null,
  sv: FINNIC, fi: FINNIC, da: NORDIC, nb: NORDIC, nn: NORDIC, no: NORDIC, is: "&a<á &d<đ<ð &e<é &i<í &o<ó &u<ú &y<ý &z<þ<æ<ö<å &æ=ä &ö=ø", fo: "&a<á &d<ð &i<í &o<ó &u<ú &y<ý &z<æ<ø<å &æ=ä &ø=ö",
  es: "&n<ñ", gl: "&n<ñ", eu: "&n<ñ", fil: "&n<ñ", pl: "&a<ą &c<ć &e<ę &l<ł &n<ń &o<ó &s<ś &z<ź<ż", cs: "&c<č &h<ch &r<ř &s<š &z<ž", sk: "&a<ä &c<č &h<ch &o<ô &s<š &z<ž",
  hu: "&c<cs &d<dz<dzs &g<gy &l<ly &n<ny &o<ö &ö=ő &s<sz &t<ty &u<ü &ü=ű &z<zs", ro: "&a<ă<â &i<î &s<ș &ș=ş &t<ț &ț=ţ", hr: SERBO, bs: SERBO, sl: "&c<č<ć &d<đ &s<š &z<ž",
  lt: "&c<č &s<š &z<ž", lv: "&c<č &g<ģ &k<ķ &l<ļ &n<ņ &s<š &z<ž", et: "&s<š<z<ž &w<õ<ä<ö<ü", tr: "&c<ç &g<ğ &h<ı &o<ö &s<ş &u<ü", az: "&c<ç &e<ə &g<ğ &h<x<ı &k<q &o<ö &s<ş &u<ü &z<w",
  sq: "&c<ç &d<dh &e<ë &g<gj &l<ll &n<nj &r<rr &s<sh &t<th &x<xh &z<zh", cy: "&c<ch &d<dd &f<ff &g<ng &l<ll &p<ph &r<rh &t<th", vi: "&a<ă<â &d<đ &e<ê &o<ô<ơ &u<ư", mt: "&b<ċ &f<ġ &g<għ &h<ħ &y<ż",
};
const LETTERS = 0x200000;
// Letters that follow another one and are no accented forms of it.
const AFTER = { __proto__: null, "ə": "e", "ƒ": "f", "ı": "i", "ŋ": "n", "ŧ": "t", "þ": "z" };
const ACCENTS = "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0338\u0327\u0328\u0304";
const accentOf = (mark) => {
  const place = ACCENTS.indexOf(mark);
  return place < 0 ? mark : String.fromCharCode(place + 1);
};
const plainWeight = memo((c) => {
  if (c in AFTER) return plainWeight(AFTER[c]) + 0.5;
  if (/\p{Nd}/u.test(c)) return LETTERS / 2 + digitOf(c);
  const cyrillic = CYRILLIC.indexOf(c);
  if (cyrillic >= 0) return LETTERS + 0x430 + cyrillic / 2;
  if (/[\u30a1-\u30f6]/.test(c)) return plainWeight(fromKatakana(c));
  if (/[\p{L}\p{N}]/u.test(c)) return (/\p{L}/u.test(c) ? LETTERS : LETTERS / 2 + 10) + c.codePointAt(0);
  const place = MARKS.indexOf(c);
  return /\s/u.test(c) ? 0 : place >= 0 ? place + 1 : 100 + c.codePointAt(0);
});
const fromKatakana = (c) => String.fromCodePoint(c.codePointAt(0) - 0x60);
// The value of a decimal digit of any script: they come in runs of ten.
const digitOf = (c) => {
  let code = c.codePointAt(0);
  if (code < 0x3a) return code - 0x30;
  const start = code;
  while (/\p{Nd}/u.test(String.fromCodePoint(code - 1)) && start - code < 9) code--;
  return (start - code) % 10;
};
const OWN_SCRIPTS = { __proto__: null, Hans: "Han", Hant: "Han", Kore: "Hangul", Cyrl: "Cyrillic", Grek: "Greek", Hebr: "Hebrew", Arab: "Arabic", Deva: "Devanagari", Beng: "Bengali", Thai: "Thai", Geor: "Georgian", Armn: "Armenian", Taml: "Tamil", Telu: "Telugu", Gujr: "Gujarati", Knda: "Kannada", Mlym: "Malayalam", Guru: "Gurmukhi", Sinh: "Sinhala", Khmr: "Khmer", Mymr: "Myanmar", Laoo: "Lao", Ethi: "Ethiopic", Orya: "Oriya" };
const orderOf = memo((data) => {
  const letters = new Map();
  const rules = TAILORED[data.split("-")[0]];
  for (const rule of rules?.split(" ") ?? []) {
    const [, anchor, rest] = /^&([^<=]+)(.*)$/u.exec(rule);
    const before = letters.get(anchor)?.[0] ?? plainWeight(anchor);
    let step = 0;
    for (const [, sign, letter] of rest.matchAll(/([<=])([^<=]+)/gu)) {
      if (sign === "<") step += 0.001;
      letters.set(letter, [before + step, sign === "=" ? accentOf("\u0301") : ""]);
    }
  }
  const script = OWN_SCRIPTS[maximized(tagParts(data)).script];
  const language = data.split("-")[0];
  return { letters, backwards: data === "fr-CA", lower: language === "tr" || language === "az" ? (text) => lowerIn(language, text) : (text) => text.toLowerCase(), own: script && new RegExp(`\\p{Script=${script}}`, "u") };
});

// A text as [primaries, accents, cases], each a list with one entry for a letter; a number is one letter when `numeric`.
const keyOf = (text, o, { letters, lower, own }) => {
  const [primaries, accents, cases] = [[], [], []];
  const add = (primary, accent, upper) => {
    primaries.push(primary);
    accents.push(accent);
    cases.push(upper);
  };
  const whole = text.normalize("NFC");
  for (let at = 0; at < whole.length;) {
    let c = String.fromCodePoint(whole.codePointAt(at));
    if (o.numeric && /\p{Nd}/u.test(c)) {
      const [run] = /^\p{Nd}+/u.exec(whole.slice(at));
      add(BigInt(Array.from(run, digitOf).join("")), "", 0);
      at += run.length;
      continue;
    }
    if (letters.size) {
      let found;
      for (let length = 3; length > 0 && !found; length--) {
        const piece = whole.slice(at, at + length);
        const known = letters.get(lower(piece));
        if (known && piece.length === length) found = [piece, known];
      }
      if (found) {
        add(found[1][0], found[1][1], found[0][0] === lower(found[0][0]) ? 0 : 1);
        at += found[0].length;
        continue;
      }
    }
    at += c.length;
    const upper = c !== lower(c) ? 1 : /[\u30a1-\u30f6]/.test(c) ? 2 : 0;
    c = lower(c);
    if (c in EXPANDED) {
      [...EXPANDED[c]].forEach((one) => add(plainWeight(one), c === "ς" ? "" : accentOf("\u0338"), upper));
      continue;
    }
    if (CYRILLIC.includes(c) && !"ёйїўќѓ".includes(c)) {
      add(plainWeight(c) - (own?.test(c) ? LETTERS * 0.4 : 0), "", upper);
      continue;
    }
    for (const one of c.normalize("NFKD")) {
      if (/\p{M}/u.test(one)) {
        if (accents.length) accents[accents.length - 1] += accentOf(one);
        continue;
      }
      const primary = plainWeight(one);
      if (o.ignorePunctuation && primary < LETTERS / 2) continue;
      add(own && primary >= LETTERS && own.test(one) ? primary - LETTERS * 0.4 : primary, "", upper);
    }
  }
  return [primaries, accents, cases];
};
const between = (p, q) => {
  const [m, n] = [typeof p === "bigint", typeof q === "bigint"];
  const [a, b] = m === n ? [p, q] : [m ? LETTERS / 2 : p, n ? LETTERS / 2 : q];
  return a < b ? -1 : a > b ? 1 : 0;
};
const firstOf = (a, b, compare) => {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const found = compare(a[i], b[i]);
    if (found) return found;
  }
  return Math.sign(a.length - b.length);
};
// Texts of ASCII in an order without letters of its own: by tables, and digits in runs when `numeric`.
const ASCII_WEIGHTS = Array.from({ length: 128 }, (_, code) => plainWeight(String.fromCharCode(code).toLowerCase()));
const isDigit = (code) => code >= 48 && code <= 57;
const compareAscii = (a, b, { numeric, sensitivity, caseFirst }) => {
  let [i, j, cases] = [0, 0, 0];
  while (i < a.length && j < b.length) {
    const [p, q] = [a.charCodeAt(i), b.charCodeAt(j)];
    if (numeric && isDigit(p) && isDigit(q)) {
      while (a[i] === "0") i++;
      while (b[j] === "0") j++;
      let [m, n] = [i, j];
      while (isDigit(a.charCodeAt(m))) m++;
      while (isDigit(b.charCodeAt(n))) n++;
      if (m - i !== n - j) return Math.sign(m - i - (n - j));
      for (; i < m; i++, j++) if (a[i] !== b[j]) return a[i] < b[j] ? -1 : 1;
      continue;
    }
    if (p !== q) {
      const difference = ASCII_WEIGHTS[p] - ASCII_WEIGHTS[q];
      if (difference) return difference < 0 ? -1 : 1;
      if (!cases) cases = p > q ? -1 : 1;
    }
    i++;
    j++;
  }
  if (i < a.length || j < b.length) return i < a.length ? 1 : -1;
  return sensitivity === "base" || sensitivity === "accent" ? 0 : caseFirst === "upper" ? -cases : cases;
};
const BEYOND_ASCII = /[^\x20-\x7e]/;
const compareWith = (o, order) => (a, b) => {
  if (a === b) return 0;
  if (!order.letters.size && !o.ignorePunctuation && !BEYOND_ASCII.test(a) && !BEYOND_ASCII.test(b)) return compareAscii(a, b, o);
  const [first, second] = [keyOf(a, o, order), keyOf(b, o, order)];
  const byLetters = firstOf(first[0], second[0], between);
  if (byLetters || o.sensitivity === "base") return byLetters;
  if (o.sensitivity !== "case") {
    // in Canadian French the last difference of accents counts first
    if (order.backwards) [first[1], second[1]].forEach((accents) => accents.reverse());
    const byAccents = firstOf(first[1], second[1], (p, q) => (p < q ? -1 : p > q ? 1 : 0));
    if (byAccents || o.sensitivity === "accent") return byAccents;
  }
  return firstOf(first[2], second[2], (p, q) => (o.caseFirst === "upper" ? q - p : p - q));
};
class Collator {
  #o;
  constructor(locales, options) {
    const given = objectOf(options);
    const found = negotiated(locales, given);
    const usage = chosen(given.usage, ["sort", "search"], "usage", "sort");
    const numeric = setting(found, "kn", given.numeric === undefined ? undefined : `${Boolean(given.numeric)}`, (one) => one === "true" || one === "false", "false") === "true";
    const cases = ["upper", "lower", "false"];
    const caseFirst = setting(found, "kf", chosen(given.caseFirst, cases, "caseFirst"), (one) => cases.includes(one), /^(?:da|mt)\b/.test(found.data) ? "upper" : "false");
    const sensitivity = chosen(given.sensitivity, ["base", "accent", "case", "variant"], "sensitivity", "variant");
    const ignorePunctuation = given.ignorePunctuation === undefined ? /^th\b/.test(found.data) : Boolean(given.ignorePunctuation);
    this.#o = { locale: keptTag(found), usage, sensitivity, ignorePunctuation, collation: "default", numeric, caseFirst };
    const compare = compareWith(this.#o, orderOf(found.data));
    hidden(this, "compare", (a, b) => compare(`${a}`, `${b}`));
  }
  resolvedOptions() { return { ...this.#o }; }
}
tagged(Collator, "Collator");

const GRAPHEME = /\r\n|\p{RI}\p{RI}|\p{Emoji}(?:\p{EMod}|\uFE0F\u20E3?|[\u{E0020}-\u{E007E}]+\u{E007F})?(?:\u200D\p{Emoji}(?:\p{EMod}|\uFE0F)?)+|.[\p{M}\p{EMod}\uFE0F\u200D\u20E3]*/gsu;
const WORD = /[\p{L}\p{N}\p{M}_]+(?:['’.][\p{L}\p{N}\p{M}_]+)*|\r\n|\s|[^]/gu;
const SENTENCE = /[^.!?]*(?:[.!?]+["'”’)\]]*\s*|$)/gu;
class Segmenter {
  #granularity;
  #locale;
  constructor(locales, options) {
    const given = objectOf(options);
    this.#locale = negotiated(locales, given).locale;
    this.#granularity = chosen(given.granularity, ["grapheme", "word", "sentence"], "granularity", "grapheme");
  }
  segment(input) {
    const text = `${input}`;
    const granularity = this.#granularity;
    const all = () => [...text.matchAll({ grapheme: GRAPHEME, word: WORD, sentence: SENTENCE }[granularity])].filter((found) => found[0] !== "")
      .map((found) => ({ segment: found[0], index: found.index, input: text, ...(granularity === "word" ? { isWordLike: /^[\p{L}\p{N}_]/u.test(found[0]) } : {}) }));
    return { [Symbol.iterator]: () => all()[Symbol.iterator](), containing: (index = 0) => all().findLast((one) => one.index <= index && index < one.index + one.segment.length) };
  }
  resolvedOptions() { return { locale: this.#locale, granularity: this.#granularity }; }
}
tagged(Segmenter, "Segmenter");

// Turkish and Azerbaijani have a dotless i; Lithuanian keeps the dot under accents.
const upperIn = (language, text) => {
  if (language === "tr" || language === "az") return text.replace(/i/g, "İ").toUpperCase();
  if (language === "lt") return text.normalize("NFD").replace(/([ij\u012f])\u0307/g, "$1").normalize("NFC").toUpperCase();
  if (language === "el") return text.normalize("NFD").replace(/(\p{Script=Greek}\u0308?)[\u0300\u0301\u0342]/gu, "$1").normalize("NFC").toUpperCase();
  return text.toUpperCase();
};
const lowerIn = (language, text) => {
  if (language === "tr" || language === "az") return text.replace(/\u0130|I\u0307/g, "i").replace(/I/g, "ı").toLowerCase();
  if (language === "lt") return text.replace(/[IJ\u012e](?=[\u0300\u0301\u0303])/g, (c) => `${c.toLowerCase()}\u0307`).replace(/[ÌÍĨ]/g, (c) => ({ "Ì": "i̇̀", "Í": "i̇́", "Ĩ": "i̇̃" })[c]).toLowerCase();
  return text.toLowerCase();
};
