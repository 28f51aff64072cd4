"""The keywords of JSON Schema 2020-12 that arguments are checked by, each as a maker of checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, Protocol

from catalog.work import Fit, Misfit, Work

__all__ = ["KEYWORDS", "Compiler"]

_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list, tuple),
    "number": (int, float),
    "integer": (int,),
}
_CHARACTERS_PER_STEP: Final = 64


class Compiler(Protocol):
    """What a keyword needs of the compiler: the checks of the schemas within it."""

    def fit(self, schema: Any) -> Fit | None: ...

    def all(self, schemas: Any) -> list[Fit | None]: ...

    def named(self, schemas: Any) -> dict[str, Fit]: ...

    def pattern(self, pattern: Any) -> Callable[[str], bool] | None: ...

    def reference(self, ref: Any) -> Fit | None: ...


Make = Callable[[Compiler, Any, dict[str, Any]], Fit | None]


def _type(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if (
        not isinstance(kinds, list)
        or not kinds
        or not all(isinstance(kind, str) and kind in _CLASSES for kind in kinds)
    ):
        return None
    classes = frozenset(one for kind in kinds for one in _CLASSES[kind])
    whole = "integer" in kinds and float not in classes

    def check(value: Any, work: Work) -> Misfit | None:
        kind = type(value)
        if kind in classes or (whole and kind is float and value.is_integer()):
            return None
        return Misfit("type", value, kinds)

    return check


def _frozen(value: Any, work: Work) -> Any:
    """A hashable stand-in, equal where JSON Schema says equal: 1 is 1.0 and is not true."""
    work.spend(1)
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, (list, tuple)):
        return "array", tuple(_frozen(item, work) for item in value)
    if isinstance(value, dict):
        return "object", frozenset((key, _frozen(item, work)) for key, item in value.items())
    return value


def _enum(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    if not isinstance(wanted, list):
        return None
    allowed = frozenset(_frozen(one, Work(1 << 40)) for one in wanted)
    return lambda value, work: None if _frozen(value, work) in allowed else Misfit("enum", value, wanted)


def _const(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    only = _frozen(wanted, Work(1 << 40))
    return lambda value, work: None if _frozen(value, work) == only else Misfit("const", value, wanted)


def _required(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    names = [name for name in wanted if isinstance(name, str)] if isinstance(wanted, list) else []

    def check(value: Any, work: Work) -> Misfit | None:
        if isinstance(value, dict) and (missing := [name for name in names if name not in value]):
            return Misfit("required", value, missing)
        return None

    return check if names else None


def _number(keyword: str, fits: Callable[[Any, Any], bool]) -> Make:
    def make(compiler: Compiler, bound: Any, schema: Any) -> Fit | None:
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or (keyword == "multipleOf" and bound <= 0):
            return None

        def check(value: Any, work: Work) -> Misfit | None:
            if isinstance(value, (int, float)) and not isinstance(value, bool) and not fits(value, bound):
                return Misfit(keyword, value, bound)
            return None

        return check

    return make


def _multiple(value: Any, of: Any) -> bool:
    if isinstance(value, int) and isinstance(of, int):
        return value % of == 0
    # By their decimal digits, as they were written: 0.3 is a multiple of 0.1.
    if any(isinstance(one, float) and not math.isfinite(one) for one in (value, of)):
        return False
    return Fraction(str(value)) % Fraction(str(of)) == 0


def _size(keyword: str, of: tuple[type, ...]) -> Make:
    least = keyword.startswith("min")

    def make(compiler: Compiler, bound: Any, schema: Any) -> Fit | None:
        if isinstance(bound, bool) or not isinstance(bound, (int, float)):
            return None

        def check(value: Any, work: Work) -> Misfit | None:
            if isinstance(value, of) and (len(value) < bound if least else len(value) > bound):  # type: ignore[arg-type]
                return Misfit(keyword, value, bound)
            return None

        return check

    return make


def _pattern(compiler: Compiler, pattern: Any, schema: Any) -> Fit | None:
    matches = compiler.pattern(pattern)
    if matches is None:
        return None

    def check(value: Any, work: Work) -> Misfit | None:
        if not isinstance(value, str):
            return None
        work.spend(len(value) // _CHARACTERS_PER_STEP)
        return None if matches(value) else Misfit("pattern", value, pattern)

    return check


def _properties(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fits = compiler.named(wanted)

    def check(value: Any, work: Work) -> Misfit | None:
        if isinstance(value, dict):
            work.spend(len(value))
            for name, part in value.items():
                fit = fits.get(name)
                if fit is not None and (misfit := fit(part, work)) is not None:
                    return misfit.under(name)
        return None

    return check if fits else None


def _pattern_properties(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fits = [(compiler.pattern(pattern), fit) for pattern, fit in compiler.named(wanted).items()]

    def check(value: Any, work: Work) -> Misfit | None:
        for name, part in value.items() if isinstance(value, dict) else ():
            for matches, fit in fits:
                work.spend(1 + len(name) // _CHARACTERS_PER_STEP)
                if matches is not None and matches(name) and (misfit := fit(part, work)) is not None:
                    return misfit.under(name)
        return None

    return check if fits else None


def _additional(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fit = compiler.fit(wanted)
    names = frozenset(schema["properties"]) if isinstance(schema.get("properties"), dict) else frozenset()
    spelled = schema.get("patternProperties")
    patterns = [compiler.pattern(one) for one in spelled] if isinstance(spelled, dict) else []
    if fit is None:
        return None

    def check(value: Any, work: Work) -> Misfit | None:
        if not isinstance(value, dict):
            return None
        work.spend(len(value))
        for name, part in value.items():
            if name in names:
                continue
            work.spend(len(patterns) * (1 + len(name) // _CHARACTERS_PER_STEP))
            if any(matches is None or matches(name) for matches in patterns):
                continue
            if wanted is False:
                return Misfit("additionalProperties", name, sorted(names))
            if (misfit := fit(part, work)) is not None:
                return misfit.under(name)
        return None

    return check


def _property_names(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fit = compiler.fit(wanted)

    def check(value: Any, work: Work) -> Misfit | None:
        names = value if fit is not None and isinstance(value, dict) else ()
        return next((misfit for name in names if fit is not None and (misfit := fit(name, work))), None)

    return check if fit is not None else None


def _dependent_required(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    if not isinstance(wanted, dict):
        return None
    checks = {name: check for name, names in wanted.items() if (check := _required(compiler, names, schema))}
    return _dependent(checks)


def _dependent_schemas(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    return _dependent(compiler.named(wanted))


def _dependent(checks: dict[str, Fit]) -> Fit | None:
    def check(value: Any, work: Work) -> Misfit | None:
        for name, fit in checks.items() if isinstance(value, dict) else ():
            if name in value and (misfit := fit(value, work)) is not None:
                return misfit
        return None

    return check if checks else None


def _items(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fit = None if isinstance(wanted, list) else compiler.fit(wanted)
    before = schema.get("prefixItems")
    first = len(before) if isinstance(before, list) else 0

    def check(value: Any, work: Work) -> Misfit | None:
        if fit is not None and isinstance(value, (list, tuple)):
            for index in range(first, len(value)):
                if (misfit := fit(value[index], work)) is not None:
                    return misfit.under(index)
        return None

    return check if fit is not None else None


def _prefix_items(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fits = compiler.all(wanted)

    def check(value: Any, work: Work) -> Misfit | None:
        if isinstance(value, (list, tuple)):
            for index, (fit, part) in enumerate(zip(fits, value, strict=False)):
                if fit is not None and (misfit := fit(part, work)) is not None:
                    return misfit.under(index)
        return None

    return check if fits else None


def _contains(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fit = compiler.fit(wanted)
    least, most = schema.get("minContains", 1), schema.get("maxContains", math.inf)
    if not all(isinstance(bound, (int, float)) for bound in (least, most)):
        return None

    def check(value: Any, work: Work) -> Misfit | None:
        if not isinstance(value, (list, tuple)):
            return None
        found = len(value) if fit is None else sum(fit(part, work) is None for part in value)
        return None if least <= found <= most else Misfit("contains", value, None)

    return check


def _unique(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    def check(value: Any, work: Work) -> Misfit | None:
        if isinstance(value, (list, tuple)):
            seen = set()
            for part in value:
                seen.add(_frozen(part, work))
            if len(seen) < len(value):
                return Misfit("uniqueItems", value, None)
        return None

    return check if wanted is True else None


def _all_of(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fits = [fit for fit in compiler.all(wanted) if fit is not None]
    return lambda value, work: next((misfit for fit in fits if (misfit := fit(value, work))), None)


def _any_of(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fits = compiler.all(wanted)
    usable = [fit for fit in fits if fit is not None]

    def check(value: Any, work: Work) -> Misfit | None:
        misfits = []
        for fit in usable:
            misfit = fit(value, work)
            if misfit is None:
                return None
            misfits.append(misfit)
        return _nearest(value, misfits)

    return check if fits and len(usable) == len(fits) else None


def _one_of(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fits = compiler.all(wanted)

    def check(value: Any, work: Work) -> Misfit | None:
        misfits = [misfit for fit in fits if fit is not None and (misfit := fit(value, work)) is not None]
        if len(misfits) == len(fits):
            return _nearest(value, misfits)
        return None if len(misfits) == len(fits) - 1 else Misfit("oneOf", value, len(fits) - len(misfits))

    return check if fits else None


def _nearest(value: Any, misfits: list[Misfit]) -> Misfit:
    """Of the branches that did not fit, the one that was probably meant: it is of the right kind, and fits deepest."""
    meant = [one for one in misfits if one.path or one.keyword not in ("type", "enum", "const", "false")]
    if meant:
        deepest = max(meant, key=lambda one: len(one.path))
        alike = [one for one in meant if one.path == deepest.path]
        if len(alike) > 1 and all(one.keyword in ("enum", "const") for one in alike):
            # Branches told apart by a member: its values, all of them.
            choices = [one.wanted if one.keyword == "enum" else [one.wanted] for one in alike]
            deepest = Misfit("enum", deepest.value, [choice for some in choices for choice in some])
            deepest.path = alike[0].path
        return deepest
    if all(one.keyword == "type" for one in misfits):
        return Misfit("type", value, list(dict.fromkeys(kind for one in misfits for kind in one.wanted)))
    return misfits[0] if len(misfits) == 1 else Misfit("anyOf", value, len(misfits))


def _not(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fit = compiler.fit(wanted)
    return lambda value, work: Misfit("not", value, None) if fit is None or fit(value, work) is None else None


def _if(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    fit, then, otherwise = compiler.fit(wanted), compiler.fit(schema.get("then")), compiler.fit(schema.get("else"))

    def check(value: Any, work: Work) -> Misfit | None:
        chosen = then if fit is None or fit(value, work) is None else otherwise
        return None if chosen is None else chosen(value, work)

    return check if then is not None or otherwise is not None else None


def _ref(compiler: Compiler, wanted: Any, schema: Any) -> Fit | None:
    return compiler.reference(wanted)


KEYWORDS: Final[dict[str, Make]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "required": _required,
    "minimum": _number("minimum", lambda value, bound: value >= bound),
    "maximum": _number("maximum", lambda value, bound: value <= bound),
    "exclusiveMinimum": _number("exclusiveMinimum", lambda value, bound: value > bound),
    "exclusiveMaximum": _number("exclusiveMaximum", lambda value, bound: value < bound),
    "multipleOf": _number("multipleOf", _multiple),
    "minLength": _size("minLength", (str,)),
    "maxLength": _size("maxLength", (str,)),
    "minItems": _size("minItems", (list, tuple)),
    "maxItems": _size("maxItems", (list, tuple)),
    "minProperties": _size("minProperties", (dict,)),
    "maxProperties": _size("maxProperties", (dict,)),
    "pattern": _pattern,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "dependentRequired": _dependent_required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "uniqueItems": _unique,
    "dependentSchemas": _dependent_schemas,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _ref,
}
"""In the order in which they are tried: what says most about a misfit first."""
