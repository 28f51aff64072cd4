// querystring: the legacy reading of a query.
const escape = (value) => {
  const text = typeof value === "string" ? value : typeof value === "object" ? String(value) : `${value}`;
  try {
    return encodeURIComponent(text);
  } catch {
    throw house.errorWith(URIError, "ERR_INVALID_URI", "URI malformed");
  }
};
const unescape = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return unescapeBuffer(text).toString();
  }
};
const unescapeBuffer = (text) => {
  const out = [];
  const bytes = Buffer.from(`${text}`);
  for (let i = 0; i < bytes.length; i++) {
    const pair = bytes[i] === 37 ? /^[0-9a-f]{2}/i.exec(bytes.toString("latin1", i + 1, i + 3))?.[0] : undefined;
    if (pair !== undefined) i += 2;
    out.push(pair === undefined ? bytes[i] : parseInt(pair, 16));
  }
  return Buffer.from(out);
};
const primitive = (value) => (typeof value === "string" ? value : typeof value === "bigint" || typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value)) ? `${value}` : "");
const stringify = (object, separator = "&", equals = "=", options = {}) => {
  if (object === null || typeof object !== "object") return "";
  const encode = options?.encodeURIComponent ?? module.exports.escape;
  const pairs = [];
  for (const name of Object.keys(object))
    for (const value of [object[name]].flat()) pairs.push(`${encode(name)}${equals}${encode(primitive(value))}`);
  return pairs.join(separator);
};
const parse = (text, separator = "&", equals = "=", options = {}) => {
  const found = Object.create(null);
  if (typeof text !== "string" || text === "") return found;
  const decode = options?.decodeURIComponent ?? module.exports.unescape;
  const most = options?.maxKeys ?? 1000;
  const safe = (part) => {
    try {
      return decode(part.replaceAll("+", " "));
    } catch {
      return unescape(part);
    }
  };
  for (const pair of text.split(separator).slice(0, most > 0 ? most : undefined)) {
    if (pair === "") continue;
    const at = pair.indexOf(equals);
    const name = safe(at < 0 ? pair : pair.slice(0, at));
    const value = at < 0 ? "" : safe(pair.slice(at + equals.length));
    if (!(name in found)) found[name] = value;
    else if (Array.isArray(found[name])) found[name].push(value);
    else found[name] = [found[name], value];
  }
  return found;
};
module.exports = { escape, unescape, unescapeBuffer, stringify, parse, encode: stringify, decode: parse };
