// What every Node adapter is asked, on the command line: PROBE SAMPLES; one line of JSON is the answer. See asking.py.

export const WALL_MS = 1000;
export const MEMORY = 64 << 20;

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

function timed(call) {
  const start = performance.now();
  call();
  return performance.now() - start;
}

// `sandbox` has evaluate(source) and called(count), as in asking.py; `called` gives milliseconds.
export function main(sandbox) {
  const [probe, count] = [process.argv[2], Number(process.argv[3])];
  const times = (call) => Array.from({ length: count }, call);
  let answer;
  if (probe === "one" || probe === "loop") {
    sandbox.evaluate(SCRIPTS[probe]);
    answer = { ms: times(() => timed(() => sandbox.evaluate(SCRIPTS[probe]))) };
  } else if (probe === "bridge") {
    sandbox.called(45);
    answer = { us: times(() => ((sandbox.called(45) - sandbox.called(5)) / 40) * 1000) };
  } else {
    const start = performance.now();
    let ended = "completed";
    try {
      if (probe === "calls") sandbox.called(2000);
      else sandbox.evaluate(SCRIPTS[probe]);
    } catch (error) {
      ended = String(error).trim().split("\n")[0].slice(0, 120);
    }
    answer = { ended, seconds: (performance.now() - start) / 1000 };
  }
  console.log("\n" + JSON.stringify(answer));
}
