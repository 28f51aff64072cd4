"""npm packages that tests need, installed once into the cache from a lock, and the Node that runs them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import ssl
import subprocess
from pathlib import Path

from guest import images, npm

INSTALL_S = 300
PATIENT = ("--fetch-timeout=30000", "--fetch-retries=5", "--fetch-retry-mintimeout=1000")
"""A download that stalls is begun again, long before the time for all of them is over."""


def installed(folder: Path, name: str) -> Path:
    """The folder that holds the packages of `folder`'s package-lock.json. Takes a while the first time."""
    cache = images.cache_dir()
    lock = (folder / "package-lock.json").read_bytes()
    home = cache / "tools" / f"{name}-{hashlib.sha256(lock).hexdigest()[:16]}"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            for file in ("package.json", "package-lock.json"):
                shutil.copy(folder / file, home / file)
            subprocess.run(
                [*tool("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", *PATIENT, "--cache", cache / "npm"],
                cwd=home,
                check=True,
                capture_output=True,
                timeout=INSTALL_S,
                stdin=subprocess.DEVNULL,
                env=_trusting(),
            )
            (home / "complete").touch()
    return home


def _trusting() -> dict[str, str]:
    """The environment, with this system's certificate authorities beside those that Node brings along: without them
    every download is tried in vain, again and again, where a proxy of the network answers in the registry's place."""
    authorities = ssl.get_default_verify_paths().cafile
    return ({"NODE_EXTRA_CA_CERTS": authorities} if authorities else {}) | os.environ


def tool(name: str) -> list[str | Path]:
    """The Node (22 or newer) that the builds bring along, whatever this machine has, or its npm."""
    root = npm._carried(images.cache_dir())
    node = root / "bin" / "node"
    return [node] if name == "node" else [node, root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
