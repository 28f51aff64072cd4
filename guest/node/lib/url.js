// url: the classes of the Web, and the legacy parser as far as packages still use it.
const querystring = require("querystring");
const SLASHED = /^(?:https?|ftp|gopher|file|wss?):$/i;

function Url() {
  for (const name of ["protocol", "slashes", "auth", "host", "port", "hostname", "hash", "search", "query", "pathname", "path", "href"]) this[name] = null;
}
const parse = (text, parseQuery = false, slashesDenoteHost = false) => {
  if (text instanceof Url) return text;
  if (typeof text !== "string")
    throw house.errorWith(TypeError, "ERR_INVALID_ARG_TYPE", `The "url" argument must be of type string. Received ${text === null ? "null" : typeof text}`);
  const url = new Url();
  let rest = text.trim().replace(/^([^?#]*)/, (head) => head.replaceAll("\\", "/"));
  const hash = rest.indexOf("#");
  if (hash >= 0) {
    url.hash = rest.slice(hash);
    rest = rest.slice(0, hash);
  }
  const query = rest.indexOf("?");
  if (query >= 0) {
    url.search = rest.slice(query);
    rest = rest.slice(0, query);
  }
  const protocol = /^[a-z][a-z0-9.+-]*:/i.exec(rest)?.[0];
  if (protocol) {
    url.protocol = protocol.toLowerCase();
    rest = rest.slice(protocol.length);
  }
  if (rest.startsWith("//") && (protocol || slashesDenoteHost || /^\/\/[^@/]+@/.test(rest)) && url.protocol !== "javascript:") {
    url.slashes = true;
    const end = rest.indexOf("/", 2);
    let host = rest.slice(2, end < 0 ? undefined : end);
    rest = end < 0 ? "" : rest.slice(end);
    const at = host.lastIndexOf("@");
    if (at >= 0) {
      url.auth = decodeURIComponent(host.slice(0, at));
      host = host.slice(at + 1);
    }
    const port = /:(\d*)$/.exec(host);
    if (port) {
      url.port = port[1] || null;
      host = host.slice(0, -port[0].length);
    }
    url.hostname = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
    url.host = `${host.toLowerCase()}${url.port ? `:${url.port}` : ""}`;
  }
  url.pathname = rest || (url.slashes && SLASHED.test(url.protocol ?? "") ? "/" : null);
  if (url.pathname !== null) url.pathname = url.pathname.replace(/[ "<>`{}|^]/g, encodeURIComponent);
  url.path = url.pathname !== null || url.search !== null ? `${url.pathname ?? ""}${url.search ?? ""}` : null;
  url.query = parseQuery ? querystring.parse((url.search ?? "").slice(1)) : url.search === null ? null : url.search.slice(1);
  url.href = format(url);
  return url;
};
const format = (given, options = {}) => {
  if (typeof given === "string") return format(parse(given));
  if (given instanceof URL) {
    const copy = new URL(given.href);
    if (options.fragment === false) copy.hash = "";
    if (options.search === false) copy.search = "";
    if (options.auth === false) copy.username = copy.password = "";
    return copy.href;
  }
  let protocol = given.protocol ?? "";
  if (protocol && !protocol.endsWith(":")) protocol += ":";
  const auth = given.auth ? `${encodeURIComponent(given.auth).replace(/%3A/i, ":")}@` : "";
  const name = given.hostname ? `${given.hostname.includes(":") ? `[${given.hostname}]` : given.hostname}${given.port ? `:${given.port}` : ""}` : "";
  const host = given.host ? auth + given.host : name ? auth + name : null;
  let path = given.pathname ?? "";
  const query = given.query && typeof given.query === "object" ? querystring.stringify(given.query) : "";
  let search = given.search ?? (query ? `?${query}` : "");
  if (search && !search.startsWith("?")) search = `?${search}`;
  let hash = given.hash ?? "";
  if (hash && !hash.startsWith("#")) hash = `#${hash}`;
  const slashes = given.slashes || ((!protocol || SLASHED.test(protocol)) && host !== null);
  if (slashes && host !== null && path && !path.startsWith("/")) path = `/${path}`;
  return `${protocol}${slashes ? `//${host ?? ""}` : (host ?? "")}${path.replace(/[?#]/g, encodeURIComponent)}${search.replaceAll("#", "%23")}${hash}`;
};
const resolve = (from, to) => {
  const base = new URL(from, "resolve://host");
  const url = new URL(to, base);
  return url.protocol === "resolve:" ? `${url.pathname}${url.search}${url.hash}` : url.href;
};
Url.prototype.parse = function (...args) { return Object.assign(this, parse(...args)); };
Url.prototype.format = function () { return format(this); };
Url.prototype.resolve = function (to) { return resolve(this.href, to); };
module.exports = {
  URL, URLSearchParams, Url, parse, format, resolve, resolveObject: (from, to) => parse(resolve(from, to)),
  fileURLToPath(url) {
    const found = typeof url === "string" ? new URL(url) : url;
    if (found?.protocol !== "file:") throw house.errorWith(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
    return decodeURIComponent(found.pathname);
  },
  pathToFileURL: (path) => new URL(`file://${encodeURI(require("path").resolve(path)).replace(/[?#]/g, encodeURIComponent)}`),
  urlToHttpOptions: ({ protocol, hostname, pathname, search, hash, href, port, username, password }) => ({
    protocol, hostname: hostname.replace(/^\[(.*)\]$/, "$1"), hash, search, pathname, path: `${pathname}${search}`, href,
    ...(port === "" ? {} : { port: Number(port) }), ...(username || password ? { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` } : {}),
  }),
  domainToASCII: (domain) => (URL.canParse(`http://${domain}`) ? new URL(`http://${domain}`).hostname : ""),
  domainToUnicode: (domain) => domain,
};
