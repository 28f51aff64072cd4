// punycode (RFC 3492).
const BASE = 36;
const adapt = (delta, count, first) => {
  let k = 0;
  let rest = first ? Math.floor(delta / 700) : delta >> 1;
  rest += Math.floor(rest / count);
  for (; rest > 455; k += BASE) rest = Math.floor(rest / 35);
  return k + Math.floor((36 * rest) / (rest + 38));
};
const decode = (text) => {
  const split = text.lastIndexOf("-");
  const out = split > 0 ? [...text.slice(0, split)].map((c) => c.codePointAt(0)) : [];
  let [n, i, bias, at] = [128, 0, 72, split > 0 ? split + 1 : 0];
  while (at < text.length) {
    const before = i;
    for (let weight = 1, k = BASE; ; k += BASE) {
      const digit = parseInt(text[at++] ?? "", 36);
      const value = Number.isNaN(digit) ? NaN : digit < 10 ? digit + 26 : digit - 10;
      if (Number.isNaN(value)) throw new RangeError("Invalid input");
      i += value * weight;
      const threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (value < threshold) break;
      weight *= BASE - threshold;
    }
    bias = adapt(i - before, out.length + 1, before === 0);
    n += Math.floor(i / (out.length + 1));
    i %= out.length + 1;
    out.splice(i++, 0, n);
  }
  return String.fromCodePoint(...out);
};
const encode = (text) => {
  const points = [...text].map((c) => c.codePointAt(0));
  let out = points.filter((c) => c < 128).map((c) => String.fromCodePoint(c)).join("");
  const basic = out.length;
  let [handled, n, delta, bias] = [basic, 128, 0, 72];
  if (basic) out += "-";
  while (handled < points.length) {
    const next = Math.min(...points.filter((c) => c >= n));
    delta += (next - n) * (handled + 1);
    n = next;
    for (const c of points) {
      if (c < n) delta += 1;
      if (c !== n) continue;
      let q = delta;
      for (let k = BASE; ; k += BASE) {
        const threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (q < threshold) break;
        const digit = threshold + ((q - threshold) % (BASE - threshold));
        out += String.fromCharCode(digit < 26 ? digit + 97 : digit + 22);
        q = Math.floor((q - threshold) / (BASE - threshold));
      }
      out += String.fromCharCode(q < 26 ? q + 97 : q + 22);
      bias = adapt(delta, handled + 1, handled === basic);
      delta = 0;
      handled += 1;
    }
    delta += 1;
    n += 1;
  }
  return out;
};
const parts = (text, work) => text.split("@").map((half, i, all) => (i < all.length - 1 ? half : half.replace(/[\u3002\uff0e\uff61]/g, ".").split(".").map(work).join("."))).join("@");
module.exports = {
  version: "2.3.1", decode, encode, toASCII: (text) => parts(text, (label) => (/[^\0-\x7f]/.test(label) ? `xn--${encode(label)}` : label)),
  toUnicode: (text) => parts(text, (label) => (label.startsWith("xn--") ? decode(label.slice(4).toLowerCase()) : label)),
  ucs2: { decode: (text) => [...text].map((c) => c.codePointAt(0)), encode: (points) => String.fromCodePoint(...points) },
};
