"""Drawings of a measurement, as PNG and SVG: bars, cost as work grows, distributions of latency."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

OURS: Final = "#1f6feb"
OTHERS: Final = "#8b949e"
MISSED: Final = "#cf222e"
_STYLE: Final = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "svg.fonttype": "none",
    "figure.constrained_layout.use": True,
}


def draw(results: dict[str, Any], folder: Path) -> list[Path]:
    """Draw what the results hold; the files that were written, two a drawing."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = results["figures"]
    written: list[Path] = []
    with mpl.rc_context(_STYLE):
        for name, figure in (
            ("latency", _distributions(rows)),
            ("growth", _growth(rows)),
            ("targets", _targets(rows)),
            ("peers", _peers(results.get("peers", {}))),
        ):
            if figure is None:
                continue
            for kind in ("png", "svg"):
                path = folder / f"{name}.{kind}"
                figure.savefig(path, dpi=144)
                written.append(path)
            plt.close(figure)
    return written


def _distributions(rows: list[dict[str, Any]]) -> Any:
    """A line a figure: how long the share of samples on the vertical axis took at most."""
    kept = [row for row in rows if "percentiles" in row["extra"] and row["unit"] in ("ms", "µs")]
    wanted = ("sdk", "http", "mcp", "arrivals", "bridge", "cold")
    groups = [(probe, list(group)) for probe, group in groupby(kept, key=lambda row: row["probe"]) if probe in wanted]
    if not groups:
        return None
    figure, axes = plt.subplots(1, len(groups), figsize=(4.2 * len(groups), 3.6), squeeze=False)
    for axis, (probe, group) in zip(axes[0], groups, strict=True):
        for row in group:
            scale = 1.0 if row["unit"] == "ms" else 1e-3
            axis.plot([value * scale for value in row["extra"]["percentiles"]], range(101), label=_short(row["name"]))
        axis.set(xscale="log", title=probe, xlabel="milliseconds", ylabel="% of samples", ylim=(0, 100))
        axis.grid(alpha=0.25)
        axis.legend(frameon=False, fontsize=7, loc="lower right")
    return figure


def _growth(rows: list[dict[str, Any]]) -> Any:
    """A panel a series: how a cost grows with the work."""
    points = [row for row in rows if "series" in row["extra"]]
    if not points:
        return None
    names = list(dict.fromkeys(row["extra"]["series"] for row in points))
    figure, axes = plt.subplots(1, len(names), figsize=(3.6 * len(names), 3.2), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        line = sorted((row for row in points if row["extra"]["series"] == name), key=lambda row: row["extra"]["x"])
        xs = [row["extra"]["x"] for row in line]
        axis.plot(xs, [row["value"] for row in line], "o-", color=OURS, label="median")
        tails = [row["extra"].get("p99") for row in line]
        if all(tail is not None for tail in tails):
            axis.plot(xs, tails, "o--", color=OTHERS, label="p99")
        axis.set(xscale="log", yscale="log", title=name, ylabel=line[0]["unit"])
        axis.grid(alpha=0.25, which="both")
        axis.legend(frameon=False, fontsize=7)
    return figure


def _targets(rows: list[dict[str, Any]]) -> Any:
    """A bar a target: the figure as a share of what is wanted, so that 1 is the line to stay on the right side of."""
    held = [row for row in rows if row["target"]]
    if not held:
        return None
    shares = [
        (row["value"] / row["target"] if row["better"] == "lower" else row["target"] / max(row["value"], 1e-9), row)
        for row in held
    ]
    figure, axis = plt.subplots(figsize=(8, 0.32 * len(held) + 1))
    labels = [f"{row['probe']}: {_short(row['name'])}" for _, row in shares]
    axis.barh(labels, [share for share, _ in shares], color=[MISSED if share > 1 else OURS for share, _ in shares])
    for at, (share, row) in enumerate(shares):
        axis.text(share, at, f" {row['value']:.3g} {row['unit']}", va="center", fontsize=7)
    axis.axvline(1, color="black", linewidth=1)
    axis.invert_yaxis()
    axis.set(title="Against the targets (1 is the target, shorter is better)", xlim=(0, None))
    return figure


def _peers(peers: dict[str, Any]) -> Any:
    """A panel a figure: a bar a sandbox, shortest first."""
    probes = list(dict.fromkeys(name for one in peers.values() for name in one.get("figures", {})))
    if not probes:
        return None
    figure, axes = plt.subplots(1, len(probes), figsize=(3.4 * len(probes), 0.28 * len(peers) + 1.6), squeeze=False)
    for axis, probe in zip(axes[0], probes, strict=True):
        bars = sorted((one["figures"][probe]["median"], name) for name, one in peers.items() if probe in one["figures"])
        names = [name for _, name in bars]
        axis.barh(
            names,
            [value for value, _ in bars],
            color=[OURS if name.startswith("executor ") else OTHERS for name in names],
        )
        axis.invert_yaxis()
        axis.set(xscale="log", title=probe)
        axis.tick_params(axis="y", labelsize=7)
    return figure


def _short(name: str) -> str:
    return name if len(name) <= 44 else f"{name[:43]}…"
