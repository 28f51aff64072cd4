// path, as it is on POSIX. `win32` is there for packages that look whether it is; its separators are Windows' own.
const wanted = (value, name) => {
  if (typeof value !== "string")
    throw house.errorWith(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be of type string. Received ${value === null ? "null" : typeof value}`);
  return value;
};
const made = (sep, delimiter, splits) => {
  const root = (path) => (sep === "\\" ? (/^(?:[A-Za-z]:)?[\\/]?/.exec(path)?.[0] ?? "") : path.startsWith("/") ? "/" : "");
  const isAbsolute = (path) => (sep === "\\" ? /^(?:[A-Za-z]:)?[\\/]/.test(wanted(path, "path")) : wanted(path, "path").startsWith("/"));
  const reduced = (path, rooted) => {
    const out = [];
    for (const part of path.split(splits))
      if (part === "..") {
        if (out.length && out.at(-1) !== "..") out.pop();
        else if (!rooted) out.push("..");
      } else if (part !== "" && part !== ".") out.push(part);
    return out.join(sep);
  };
  const normalize = (path) => {
    wanted(path, "path");
    if (path === "") return ".";
    const start = root(path);
    const rest = reduced(path.slice(start.length), start !== "");
    const tail = rest !== "" && splits.test(path.at(-1)) ? sep : "";
    return `${start.replaceAll("/", sep)}${rest}${tail}` || (tail ? `.${sep}` : ".");
  };
  const basename = (path, suffix) => {
    wanted(path, "path");
    const parts = path.slice(root(path).length).split(splits).filter((part) => part !== "");
    const last = parts.at(-1) ?? "";
    return suffix !== undefined && last.endsWith(suffix) && last !== suffix ? last.slice(0, -suffix.length) : last;
  };
  const extname = (path) => {
    const name = basename(path);
    const dot = name.lastIndexOf(".");
    return dot <= 0 || /^\.+$/.test(name.slice(0, dot + 1)) ? "" : name.slice(dot);
  };
  const dirname = (path) => {
    wanted(path, "path");
    const start = root(path);
    let end = path.length;
    while (end > start.length && splits.test(path[end - 1])) end -= 1;
    while (end > start.length && !splits.test(path[end - 1])) end -= 1;
    while (end > start.length && splits.test(path[end - 1])) end -= 1;
    return path.slice(0, end) || start || ".";
  };
  const resolve = (...paths) => {
    let path = "";
    for (const part of [sep, ...paths]) if (wanted(part, "path") !== "") path = isAbsolute(part) ? part : `${path}${sep}${part}`;
    const start = root(path);
    return `${start.replaceAll("/", sep)}${reduced(path.slice(start.length), true)}` || sep;
  };
  const path = {
    sep, delimiter, isAbsolute, normalize, basename, extname, dirname, resolve,
    join(...parts) {
      const all = parts.filter((part) => wanted(part, "path") !== "").join(sep);
      return all === "" ? "." : normalize(all);
    },
    relative(from, to) {
      const one = resolve(from).split(splits).filter(Boolean);
      const other = resolve(to).split(splits).filter(Boolean);
      let same = 0;
      while (same < one.length && same < other.length && one[same] === other[same]) same += 1;
      return [...one.slice(same).map(() => ".."), ...other.slice(same)].join(sep);
    },
    parse(text) {
      const base = basename(text);
      const ext = extname(text);
      const start = root(text);
      const dir = base === "" || text === base ? start : dirname(text);
      return { root: start, dir: dir === "." && !text.startsWith(".") ? "" : dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
    },
    format(parts) {
      const dir = parts.dir || parts.root || "";
      const base = parts.base || `${parts.name ?? ""}${parts.ext ? (parts.ext.startsWith(".") ? parts.ext : `.${parts.ext}`) : ""}`;
      return !dir ? base : dir === parts.root ? `${dir}${base}` : `${dir}${sep}${base}`;
    },
    toNamespacedPath: (text) => text,
    matchesGlob() { throw house.unavailable("path.matchesGlob"); },
  };
  path._makeLong = path.toNamespacedPath;
  return path;
};
const posix = made("/", ":", /\//);
const win32 = made("\\", ";", /[\\/]/);
posix.posix = win32.posix = posix;
posix.win32 = win32.win32 = win32;
module.exports = posix;
