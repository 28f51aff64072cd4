// quickjs-wasi: QuickJS as wasm in V8, each sandbox an instance of its own.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { MEMORY, WALL_MS, main } from "./asking.mjs";

const home = createRequire(join(process.cwd(), "package.json"));
const { QuickJS } = await import(pathToFileURL(home.resolve("quickjs-wasi")));
const wasm = new WebAssembly.Module(readFileSync(home.resolve("quickjs-wasi/quickjs.wasm")));
const made = [];

// Making one is asynchronous and the questions are not, so some are made ahead; the time of each is what it took.
async function sandbox() {
  const deadline = { at: Infinity };
  const start = performance.now();
  const vm = await QuickJS.create({ wasm, memoryLimit: MEMORY, interruptHandler: () => Date.now() > deadline.at });
  return { vm, deadline, took: performance.now() - start };
}

const probe = process.argv[2];
const samples = Number(process.argv[3]);
for (let i = 0; i < (probe === "bridge" ? 2 * samples + 1 : samples + 1); i++) made.push(await sandbox());

function spent(milliseconds) {
  const until = performance.now() + milliseconds;
  while (performance.now() < until);
}

await main({
  evaluate: (source) => {
    const { vm, deadline, took } = made.pop();
    if (probe === "one") spent(took);
    deadline.at = Date.now() + WALL_MS;
    try {
      return vm.dump(vm.evalCode(source));
    } finally {
      vm.dispose();
    }
  },
  called: (count) => {
    const { vm, deadline } = made.pop();
    vm.setProp(vm.global, "echo", vm.newFunction("echo", (value) => value));
    deadline.at = Date.now() + WALL_MS;
    const start = performance.now();
    vm.evalCode(`for (let i = 0; i < ${count}; i++) echo(i)`).dispose();
    return performance.now() - start;
  },
});
