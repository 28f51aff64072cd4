"""The manifest of the threat catalogue, read, and the tests that name its ids."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
TESTS = HERE.parent
GROUPS = ("ESC", "PYE", "MSG", "BUD", "SSRF", "SEC", "POL", "HTTP", "MCP", "PKG", "PER", "WRK")
ID = re.compile(rf"\b(?:{'|'.join(GROUPS)})-\d\d\b")


@dataclass(frozen=True)
class Threat:
    """One case. `reason` says why it is not held, where it is not."""

    id: str
    says: str
    status: str
    reason: str | None = None


class _Strict(yaml.SafeLoader):
    """Refuses an id that stands there twice, which YAML readers pass over in silence."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        twice = {name for name in names if names.count(name) > 1}
        assert not twice, f"twice in the manifest: {twice}"
        return super().construct_mapping(node, deep)


@cache
def threats() -> dict[str, Threat]:
    """Every case by its id. Raises AssertionError for an entry of another shape than the manifest's head says."""
    found = {}
    for name, entry in yaml.load((HERE / "manifest.yaml").read_text(), _Strict).items():
        if isinstance(entry, str):
            found[name] = Threat(name, entry, "held")
            continue
        (status,) = set(entry) - {"says"}
        assert status in ("not_applicable", "open"), f"{name}: {status} is no status"
        found[name] = Threat(name, entry["says"], status, entry[status])
    return found


def words(source: str) -> Iterator[str]:
    """Every text constant of a module, docstrings among them. A comment is no claim, and is left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def named() -> dict[str, set[str]]:
    """The files that name each id: test modules in their texts, and lists of cases that a test module reads."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(TESTS.rglob("test_*.py")):
        for text in words(path.read_text()):
            for one in ID.findall(text):
                found[one].add(str(path.relative_to(TESTS)))
    for path in sorted(HERE.glob("*.txt")):
        for one in ID.findall(path.read_text()):
            found[one].add(str(path.relative_to(TESTS)))
    return found
