const TOOL_ERROR_FIELDS = ["code", "path", "retryable", "hint", "details", "status", "retry_after_ms"];

// A failed tool call. Every field is own data, so that it crosses the bridge, prints and survives JSON.
class ToolError extends Error {
  constructor(message, fields) {
    super(message);
    if (typeof fields !== "object" || fields === null) return;
    for (let i = 0; i < TOOL_ERROR_FIELDS.length; i++) {
      const name = TOOL_ERROR_FIELDS[i];
      if (hasOwn(fields, name) && fields[name] !== undefined && fields[name] !== null)
        defineProperty(this, name, { __proto__: null, value: fields[name], writable: true, enumerable: true, configurable: true });
    }
  }
}
defineProperty(ToolError.prototype, "name", { __proto__: null, value: "ToolError", writable: true, configurable: true });

const toolError = (fields) => {
  const message = typeof fields === "object" && fields !== null && hasOwn(fields, "message") ? fields.message : undefined;
  return new ToolError(typeof message === "string" ? message : "the call failed", fields);
};

const misuse = (message) => promiseReject(new TypeError(message));

const optionsOf = (options) => (typeof options === "object" && options !== null ? options : create(null));

const search = (query, options) => {
  let from = optionsOf(options);
  if (typeof query === "object" && query !== null) {
    from = query;
    query = from.query;
  }
  if (typeof query !== "string")
    return misuse('tools.search takes a text: await tools.search("list open issues", { limit: 5 })');
  const args = create(null);
  args.query = query;
  // Whatever else is said goes along: the host refuses what it does not know, with the name that may have been meant.
  const names = keysOf(from);
  for (let i = 0; i < names.length; i++) {
    const value = from[names[i]];
    if (names[i] !== "query" && value !== undefined && value !== null) args[names[i]] = value;
  }
  return natives.call("$search", args, false);
};

// A path is a text, or the tool itself: tools.describe(tools.github.org.work.issues.list).
const pathOf = (path) => {
  if (typeof path === "string") return path;
  const name = typeof path === "function" ? toolName(path) : undefined;
  return name === undefined ? undefined : slice(name, "tools.".length);
};

const describe = (path) => {
  const text = pathOf(typeof path === "object" && path !== null ? path.path : path);
  if (text === undefined) return misuse('tools.describe takes the path of a tool: await tools.describe("github.org.work.issues.list")');
  const args = create(null);
  args.path = text;
  return natives.call("$describe", args, false);
};

const callByPath = (path, args, options) => {
  const text = pathOf(path);
  if (text === undefined || startsWith(text, "$"))
    return misuse('tools.call takes the path of a tool, its arguments and options: await tools.call("a.b.c.d", { … }, { meta: true })');
  return natives.call(text, args, optionsOf(options).meta === true);
};

const wholeNumber = (value, name) => {
  if (value === undefined || value === null) return Infinity;
  if (typeof value !== "number" || value < 1 || floor(value) !== value)
    throw new TypeError(`tools.paginate: ${name} is a whole number from 1`);
  return value;
};

// Each page is a call like any other; the host works out the arguments of the next.
async function* pages(path, first, items, limit, count) {
  let args = first;
  for (let left = limit; count > 0 && args !== null; count--) {
    const asked = create(null);
    asked.path = path;
    asked.args = args;
    if (items !== undefined && items !== null) asked.items = items;
    const page = await natives.call("$page", asked, false);
    for (let i = 0; i < page.items.length; i++) {
      yield page.items[i];
      if (--left === 0) return;
    }
    args = page.next;
  }
}

const paginate = (path, args, options) => {
  const text = pathOf(path);
  if (text === undefined || startsWith(text, "$"))
    throw new TypeError('tools.paginate takes the path of a tool, its arguments and options: for await (const item of tools.paginate("a.b.c.d", { … }, { limit: 100 })) …');
  if (args !== undefined && (typeof args !== "object" || args === null))
    throw new TypeError("tools.paginate: a tool takes one object of named arguments");
  const from = optionsOf(options);
  return pages(text, args ?? {}, from.items, wholeNumber(from.limit, "limit"), wholeNumber(from.pages, "pages"));
};

const special = (kind, first, second, third) => {
  switch (kind) {
    case "search": return search(first, second);
    case "describe": return describe(first);
    case "paginate": return paginate(first, second, third);
    default: return callByPath(first, second, third);
  }
};

// What the main script ended with, awaited; a lone function, or a default export, is called with the input.
const settle = async (value, call) => {
  value = await value;
  if (call && typeof value === "function" && toolName(value) === undefined && !isClass(value))
    value = await apply(value, undefined, [globalThis.input]);
  return { __proto__: null, value };
};
