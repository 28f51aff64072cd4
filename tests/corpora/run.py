"""Runs published collections through our doors, and says what became of them. `./scripts/corpora FOLDER` with any of:

- `js-vuln-db/`: a clone of tunz/js-vuln-db, 180 proofs of concept against four JavaScript engines (ESC-26);
- `vm2/`: a clone of patriksimek/vm2, of whose advisories each has its reproduction in `test/ghsa` (ESC-26);
- `JSONTestSuite/`: a clone of nst/JSONTestSuite, what a JSON parser must take, must refuse and may do (HTTP-02);
- `msgpack-test-suite/`: a clone of kawanet/msgpack-test-suite, values in every form of msgpack (the MSG group);
- `urltestdata.json`: of the web platform tests, `url/resources` (SSRF-60).

`EXECUTOR_CORPORA` names the folder as well. Exit status 1 when something did what nothing may.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bridge.wire import codec
from bridge.wire.errors import FrameError, InvalidRequest
from catalog.origin import BadUrl, parse_url
from executor import Config, Executor
from executor.http import strictjson

BUDGETS = {"fuel": 4 * 10**8, "wall_ms": 5_000, "memory_bytes": 64 << 20}
_CODE = re.compile(r"^```(?:js|javascript|html)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELL = "var print = console.log, alert = console.log, gc = () => {}, document = {}, window = globalThis;\n"
"""What the engines' own shells have: without it most proofs of concept would end at their first line."""
_RUN: Final = re.compile(r"\.run\(\s*(`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")", re.DOTALL)
"""A script that a test of vm2 runs in its sandbox, as the literal that it is written as."""
_REACHED: Final = """
;(() => {
  const reached = [];
  for (const name of ["process", "require", "module", "Buffer", "child_process", "global", "Deno", "Bun"]) {
    const found = globalThis[name];
    if (found !== undefined && found !== globalThis) reached.push(name);
  }
  return reached;
})()
"""
"""What a script has got hold of by its end: nothing of a host stands in the global object of a guest."""


class Tally(Counter[str]):
    """How often each outcome came, and what must not have happened."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []


def vulnerabilities(folder: Path) -> Tally:
    """Each proof of concept under small budgets; none is a defect of ours, and the run after it is right."""
    scripts = {
        f"{path.parent.name}/{path.stem}#{number}": script
        for path in sorted(folder.glob("*/*.md"))
        for number, script in enumerate(_CODE.findall(path.read_text(errors="replace")), 1)
    }
    return asyncio.run(_attacked(scripts, _SHELL, ""))


def advisories(folder: Path) -> Tally:
    """Each reproduction of an advisory of vm2, as a script of its own; besides, none reaches anything of the host."""
    scripts = {
        f"{path.parent.name}/{path.stem}#{number}": _literal(script)
        for path in sorted((folder / "test" / "ghsa").glob("*/*.js"))
        for number, script in enumerate(_RUN.findall(path.read_text()), 1)
    }
    return asyncio.run(_attacked(scripts, "", _REACHED))


def _literal(text: str) -> str:
    """The text that a literal of JavaScript means, but for what a template would fill in."""
    escapes = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text[1:-1], flags=re.DOTALL)


async def _attacked(scripts: dict[str, str], before: str, behind: str) -> Tally:
    """Run each with `before` and `behind` around it; what `behind` gives must be empty."""
    tally = Tally()
    async with Executor.open(config=Config(workers=1)) as ex:
        for name, script in scripts.items():
            code = before + script[:200_000] + behind
            ended = await ex.run(code, language="javascript", budgets=BUDGETS)
            outcome = ended.error["code"] if ended.error else "completed"
            tally[outcome] += 1
            if outcome in ("internal", "worker_lost"):
                tally.wrong.append(f"{name}: {outcome}")
            if behind and ended.result:
                tally.wrong.append(f"{name}: reached {ended.result}")
            if (await ex.run("6 * 7")).result != 42:
                tally.wrong.append(f"{name}: the next run was not served")
    return tally


def json_texts(folder: Path) -> Tally:
    """y_ must be taken, but for keys that repeat; n_ must be refused; i_ may be either."""
    tally = Tally()
    for path in sorted((folder / "test_parsing").glob("*.json")):
        kind = path.name[0]
        taken = _taken(path.read_bytes())
        tally[f"{kind}_ {'taken' if taken else 'refused'}"] += 1
        if kind == "n" and taken:
            tally.wrong.append(f"{path.name} was taken")
        if kind == "y" and not taken and "duplicated_key" not in path.name:
            tally.wrong.append(f"{path.name} was refused")
    return tally


def msgpack_values(folder: Path) -> Tally:
    """Every form of a value is read as that value, and written again as it; ext and timestamps are refused."""
    tally = Tally()
    suite: dict[str, list[dict[str, Any]]] = json.loads((folder / "dist" / "msgpack-test-suite.json").read_text())
    for group, cases in suite.items():
        for case in cases:
            meant = case.get("binary")
            for form in case["msgpack"]:
                data = bytes.fromhex(form.replace("-", ""))
                refused = "ext" in case or "timestamp" in case
                try:
                    value = codec.decode(data)
                except FrameError:
                    tally["refused"] += 1
                    if not refused:
                        tally.wrong.append(f"{group}: {form} was refused")
                    continue
                tally["read"] += 1
                if refused:
                    tally.wrong.append(f"{group}: {form} was read")
                elif meant is not None and value != bytes.fromhex(meant.replace("-", "")):
                    tally.wrong.append(f"{group}: {form} is {value!r}")
                elif codec.decode(codec.encode(value)) != value:
                    tally.wrong.append(f"{group}: {form} is another value once it is written")
    return tally


def urls(file: Path) -> Tally:
    """A URL that is taken reads the same once it is written, and names no host but that of the URL standard."""
    tally = Tally()
    for case in json.loads(file.read_text()):
        if isinstance(case, str):
            continue
        try:
            url = parse_url(case["input"])
        except BadUrl:
            tally["refused"] += 1
            continue
        tally["taken"] += 1
        if str(parse_url(str(url))) != str(url):
            tally.wrong.append(f"{case['input']!r} reads otherwise once it is written")
        standard = case.get("hostname")
        if case.get("failure"):
            tally["taken, where the standard refuses"] += 1
        elif standard is not None and standard.strip("[]") != url.host.name.strip("[]"):
            tally.wrong.append(f"{case['input']!r} leads to {url.host.name}, by the standard to {standard}")
    return tally


def _taken(text: bytes) -> bool:
    try:
        strictjson.loads(text)
    except InvalidRequest:
        return False
    return True


CORPORA: dict[str, Callable[[Path], Tally]] = {
    "js-vuln-db": vulnerabilities,
    "vm2": advisories,
    "JSONTestSuite": json_texts,
    "msgpack-test-suite": msgpack_values,
    "urltestdata.json": urls,
}


def main(folder: Path) -> int:
    found = {name: run for name, run in CORPORA.items() if (folder / name).exists()}
    if not found:
        print(f"{folder} holds none of {', '.join(CORPORA)}", file=sys.stderr)
        return 2
    wrong = 0
    for name, run in found.items():
        tally = run(folder / name)
        wrong += len(tally.wrong)
        print(f"{name}: {sum(tally.values())} inputs, {len(tally.wrong)} wrong")
        for outcome, times in tally.most_common():
            print(f"  {times:5}  {outcome}")
        for one in tally.wrong:
            print(f"  wrong: {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("EXECUTOR_CORPORA", "")
    if not given:
        sys.exit(__doc__)
    sys.exit(main(Path(given)))
