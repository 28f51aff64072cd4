// The `executor` package of npm: QuickJS as wasm in its process, asked by `execute` over MCP's stdio in a home of its
// own. Its limits (five minutes of computing between calls, 64 MiB) cannot be set; the host is asked for a list that it
// keeps in that home.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { main } from "./asking.mjs";

const home = mkdtempSync(join(tmpdir(), "executor-peer-npm-"));
const program = join(process.cwd(), "node_modules/.bin/executor");
const env = { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home };
const server = spawn(process.execPath, [program, "mcp"], { cwd: home, env, stdio: ["pipe", "pipe", "ignore"] });
const asked = new Map();
let last = 0;

createInterface({ input: server.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  asked.get(message.id)?.(message);
  asked.delete(message.id);
});
// A host that is gone has held no limit: the adapter ends with it, and says why.
server.on("exit", (status, signal) => {
  console.error(`its process ended with ${signal ?? status}`);
  process.exit(1);
});

const send = (message) => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

async function ask(method, params) {
  const id = ++last;
  const { error, result } = await new Promise((answer) => {
    asked.set(id, answer);
    send({ id, method, params });
  });
  if (error) throw new Error(error.message);
  return result;
}

async function execute(code) {
  const { content, isError, structuredContent } = await ask("tools/call", { name: "execute", arguments: { code } });
  if (isError || structuredContent?.status !== "completed") throw new Error(content?.[0]?.text ?? "no answer");
}

try {
  const clientInfo = { name: "benchmarks", version: "1" };
  await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  send({ method: "notifications/initialized" });
  await main({
    evaluate: (source, expression) => execute(expression ? `return ${source}` : source),
    called: async (count) => {
      const start = performance.now();
      await execute(`for (let i = 0; i < ${count}; i++) await tools.executor.coreTools.connections.list({})`);
      return performance.now() - start;
    },
  });
} finally {
  server.removeAllListeners("exit");
  server.kill();
  await new Promise((ended) => server.on("exit", ended));
  rmSync(home, { recursive: true, force: true });
}
process.exit(0);
