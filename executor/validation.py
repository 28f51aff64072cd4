"""What a door was given, checked against a model: every field that is wrong is named, in words of JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, RootModel, ValidationError

from bridge.wire.errors import InvalidRequest

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], value: Mapping[str, Any], noun: str, *, strict: bool) -> Model:
    """`value` as an instance of `model`. Raises InvalidRequest naming every field that is wrong."""
    try:
        return model.model_validate(value, strict=strict)
    except ValidationError as e:
        variants = _variants(model)
        problems = _problems(e.errors(include_url=False), noun, bool(variants))
        unknown = any(error["type"] == "extra_forbidden" for error in e.errors())
        known = variants.get(str(value.get("kind")), model).model_fields
        hint = f"known {noun}s: {', '.join(known)}" if unknown else None
        raise InvalidRequest("; ".join(problems[:5]), hint=hint, details={"problems": problems[:50]}) from None


def _variants(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The models of a body that comes in kinds, by kind."""
    if not issubclass(model, RootModel):
        return {}
    members = get_args(model.model_fields["root"].annotation)
    return {get_args(member.model_fields["kind"].annotation)[0]: member for member in members}


def _problems(errors: Sequence[Any], noun: str, in_kinds: bool) -> list[str]:
    """What is wrong, field by field, in words of JSON. What a field may be instead is said in one sentence."""
    said: dict[str, list[str]] = {}
    for error in errors:
        place = error["loc"][1:] if in_kinds else error["loc"]
        named = [str(part) for part in place if not (isinstance(part, str) and _OF_PYDANTIC.fullmatch(part))]
        if error["type"] == "extra_forbidden" and named[-1:] != [place[-1]]:
            named.append(place[-1])
        where = ".".join(named)[:100] or "kind"
        said.setdefault(where, []).append(_problem(error))
    return [_sentence(noun, where, parts) for where, parts in said.items()]


def _sentence(noun: str, where: str, parts: list[str]) -> str:
    if parts[0] == "unknown":
        return f"unknown {noun} {where!r}"
    first, *others = dict.fromkeys(parts)
    return f"{noun} {where!r} {first}" + "".join(f", or {other.removeprefix('must be ')}" for other in others)


def _problem(error: Any) -> str:
    kind, facts = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return "unknown"
    if kind in ("missing", "union_tag_not_found"):
        return "is missing"
    template = _WORDS.get(kind) or next((words for start, words in _KINDS.items() if kind.startswith(start)), None)
    if template is None:
        what = str(error["msg"]).removeprefix("Value error, ")
        return f"is not as it must be: {what[:1].lower()}{what[1:300]}"
    return template.format_map({key: str(value)[:200] for key, value in facts.items()})


_OF_PYDANTIC: Final = re.compile(r"[a-z]*\[.*\]|constrained-[a-z]+|function-.*|Placement", re.DOTALL)
"""What pydantic adds to the place of an error for each branch of a union."""
_WORDS: Final = {
    "literal_error": "must be {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
_KINDS: Final = {
    "string_": "must be a string",
    "dict_": "must be an object",
    "model_": "must be an object",
    "list_": "must be an array",
    "tuple_": "must be an array",
    "int_": "must be a whole number",
    "float_": "must be a number",
    "bool_": "must be true or false",
    "none_": "must be null",
}
