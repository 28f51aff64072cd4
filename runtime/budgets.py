"""The budgets of a run: what each is, what a request may ask, what a run is given, what a result reports.

Every limit is a positive number that somebody chose: there is no "unlimited", and no value that means it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from bridge.wire import frames
from bridge.wire.errors import ConfigError, InvalidRequest

MIB: Final = 1024 * 1024


class Budget(NamedTuple):
    """One row of the table. `ends` is the code of a run that this budget ended, None when it never ends one."""

    default: int
    ceiling: int
    least: int
    ends: str | None
    meaning: str


TABLE: Final[dict[str, Budget]] = {
    "fuel": Budget(2 * 10**10, 10**12, 1, "fuel_exhausted", "guest instructions"),
    "wall_ms": Budget(30_000, 600_000, 1, "deadline_exceeded", "milliseconds, tool calls included"),
    "memory_bytes": Budget(64 * MIB, 512 * MIB, 1, "memory_exhausted", "bytes of the guest's linear memory"),
    "bridge_calls": Budget(256, 10_000, 0, "calls_exhausted", "tool calls in total"),
    "bridge_calls_in_flight": Budget(32, 256, 1, None, "tool calls at once; further ones wait"),
    "call_args_bytes": Budget(MIB, 32 * MIB, 0, None, "bytes of one call's arguments"),
    "call_value_bytes": Budget(8 * MIB, 32 * MIB, 0, None, "bytes of one call's value"),
    "source_bytes": Budget(256 * 1024, 8 * MIB, 0, None, "bytes of the script, UTF-8"),
    "input_bytes": Budget(MIB, 8 * MIB, 0, None, "bytes of the input, msgpack"),
    "result_bytes": Budget(MIB, 64 * MIB, 0, "result_too_large", "bytes of a result within the answer, msgpack"),
    "log_bytes": Budget(64 * 1024, MIB, 0, None, "bytes of log text; what follows is dropped, with a marker"),
}

STORED_RESULT_BYTES: Final = 64 * MIB
"""Bytes of the largest result that is kept at all; above it a run ends as `result_too_large`."""

MEMORY_DEFAULTS: Final[dict[str, int]] = {"python": 128 * MIB, "node": 128 * MIB}
"""Defaults of `memory_bytes` for the languages whose interpreter alone needs more than the table's default."""

NAMES_BY_CODE: Final[dict[str, str]] = {row.ends: name for name, row in TABLE.items() if row.ends is not None}


class Budgets(NamedTuple):
    """What one run is given, every figure resolved."""

    fuel: int
    wall_ms: int
    memory_bytes: int
    bridge_calls: int
    bridge_calls_in_flight: int
    call_args_bytes: int
    call_value_bytes: int
    source_bytes: int
    input_bytes: int
    result_bytes: int
    log_bytes: int

    def limits(self) -> frames.Limits:
        """The part that worker and guest enforce. Their result limit is the stored one: the inline one decides where
        a result goes, not whether there is one."""
        return frames.Limits(
            fuel=self.fuel,
            memory_bytes=self.memory_bytes,
            wall_ms=self.wall_ms,
            bridge_calls=self.bridge_calls,
            call_args_bytes=self.call_args_bytes,
            result_bytes=STORED_RESULT_BYTES,
            log_bytes=self.log_bytes,
        )


def lowered(budgets: Budgets, ceilings: Mapping[str, int]) -> Budgets:
    """`budgets` with nothing above `ceilings`."""
    return budgets._replace(**{name: min(getattr(budgets, name), ceiling) for name, ceiling in ceilings.items()})


class Spent(NamedTuple):
    """A limit that ended a run, as the answer reports it."""

    name: str
    limit: int
    used: int


def limit_of(code: str, budgets: Budgets, usage: Mapping[str, int | float]) -> dict[str, Any] | None:
    """`{"name", "limit", "used"}` for the code of a run that a budget ended, None for other codes.

    A budget that ended a run was used up, even where the meter stopped a little short of it. A result can also have too
    many parts, or be given up by the guest before it has a size: without a size above the limit, no figure is claimed.
    """
    name = NAMES_BY_CODE.get(code)
    if name is None:
        return None
    if name == "result_bytes":
        used = math.ceil(usage.get(name, 0))
        return Spent(name, STORED_RESULT_BYTES, used)._asdict() if used > STORED_RESULT_BYTES else None
    limit = getattr(budgets, name)
    return Spent(name, limit, max(limit, math.ceil(usage.get(name, 0))))._asdict()


def amount(name: str, value: Any, *, least: int = 0) -> int:
    """`value` as the amount of budget `name`. Raises ValueError, saying what would do, for anything else."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int:
        raise ValueError(f"budget {name!r} must be a whole number, not {_shown(value)}")
    if value < least:
        raise ValueError(f"budget {name!r} must be at least {least}, not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) in (int, float):
        return str(value) if type(value) is float or abs(value) < 10**30 else "a number of that size"
    return _KINDS.get(type(value), type(value).__name__)


_KINDS: Final[dict[type[Any], str]] = {str: "a string", list: "a list", dict: "an object"}


class BudgetPolicy:
    """The operator's defaults and ceilings, each replacing the table's.

    Raises ConfigError for an unknown name, a value that is no amount, or a ceiling above the table's.
    """

    def __init__(self, defaults: Mapping[str, Any] | None = None, ceilings: Mapping[str, Any] | None = None) -> None:
        self._defaults = _figures("default", defaults or {})
        self._ceilings = _figures("ceiling", ceilings or {})
        self._standard: dict[str, Budgets] = {}

    def ceiling(self, name: str) -> int:
        return self._ceilings.get(name, TABLE[name].ceiling)

    def default(self, name: str, language: str) -> int:
        figure = self._defaults.get(name)
        if figure is None:
            figure = (
                MEMORY_DEFAULTS.get(language, TABLE[name].default) if name == "memory_bytes" else TABLE[name].default
            )
        return min(figure, self.ceiling(name))

    def resolve(self, asked: Mapping[str, Any] | None, language: str) -> Budgets:
        """The budgets of a run that asked for `asked`; a figure above its ceiling becomes the ceiling.

        Raises InvalidRequest for a name that is no budget and a value that is no amount.
        """
        if asked is None:
            if language not in self._standard:
                self._standard[language] = Budgets(**{name: self.default(name, language) for name in TABLE})
            return self._standard[language]
        if not isinstance(asked, Mapping):
            raise InvalidRequest("budgets must be an object", hint=f"with any of the keys {', '.join(TABLE)}")
        for name in asked:
            if name not in TABLE:
                raise InvalidRequest(f"{str(name)[:64]!r} is not a budget", hint=f"budgets are {', '.join(TABLE)}")
        return Budgets(**{name: self._given(name, asked, language) for name in TABLE})

    def _given(self, name: str, asked: Mapping[str, Any], language: str) -> int:
        if name not in asked:
            return self.default(name, language)
        try:
            return min(amount(name, asked[name], least=TABLE[name].least), self.ceiling(name))
        except ValueError as e:
            raise InvalidRequest(str(e)) from None


def _figures(kind: str, given: Mapping[str, Any]) -> dict[str, int]:
    figures: dict[str, int] = {}
    for name, value in given.items():
        row = TABLE.get(name)
        if row is None:
            raise ConfigError(f"{name!r} is not a budget", hint=f"budgets are {', '.join(TABLE)}")
        try:
            figures[name] = amount(name, value, least=row.least)
        except ValueError as e:
            raise ConfigError(f"{kind} of {e}") from None
        if figures[name] > row.ceiling:
            raise ConfigError(f"the {kind} of budget {name!r} is above {row.ceiling}, the highest there is")
    return figures
