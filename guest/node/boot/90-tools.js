// What the host asks for: load a package, run one of its exports as a tool.
const MEMORY = globalThis.InternalError;
const state = { root: undefined, entry: undefined };

const textOf = (value) => {
  try {
    return typeof value === "string" ? value : `${value}`;
  } catch {
    return "a value that has no text";
  }
};
const describeError = (error) => {
  if (error instanceof MEMORY) throw error; // the engine is out of memory: that is no error of the tool's
  const facts = { name: undefined, message: undefined, code: undefined, stack: undefined };
  try {
    if (typeof error === "object" && error !== null)
      for (const name of keys(facts)) if (["string", "number"].includes(typeof error[name])) facts[name] = textOf(error[name]).slice(0, 8000);
  } catch {
    // A getter that throws: what was read so far is what can be told.
  }
  const stack = facts.stack?.replace(/^ *at .*\((?:executor:modules|native)[^\n]*\n?/gm, "");
  return { name: facts.name ?? "Error", message: facts.message ?? textOf(error).slice(0, 8000), code: facts.code ?? null, stack: stack || null };
};
const failed = (outcome, error) => ({ outcome, error: describeError(error) });
const refused = (outcome, message) => ({ outcome, error: { name: "Error", message, code: null, stack: null } });

const isClass = (value) => typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value));
const isTool = (value) => value !== null && (typeof value === "object" || typeof value === "function") && typeof value.execute === "function";

// An export is a tool, or a function that gives one: without arguments, or given the environment.
const toolOf = async (value, env) => {
  if (isTool(value)) return value;
  if (typeof value !== "function" || isClass(value)) return undefined;
  for (const args of keys(env).length ? [[], [env]] : [[]]) {
    try {
      const made = await value(...args);
      if (isTool(made)) return made;
    } catch (error) {
      if (error instanceof MEMORY) throw error;
    }
  }
  return undefined;
};

const exportOf = (root, name, fallback) => {
  if (hasOwn(root, name)) return { found: root[name] };
  const own = root.default;
  if (own !== null && (typeof own === "object" || typeof own === "function") && name in own && !(name in Object.prototype) && !(typeof own === "function" && name in Function.prototype))
    return { found: own[name] };
  return fallback && hasOwn(root, "default") ? { found: own } : undefined;
};

const lastOf = async (stream) => {
  let last;
  for await (const part of stream) last = part;
  return last;
};

const invoke = async ({ name, params, env, fallback, call_id: toolCallId }) => {
  const root = state.root;
  let chosen;
  let tool;
  try {
    chosen = exportOf(root, name, fallback);
    if (chosen === undefined || chosen.found === undefined) {
      const known = keys(root).slice(0, 30).join(", ");
      return refused("not_found", `the package has no export ${JSON.stringify(name.slice(0, 200))}; it has ${known || "none"}`);
    }
    tool = await toolOf(chosen.found, env);
  } catch (error) {
    return failed("invalid", error);
  }
  if (tool === undefined) return refused("invalid", `the export ${JSON.stringify(name.slice(0, 200))} is no tool: it has no execute function`);
  let value;
  try {
    value = await tool.execute(params, { toolCallId, messages: [], abortSignal: new AbortController().signal });
    if (value !== null && typeof value === "object" && typeof value[Symbol.asyncIterator] === "function") value = await lastOf(value);
  } catch (error) {
    return failed("threw", error);
  }
  try {
    return { outcome: "done", output: stringify(value) ?? "null" };
  } catch (error) {
    if (error instanceof MEMORY) throw error;
    return refused("threw", `the result cannot be written as JSON: ${describeError(error).message}`);
  }
};
const { stringify } = JSON;

const enter = async (entry) => {
  house.env.record(true);
  try {
    const [promise, namespace] = natives.evaluate(entry);
    await promise;
    state.root = namespace;
    return undefined;
  } catch (error) {
    return failed("load_failed", error);
  } finally {
    house.env.record(false);
  }
};

// `{modules?, entry?, env, call?}` -> the outcome of the call, or what an image of the loaded package must know.
loader.main = async (order) => {
  const work = async () => {
    for (const id of keys(order.modules ?? {})) records[id] = order.modules[id];
    natives.begin();
    house.env.set(order.env);
    if (order.entry !== undefined) {
      const problem = await enter(order.entry);
      if (problem) return problem;
    }
    if (order.call !== undefined) return invoke({ ...order.call, env: order.env });
    const [random, timers] = natives.traces();
    return { outcome: "loaded", exports: keys(state.root).slice(0, 1000), env: house.env.read(), random, pure: timers === 0 && asked === 0 };
  };
  return { __proto__: null, value: await work() };
};

loader.prepare = () => {
  hidden(globalThis, "Buffer", builtin("node:buffer").Buffer);
  hidden(globalThis, "process", builtin("node:process"));
  for (const name of keys(NAMES)) builtin(`node:${name}`);
  const { format, inspect } = builtin("node:util");
  const write = assign({}, console);
  for (const level of ["log", "info", "warn", "error", "debug"]) console[level] = (...args) => write[level](format(...args));
  console.trace = console.debug;
  console.dir = (value, options) => write.log(inspect(value, options));
};

return loader;
