"""Which calls with an effect may be made again when nobody knows what became of them: those that are declared so.

A declaration is the document's (`x-executor-idempotent`, or an `Idempotency-Key` that the operation takes and the call
gives), that of a Python tool, or the operator's, as patterns over the tools of an integration.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Sequence
from typing import Any, Final

from bridge.glob import Glob
from bridge.wire.errors import InvalidRequest
from catalog.model import Tool
from catalog.registry import Installed

MAX_PATTERNS: Final = 200
KEY_CHARS: Final = 36
_SHAPING: Final = frozenset({"$ref", "pattern", "enum", "const", "allOf", "anyOf", "oneOf", "not"})


def check_patterns(patterns: Sequence[str]) -> list[str]:
    """Patterns over the names of tools, as an integration's config keeps them. Raises InvalidRequest."""
    if isinstance(patterns, str) or len(patterns) > MAX_PATTERNS:
        raise InvalidRequest(f"idempotent is a list of {MAX_PATTERNS} patterns at most.")
    return [Glob(pattern).pattern for pattern in patterns]


class Repeats:
    """Patterns are read once for each integration."""

    def __init__(self) -> None:
        self._declared: dict[str, tuple[Installed, list[Glob]]] = {}

    def declared(self, tool: Tool, installed: Installed) -> bool:
        """Whether every call of the tool may be repeated."""
        if tool.spec.idempotent:
            return True
        known = self._declared.get(installed.name)
        if known is None or known[0] is not installed:
            globs = [Glob(pattern) for pattern in installed.config.get("idempotent", ())]
            known = self._declared[installed.name] = (installed, globs)
        return any(glob.matches(tool.name) for glob in known[1])

    def keyed(
        self, tool: Tool, args: dict[str, Any], installed: Installed, run_id: str | None, call_id: int
    ) -> tuple[dict[str, Any], bool]:
        """The arguments, and whether this call may be repeated. A declared tool that takes an `Idempotency-Key` gets
        one where none is given: the same whenever this call of this run is made."""
        declared = self.declared(tool, installed)
        key_argument = getattr(installed.integration, "key_argument", None)
        argument = key_argument(tool) if key_argument is not None else None
        if argument is None:
            return args, declared
        if declared and args.get(argument) is None and _takes_any(tool, argument):
            args = args | {argument: _key(run_id, call_id, tool.path)}
        return args, declared or bool(args.get(argument))


def _takes_any(tool: Tool, argument: str) -> bool:
    """Whether a key of ours fits: the argument is text of any shape, long enough."""
    schema = ((tool.input_schema or {}).get("properties") or {}).get(argument)
    if not isinstance(schema, dict) or not _SHAPING.isdisjoint(schema):
        return False
    longest = schema.get("maxLength", KEY_CHARS)
    return schema.get("type", "string") == "string" and isinstance(longest, int) and longest >= KEY_CHARS


def _key(run_id: str | None, call_id: int, path: str) -> str:
    seed = secrets.token_hex(16) if run_id is None else f"{run_id} {call_id} {path}"
    return str(uuid.UUID(bytes=hashlib.sha256(seed.encode()).digest()[:16], version=4))
