"""The tools of a package: asked of the package itself in an isolate, and made into specs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from catalog.kinds.mcp.names import assigned
from catalog.kinds.npm.bundle import PackageSource
from catalog.kinds.npm.tree import FOLDER, Lock, PackageTree
from catalog.model import Diagnostic, Schema, ToolSpec
from catalog.validate import SchemaError, checker

MAX_TOOLS: Final = 1_000
MAX_DESCRIPTION: Final = 8_000
MAX_DEPTH: Final = 100
EXPORT: Final = "list"
_LISTER: Final = "executor-lister"


@cache
def _code() -> str:
    return (Path(__file__).parent / "lister.js").read_text(encoding="utf-8")


def listing_of(lock: Lock, read: Any) -> PackageSource:
    """A package whose tool `list` says which tools the package of `lock` has. `read` brings the files of that one."""
    entry = f"""
        import * as root from {json.dumps(lock.name)};
        import {{ toolsOf }} from "./lister.mjs";
        export const {EXPORT} = {{ execute: () => toolsOf(root) }};
    """

    def tree() -> PackageTree:
        whole: PackageTree = read()
        place = f"{FOLDER}/{_LISTER}"
        facts = {"name": _LISTER, "version": "0.0.0", "type": "module", "exports": "./index.mjs"}
        added = {
            f"{place}/package.json": json.dumps(facts).encode(),
            f"{place}/index.mjs": entry.encode(),
            f"{place}/lister.mjs": _code().encode(),
        }
        return PackageTree(lock, {**whole.files, **added})

    digest = hashlib.sha256(f"{lock.digest}{entry}{_code()}".encode()).hexdigest()
    return PackageSource(digest, _LISTER, tree)


def tools_of(listed: Sequence[Any], package: str) -> tuple[tuple[ToolSpec, ...], tuple[Diagnostic, ...]]:
    """The specs of what a package said of its tools. What it says of itself is taken for text, and for nothing else.

    A tool computes in an isolate, and what it fetches is decided and recorded as a call of its own: by itself it
    changes nothing, so that it counts as reading.
    """
    given = [row for row in listed[:MAX_TOOLS] if isinstance(row, Mapping) and _is_name(row.get("name"))]
    rows = {str(row["name"]): row for row in given}
    paths = assigned(list(rows))
    specs, diagnostics = [], []
    for name, row in rows.items():
        schema, problem = _schema(row.get("schema"))
        problem = problem or (str(row["problem"]) if "problem" in row else None)
        if problem is not None:
            diagnostics.append(Diagnostic(f"/{name}", f"its input schema is not used: {problem[:300]}"))
        about = row.get("description")
        description = about[:MAX_DESCRIPTION] if isinstance(about, str) else ""
        specs.append(
            ToolSpec(
                paths[name],
                description=description,
                input_schema=schema,
                side_effect="read",
                words=name,
                binding={"export": name},
                source=f"{name} of {package}",
            )
        )
    return tuple(specs), tuple(diagnostics)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 512


def _schema(given: Any) -> tuple[Schema | None, str | None]:
    """The input schema, and what is wrong with it where it is none. Arguments are objects whatever it says."""
    if given is None:
        return None, None
    if not isinstance(given, dict):
        return None, "it is not an object"
    try:
        schema: Schema = _mended(given, 0)
        if schema.get("type", "object") != "object":
            return None, f"it describes {str(schema['type'])[:40]!r}, not an object"
        checker(schema, {})
    except (SchemaError, ValueError, TypeError, KeyError, RecursionError) as e:
        return None, str(getattr(e, "message", e))
    return {"type": "object"} | schema, None


def _mended(node: Any, depth: int) -> Any:
    """Packages write `"type": null` and `"type": "None"` for an object without properties."""
    if depth > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(node, list):
        return [_mended(one, depth + 1) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: _mended(value, depth + 1) for key, value in node.items()}
    if "type" in made and made["type"] in (None, "None", ""):
        made["type"] = "object"
    return made
