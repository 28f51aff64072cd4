"""Names of an MCP server's tools as the last part of a path: the server's own wherever it can be one.

Another name is spelled with what a path may hold (`files/read` is `files.read`). What that makes alike is told apart by
a digest of the server's own name, so that a tool which is added later never takes the path of one that was there.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from catalog import address

MAX_NAME: Final = 128
"""Characters of a tool's part of the path."""
AWKWARD: Final = frozenset({"then", "__proto__", "constructor", "prototype", "toJSON"})
"""Properties that JavaScript gives a meaning of its own."""

_OTHER: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def assigned(names: Sequence[str]) -> dict[str, str]:
    """The path's last part for each of the server's `names`, which are distinct."""
    plain = {name: _spelled(name) for name in names}
    counts = Counter(plain.values())
    return {
        name: spelled if spelled == name or counts[spelled] == 1 else _told_apart(spelled, name)
        for name, spelled in plain.items()
    }


def _spelled(name: str) -> str:
    if len(name) <= MAX_NAME and address.is_tool(name) and AWKWARD.isdisjoint(name.split(".")):
        return name
    text = unicodedata.normalize("NFKD", name[: 8 * MAX_NAME]).encode("ascii", "ignore").decode()
    parts = [_OTHER.sub("_", part).strip("_") for part in re.split(r"[/.:]+", text)]
    kept = [part + "_" if part in AWKWARD else part for part in parts if part]
    spelled = ".".join(kept)
    if not spelled or len(spelled) > MAX_NAME or not text.isascii() or len(text) < len(name):
        return _told_apart(spelled or "tool", name)
    return spelled


def _told_apart(spelled: str, name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{spelled[: MAX_NAME - 9].rstrip('.')}_{digest}"
