"""The figures of a measurement as a page: made from the JSON alone, so that no figure is typed by hand."""

from __future__ import annotations

import time
from itertools import groupby
from typing import Any

from benchmarks import harness
from benchmarks.peers import compare

_HEAD = """# Results

Written by `executor bench report` from what `./scripts/bench` measured; not edited by hand. A figure is the median of
its samples, in brackets the middle half of them; ratios are of pairs taken back to back in one run. The machine is
shared with other work unless its load says otherwise, so compare figures of one run with each other before any with a
figure from elsewhere.
"""


def written(results: dict[str, Any], peers: dict[str, Any]) -> str:
    """The page; `peers` are results of other sandboxes, or empty."""
    taken = time.strftime("%Y-%m-%d", time.gmtime(results["taken_at"]))
    lines = [
        _HEAD,
        f"Taken on {taken} in {results['seconds']:.0f} s, with {results['scale']:g} × the usual samples.",
        "",
    ]
    lines += ["| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in results["machine"].items()]
    rows = results["figures"]
    held = [row for row in rows if row["met"] is not None]
    missed = [row for row in held if not row["met"]]
    lines += ["", f"Of {len(held)} targets {len(held) - len(missed)} are met."]
    if missed:
        lines += ["", "Missed:", ""]
        lines += [
            f"- {row['probe']}, {row['name']}: {harness.cells(row)[2]}, wanted {harness.cells(row)[5]}"
            for row in missed
        ]
    for probe, group in groupby(rows, key=lambda row: row["probe"]):
        lines += [
            "",
            f"## {probe}",
            "",
            "| figure | median | p99 | p99.9 | target | |",
            "|---|---:|---:|---:|---:|---|",
        ]
        for row in group:
            _, name, median, _, tail, target = harness.cells(row)
            far = row["extra"].get("p99.9")
            verdict = {True: "met", False: "**missed**", None: ""}[row["met"]]
            lines.append(f"| {name} | {median}{_middle(row)} | {tail} | {_figure(far)} | {target} | {verdict} |")
    for name, reason in results["failed"].items():
        lines += ["", f"Not measured: {name}: {reason}"]
    if peers:
        lines += _others(peers)
    return "\n".join(lines) + "\n"


def _others(peers: dict[str, Any]) -> list[str]:
    """Other sandboxes: how fast each is, and which limit each holds."""
    taken = time.strftime("%Y-%m-%d", time.gmtime(peers["taken_at"]))
    return [
        "",
        "## Beside other sandboxes",
        "",
        f"`executor bench peers`, taken on {taken} in {peers['seconds']:.0f} s with {peers['scale']:g} × the usual",
        f"samples, at a load of {peers['machine']['load']}: the same scripts, each peer in a process of its own,",
        "in rounds that take each in turn. The limits are 1 s, 64 MiB (Python twice that) and 50 calls, where a peer",
        "can be told.",
        "",
        *_grid(compare.speeds(peers)),
        "",
        "Which limit each holds: the script was ended by the sandbox itself, within three times the limit, with",
        "the host alive. *ran on* is a script that ended as if there were no limit; *died* took the host with it.",
        "",
        *_grid(compare.held(peers)),
    ]


def _grid(rows: list[list[str]]) -> list[str]:
    heading, *rest = ([" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows)
    return [f"| {' | '.join(row)} |" for row in (heading, ["---"] * len(heading), *rest)]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _middle(row: dict[str, Any]) -> str:
    low, high = row["extra"].get("p25"), row["extra"].get("p75")
    return "" if low is None or high is None else f" ({low:.4g}–{high:.4g})"
