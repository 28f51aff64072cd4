const MARKS = { __proto__: null, s: 1, d: 1, i: 1, f: 1, j: 1, o: 1, O: 1, c: 1 };

const marked = (mark, value, room) => {
  switch (mark) {
    case "s": return typeof value === "string" ? value : typeof value === "object" ? shown(value, room) : shown(value, room);
    case "d": return typeof value === "bigint" ? `${value}n` : typeof value === "object" ? "NaN" : `${+value}`;
    case "i": return typeof value === "object" || typeof value === "symbol" ? "NaN" : `${parseWhole(value)}`;
    case "f": return typeof value === "object" || typeof value === "symbol" ? "NaN" : `${parseNumber(value)}`;
    case "j": return `${jsonStringify(value)}`;
    case "c": return "";
    default: return new Inspector(room).value(value, 0);
  }
};

// The arguments of console.log as one text, %-marks of the first one filled in.
const formatted = (args, room) => {
  let text = "";
  let next = 0;
  if (args.length > 1 && typeof args[0] === "string") {
    const format = args[0];
    next = 1;
    let from = 0;
    for (let at = indexOf(format, "%"); at >= 0 && at < format.length - 1 && text.length < room; at = indexOf(format, "%", from)) {
      const mark = charAt(format, at + 1);
      text += slice(format, from, at);
      if (mark === "%") text += "%";
      else if (MARKS[mark] && next < args.length) text += marked(mark, args[next++], room);
      else text += `%${mark}`;
      from = at + 2;
    }
    text += slice(format, from, from + room);
  }
  for (; next < args.length && text.length < room; next++)
    text += `${next ? " " : ""}${shown(args[next], room - text.length + 1)}`;
  return text;
};

let indent = "";
const print = (level, args) => {
  const room = natives.logRoom();
  if (room <= 0) return;
  let text;
  try {
    // one character more than there is room for, so that the shim sees that it was cut
    text = formatted(args, room + 1);
  } catch {
    text = "[a value that cannot be shown]";
  }
  natives.log(level, indent ? indent + text : text);
};

const timers = new Map();
const counts = new Map();
const passed = (since) => floor((natives.elapsed() - since) * 1000 + 0.5) / 1000;
const labelOf = (label) => (label === undefined ? "default" : shown(label, 200));

const consoleMethods = {
  log(...args) { print("log", args); },
  info(...args) { print("info", args); },
  warn(...args) { print("warn", args); },
  error(...args) { print("error", args); },
  debug(...args) { print("debug", args); },
  trace(...args) { print("debug", args); },
  dir(value) { print("log", [value]); },
  table(value) { print("log", [value]); },
  assert(condition, ...args) {
    if (condition) return;
    if (typeof args[0] === "string") args[0] = `Assertion failed: ${args[0]}`;
    else splice(args, 0, 0, "Assertion failed");
    print("error", args);
  },
  group(...args) {
    if (args.length) print("log", args);
    if (indent.length < 40) indent += "  ";
  },
  groupEnd() { indent = slice(indent, 0, -2); },
  time(label) { mapSet(timers, labelOf(label), natives.elapsed()); },
  timeEnd(label) {
    const name = labelOf(label);
    const since = mapGet(timers, name);
    mapDelete(timers, name);
    if (since !== undefined) print("log", [`${name}: ${passed(since)}ms`]);
  },
  timeLog(label) {
    const since = mapGet(timers, labelOf(label));
    if (since !== undefined) print("log", [`${labelOf(label)}: ${passed(since)}ms`]);
  },
  count(label) {
    const name = labelOf(label);
    const count = (mapGet(counts, name) ?? 0) + 1;
    mapSet(counts, name, count);
    print("log", [`${name}: ${count}`]);
  },
  countReset(label) { mapDelete(counts, labelOf(label)); },
};
consoleMethods.groupCollapsed = consoleMethods.group;

const unhandled = (reason) => natives.log("warn", slice(`Unhandled promise rejection: ${inspect(reason)}`, 0, 4096));
