"""Reading an API's description again, and letting in what it added or changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from bridge.wire.errors import InvalidRequest, NotFound
from catalog import address
from catalog.model import Connection, Diagnostic, Manifest, ToolSpec
from catalog.registry import Installed
from catalog.review import Described, Difference, Pending, Review, authority, compare, reviewed

ALL: Final = "all"
Accept = Sequence[str] | Literal["all"]


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh changed. `awaiting` are the tools that cannot be called, and `held` the places that cannot be
    reached, before somebody has reviewed them."""

    name: str
    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    changed: list[dict[str, Any]]
    unchanged: int
    awaiting: list[str]
    held: list[str]
    diagnostics: list[Diagnostic]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"diagnostics": [one._asdict() for one in self.diagnostics]}


def describer(installed: Installed) -> Described:
    """Raises InvalidRequest for an integration that is not made from a document."""
    integration: Any = installed.integration
    if not hasattr(integration, "destination"):
        raise InvalidRequest(
            f"{installed.name} is of kind {installed.kind}: it is not made from a document that could be read again."
        )
    described: Described = integration
    return described


def refreshed(
    old: Installed, integration: Any, config: dict[str, Any], manifest: Manifest
) -> tuple[Installed, RefreshReport]:
    """The integration with its new manifest, not yet in force, and what that changes. It may take seconds."""
    before, after = describer(old), describer(replace(old, integration=integration))
    difference = compare(old.manifest, manifest, before, after)
    review = reviewed(old.review, difference, old.manifest, manifest, after, now=time.time())
    new = Installed(integration, config, manifest, old.created_at, dict(old.connections), review)
    return new, _report(new, difference, after)


def _report(new: Installed, difference: Difference, after: Described) -> RefreshReport:
    return RefreshReport(
        new.name,
        [_told(spec, after) for spec in difference.added],
        [{"tool": spec.name, "side_effect": spec.side_effect} for spec in difference.removed],
        [
            {
                "tool": one.name,
                "what": list(one.what),
                "before": one.before.facts(),
                "after": one.after.facts(),
                "awaits_review": one.name in new.review.pending,
            }
            for one in difference.changed
        ],
        difference.unchanged,
        sorted(new.review.pending),
        sorted(new.review.held),
        list(new.manifest.diagnostics),
    )


def _told(spec: ToolSpec, after: Described) -> dict[str, Any]:
    facts = {"tool": spec.name} | authority(spec, after).facts()
    return facts | {"description": (spec.title or spec.description)[:200]}


def awaiting(installed: Installed) -> dict[str, Any]:
    """`{name, tools: [{tool, why, side_effect, destination, granted, description}], held}`."""
    described: Any = installed.integration
    specs = {spec.name: spec for spec in installed.manifest.tools}
    tools = [_told(specs[name], described) | _why(one) for name, one in sorted(installed.review.pending.items())]
    return {"name": installed.name, "tools": tools, "held": sorted(installed.review.held)}


def _why(pending: Pending) -> dict[str, Any]:
    granted = None if pending.granted is None else pending.granted.facts()
    return {"why": list(pending.why), "granted": granted}


def let_in(installed: Installed, accept: Accept) -> tuple[Installed, list[str]]:
    """The integration with what was accepted, and the names of the tools that this lets in.

    `accept` holds names or paths of tools, and places that are held back; a place is also let in with the first tool
    that goes there. Raises NotFound for one that does not await review: then nothing is let in.
    """
    review = installed.review
    if accept == ALL:
        names, held = set(review.pending), frozenset[str]()
    else:
        asked = [_named(installed, one) for one in accept]
        for one in asked:
            if one not in review.pending and one not in review.held:
                raise NotFound(
                    f"Nothing called {one[:120]!r} awaits review in {installed.name}.",
                    hint=f"executor review {installed.name} shows what does.",
                )
        names = {one for one in asked if one in review.pending}
        held = review.held - set(asked) - _places(installed, names)
    pending = {name: one for name, one in review.pending.items() if name not in names}
    new = replace(installed, review=Review(pending, held, review.removed), connections=dict(installed.connections))
    return new, sorted(names)


def _named(installed: Installed, text: str) -> str:
    """The name of the tool that a path or a name means."""
    where = address.parse(text)
    if where is not None and where.integration == installed.name and text not in installed.review.pending:
        return where.tool
    return text


def _places(installed: Installed, names: set[str]) -> set[str]:
    """The places, as text, that the tools go to."""
    described = describer(installed)
    goals = [described.destination(spec) for spec in installed.manifest.tools if spec.name in names]
    urls = [goal.partition(" ")[2] for goal in goals]
    return {
        str(one)
        for one in installed.manifest.places
        if any(url == str(one) or url.startswith(str(one).rstrip("/") + "/") for url in urls)
    }


def widened(account: Connection, installed: Installed) -> Connection:
    """The account, whose credentials may now go wherever its integration may."""
    return replace(account, reach=installed.reach)


def covers(account: Connection, installed: Installed) -> bool:
    """Whether the credentials of the account may go to every place that the integration reaches."""
    return account.reach is None or set(installed.reach) <= set(account.reach)
