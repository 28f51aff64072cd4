"""Values that must never show, and every spelling in which they could."""

from __future__ import annotations

import base64
import gzip
import os
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_GZIP: Final = re.compile(rb"\x1f\x8b\x08")
PIECE: Final = 12
"""A piece of a secret as long as this is a leak as well."""


def canary() -> str:
    """A new secret: 128 random bits after a mark."""
    return f"cnry_{os.urandom(16).hex()}"


def spellings(secret: str) -> dict[str, bytes]:
    """The nine encodings of the catalogue, hexadecimal in both cases, and the secret backwards."""
    raw = secret.encode()
    found = {
        "raw": secret,
        "reversed": secret[::-1],
        "hex": raw.hex(),
        "HEX": raw.hex().upper(),
        "base64": base64.b64encode(raw).decode()[:-4],
        "base64+1": base64.b64encode(b"x" + raw)[4:-4].decode(),
        "base64+2": base64.b64encode(b"xy" + raw)[4:-4].decode(),
        "base64url": base64.urlsafe_b64encode(raw).decode()[:-4],
        "url": "".join(f"%{byte:02X}" for byte in raw),
        "json": "".join(f"\\u{ord(one):04x}" for one in secret),
        "html": "".join(f"&#{ord(one)};" for one in secret),
    }
    return {name: text.encode() for name, text in found.items()}


def leaks(data: bytes, where: str, secrets: Iterable[str]) -> list[str]:
    """Every spelling of every secret that shows in `data`, in what is gzipped there, or in a piece of the secret."""
    found = []
    for secret in secrets:
        mark = secret[:9]
        for part, name in ((data, where), *((inner, f"{where}, gzipped") for inner in _unzipped(data))):
            found += [f"{name}: {spelt} of {mark}" for spelt, value in spellings(secret).items() if value in part]
            pieces = (secret[at : at + PIECE].encode() for at in range(5, len(secret) - PIECE + 1))
            if not found and any(piece in part for piece in pieces):
                found.append(f"{name}: a piece of {mark}")
    return found


def leaks_in(folder: Path, secrets: Iterable[str]) -> list[str]:
    """The same for every file below `folder` as it lies on disk: the database with its free pages, its write-ahead log,
    logs, dumps."""
    kept = list(secrets)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [leak for path in files for leak in leaks(path.read_bytes(), path.name, kept)]


def _unzipped(data: bytes) -> list[bytes]:
    found = []
    for match in _GZIP.finditer(data):
        try:
            found.append(zlib.decompressobj(31).decompress(data[match.start() :], 1 << 20))
        except (zlib.error, gzip.BadGzipFile):
            continue
    return found
