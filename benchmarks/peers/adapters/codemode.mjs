// Code Mode: @cloudflare/codemode in a local workerd, which loads a new worker for each script; each is asked over
// loopback HTTP, as a host beside it would. Its time limit is a timer inside of the sandbox; there is none on memory or
// calls that a local workerd keeps.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { WALL_MS, main } from "./asking.mjs";

const home = createRequire(join(process.cwd(), "package.json"));
const folder = mkdtempSync(join(tmpdir(), "executor-peer-workerd-"));

const WORKER = `
import { DynamicWorkerExecutor } from "codemode/index.js";

export default {
  async fetch(request, env) {
    const executor = new DynamicWorkerExecutor({ loader: env.LOADER, timeout: ${WALL_MS} });
    const echoing = { name: "codemode", fns: { echo: (value) => value } };
    const { error } = await executor.execute(await request.text(), [echoing]);
    return Response.json({ error });
  },
};
`;

// The package's modules by the names that they import each other by; acorn stands beside them.
function modules() {
  const dist = join(process.cwd(), "node_modules/@cloudflare/codemode/dist");
  const found = { "worker.js": WORKER, "codemode/acorn": readFileSync(join(dirname(home.resolve("acorn")), "acorn.mjs")) };
  const add = (file) => {
    if (`codemode/${file}` in found) return;
    const text = readFileSync(join(dist, file), "utf8");
    found[`codemode/${file}`] = text.replaceAll('from "acorn"', 'from "./acorn"');
    for (const [, other] of text.matchAll(/from "\.\/([^"]+)"/g)) add(other);
  };
  add("index.js");
  return found;
}

function configuration() {
  const list = Object.entries(modules()).map(([name, text], at) => {
    writeFileSync(join(folder, `${at}.js`), text);
    return `(name = ${JSON.stringify(name)}, esModule = embed "${at}.js")`;
  });
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]
);
const main :Workerd.Worker = (
  modules = [${list.join(", ")}],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["experimental"],
  bindings = [(name = "LOADER", workerLoader = ())]
);
`;
}

async function started() {
  writeFileSync(join(folder, "config.capnp"), configuration());
  const words = ["serve", "--experimental", "--control-fd=1", join(folder, "config.capnp")];
  const child = spawn(home("workerd").default, words, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  for await (const part of child.stdout) {
    said += part;
    const port = /"port":(\d+)/.exec(said)?.[1];
    if (port) return { child, port };
  }
  throw new Error("workerd did not start");
}

// A host that is gone has held no limit: the adapter ends with it, and says why.
function gone(why) {
  console.error(why);
  process.exit(1);
}

let server;
try {
  server = await started();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
server.child.on("exit", (status, signal) => gone(`workerd ended with ${signal ?? status}`));

async function execute(code) {
  // A connection that breaks is a server that goes, and its exit says how.
  const broken = () => new Promise(() => {});
  const answer = await fetch(`http://127.0.0.1:${server.port}/`, { method: "POST", body: code }).catch(broken);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const { error } = await answer.json();
  if (error) throw new Error(error);
}

try {
  await main({
    evaluate: (source, expression) => execute(expression ? `async () => (${source})` : `async () => { ${source} }`),
    called: async (count) => {
      const start = performance.now();
      await execute(`async () => { for (let i = 0; i < ${count}; i++) await codemode.echo(i) }`);
      return performance.now() - start;
    },
  });
} finally {
  server.child.removeAllListeners("exit");
  server.child.kill();
}
process.exit(0);
