"""What a new description of an API changes, and what of it a person has to let in first.

A tool that is new, or whose side effect or destination is not what was let in, awaits review: it cannot be called,
however wide the policy is. A lower side effect awaits review too, since the side effect is the API's own word. Other
changes (arguments, answers, texts) are shown and take effect, but for an MCP server's: there any change awaits review.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from catalog.model import Manifest, Schema, ToolSpec

MAX_REMEMBERED: Final = 5000
"""Removed tools of an integration that are remembered."""
AUTHORITY: Final = ("side_effect", "destination", "description")
"""Parts of a tool that decide what a call can do: a change of these needs a person."""


class Described(Protocol):
    """What an integration may say of its tools beside calling them."""

    def destination(self, spec: ToolSpec) -> str:
        """Where a call goes, such as `GET https://api.example.com/pets/{id}`."""
        ...


class Granted(NamedTuple):
    """The authority that was let in. `description` is a digest of what the tool's own words were, where the integration
    has a method `told(spec)`: with those a server could turn a tool that was let in into another."""

    side_effect: str
    destination: str
    description: str = ""

    def facts(self) -> dict[str, str]:
        return {"side_effect": self.side_effect, "destination": self.destination}


class Pending(NamedTuple):
    """Why a tool awaits review: `added`, or the parts that changed; and what was let in before, if anything was."""

    why: tuple[str, ...]
    granted: Granted | None


class Gone(NamedTuple):
    """A tool that a refresh removed, at Unix seconds `at`, and what had been let in of it."""

    at: float
    granted: Granted | None


@dataclass(frozen=True, slots=True)
class Review:
    """What is open about an integration: tools that await review, places that are held back with them (as
    `str(Reach)`), and tools that refreshes removed."""

    pending: Mapping[str, Pending] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    removed: Mapping[str, Gone] = field(default_factory=dict)

    def as_json(self) -> str:
        return json.dumps({"pending": self.pending, "held": sorted(self.held), "removed": self.removed})

    @classmethod
    def from_json(cls, text: str) -> Review:
        """Raises ValueError, KeyError or TypeError for what is no review."""
        data = json.loads(text)
        if not data:
            return cls()
        pending = {name: Pending(tuple(why), _granted(kept)) for name, (why, kept) in data["pending"].items()}
        removed = {name: Gone(float(at), _granted(kept)) for name, (at, kept) in data["removed"].items()}
        return cls(pending, frozenset(data["held"]), removed)


class Change(NamedTuple):
    """`what` are the parts that differ: side_effect, destination, input, output, binding, description."""

    name: str
    what: tuple[str, ...]
    before: Granted
    after: Granted


@dataclass(frozen=True, slots=True)
class Difference:
    added: tuple[ToolSpec, ...]
    removed: tuple[ToolSpec, ...]
    changed: tuple[Change, ...]
    unchanged: int


def compare(old: Manifest, new: Manifest, before: Described, after: Described) -> Difference:
    """What `new` changes. It walks every schema: of a large description that takes a second."""
    was = {spec.name: spec for spec in old.tools}
    now = {spec.name: spec for spec in new.tools}
    schemas = _changed_definitions(old.definitions, new.definitions)
    changed = []
    for name, spec in now.items():
        known = was.get(name)
        if known is None:
            continue
        what = tuple(dict.fromkeys(_differences(known, spec, schemas, before, after)))
        if what:
            changed.append(Change(name, what, authority(known, before), authority(spec, after)))
    return Difference(
        tuple(spec for name, spec in now.items() if name not in was),
        tuple(spec for name, spec in was.items() if name not in now),
        tuple(changed),
        len(now.keys() & was.keys()) - len(changed),
    )


def reviewed(
    review: Review, difference: Difference, old: Manifest, new: Manifest, after: Described, *, now: float
) -> Review:
    """The review once the difference is in force."""
    pending = {name: one for name, one in review.pending.items() if any(spec.name == name for spec in new.tools)}
    removed = dict(review.removed)
    for spec in difference.removed:
        open_one = review.pending.get(spec.name)
        kept = open_one.granted if open_one is not None else authority(spec, after)
        removed[spec.name] = Gone(now, kept)
    for spec in difference.added:
        gone = removed.pop(spec.name, None)
        granted = gone.granted if gone is not None else None
        if granted != authority(spec, after):
            pending[spec.name] = Pending(("added",), granted)
    for change in difference.changed:
        open_one = pending.get(change.name)
        granted = open_one.granted if open_one is not None else change.before
        differs = () if granted is None else _differing(granted, change.after)
        if granted is not None and not differs:
            # Back to what was let in.
            pending.pop(change.name, None)
        elif differs:
            pending[change.name] = Pending(differs, granted)
    places = {str(one) for one in old.places} - review.held
    held = frozenset(str(one) for one in new.places) - places
    oldest = sorted(removed, key=lambda name: removed[name].at)[: max(0, len(removed) - MAX_REMEMBERED)]
    return Review(pending, held, {name: one for name, one in removed.items() if name not in oldest})


def authority(spec: ToolSpec, described: Described) -> Granted:
    effect = f"{spec.side_effect}, idempotent" if spec.idempotent else spec.side_effect
    told = getattr(described, "told", None)
    return Granted(effect, described.destination(spec), "" if told is None else told(spec))


def _differing(granted: Granted, now: Granted) -> tuple[str, ...]:
    return tuple(name for name in AUTHORITY if getattr(granted, name) != getattr(now, name))


def _differences(
    old: ToolSpec, new: ToolSpec, schemas: frozenset[str], before: Described, after: Described
) -> Iterator[str]:
    yield from _differing(authority(old, before), authority(new, after))
    if old.input_schema != new.input_schema or not schemas.isdisjoint(_references(new.input_schema)):
        yield "input"
    if old.output_schema != new.output_schema or not schemas.isdisjoint(_references(new.output_schema)):
        yield "output"
    if old.binding != new.binding:
        yield "binding"
    if (old.title, old.description) != (new.title, new.description):
        yield "description"


def _changed_definitions(old: Mapping[str, Schema], new: Mapping[str, Schema]) -> frozenset[str]:
    """Definitions that differ, or that lead to one that does."""
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    users: dict[str, set[str]] = {}
    for name, schema in new.items():
        for used in _references(schema):
            users.setdefault(used, set()).add(name)
    waiting = list(changed)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in changed:
                changed.add(user)
                waiting.append(user)
    return frozenset(changed)


def _references(schema: Any) -> Iterable[str]:
    """The names of the definitions that a schema refers to."""
    found = set()
    parts = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            ref = part.get("$ref")
            if isinstance(ref, str):
                found.add(ref.removeprefix("#/$defs/"))
            parts.extend(part.values())
        elif isinstance(part, list):
            parts.extend(part)
    return found


def _granted(data: Any) -> Granted | None:
    return None if data is None else Granted(*map(str, data))
