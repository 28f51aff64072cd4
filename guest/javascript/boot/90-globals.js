// What a script finds. Everything here can be shadowed or replaced by the script; nothing here is needed to end a run.
const define = (name, value, enumerable = false) =>
  defineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable, configurable: true });

const timer = (name, repeats) => {
  const set = (callback, delay = 0, ...args) => {
    if (typeof callback !== "function") throw new TypeError(`${name}: a function is expected`);
    return natives.setTimer(args.length ? () => apply(callback, undefined, args) : callback, delay, repeats);
  };
  return defineProperty(set, "name", { __proto__: null, value: name, configurable: true });
};
const clearTimer = (name) =>
  defineProperty((id) => { if (typeof id === "number") natives.clearTimer(id); }, "name", { __proto__: null, value: name, configurable: true });

const immediate = (callback, ...args) => {
  if (typeof callback !== "function") throw new TypeError("setImmediate: a function is expected");
  return natives.setTimer(() => apply(callback, undefined, args), 0, false);
};

function fetch(input, init) { return web().fetch(input, init); }

// A class that is made when a script first asks for it; until then its name can be taken like any other.
const lazy = (name) =>
  defineProperty(globalThis, name, {
    __proto__: null,
    get: () => {
      const made = web()[name];
      define(name, made);
      return made;
    },
    set: (value) => { define(name, value); },
    enumerable: false,
    configurable: true,
  });

// Absent on purpose: what would block, share memory, or run code when the collector pleases.
for (const name of ["SharedArrayBuffer", "Atomics", "FinalizationRegistry", "gc"]) delete globalThis[name];

define("tools", natives.tools);
define("ToolError", ToolError);
define("emit", natives.emit);
define("input", undefined);
define("console", consoleMethods);
tag(consoleMethods, "console");
define("setTimeout", timer("setTimeout", false));
define("setInterval", timer("setInterval", true));
define("setImmediate", immediate);
define("clearTimeout", clearTimer("clearTimeout"));
define("clearInterval", clearTimer("clearInterval"));
define("clearImmediate", clearTimer("clearImmediate"));
define("structuredClone", structuredClone);
define("fetch", fetch);
lazy("Headers");
lazy("Request");
lazy("Response");
define("URL", URL);
define("URLSearchParams", URLSearchParams);
define("TextEncoder", TextEncoder);
define("TextDecoder", TextDecoder);
define("Event", Event);
define("CustomEvent", CustomEvent);
define("EventTarget", EventTarget);
define("AbortController", AbortController);
define("AbortSignal", AbortSignal);
define("crypto", new Crypto());
define("performance", tag({
  now() { return natives.elapsed(); },
  get timeOrigin() { return natives.startTime(); },
}, "Performance"));

return { __proto__: null, toolError, inspect, settle, special, unhandled };
