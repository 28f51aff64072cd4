"""`python -m benchmarks [--quick] [--only PROBE …] [--json FILE]`: measure, print a table, write JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.machine import facts
from benchmarks.measure import Figure

PROBES = ("isolate", "engine", "python", "sdk", "http", "memory", "drift", "catalog", "durable")
LONG = ("documents",)
"""Probes that fetch what they measure, and run only when they are asked for."""


def table(figures: list[Figure]) -> Table:
    """The figures as a person reads them: what, how much, against which target."""
    out = Table(box=None, pad_edge=False)
    for heading in ("probe", "figure"):
        out.add_column(heading)
    for heading in ("median", "min", "p99", "target"):
        out.add_column(heading, justify="right")
    out.add_column("")
    for figure in figures:
        low, tail = figure.extra.get("min"), figure.extra.get("p99")
        sign = "≤" if figure.better == "lower" else "≥"
        out.add_row(
            figure.probe,
            figure.name,
            f"{figure.value:.4g} {figure.unit}",
            "" if low is None else f"{low:.4g}",
            "" if tail is None else f"{tail:.4g}",
            "" if figure.target is None else f"{sign} {figure.target:g}",
            {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[figure.met],
        )
    return out


def main() -> int:
    """Run the chosen probes one after another; exit 0 whether or not targets are met (a figure is not a test)."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples, for a first look")
    parser.add_argument("--only", nargs="+", choices=(*PROBES, *LONG), default=PROBES, metavar="PROBE")
    parser.add_argument("--json", type=Path, default=Path(".bench/results.json"))
    options = parser.parse_args()
    scale = 0.1 if options.quick else 1.0

    machine = facts()
    progress = Console(stderr=True)
    figures: list[Figure] = []
    for name in options.only:
        progress.print(f"[dim]· {name}[/]")
        module = importlib.import_module(f"benchmarks.probe_{name}")
        figures += module.run(scale)

    console = Console()
    console.print("  ".join(f"[dim]{key}[/] {value}" for key, value in machine.items()))
    console.print(table(figures))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    results = {"machine": machine, "taken_at": time.time(), "figures": [figure.as_dict() for figure in figures]}
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    progress.print(f"[dim]written to {options.json}[/]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
