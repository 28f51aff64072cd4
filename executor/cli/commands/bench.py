"""`executor bench`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bridge.wire.errors import ConfigError, InvalidRequest
from executor.cli.options import Flag

RESULTS = Path(".bench/results.json")
"""Where figures go, below the folder that the command runs in."""
PEERS = Path(".bench/peers.json")


def run(
    *,
    only: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    quick: Flag = False,
    to: Path = RESULTS,
    json: Flag = False,
) -> None:
    """Measure this machine: isolates, both guests, every door, limits, memory, the catalog.

    Parameters
    ----------
    only
        Only these probes; a wrong name lists them all.
    quick
        A tenth of the samples, for a first look.
    to
        The file that keeps the figures as JSON.
    json
        Print the figures as JSON too.
    """
    from executor.cli import output

    harness = _harness()
    names = tuple(only or harness.PROBES)
    known = (*harness.PROBES, *harness.LONG)
    for name in names:
        if name not in known:
            raise InvalidRequest(f"{name[:40]!r} is not a probe", hint=f"use some of {', '.join(known)}")
    scale, progress = 0.1 if quick else 1.0, lambda line: output.say(f"· {line}", "quiet")
    results = harness.measure(names, scale, progress, lambda found: harness.write(found, to))
    if json:
        output.print_json(results)
        return
    output.out.print("  ".join(f"{key} {value}" for key, value in results["machine"].items()))
    output.out.print(harness.table(results))
    output.say(f"written to {to}", "quiet")


def plot(*, results: Path = RESULTS, peers: Path = PEERS, to: Path = Path(".bench")) -> None:
    """Draw the figures of a measurement as PNG and SVG.

    Parameters
    ----------
    results
        What `bench run` wrote.
    peers
        What `bench peers` wrote, if it did.
    to
        The folder for the drawings.
    """
    from executor.cli import output

    harness = _harness()
    try:
        from benchmarks import plot as drawing
    except ModuleNotFoundError as e:
        raise ConfigError(
            f"drawing needs {e.name}, which is not installed", hint="pip install 'executor-runtime[bench]'"
        ) from None
    for path in drawing.draw(_read(harness, results) | {"peers": _peers(harness, peers).get("peers", {})}, to):
        output.out.print(str(path))


def report(*, results: Path = RESULTS, peers: Path = PEERS, to: Path = Path("benchmarks/RESULTS.md")) -> None:
    """Write the figures of a measurement as a Markdown page.

    Parameters
    ----------
    results
        What `bench run` wrote.
    peers
        What `bench peers` wrote, if it did.
    to
        The page.
    """
    from executor.cli import output

    harness = _harness()
    from benchmarks import report as page

    to.write_text(page.written(_read(harness, results), _peers(harness, peers)))
    output.out.print(str(to))


def calibrate(*, seconds: float = 5.0, json: Flag = False) -> None:
    """Measure how much fuel this machine burns a second, and propose budgets for a wanted time.

    Parameters
    ----------
    seconds
        How long a script may compute at most.
    json
        Print the proposal as JSON.
    """
    from executor.cli import output

    _harness()
    from benchmarks import calibrate as advisor

    if not 0 < seconds <= advisor.LONGEST_S:
        raise InvalidRequest(f"seconds must be above 0 and at most {advisor.LONGEST_S:g}")
    advice = advisor.advise(seconds, lambda line: output.say(f"· {line}", "quiet"))
    if json:
        output.print_json(advice)
        return
    output.out.print(advisor.shown(advice))


def peers(
    *,
    only: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    install: Flag = False,
    quick: Flag = False,
    resume: Flag = False,
    minutes: float = 15.0,
    to: Path = PEERS,
    json: Flag = False,
) -> None:
    """Measure other sandboxes beside this one, in the same run and with the same scripts and limits.

    A peer that is not installed, or that fails, has a row that says why. What is found is written after each peer.

    Parameters
    ----------
    only
        Only these peers; a wrong name lists them all.
    install
        Install what is missing into the cache folder first, each into an environment of its own.
    quick
        A tenth of the samples, for a first look.
    resume
        Go on with what a run that ended early has written.
    minutes
        How long it may take; what was not asked by then is said so.
    to
        The file that keeps the figures as JSON.
    json
        Print the figures as JSON too.
    """
    from executor.cli import output

    harness = _harness()
    from benchmarks.peers import ALL
    from benchmarks.peers.compare import run as compared
    from benchmarks.peers.compare import tables

    for name in only or ():
        if name not in ALL:
            raise InvalidRequest(f"{name[:40]!r} is not a peer", hint=f"use some of {', '.join(ALL)}")
    if not minutes > 0:
        raise InvalidRequest("minutes must be above 0")
    results = compared(
        tuple(only or ALL),
        0.1 if quick else 1.0,
        install,
        lambda line: output.say(f"· {line}", "quiet"),
        seconds=minutes * 60,
        keep=lambda found: harness.write(found, to),
        earlier=_peers(harness, to) if resume else {},
    )
    if json:
        output.print_json(results)
        return
    for made in tables(results):
        output.out.print(made)
    output.say(f"written to {to}", "quiet")


def _harness() -> Any:
    try:
        from benchmarks import harness
    except ModuleNotFoundError as e:
        raise ConfigError(f"the harness is not installed here ({e.name})", hint="run it from a checkout") from None
    return harness


def _read(harness: Any, path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = harness.read(path)
    except FileNotFoundError:
        raise InvalidRequest(f"there is no {path}", hint="executor bench run") from None
    except ValueError as e:
        raise InvalidRequest(str(e), hint="executor bench run") from None
    return found


def _peers(harness: Any, path: Path) -> dict[str, Any]:
    """The peers' part of what `bench peers` wrote; nothing where it wrote nothing."""
    if not path.exists():
        return {}
    found = _read(harness, path)
    return {key: found[key] for key in ("peers", "seconds", "scale", "taken_at", "machine") if key in found}
