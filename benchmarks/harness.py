"""Run probes one after another; what they found, as a table and as JSON."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks.machine import facts
from benchmarks.measure import Figure

PROBES: Final = (
    *("isolate", "engine", "metering", "python", "cold", "sdk", "http", "packages", "mcp", "arrivals"),
    *("limits", "memory", "drift", "catalog", "durable"),
)
LONG: Final = ("documents",)
"""Probes that fetch what they measure, and run only when they are asked for."""
FOLDER: Final = Path(".bench")


def measure(
    names: Sequence[str], scale: float, progress: Callable[[str], None], keep: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Run these probes with `scale` times their samples. A probe that cannot run here is told, and the rest go on.

    `keep` gets the results so far after each probe, so that a run which ends early has lost nothing.
    """
    machine, began = facts(), time.time()
    figures: list[Figure] = []
    failed: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        progress(f"{name}, {number} of {len(names)}")
        try:
            figures += importlib.import_module(f"benchmarks.probes.{name}").run(scale)
        except Exception as e:
            failed[name] = f"{type(e).__name__}: {str(e)[:300]}"
            progress(f"{name} cannot be measured here: {failed[name]}")
        keep(_results(machine, began, scale, figures, failed))
    return _results(machine, began, scale, figures, failed)


def _results(
    machine: dict[str, str], began: float, scale: float, figures: list[Figure], failed: dict[str, str]
) -> dict[str, Any]:
    return {
        "machine": machine | {"load at the end": facts()["load"]},
        "taken_at": began,
        "seconds": round(time.time() - began, 1),
        "scale": scale,
        "figures": [figure.as_dict() for figure in figures],
        "failed": failed,
    }


def write(results: dict[str, Any], path: Path) -> None:
    """Write results whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(json.dumps(results, indent=1) + "\n")
    beside.replace(path)


def read(path: Path) -> dict[str, Any]:
    """Results that were written. Raises FileNotFoundError, ValueError."""
    results: dict[str, Any] = json.loads(path.read_text())
    if "figures" not in results or "machine" not in results:
        raise ValueError(f"{path} holds no results of a measurement")
    return results


def table(results: dict[str, Any]) -> Table:
    """The figures as a person reads them: what, how much, how spread, against which target."""
    out = Table(box=None, pad_edge=False)
    for heading in ("probe", "figure"):
        out.add_column(heading)
    for heading in ("median", "min", "p99", "target"):
        out.add_column(heading, justify="right")
    out.add_column("")
    for row in results["figures"]:
        out.add_row(*cells(row), {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[row["met"]])
    return out


def cells(row: dict[str, Any]) -> tuple[str, str, str, str, str, str]:
    """Probe, figure, median, minimum, p99 and target of a row of results."""
    low, tail = row["extra"].get("min"), row["extra"].get("p99")
    sign = "≤" if row["better"] == "lower" else "≥"
    return (
        row["probe"],
        row["name"],
        f"{row['value']:.4g} {row['unit']}".strip(),
        "" if low is None else f"{low:.4g}",
        "" if tail is None else f"{tail:.4g}",
        "" if row["target"] is None else f"{sign} {row['target']:g}",
    )
