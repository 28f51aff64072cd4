"""Ask every peer the same, in rounds that take each in turn, so that a busy moment falls on all of them.

What is known is kept after each peer, so that a run which ends early has lost nothing and can be gone on with. A peer
that fails, or that is not installed, has a row that says why.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from rich.markup import escape
from rich.table import Table

from benchmarks.machine import facts
from benchmarks.measure import spread
from benchmarks.peers import ALL, Peer
from benchmarks.peers.asked import LIMIT_S, SPEED_S, START_S, ask, words
from benchmarks.peers.install import Missing, install

SPEED: Final = {
    "one": ("a new sandbox and 1+1", "ms"),
    "loop": ("a loop of 10⁶", "ms"),
    "bridge": ("a call of the host", "µs"),
}
LIMITS: Final = ("endless", "swallowing", "allocating", "doubling", "backtracking", "recursing", "calls")
"""Scripts that go on for ever or take without end; each sandbox has 1 s, 64 MiB (Python twice that) and 50 calls."""
ROUNDS: Final = 3
"""One, where a first look is wanted."""
HELD_S: Final = 3.0
"""Later than this, three times the limit, a limit has not held."""
OUT_OF_TIME: Final = "not measured: the time for the run was over"

Progress = Callable[[str], None]
Keep = Callable[[dict[str, Any]], None]


class Comparison:
    """A run over some peers: what is found so far, and the time that it may take."""

    def __init__(self, names: Sequence[str], scale: float, seconds: float, earlier: dict[str, Any]) -> None:
        self._began = time.time()
        self._until = time.monotonic() + seconds
        self._samples = max(3, int(20 * scale))
        self._rounds = ROUNDS if scale >= 1 else 1
        kept = earlier["peers"] if earlier.get("scale") == scale else {}
        self.results: dict[str, Any] = {
            "machine": facts(),
            "taken_at": self._began,
            "seconds": earlier["seconds"] if kept else 0.0,
            "scale": scale,
            "figures": [],
            "peers": {name: _row(ALL[name], kept.get(name)) for name in names},
            "failed": {},
        }
        self._before = self.results["seconds"]

    def run(self, installs: bool, progress: Progress, keep: Keep) -> dict[str, Any]:
        there = [ALL[name] for name in self.results["peers"] if self._there(ALL[name], installs, progress)]
        for turn in range(self._rounds):
            for peer in there:
                self._round(peer, turn, progress, keep)
            # Between the rounds, so that a run whose time is over has at least one of them and the limits.
            for peer in there if turn == 0 else ():
                self._limits(peer, progress, keep)
        return self._told()

    def _round(self, peer: Peer, turn: int, progress: Progress, keep: Keep) -> None:
        row = self.results["peers"][peer.name]
        if row["rounds"] > turn:
            return
        progress(f"round {turn + 1} of {self._rounds}: {peer.name}")
        row["rounds"] = turn + 1
        for probe in SPEED:
            self._speed(peer, row, probe)
        keep(self._told())

    def _limits(self, peer: Peer, progress: Progress, keep: Keep) -> None:
        row = self.results["peers"][peer.name]
        wanted = [probe for probe in LIMITS if probe not in row["limits"] and peer.name != "cpython"]
        if not wanted:
            return
        progress(f"limits: {peer.name}")
        for probe in wanted:
            if self._left() > 0:
                row["limits"][probe] = _limit(ask(peer, probe, 1, LIMIT_S, ready=START_S))
            else:
                row["failed"][probe] = OUT_OF_TIME
        keep(self._told())

    def _there(self, peer: Peer, installs: bool, progress: Progress) -> bool:
        row = self.results["peers"][peer.name]
        row["failed"].pop("installed", None)
        try:
            if installs and self._left() > 0:
                install(peer, lambda: progress(f"{peer.name}: installing"))
            words(peer)
        except Missing as e:
            row["failed"]["installed"] = f"not installed: {e}"
            progress(f"{peer.name}: not installed: {e}")
            return False
        return True

    def _speed(self, peer: Peer, row: dict[str, Any], probe: str) -> None:
        if self._left() <= 0:
            if probe not in row["samples"]:
                row["failed"].setdefault(probe, OUT_OF_TIME)
            return
        answer = ask(peer, probe, self._samples, SPEED_S, ready=START_S)
        taken = answer.get("ms") or answer.get("us")
        if taken:
            row["samples"].setdefault(probe, []).extend(taken)
            row["failed"].pop(probe, None)
        elif "ended" in answer:
            row["failed"][probe] = answer["ended"]

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _told(self) -> dict[str, Any]:
        """The results so far, with their medians."""
        failed = self.results["failed"]
        failed.clear()
        for name, row in self.results["peers"].items():
            for probe, taken in row["samples"].items():
                label, unit = SPEED[probe]
                row["figures"][f"{label}, {unit}"] = {"median": statistics.median(taken), **spread(taken)}
            failed |= {f"{name}: {probe}": reason for probe, reason in row["failed"].items()}
        self.results["seconds"] = round(self._before + time.time() - self._began, 1)
        self.results["machine"]["load at the end"] = facts()["load"]
        return self.results


def _row(peer: Peer, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """What is known of a peer: nothing yet, or what an earlier run found of the same packages."""
    packages = list(peer.packages)
    if earlier and earlier["packages"] == packages:
        # What failed for want of time is asked again; a turn in which nothing was found is taken again.
        late = [probe for probe, reason in earlier["failed"].items() if reason == OUT_OF_TIME]
        for probe in late:
            del earlier["failed"][probe]
        if not earlier["samples"] or set(late) & set(SPEED):
            earlier["rounds"] = 0
        return earlier
    return {
        "language": peer.language,
        "packages": packages,
        "note": peer.note,
        "rounds": 0,
        "samples": {},
        "figures": {},
        "limits": {},
        "failed": {},
    }


def run(
    names: Sequence[str],
    scale: float,
    installs: bool,
    progress: Progress,
    *,
    seconds: float,
    keep: Keep,
    earlier: dict[str, Any],
) -> dict[str, Any]:
    """Figures and limits of these peers within about `seconds`, as results that `bench plot` and the tables take.

    `keep` gets the results so far after each peer; `earlier` are such ones to go on with, or empty.
    """
    return Comparison(names, scale, seconds, earlier).run(installs, progress, keep)


def speeds(results: dict[str, Any]) -> list[list[str]]:
    """How fast each is: a heading, then a row a peer, whose last cell says what it is or why it has no figures."""
    labels = [f"{label}, {unit}" for label, unit in SPEED.values()]
    rows = [["sandbox", *labels, ""]]
    for name, one in results["peers"].items():
        cells = [f"{one['figures'][label]['median']:.4g}" if label in one["figures"] else "" for label in labels]
        reasons = dict.fromkeys(reason for probe, reason in one["failed"].items() if probe not in LIMITS)
        rows.append([name, *cells, "; ".join(reasons) or one["note"]])
    return rows


def held(results: dict[str, Any]) -> list[list[str]]:
    """Which limit each holds: a heading, then a row a peer."""
    rows = [["sandbox", *LIMITS]]
    for name, one in results["peers"].items():
        if one["limits"]:
            rows.append([name, *(_verdict(one, probe) for probe in LIMITS)])
    return rows


def tables(results: dict[str, Any]) -> list[Table]:
    """How fast each is, and which limit each holds."""
    speed, limits = Table(box=None, pad_edge=False), Table(box=None, pad_edge=False)
    heading, *rows = speeds(results)
    for number, name in enumerate(heading):
        speed.add_column(name, justify="right" if 0 < number < len(heading) - 1 else "left")
    for *cells, note in rows:
        speed.add_row(*cells, f"[dim]{escape(note)}[/]")
    heading, *rows = held(results)
    for name in heading:
        limits.add_column(name)
    for name, *verdicts in rows:
        limits.add_row(name, *(f"[{'red' if _lost(one) else 'green'}]{escape(one)}[/]" for one in verdicts))
    return [speed, limits]


def _lost(verdict: str) -> bool:
    return not verdict.startswith("held")


def _verdict(row: dict[str, Any], probe: str) -> str:
    limit = row["limits"].get(probe)
    return limit["verdict"] if limit else "not measured"


def _limit(answer: dict[str, Any]) -> dict[str, Any]:
    """Whether a limit held: the script was ended, by the sandbox, soon, and within its memory."""
    ended, seconds = answer["ended"], answer.get("seconds", 0.0)
    kept = not answer.get("killed") and ended != "completed" and seconds <= HELD_S
    if kept:
        verdict = f"held, {seconds:.2f} s"
    elif answer.get("killed"):
        verdict = "died" if ended.startswith("the process died") else ended
    elif ended == "completed":
        verdict = "ran on"
    else:
        verdict = f"after {seconds:.1f} s"
    return {"held": kept, "verdict": verdict, **answer}
