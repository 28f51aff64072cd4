"""Tools that are no dependency, each in an environment of its own below the cache folder, for the long forms alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from guest.images import cache_dir

INSTALL_S = 600


def environment(name: str, *packages: str) -> Path:
    """The Python of an environment that sees ours and has these packages as well. Fails the test, with the
    reason, where they cannot be had."""
    home = cache_dir() / "beside" / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    python = home / "bin" / "python"
    if not (home / ".complete").exists():
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], capture_output=True, text=True)
        if made.returncode == 0:
            command = [str(python), "-m", "pip", "install", "--quiet", *packages]
            made = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
        if made.returncode:
            pytest.fail(f"{name} cannot be installed here: {made.stderr.strip()[-300:]}", pytrace=False)
        (home / ".complete").touch()
    return python


def ours() -> str:
    """The folder of what is installed beside these tests, for PYTHONPATH."""
    return str(Path(pytest.__file__).parents[1])
