"""Arguments against a tool's schema: what is wrong, in words a caller can act on.

A schema may come from a stranger's document and the arguments from a stranger's script, so the check is bounded: no
reference is ever fetched, document-supplied regular expressions are not run, every step is counted, and what takes
more than a moment happens in a thread.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from catalog.fitting import compiled
from catalog.model import Schema
from catalog.work import Fit, Misfit, TooMuchWork, Unusable, Work

__all__ = ["Check", "SchemaError", "bounded", "checked", "checker", "closed", "references", "unknown"]

AT_ONCE: Final = 1_000
"""Steps that the event loop can spare: about a millisecond."""
STEPS: Final = 200_000
STEPS_PER_NODE: Final = 8
"""Steps for one set of arguments: so many at least, and so many for each of their values."""
MAX_MESSAGE: Final = 400
MAX_SHOWN: Final = 80

_UNBOUNDED: Final = frozenset({"pattern", "patternProperties", "uniqueItems", "format"})
_NAMED: Final = frozenset({"properties", "$defs", "dependentSchemas"})
_OPAQUE: Final = frozenset({"enum", "const", "default", "examples", "required"})
_TOO_MUCH: Final = "There is too much in the arguments to check it against the tool's schema. Send less at a time."
_TOO_LATE: Final = "There was no time left to check the arguments against the tool's schema."
_TOO_DEEP: Final = "The arguments are nested too deeply to be checked against the tool's schema."
_one_at_a_time: RunVar[anyio.CapacityLimiter] = RunVar("checks_in_threads")


class SchemaError(ValueError):
    """Raised when a schema is not one; `message` says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Check:
    """Called with arguments, says what is wrong with them, or None."""

    def __init__(self, fit: Fit | None, accepted: list[str] | None) -> None:
        self._fit = fit
        self._accepted = accepted
        self._names = frozenset(accepted or ())

    def __call__(self, args: Any) -> str | None:
        return self.within(args, Work(_allowance(args)))

    def within(self, args: Any, work: Work, *, partial: bool = False) -> str | None:
        """As calling it, at the expense of `work`. With `partial`, raises TooMuchWork where that does not suffice."""
        try:
            if self._accepted is not None and isinstance(args, dict):
                work.spend(len(args))
                for key in args:
                    if key not in self._names:
                        return unknown(key, self._accepted)
            misfit = None if self._fit is None else self._fit(args, work)
        except TooMuchWork:
            if partial:
                raise
            return _TOO_MUCH
        except RecursionError:
            return _TOO_DEEP
        return None if misfit is None else _words(misfit)


async def checked(check: Check, value: Any, deadline: float | None = None) -> str | None:
    """What `check` says of `value`. Other tasks go on meanwhile; being cancelled ends the work, and so does `deadline`
    on the event loop's clock."""
    try:
        return check.within(value, Work(AT_ONCE), partial=True)
    except TooMuchWork:
        pass
    work = Work(0, pauses=True)

    def whole() -> str | None:
        work.grant(_allowance(value))
        return check.within(value, work)

    try:
        limiter = _one_at_a_time.get()
    except LookupError:
        # Threads that compute take turns with the event loop, so there is never more than one of them.
        limiter = anyio.CapacityLimiter(1)
        _one_at_a_time.set(limiter)
    try:
        with anyio.CancelScope(deadline=math.inf if deadline is None else deadline):
            return await anyio.to_thread.run_sync(whole, abandon_on_cancel=True, limiter=limiter)
        return _TOO_LATE
    finally:
        work.stop()


def _allowance(value: Any) -> int:
    return STEPS + STEPS_PER_NODE * _nodes(value)


def _nodes(value: Any) -> int:
    count, stack = 0, [value]
    while stack:
        part = stack.pop()
        count += 1
        if isinstance(part, dict):
            stack.extend(part.values())
        elif isinstance(part, (list, tuple)):
            stack.extend(part)
    return count


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
    """The check of arguments against `schema`, or None where nothing can be wrong.

    `trusted` schemas are the operator's own and are applied whole; others are made safe first, and what makes no sense
    in them is passed over. Raises SchemaError when a trusted schema is not one, or holds what cannot be applied.
    """
    if schema is None:
        return None
    whole = closed(schema, definitions)
    if trusted:
        check_schema(whole)
    else:
        whole = bounded(whole)
        uncircled(whole)
    properties = whole.get("properties", {})
    accepted = None
    if whole.get("additionalProperties") is False and isinstance(properties, dict) and "patternProperties" not in whole:
        accepted = list(properties)
    try:
        return Check(compiled(whole, strict=trusted), accepted)
    except Unusable as e:
        raise SchemaError(str(e)) from None


def check_schema(schema: Schema) -> None:
    """Raises SchemaError for what is no JSON Schema 2020-12."""
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as e:
        raise SchemaError(e.message) from None


def unknown(key: Any, accepted: list[str], within: str = "") -> str:
    """The refusal of an argument that the tool does not have."""
    names = ", ".join(accepted[:40]) + (f" and {len(accepted) - 40} more" if len(accepted) > 40 else "")
    near = get_close_matches(str(key)[:80], accepted[:500], n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    return f"Unknown argument {str(key)[:80]!r}{within}.{guess} " + (
        f"Accepted: {names}." if names else "It takes none."
    )


def _words(misfit: Misfit) -> str:
    steps = reversed(misfit.path)
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:MAX_SHOWN]}" for step in steps).lstrip(".")
    within = f" in {where}" if where else ""
    if misfit.keyword == "required":
        return f"Missing {', '.join(misfit.wanted)}"[:MAX_MESSAGE] + f"{within}."[:MAX_MESSAGE]
    if misfit.keyword == "additionalProperties":
        return unknown(misfit.value, misfit.wanted, within)
    message = f"{shown(misfit.value)} {_SAYS[misfit.keyword](misfit.wanted)}"[:MAX_MESSAGE]
    return f"{where}: {message}."[: MAX_MESSAGE + 100] if where else f"{message}."


def shown(value: Any) -> str:
    """`value` as JSON where that is short, and what it is otherwise."""
    if isinstance(value, str):
        text = json.dumps(value[:MAX_SHOWN], ensure_ascii=False) + ("…" if len(value) > MAX_SHOWN else "")
        return text.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)[:MAX_SHOWN]
    if isinstance(value, (list, tuple)):
        return f"an array of {len(value)}" if value else "an empty array"
    if isinstance(value, dict):
        return "an object"
    return "a value in bytes" if isinstance(value, bytes) else "a value that JSON does not have"


def _bound(text: str) -> Callable[[Any], str]:
    return lambda wanted: text.format(shown(wanted))


_SAYS: Final[Mapping[str, Callable[[Any], str]]] = {
    "type": lambda kinds: "is not of type " + " or ".join(kinds),
    "enum": lambda allowed: "is not one of " + ", ".join(map(shown, allowed[:40])),
    "const": _bound("is not {}"),
    "minimum": _bound("is less than the minimum of {}"),
    "maximum": _bound("is more than the maximum of {}"),
    "exclusiveMinimum": _bound("is not more than {}"),
    "exclusiveMaximum": _bound("is not less than {}"),
    "multipleOf": _bound("is not a multiple of {}"),
    "minLength": _bound("is shorter than {} characters"),
    "maxLength": _bound("is longer than {} characters"),
    "minItems": _bound("has fewer than {} items"),
    "maxItems": _bound("has more than {} items"),
    "minProperties": _bound("has fewer than {} properties"),
    "maxProperties": _bound("has more than {} properties"),
    "pattern": _bound("does not match the pattern {}"),
    "contains": lambda _: "does not hold the items that the schema asks for",
    "uniqueItems": lambda _: "holds an item twice",
    "anyOf": _bound("fits none of the {} forms that the schema allows"),
    "oneOf": _bound("fits {} forms of which the schema allows one at a time"),
    "not": lambda _: "is what the schema excludes",
    "false": lambda _: "may not be given",
}


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
        if key in _UNBOUNDED or (key == "additionalProperties" and "patternProperties" in schema):
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
