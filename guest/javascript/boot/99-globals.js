const define = (name, value) =>
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
const inspect = (v) => { try { return typeof v === "string" ? v : JSON.stringify(v) ?? String(v); } catch { return String(v); } };
const con = {};
for (const level of ["log", "info", "warn", "error", "debug"])
  con[level] = (...a) => { natives.log(level, a.map(inspect).join(" ")); };
define("console", con);
define("tools", natives.tools);
define("emit", natives.emit);
define("setTimeout", (f, ms = 0, ...a) => natives.setTimer(() => f(...a), ms, false));
define("setInterval", (f, ms = 0, ...a) => natives.setTimer(() => f(...a), ms, true));
define("clearTimeout", natives.clearTimer);
define("clearInterval", natives.clearTimer);
class ToolError extends Error {}
define("ToolError", ToolError);
const toolError = (fields, line, column) => {
  const e = new ToolError(fields.message);
  for (const k of ["code", "path", "retryable", "hint", "details", "status"]) if (fields[k] !== undefined) e[k] = fields[k];
  return e;
};
const settle = async (value, lone) => {
  value = await value;
  if (typeof value === "function" && lone && natives.toolName(value) === undefined) value = await value(globalThis.input);
  return { __proto__: null, value };
};
const special = (kind, a, b, c) =>
  kind === "search" ? natives.call("$search", { query: a, ...b }, false)
  : kind === "describe" ? natives.call("$describe", { path: a }, false)
  : natives.call(a, b, !!(c && c.meta));
const unhandled = (reason) => natives.log("warn", "Unhandled promise rejection: " + inspect(reason));
return { toolError, inspect, settle, special, unhandled };
