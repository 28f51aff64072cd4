"""Ask every peer the same, in rounds that take each in turn, so that a busy moment falls on all of them."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks.machine import descendants, facts, rss_bytes
from benchmarks.measure import spread
from benchmarks.peers import ALL, Peer
from benchmarks.peers.install import Missing, command, folder, install

SPEED: Final = {
    "one": ("a new sandbox and 1+1", "ms"),
    "loop": ("a loop of 10⁶", "ms"),
    "bridge": ("a call of the host", "µs"),
}
LIMITS: Final = ("endless", "swallowing", "allocating", "doubling", "backtracking", "recursing", "calls")
"""Scripts that go on for ever or take without end; each sandbox has 1 s, 64 MiB (Python twice that) and 50 calls."""
ROUNDS: Final = 3
"""One, where a first look is wanted."""
KILL_S: Final = 15.0
KILL_BYTES: Final = 4 << 30
HELD_S: Final = 3.0
"""Later than this, three times the limit, a limit has not held."""
_ADAPTERS: Final = Path(__file__).parent / "adapters"

Progress = Callable[[str], None]


def run(names: Sequence[str], scale: float, installs: bool, progress: Progress) -> dict[str, Any]:
    """Figures and limits of these peers, as results that `bench plot` and the tables take."""
    machine, began = facts(), time.time()
    there: list[Peer] = []
    found: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name in names:
        try:
            if installs:
                progress(f"{name}: installing where it is missing")
                install(ALL[name])
            command(ALL[name], _ADAPTERS / ALL[name].adapter)
            there.append(ALL[name])
            found[name] = {"language": ALL[name].language, "note": ALL[name].note, "figures": {}, "limits": {}}
        except Missing as e:
            failed[name] = str(e)
            progress(f"{name}: {e}")
    samples: dict[tuple[str, str], list[float]] = {}
    count = max(3, int(20 * scale))
    rounds = ROUNDS if scale >= 1 else 1
    for turn in range(rounds):
        for peer in there:
            progress(f"round {turn + 1} of {rounds}: {peer.name}")
            for probe in SPEED:
                answer = _ask(peer, probe, count)
                taken = answer.get("ms") or answer.get("us")
                if taken:
                    samples.setdefault((peer.name, probe), []).extend(taken)
                elif "ended" in answer:
                    failed[f"{peer.name}: {probe}"] = answer["ended"]
    for (name, probe), taken in samples.items():
        label, unit = SPEED[probe]
        found[name]["figures"][f"{label}, {unit}"] = {"median": statistics.median(taken), **spread(taken)}
    for peer in there:
        progress(f"limits: {peer.name}")
        for probe in LIMITS:
            if peer.name != "cpython":
                found[peer.name]["limits"][probe] = _limit(_ask(peer, probe, 1))
    return {
        "machine": machine | {"load at the end": facts()["load"]},
        "taken_at": began,
        "seconds": round(time.time() - began, 1),
        "scale": scale,
        "figures": [],
        "peers": found,
        "failed": failed,
    }


def tables(results: dict[str, Any]) -> list[Table]:
    """How fast each is, and which limit each holds."""
    peers = results["peers"]
    speed, limits = Table(box=None, pad_edge=False), Table(box=None, pad_edge=False)
    labels = [f"{label}, {unit}" for label, unit in SPEED.values()]
    for heading in ("sandbox", *labels, ""):
        speed.add_column(heading, justify="right" if heading in labels else "left")
    for name, one in peers.items():
        cells = [f"{one['figures'][label]['median']:.4g}" if label in one["figures"] else "" for label in labels]
        speed.add_row(name, *cells, f"[dim]{one['note']}[/]")
    for heading in ("sandbox", *LIMITS):
        limits.add_column(heading)
    for name, one in peers.items():
        if one["limits"]:
            limits.add_row(name, *(_verdict(one["limits"][probe]) for probe in LIMITS))
    return [speed, limits]


def _verdict(limit: dict[str, Any]) -> str:
    colour = "green" if limit["held"] else "red"
    return f"[{colour}]{limit['verdict']}[/]"


def _limit(answer: dict[str, Any]) -> dict[str, Any]:
    """Whether a limit held: the script was ended, by the sandbox, soon, and within its memory."""
    ended, seconds = answer["ended"], answer.get("seconds", 0.0)
    if answer.get("killed"):
        verdict = ended
    elif ended == "completed":
        verdict = "ran on"
    elif seconds > HELD_S:
        verdict = f"after {seconds:.1f} s"
    else:
        verdict = f"{seconds:.2f} s"
    held = not answer.get("killed") and ended != "completed" and seconds <= HELD_S
    return {"held": held, "verdict": verdict, **answer}


def _ask(peer: Peer, probe: str, samples: int) -> dict[str, Any]:
    """The answer of a peer's adapter; a process that takes too long or too much is killed, which is an answer too."""
    words = [*command(peer, _ADAPTERS / peer.adapter), probe, str(samples), peer.language]
    # A new process has to start and to compile before the limit can begin.
    allowed = KILL_S + (0 if probe in LIMITS else 120)
    where = folder(peer) if peer.host == "node" else None
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=where, text=True) as child:
        began, peak = time.monotonic(), 0
        while child.poll() is None:
            peak = max(peak, _memory(child.pid))
            if time.monotonic() - began > allowed or peak > KILL_BYTES:
                child.kill()
                child.communicate()
                reason = "too much memory" if peak > KILL_BYTES else "never ended"
                return {"ended": reason, "killed": True, "peak_MiB": peak >> 20}
            time.sleep(0.02)
        said, told = child.communicate()
    lines = said.strip().splitlines()
    if child.returncode or not lines or not lines[-1].startswith("{"):
        reason = (told.strip().splitlines() or [f"exit status {child.returncode}"])[-1][:160]
        return {"ended": f"the process died: {reason}", "killed": True, "peak_MiB": peak >> 20}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer | {"peak_MiB": peak >> 20}


def _memory(pid: int) -> int:
    """Resident bytes of a process and all below it; 0 when it has just gone."""
    try:
        return sum(map(rss_bytes, (pid, *descendants(pid))))
    except (OSError, LookupError):
        return 0
