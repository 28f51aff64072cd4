"""Reading a document: bytes to plain dicts, and its references, which never lead outside it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import referencing
import yaml
from pydantic_core import from_json
from referencing.exceptions import Unresolvable

from bridge.wire.errors import ImportFailed

MAX_CHAIN: Final = 32
"""References that may follow one another before it is a loop."""
MAX_YAML_NODES: Final = 3_000_000
"""Nodes of a YAML document with its aliases written out."""
MAX_DIGITS: Final = 1_000
"""Of a whole number in another base than ten; Python limits the others."""


class BadReference(Exception):
    """Raised when a `$ref` leads nowhere, outside the document, or round in a circle."""


class _Loader(yaml.CSafeLoader):
    """YAML as OpenAPI means it: the core schema of YAML 1.2 (§10.3.2), in which `NO`, `on`, `12:30`, dates are text."""


_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.nan|\.NaN|\.NAN", list("-+.")),
    ("merge", r"<<", ["<"]),
)
"""What plain text is by its look, and the characters with which each begins."""


def _whole(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> int:
    """Raises ValueError, also for what no number of an API is as long as."""
    text = str(loader.construct_scalar(node))
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    if base != 10 and len(text) > MAX_DIGITS:
        raise ValueError(f"more than {MAX_DIGITS} digits")
    return int(text if base == 10 else text[2:], base)


_Loader.yaml_implicit_resolvers = {}
for _name, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"(?:{_pattern})\Z"), _first)
_Loader.add_constructor(f"{_TAG}int", _whole)


def load(source: bytes | str | Mapping[str, Any]) -> dict[str, Any]:
    """The document in `source`, JSON or YAML. Raises ImportFailed naming the place of the first fault."""
    document = dict(source) if isinstance(source, Mapping) else parsed(source)
    if not isinstance(document, dict):
        raise ImportFailed(f"The document is {_kind(document)}, not an object with the key 'openapi'.")
    return document


def parsed(source: bytes | str) -> Any:
    """The data in `source`, JSON or YAML. Raises ImportFailed."""
    if isinstance(source, bytes) and source[:1] in (b"{", b"["):
        # Read without making text of it, which can take four times its size. What is odd is left to what follows.
        with contextlib.suppress(ValueError):
            return from_json(source)
    text = _text(source)
    start = text.lstrip()[:1]
    if not start:
        raise ImportFailed("The document is empty.")
    if start == "<":
        raise ImportFailed("The document is HTML or XML, not an OpenAPI document in JSON or YAML.")
    return _json(text) if start in "{[" else _yaml(text)


def _text(source: bytes | str) -> str:
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    try:
        return source.decode(json.detect_encoding(source)).removeprefix("\ufeff")
    except UnicodeDecodeError as e:
        raise ImportFailed(f"The document is not UTF-8 text: byte {e.start} is not part of a character.") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise ImportFailed(f"The document is not valid JSON: {e.msg} at line {e.lineno} column {e.colno}.") from None
    except RecursionError:
        raise ImportFailed("The document is nested too deeply to be read.") from None
    except ValueError:
        raise ImportFailed("The document holds a number too long to be read.") from None


def _yaml(text: str) -> Any:
    try:
        document = yaml.load(text, _Loader)  # noqa: S506 - the loader is a safe one
        return _Plain().copy(document)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        where = f" at line {mark.line + 1} column {mark.column + 1}" if mark is not None else ""
        raise ImportFailed(f"The document is not valid YAML: {e.problem or 'malformed'}{where}.") from None
    except RecursionError:
        raise ImportFailed("The document is nested too deeply to be read.") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, ArithmeticError):
        # The loader believes a tag, such as `!!bool`, until the text under it does not fit.
        raise ImportFailed("The document is not valid YAML.") from None


class _Plain:
    """Copies what YAML read into what JSON could have said, within a budget that aliases cannot blow up."""

    def __init__(self) -> None:
        self._left = MAX_YAML_NODES

    def copy(self, node: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ImportFailed("The document's YAML aliases unfold to more than can be read.")
        if isinstance(node, dict):
            return {self._key(key): self.copy(value) for key, value in node.items()}
        if isinstance(node, (list, tuple, set)):
            return [self.copy(value) for value in node]
        return node if node is None or isinstance(node, (str, int, float, bool)) else str(node)

    def _key(self, key: Any) -> str:
        if isinstance(key, bool):
            return "true" if key else "false"
        return key if isinstance(key, str) else str(key)


def _kind(value: Any) -> str:
    names = {list: "a list", str: "plain text", int: "a number", float: "a number", bool: "a boolean"}
    return names.get(type(value), "empty")


class Document:
    """A document and its local references."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        resource = referencing.Resource.opaque(root)
        self._resolver = referencing.Registry[Any]().with_resource("", resource).resolver()

    def follow(self, node: Any) -> Any:
        """What `node` stands for: itself, or the end of its chain of references. Raises BadReference."""
        for _ in range(MAX_CHAIN):
            if not (isinstance(node, dict) and "$ref" in node):
                return node
            node = self.at(node["$ref"])
        raise BadReference("the references form a circle")

    def at(self, ref: Any) -> Any:
        """The node that a local reference such as `#/components/schemas/Pet` names. Raises BadReference."""
        if not isinstance(ref, str):
            raise BadReference("a $ref is not text")
        if not ref.startswith("#"):
            raise BadReference(f"{ref[:120]!r} leads outside the document, and nothing outside it is read")
        try:
            return self._resolver.lookup(ref).contents
        except (Unresolvable, ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise BadReference(f"{ref[:120]!r} leads nowhere") from None


def pointer(*steps: str) -> str:
    """A JSON pointer as a URI fragment: `#/paths/~1pets/get`."""
    return "#" + "".join("/" + step.replace("~", "~0").replace("/", "~1").replace("%", "%25") for step in steps)
