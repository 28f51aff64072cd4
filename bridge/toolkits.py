"""Toolkits: named subsets of the tools, with rules of their own that only tighten."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import anyio

from bridge.view import EVERYTHING, MAX_NARROWINGS, Lens, Narrowing, View, make_lens
from bridge.wire.errors import ConfigError, Conflict, InvalidRequest, NotFound, RequestRefused
from catalog import address
from catalog.registry import Registry

MAX_TOOLKITS: Final = 1000
MAX_DESCRIPTION: Final = 500
_VIEWS: Final = 256


class ToolkitRow(NamedTuple):
    """A toolkit as it is stored; `tools` and `rules` are JSON."""

    name: str
    description: str
    tools: str
    rules: str
    created_at: float


class ToolkitStore(Protocol):
    """Each method is one transaction, durable when it returns."""

    async def toolkits(self) -> list[ToolkitRow]: ...

    async def put_toolkit(self, row: ToolkitRow) -> None: ...

    async def delete_toolkit(self, name: str) -> bool: ...


class MemoryToolkits:
    """A ToolkitStore that forgets everything when the process ends."""

    def __init__(self) -> None:
        self._rows: dict[str, ToolkitRow] = {}

    async def toolkits(self) -> list[ToolkitRow]:
        return list(self._rows.values())

    async def put_toolkit(self, row: ToolkitRow) -> None:
        self._rows[row.name] = row

    async def delete_toolkit(self, name: str) -> bool:
        return self._rows.pop(name, None) is not None


@dataclass(frozen=True, slots=True)
class Toolkit:
    """`rules` are pairs of a pattern and `require_approval` or `block`. Patterns are over whole paths of tools."""

    name: str
    description: str
    tools: tuple[str, ...]
    rules: tuple[tuple[str, str], ...]
    created_at: float
    lens: Lens

    def as_dict(self) -> dict[str, Any]:
        rules = [{"pattern": pattern, "effect": effect} for pattern, effect in self.rules]
        return {"name": self.name, "description": self.description, "tools": list(self.tools), "rules": rules}

    def row(self) -> ToolkitRow:
        return ToolkitRow(self.name, self.description, json.dumps(self.tools), json.dumps(self.rules), self.created_at)


class Toolkits:
    """The toolkits of a home, and the views that they and other narrowings make."""

    def __init__(self, store: ToolkitStore, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._toolkits: dict[str, Toolkit] = {}
        self._views: OrderedDict[tuple[str | None, tuple[Narrowing, ...]], View] = OrderedDict()
        self._changing = anyio.Lock()

    async def load(self) -> None:
        """Raises ConfigError for a stored toolkit that cannot be read: it says what its holders may not do."""
        for row in await self._store.toolkits():
            try:
                rules = tuple((str(pattern), str(effect)) for pattern, effect in json.loads(row.rules))
                made = _made(row.name, row.description, json.loads(row.tools), rules, row.created_at)
            except (RequestRefused, ValueError, TypeError) as e:
                raise ConfigError(
                    f"The stored toolkit {row.name} cannot be read: {e}",
                    hint="Nothing is served while a toolkit is unreadable, because it may forbid something.",
                ) from None
            self._toolkits[row.name] = made

    async def create(
        self,
        name: str,
        tools: Sequence[str],
        *,
        description: str = "",
        rules: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    ) -> dict[str, Any]:
        """Make a toolkit of the tools whose path matches one of `tools`. `rules` are patterns with `require_approval`
        or `block`. The answer is that of `show`. Raises InvalidRequest, Conflict when there is one of the name."""
        made = _made(name, description, tools, _pairs(rules), time.time())
        async with self._changing:
            if name in self._toolkits:
                raise Conflict(f"There is a toolkit {name} already.", hint="Update it, or choose another name.")
            if len(self._toolkits) >= MAX_TOOLKITS:
                raise Conflict(f"There are {MAX_TOOLKITS} toolkits already, which is the limit.")
            await self._keep(made)
        return self.show(name)

    async def update(
        self,
        name: str,
        *,
        tools: Sequence[str] | None = None,
        description: str | None = None,
        rules: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
    ) -> dict[str, Any]:
        """Replace the parts that are given; in force for the next call of everyone who uses it. Raises NotFound,
        InvalidRequest."""
        async with self._changing:
            old = self.get(name)
            made = _made(
                name,
                old.description if description is None else description,
                old.tools if tools is None else tools,
                old.rules if rules is None else _pairs(rules),
                old.created_at,
            )
            await self._keep(made)
        return self.show(name)

    async def remove(self, name: str) -> None:
        """From now on nothing can be done with it: runs and keys that are tied to it find no tool. Raises NotFound."""
        async with self._changing:
            self.get(name)
            await self._store.delete_toolkit(name)
            del self._toolkits[name]
            self._views.clear()
            self._registry.changed.fire()

    async def _keep(self, made: Toolkit) -> None:
        await self._store.put_toolkit(made.row())
        self._toolkits[made.name] = made
        self._views.clear()
        self._registry.changed.fire()

    def get(self, name: str) -> Toolkit:
        """Raises NotFound."""
        found = self._toolkits.get(name)
        if found is None:
            raise NotFound(f"There is no toolkit {name[:80]!r}.", hint=self._known())
        return found

    def show(self, name: str) -> dict[str, Any]:
        """`{name, description, tools, rules, holds}`: how many tools it holds now. Raises NotFound."""
        found = self.get(name)
        return found.as_dict() | {"holds": sum(found.lens.holds(tool) for tool in self._registry.tools())}

    def all(self) -> list[dict[str, Any]]:
        """Every toolkit in order of its name, without counting."""
        return [self._toolkits[name].as_dict() for name in sorted(self._toolkits)]

    def view(self, toolkit: str | None, narrowings: Sequence[Narrowing] = ()) -> View:
        """What is left of everything. Raises InvalidRequest for a toolkit that there is not."""
        if toolkit is None and not narrowings:
            return EVERYTHING
        key = (toolkit, tuple(narrowings))
        known = self._views.get(key)
        if known is None:
            known = self._views[key] = self._composed(*key)
            if len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        return known

    def _composed(self, toolkit: str | None, narrowings: tuple[Narrowing, ...]) -> View:
        if len(narrowings) > MAX_NARROWINGS:
            raise InvalidRequest(f"A view may be narrowed {MAX_NARROWINGS} times at most.")
        lenses: list[Lens] = []
        for one in (*narrowings, Narrowing(toolkit)):
            if one.toolkit is not None:
                lenses.append(self._named(one.toolkit).lens)
            if one.tools is not None or one.rules or one.scopes is not None:
                lenses.append(one.lens())
        return View(tuple(lenses))

    def _named(self, name: str) -> Toolkit:
        try:
            return self.get(name)
        except NotFound as e:
            raise InvalidRequest(e.message, hint=e.hint) from None

    def _known(self) -> str:
        names = sorted(self._toolkits)
        if not names:
            return "There is none yet: executor toolkit create NAME --tools PATTERN"
        return f"Toolkits: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}."


def _pairs(rules: Mapping[str, str] | Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((pattern, effect) for pattern, effect in (rules.items() if isinstance(rules, Mapping) else rules))


def _made(
    name: str, description: str, tools: Sequence[str], rules: tuple[tuple[str, str], ...], created_at: float
) -> Toolkit:
    address.check_name(name, "toolkit")
    if isinstance(tools, str) or not tools:
        raise InvalidRequest(
            "A toolkit is made of at least one pattern.", hint="Such as github.org.work.issues.* or *.list*."
        )
    if len(description) > MAX_DESCRIPTION:
        raise InvalidRequest(f"The description of a toolkit has {MAX_DESCRIPTION} characters at most.")
    lens = make_lens(f"toolkit {name}", tools, rules)
    return Toolkit(name, description, tuple(tools), rules, created_at, lens)
