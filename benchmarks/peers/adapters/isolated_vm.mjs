// isolated-vm: V8 itself, an isolate of its own for each sandbox, in this process.

import { createRequire } from "node:module";
import { join } from "node:path";
import { MEMORY, WALL_MS, main } from "./asking.mjs";

const { Callback, Isolate } = createRequire(join(process.cwd(), "package.json"))("isolated-vm");

function sandboxed(use) {
  const isolate = new Isolate({ memoryLimit: MEMORY >> 20 });
  try {
    return use(isolate.createContextSync());
  } finally {
    // One that ran out of memory is gone already.
    if (!isolate.isDisposed) isolate.dispose();
  }
}

await main({
  evaluate: (source) => sandboxed((context) => context.evalSync(source, { timeout: WALL_MS })),
  called: (count) =>
    sandboxed((context) => {
      context.global.setSync("echo", new Callback((value) => value));
      const start = performance.now();
      context.evalSync(`for (let i = 0; i < ${count}; i++) echo(i)`, { timeout: WALL_MS });
      return performance.now() - start;
    }),
});
