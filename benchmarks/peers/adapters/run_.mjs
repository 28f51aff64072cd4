// run: QuickJS as wasm in a worker thread, a fresh context for each script.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { CALLS, MEMORY, WALL_MS, main } from "./asking.mjs";

const home = createRequire(join(process.cwd(), "package.json"));
const { run } = await import(pathToFileURL(join(home.resolve("run/package.json"), "../dist/index.js")));
const limits = { timeoutMs: WALL_MS, memoryLimitBytes: MEMORY, maxBridgeRequests: CALLS };
const hostFunctions = { host: { echo: (value) => value } };

await main({
  evaluate: (source, expression) => run({ source: expression ? `return ${source}` : source, limits }),
  called: async (count) => {
    const start = performance.now();
    await run({ source: `for (let i = 0; i < ${count}; i++) await host.echo(i)`, hostFunctions, limits });
    return performance.now() - start;
  },
});
process.exit(0);
