// What every Node adapter is asked, on the command line: PROBE SAMPLES. A line says that it is ready, the last line is
// the answer, both in JSON. See asking.py.

export const WALL_MS = 1000;
export const MEMORY = 64 << 20;
export const CALLS = 50;
const ENOUGH_MS = 2000;
const SPEED = ["one", "loop", "bridge"];

const SCRIPTS = {
  one: "1+1",
  loop: "(function () { let s = 0; for (let i = 0; i < 1000000; i++) s += i; return s })()",
  endless: "for (;;) {}",
  swallowing: "for (;;) { try { for (;;) {} } catch (e) {} }",
  allocating: "const kept = []; for (;;) kept.push(new Array(10000).fill(1.5))",
  doubling: "let s = 'x'; for (;;) s += s",
  backtracking: "/(a+)+$/.test('a'.repeat(40) + '!')",
  recursing: "const f = () => f(); f()",
};

async function timed(call) {
  const start = performance.now();
  await call();
  return performance.now() - start;
}

// As many as were asked for, or three and as many as there is time for.
async function times(count, call) {
  const [taken, until] = [[], performance.now() + ENOUGH_MS];
  while (taken.length < count && (taken.length < 3 || performance.now() < until)) taken.push(await call());
  return taken;
}

const said = (error) => String(error).trim().split("\n")[0].slice(0, 120);

async function outcome(call) {
  const start = performance.now();
  let ended = "completed";
  try {
    await call();
  } catch (error) {
    ended = said(error);
  }
  return { ended, seconds: (performance.now() - start) / 1000 };
}

// `sandbox` has evaluate(source, expression) and called(count), as in asking.py, which may be promises; `called` gives
// milliseconds. `expression` says that the source is one, where a sandbox has to be told what a script gives back.
export async function main(sandbox) {
  const [probe, count] = [process.argv[2], Number(process.argv[3])];
  // What is compiled or started once is not in the time that a limit takes.
  if (!SPEED.includes(probe)) await outcome(() => sandbox.evaluate(SCRIPTS.one, true));
  console.log('\n{"ready": true}');
  const answer = await asked(sandbox, probe, count).catch((error) => ({ ended: said(error) }));
  console.log("\n" + JSON.stringify(answer));
}

async function asked(sandbox, probe, count) {
  if (probe === "one" || probe === "loop") {
    const once = () => sandbox.evaluate(SCRIPTS[probe], true);
    await once();
    return { ms: await times(count, () => timed(once)) };
  }
  if (probe === "bridge") {
    await sandbox.called(45);
    const slope = async () => (((await sandbox.called(45)) - (await sandbox.called(5))) / 40) * 1000;
    return { us: await times(count, slope) };
  }
  if (probe === "calls") return outcome(() => sandbox.called(2000));
  return outcome(() => sandbox.evaluate(SCRIPTS[probe], false));
}
