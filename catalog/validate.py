"""Arguments against a tool's schema: what is wrong, in words a caller can act on.

A schema may come from a stranger's document and the arguments from a stranger's script, so the check is bounded: no
reference is ever fetched, document-supplied regular expressions are not run, and the work on recursive schemas is
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

import referencing
from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import SchemaError, best_match

from catalog.model import Schema

__all__ = ["Check", "SchemaError", "bounded", "checker", "closed", "references", "unknown"]

STEPS: Final = 2_000
STEPS_PER_NODE: Final = 20
"""References followed for one set of arguments: so many at least, and so many for each of their values."""
MAX_MESSAGE: Final = 400

_UNBOUNDED: Final = frozenset({"pattern", "patternProperties", "uniqueItems", "format"})
_NAMED: Final = frozenset({"properties", "$defs", "dependentSchemas"})
_OPAQUE: Final = frozenset({"enum", "const", "default", "examples", "required"})
_NOTHING_ELSE: Final = referencing.Registry[Any]()

Check = Callable[[Any], str | None]


class TooMuchWork(Exception):
    """Raised when the schema makes the check of these arguments run away."""


class _Work:
    """The check under way. Checks are synchronous and happen on one thread, so there is only one."""

    definitions: Mapping[str, Any] = {}
    instance: Any = None
    followed = 0
    allowed = STEPS


def _follow(validator: Any, ref: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """`$ref` into the definitions at hand: no resolver, a counter, and nothing outside them."""
    _Work.followed += 1
    if _Work.followed > _Work.allowed:
        _Work.allowed = STEPS + STEPS_PER_NODE * _nodes(_Work.instance)
        if _Work.followed > _Work.allowed:
            raise TooMuchWork
    target = _Work.definitions.get(ref[8:]) if isinstance(ref, str) and ref.startswith("#/$defs/") else None
    if target is not None:
        yield from validator.descend(instance, target)


def _nodes(value: Any) -> int:
    count, stack = 0, [value]
    while stack:
        part = stack.pop()
        count += 1
        if isinstance(part, dict):
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)
    return count


_Validator: Final[Any] = validators.extend(Draft202012Validator, {"$ref": _follow})  # type: ignore[no-untyped-call]


def references(node: Any) -> Iterator[str]:
    """The names under `#/$defs/` that a schema refers to."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            ref = part.get("$ref")
            if isinstance(ref, str) and ref.startswith("#/$defs/"):
                yield ref[8:]
            stack.extend(value for key, value in part.items() if key not in _OPAQUE)
        elif isinstance(part, list):
            stack.extend(part)


def closed(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """`schema` with the definitions it reaches under `$defs`, so that it stands alone."""
    reached: dict[str, Schema] = {}
    waiting = list(references(schema))
    while waiting:
        name = waiting.pop()
        if name not in reached and name in definitions:
            reached[name] = definitions[name]
            waiting.extend(references(definitions[name]))
    return schema | {"$defs": dict(sorted(reached.items()))} if reached else schema


def checker(schema: Schema | None, definitions: Mapping[str, Schema], *, trusted: bool = False) -> Check | None:
    """A function from arguments to what is wrong with them, or None where nothing can be.

    `trusted` schemas are the operator's own and are applied whole; others are made safe first. Raises SchemaError when
    the schema is not one.
    """
    if schema is None:
        return None
    whole = closed(schema, definitions)
    if trusted:
        Draft202012Validator.check_schema(whole)
    else:
        whole = bounded(whole)
        uncircled(whole)
    accepted = list(whole.get("properties", {})) if whole.get("additionalProperties") is False else None
    validator = (Draft202012Validator if trusted else _Validator)(whole, registry=_NOTHING_ELSE)

    def check(args: Any) -> str | None:
        if accepted is not None and isinstance(args, dict):
            for key in args:
                if key not in accepted:
                    return unknown(key, accepted)
        _Work.definitions, _Work.instance = whole.get("$defs", {}), args
        _Work.followed, _Work.allowed = 0, STEPS
        try:
            error = best_match(validator.iter_errors(args))
        except (TooMuchWork, RecursionError):
            return "The arguments are nested too deeply to be checked against the tool's schema."
        except (SchemaError, referencing.exceptions.Unresolvable, TypeError, ValueError):
            # A document's schema that cannot be applied must not make its operation uncallable.
            return None
        return None if error is None else _words(error)

    return check


def unknown(key: Any, accepted: list[str]) -> str:
    """The refusal of an argument that the tool does not have."""
    names = ", ".join(accepted[:40]) + (f" and {len(accepted) - 40} more" if len(accepted) > 40 else "")
    near = get_close_matches(str(key)[:80], accepted[:500], n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    return f"Unknown argument {str(key)[:80]!r}.{guess} " + (f"Accepted: {names}." if names else "It takes none.")


def _words(error: ValidationError) -> str:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
    if error.validator == "required" and isinstance(error.instance, dict):
        wanted: Any = error.validator_value
        missing = [str(name) for name in wanted if name not in error.instance]
        within = f" in {where}" if where else ""
        return f"Missing {', '.join(missing)}{within}."[:MAX_MESSAGE]
    message = error.message
    if len(message) > MAX_MESSAGE:
        message = f"not what the schema asks for ({error.validator})"
    return f"{where}: {message}."[: MAX_MESSAGE + 100] if where else f"{message}."


def bounded(schema: Any) -> Any:
    """`schema` for arguments: without what only reading means and without what could run away.

    `readOnly` properties need not be given; where `oneOf` branches overlap, fitting one of them is enough; binary
    strings may be bytes.
    """
    if isinstance(schema, list):
        return [bounded(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") in ("binary", "byte") or "contentMediaType" in schema or "contentEncoding" in schema:
        return {}
    out: Schema = {}
    for key, value in schema.items():
        if key in _UNBOUNDED:
            continue
        if key in _OPAQUE:
            out[key] = value
        elif key in _NAMED and isinstance(value, dict):
            out[key] = {name: bounded(part) for name, part in value.items()}
        elif key == "multipleOf":
            if isinstance(value, int):
                out[key] = value
        elif key == "oneOf":
            out.setdefault("allOf", []).append({"anyOf": bounded(value)})
        elif key == "allOf":
            out.setdefault("allOf", []).extend(bounded(value) if isinstance(value, list) else [])
        else:
            out[key] = bounded(value)
    required, properties = out.get("required"), schema.get("properties")
    if isinstance(required, list) and isinstance(properties, dict):
        out["required"] = [name for name in required if not _read_only(properties.get(name))]
    return out


def uncircled(whole: Schema) -> None:
    """Cut references that come back to their definition at the same place in the value (`Pet` is one of `Cat`, `Cat`
    is all of `Pet` …): to follow them says nothing more and never ends. Changes the definitions of `whole`.

    The walk begins where the checking will, so that what is cut is the way back and not the way in.
    """
    definitions: dict[str, Any] = whole.get("$defs", {})
    entrances = references({key: value for key, value in whole.items() if key != "$defs"})
    finished: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        for node in _in_place(definitions[name]):
            target = node["$ref"][8:]
            if target == name or target in above:
                del node["$ref"]
            elif target in definitions and target not in finished:
                visit(target, (*above, name))
        finished.add(name)

    for name in (*entrances, *definitions):
        if name in definitions and name not in finished:
            visit(name, ())


def _in_place(schema: Any) -> list[dict[str, Any]]:
    """The references of a schema that apply to the very value that it applies to."""
    found, stack = [], [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if str(node.get("$ref", "")).startswith("#/$defs/"):
                found.append(node)
            stack.extend(node[key] for key in ("not", "if", "then", "else") if key in node)
            for key in ("allOf", "anyOf", "oneOf"):
                stack.extend(node.get(key, ()))
            stack.extend(node.get("dependentSchemas", {}).values())
    return found


def _read_only(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("readOnly") is True
