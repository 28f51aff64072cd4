"""What a caller may see and do: everything, or less. A view is a list of lenses that must all agree.

Lenses only take away. A lens may leave tools out, and it may hold rules, which are stricter than approval by their
nature: no lens can say yes where the rules of the home say no.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from bridge.glob import Glob
from bridge.wire.errors import InvalidRequest
from catalog import address
from catalog.model import Tool

Strictness = Literal["require_approval", "block"]

STRICTNESS: Final[tuple[Strictness, ...]] = ("require_approval", "block")
"""What a rule of a lens may say, in the order of its strength."""
MAX_PATTERNS: Final = 200
MAX_NARROWINGS: Final = 16
_REMEMBERED: Final = 200_000


@dataclass(frozen=True, slots=True)
class LensRule:
    """A call of a tool whose path matches needs at least this."""

    lens: str
    glob: Glob
    effect: Strictness

    @property
    def id(self) -> str:
        """What a record names as the rule that decided."""
        return f"{self.lens}:{self.effect}:{self.glob.pattern}"

    def as_dict(self) -> dict[str, Any]:
        return {"id": self.id, "pattern": self.glob.pattern, "effect": self.effect}


@dataclass(frozen=True, slots=True)
class Lens:
    """`tools` None: every tool; `scopes` None: every scope."""

    name: str
    tools: tuple[Glob, ...] | None = None
    rules: tuple[LensRule, ...] = ()
    scopes: tuple[str, ...] | None = None

    def holds(self, tool: Tool) -> bool:
        if self.scopes is not None and tool.scope not in self.scopes:
            return False
        return self.tools is None or any(glob.matches(tool.path) for glob in self.tools)

    def applying(self, tool: Tool) -> list[LensRule]:
        """The rules for the tool, the strictest first; ties in the order in which they were written."""
        found = [rule for rule in self.rules if rule.glob.matches(tool.path)]
        return sorted(found, key=lambda rule: -STRICTNESS.index(rule.effect))


class View:
    """Lenses from the outermost to the innermost; none: everything there is."""

    __slots__ = ("_held", "lenses")

    def __init__(self, lenses: Sequence[Lens] = ()) -> None:
        self.lenses = tuple(lenses)
        self._held: dict[str, bool] = {}

    def holds(self, tool: Tool) -> bool:
        if not self.lenses:
            return True
        held = self._held.get(tool.path)
        if held is None:
            if len(self._held) >= _REMEMBERED:
                self._held.clear()
            held = self._held[tool.path] = all(lens.holds(tool) for lens in self.lenses)
        return held

    def strictest(self, tool: Tool) -> LensRule | None:
        """Of all rules of all lenses, the strictest; the outermost of those."""
        found = [rule for lens in self.lenses for rule in lens.applying(tool)[:1]]
        return min(found, key=lambda rule: -STRICTNESS.index(rule.effect), default=None)

    @property
    def names(self) -> str:
        return " and ".join(lens.name for lens in self.lenses)


EVERYTHING: Final = View()


class Narrowing(NamedTuple):
    """One narrowing as plain data, fit for a record: it is applied by name and pattern each time it is used."""

    toolkit: str | None = None
    tools: tuple[str, ...] | None = None
    rules: tuple[tuple[str, str], ...] = ()
    scopes: tuple[str, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        return {key: value for key, value in self._asdict().items() if value not in (None, ())}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Narrowing:
        """Raises InvalidRequest for what is not a narrowing: something that cannot be read is never left out."""
        if set(data) - set(cls._fields):
            raise InvalidRequest("This narrowing has parts that are not known.")
        return narrowing(
            toolkit=data.get("toolkit"), tools=data.get("tools"), rules=data.get("rules", ()), scopes=data.get("scopes")
        )

    def lens(self) -> Lens:
        """Everything but the toolkit, which has a lens of its own."""
        return make_lens("scope()", self.tools, self.rules, self.scopes)


def narrowing(
    *,
    toolkit: str | None = None,
    tools: Sequence[str] | None = None,
    rules: Mapping[str, str] | Iterable[Sequence[str]] = (),
    scopes: Sequence[str] | None = None,
) -> Narrowing:
    """A narrowing from what somebody wrote. Raises InvalidRequest."""
    pairs = rules.items() if isinstance(rules, Mapping) else rules
    if isinstance(tools, str) or isinstance(scopes, str):
        raise InvalidRequest("tools and scopes are lists.")
    made = Narrowing(
        toolkit,
        None if tools is None else tuple(tools),
        tuple((str(pattern), str(effect)) for pattern, effect in pairs),
        None if scopes is None else tuple(scopes),
    )
    made.lens()
    return made


def make_lens(
    name: str,
    tools: Sequence[str] | None,
    rules: Sequence[tuple[str, str]],
    scopes: Sequence[str] | None = None,
) -> Lens:
    """Raises InvalidRequest for a pattern outside the grammar, a scope that is none, and a rule that could loosen."""
    if len(tools or ()) > MAX_PATTERNS or len(rules) > MAX_PATTERNS:
        raise InvalidRequest(f"There may be {MAX_PATTERNS} patterns at most.")
    for scope in scopes or ():
        address.check_scope(scope)
    return Lens(
        name,
        None if tools is None else tuple(Glob(pattern) for pattern in tools),
        tuple(LensRule(name, Glob(pattern), _strictness(effect)) for pattern, effect in rules),
        None if scopes is None else tuple(scopes),
    )


def _strictness(effect: str) -> Strictness:
    if effect not in STRICTNESS:
        raise InvalidRequest(
            f"{effect[:40]!r} is not an effect here: what narrows cannot approve.",
            hint=f"Effects: {', '.join(STRICTNESS)}.",
        )
    return effect
