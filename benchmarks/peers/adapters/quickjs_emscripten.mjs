// quickjs-emscripten: QuickJS as wasm in V8, each sandbox a runtime of its own in one wasm heap.

import { createRequire } from "node:module";
import { join } from "node:path";
import { MEMORY, WALL_MS, main } from "./asking.mjs";

const home = createRequire(join(process.cwd(), "package.json"));
const { getQuickJS, shouldInterruptAfterDeadline } = home("quickjs-emscripten");
const engine = await getQuickJS();

function sandboxed(use) {
  const runtime = engine.newRuntime({ memoryLimitBytes: MEMORY });
  const context = runtime.newContext();
  runtime.setInterruptHandler(shouldInterruptAfterDeadline(Date.now() + WALL_MS));
  try {
    return use(context);
  } finally {
    context.dispose();
    runtime.dispose();
  }
}

await main({
  evaluate: (source) => sandboxed((context) => context.unwrapResult(context.evalCode(source)).consume(context.dump)),
  called: (count) =>
    sandboxed((context) => {
      context.newFunction("echo", (value) => value.dup()).consume((echo) => context.setProp(context.global, "echo", echo));
      const start = performance.now();
      context.unwrapResult(context.evalCode(`for (let i = 0; i < ${count}; i++) echo(i)`)).dispose();
      return performance.now() - start;
    }),
});
