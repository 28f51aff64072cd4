"""JSON Schema 2020-12 as compiled checks that stop at the first misfit and count every step.

A value and a schema can come from strangers, and together they can ask for any amount of work. So each keyword, each
member and each comparison is paid for out of one allowance, nothing is rendered before the end, and a pattern runs on
an engine whose time is linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic_core import SchemaError as BadPattern
from pydantic_core import SchemaValidator, core_schema

from catalog.keywords import KEYWORDS
from catalog.work import Fit, Misfit, Unusable, Work

__all__ = ["compiled"]

_LISTED: Final = ("required", "dependentRequired", "dependentSchemas")
"""Keywords that go through all of their list for every value; the steps of the others are those of their parts."""
_UNSET: Final = object()
_REFUSED: Final = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$anchor", "$dynamicAnchor")


def compiled(root: dict[str, Any], *, strict: bool) -> Fit | None:
    """The check of `root`, None where everything fits.

    A keyword that makes no sense is passed over, or raises Unusable where the schema is `strict`. References lead into
    `root` and nowhere else.
    """
    compiler = _Compiler(root, strict)
    fit = compiler.fit(root)
    if strict:
        compiler.finish()
    return fit


class _Compiler:
    def __init__(self, root: dict[str, Any], strict: bool) -> None:
        self._root = root
        self._strict = strict
        self._followed: dict[str, Any] = {}

    def fit(self, schema: Any) -> Fit | None:
        if schema is False:
            return lambda value, work: Misfit("false", value, None)
        if not isinstance(schema, dict):
            return None
        if self._strict and (odd := next((key for key in _REFUSED if key in schema), None)):
            raise Unusable(f"{odd} is not supported; additionalProperties, items and $ref into $defs are")
        checks: list[Fit] = []
        cost = 0
        for keyword, make in KEYWORDS.items():
            if keyword in schema:
                check = make(self, schema[keyword], schema)
                if check is not None:
                    checks.append(check)
                    cost += 1 + (len(schema[keyword]) // 8 if keyword in _LISTED else 0)
        if not checks:
            return None

        def node(value: Any, work: Work) -> Misfit | None:
            work.spend(cost)
            for check in checks:
                if (misfit := check(value, work)) is not None:
                    return misfit
            return None

        return node

    def all(self, schemas: Any) -> list[Fit | None]:
        return [self.fit(part) for part in schemas] if isinstance(schemas, list) else []

    def named(self, schemas: Any) -> dict[str, Fit]:
        found = {name: self.fit(part) for name, part in schemas.items()} if isinstance(schemas, dict) else {}
        return {name: fit for name, fit in found.items() if fit is not None}

    def pattern(self, pattern: Any) -> Callable[[str], bool] | None:
        """Rust's engine: linear, so without look-around and back-references."""
        if not isinstance(pattern, str):
            return None
        try:
            schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
            return SchemaValidator(schema).isinstance_python
        except BadPattern:
            if self._strict:
                raise Unusable(
                    f"the pattern {pattern[:80]!r} is not one that runs in linear time: no look-around, no references"
                ) from None
            return None

    def reference(self, ref: Any) -> Fit | None:
        if not isinstance(ref, str):
            return None
        if ref not in self._followed:
            self._followed[ref] = _UNSET
            if self._target(ref) is _UNSET and self._strict:
                raise Unusable(f"$ref {ref[:80]!r} leads nowhere within the schema")

        def follow(value: Any, work: Work) -> Misfit | None:
            fit = self._followed[ref]
            if fit is _UNSET:
                fit = self._followed[ref] = self.fit(self._target(ref))
            return None if fit is None else fit(value, work)

        return follow

    def finish(self) -> None:
        while waiting := [ref for ref, fit in self._followed.items() if fit is _UNSET]:
            for ref in waiting:
                self._followed[ref] = self.fit(self._target(ref))

    def _target(self, ref: str) -> Any:
        if not ref.startswith("#"):
            return _UNSET
        part: Any = self._root
        for step in ref[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(part, dict) or step not in part:
                return _UNSET
            part = part[step]
        return part if ref == "#" or ref.startswith("#/") else _UNSET
