"""Which values the keywords of a document's schemas can have; one that makes no sense is left out and reported."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null", "file"})
"""`file` is what older documents call a binary string."""


def wanted(keyword: str, value: Any) -> str | None:
    """What the value of `keyword` would have to be, or None when it is that."""
    rule = _RULES.get(keyword)
    return None if rule is None or rule[0](value) else rule[1]


def _number(value: Any) -> bool:
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _number(value) and value >= 0


def _strict_bound(value: Any) -> bool:
    return isinstance(value, bool) or _number(value)


def _is_type(value: Any) -> bool:
    kinds = value if isinstance(value, list) else [value]
    return bool(kinds) and all(isinstance(kind, str) and kind in _TYPES for kind in kinds)


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _name_lists(value: Any) -> bool:
    return isinstance(value, dict) and all(_names(names) for names in value.values())


def _schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def _schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _pattern(value: Any) -> bool:
    """Whether brackets and parentheses close, which every dialect asks for: patterns are shown, and never run."""
    if not isinstance(value, str):
        return False
    groups, in_class, escaped = 0, False, False
    for character in value:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            groups += 1 if character == "(" else -1
            if groups < 0:
                return False
    return groups == 0 and not in_class and not escaped


_Rule = tuple[Callable[[Any], bool], str]
_A_NUMBER: Final[_Rule] = (_number, "a number")
_A_COUNT: Final[_Rule] = (_count, "a number from 0 on")
_A_BOUND: Final[_Rule] = (_strict_bound, "a number, or true or false")
_A_SCHEMA: Final[_Rule] = (_schema, "a schema")
_SOME_SCHEMAS: Final[_Rule] = (_schemas, "an array of schemas")
_NAMED_SCHEMAS: Final[_Rule] = (lambda value: isinstance(value, dict), "an object of schemas")
_RULES: Final[dict[str, _Rule]] = {
    "type": (_is_type, "a type of JSON or an array of them"),
    "enum": (lambda value: isinstance(value, list), "an array"),
    "required": (_names, "an array of names"),
    "dependentRequired": (_name_lists, "an object of arrays of names"),
    "multipleOf": (lambda value: _number(value) and value > 0, "a number above 0"),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "pattern": (_pattern, "a regular expression"),
    **dict.fromkeys(("minimum", "maximum"), _A_NUMBER),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _A_BOUND),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _A_COUNT),
    **dict.fromkeys(("minContains", "maxContains"), _A_COUNT),
    **dict.fromkeys(("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then"), _A_SCHEMA),
    **dict.fromkeys(("else", "unevaluatedProperties", "unevaluatedItems"), _A_SCHEMA),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _SOME_SCHEMAS),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), _NAMED_SCHEMAS),
}
