"""From one spec to a tree of packages, the one that npm's own lockfile would have.

Breadth first, as npm does it: the packages of a level ask in order of their path, each for its names in order, and
each answer is placed as high as nobody minds. Peers go in beside whoever needs them. Optional dependencies that cannot
be had, and those that are made for some systems only, are left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final, Protocol

import anyio
import anyio.abc
import anyio.lowlevel

from bridge.wire.errors import PackageUnavailable
from catalog.kinds.npm import specs
from catalog.kinds.npm.limits import Limits
from catalog.kinds.npm.manifest import Manifest, Wanted
from catalog.kinds.npm.placing import Node, fits, place, seen_from
from catalog.kinds.npm.specs import Spec

_ORDER: Final = {ord(mark): chr(index + 1) for index, mark in enumerate("_-.@/0123456789abcdefghijklmnopqrstuvwxyz")}
"""Names in the order in which npm takes them, which is not that of their code points."""


class Source(Protocol):
    """Where manifests come from; asked again, it answers without asking anybody."""

    async def manifest(self, spec: Spec) -> Manifest:
        """Raises PackageUnavailable."""
        ...


async def resolve(spec: Spec, source: Source, limits: Limits) -> dict[str, Manifest]:
    """Every package that `spec` needs, by the folder where it goes. Raises PackageUnavailable."""
    outcome: dict[str, Manifest] | PackageUnavailable
    async with anyio.create_task_group() as ahead:
        try:
            outcome = await _Resolution(spec, source, limits, ahead).run()
        except PackageUnavailable as e:
            outcome = e
        ahead.cancel_scope.cancel()
    if isinstance(outcome, PackageUnavailable):
        raise outcome
    return outcome


class _Resolution:
    def __init__(self, spec: Spec, source: Source, limits: Limits, ahead: anyio.abc.TaskGroup) -> None:
        self._spec = spec
        wanted = Wanted(spec.name, "dependency", spec.text)
        self._root = Node("", Manifest("", "", {}, (wanted,)))
        self._source = source
        self._limits = limits
        self._ahead = ahead
        self._queue: list[tuple[int, str, int, Node]] = []
        self._seen: set[Node] = set()
        self._failures: dict[Node, PackageUnavailable] = {}
        self._placed = 0

    async def run(self) -> dict[str, Manifest]:
        self._push(self._root)
        while self._queue:
            node = heapq.heappop(self._queue)[3]
            if node in self._seen or not _there(node):
                continue
            self._seen.add(node)
            await self._step(node)
        self._judge()
        return {node.at: node.manifest for node in _needed(self._root, self._broken()) if node.parent is not None}

    async def _step(self, node: Node) -> None:
        problems = [one for one in node.manifest.wanted if _missing(node, one)]
        found = [(one, await self._pick(node, one)) for one in sorted(problems, key=lambda one: _collated(one.name))]
        for wanted, manifest in found:
            if manifest is None or not _missing(node, wanted):
                continue
            peers = dict(await self._peers(node, manifest, {}, set()))
            self._put(node, wanted, manifest, peers)
            # What was asked before answers at once: others of this thread have their turn here, and the timeout too.
            await anyio.lowlevel.checkpoint()

    def _put(self, asker: Node, wanted: Wanted, manifest: Manifest, peers: dict[str, Manifest]) -> None:
        placed = place(asker, wanted, manifest, peers)
        if placed is None:
            return
        self._placed += 1
        if self._placed > 8 * self._limits.packages or placed.depth > self._limits.depth:
            raise PackageUnavailable(
                f"{self._spec} needs more than the {self._limits.packages} packages that one may need, "
                f"or nests them deeper than {self._limits.depth}.",
                reason="too_large",
            )
        assert placed.parent is not None
        for node in placed.parent.everything():
            unhappy = node.wanted(placed.name)
            if unhappy is not None and node in self._seen and node is not asker and _missing(node, unhappy):
                self._seen.discard(node)
                self._push(node)
        for peer in placed.manifest.wanted:
            there = peers.get(peer.name)
            if peer.kind == "peer" and there is not None and fits(there, peer) and _missing(placed, peer):
                self._put(placed, peer, there, peers)
        self._push(placed)
        for one in placed.manifest.wanted:
            if _missing(placed, one):
                self._ahead.start_soon(self._look_ahead, one)

    async def _pick(self, node: Node, wanted: Wanted) -> Manifest | None:
        try:
            manifest = await self._source.manifest(specs.parse(wanted.name, wanted.spec))
        except PackageUnavailable as e:
            if wanted.kind in ("dependency", "peer"):
                self._failures.setdefault(node, e)
            return None
        return None if wanted.kind == "optional" and manifest.native else manifest

    async def _look_ahead(self, wanted: Wanted) -> None:
        """Have the answer ready; that there is none is found out when it is needed."""
        try:
            await self._source.manifest(specs.parse(wanted.name, wanted.spec))
        except PackageUnavailable:
            return

    async def _peers(
        self, asker: Node, manifest: Manifest, found: dict[str, Manifest], walked: set[str]
    ) -> dict[str, Manifest]:
        """What `manifest` needs beside it, and what that needs: as `asker` itself wants it, where it does.

        `walked` are the versions that were looked at: peers that contradict each other may lead in a circle.
        """
        for wanted in manifest.wanted:
            if wanted.kind != "peer":
                continue
            known = found.get(wanted.name)
            if known is not None and fits(known, wanted):
                continue
            own = asker.wanted(wanted.name)
            first = await self._quietly(own) if own is not None else None
            if first is None or not fits(first, wanted):
                second = await self._quietly(wanted)
                first = second if second is not None and (own is None or fits(second, own)) else first or second
            if first is None:
                continue
            found[wanted.name] = first
            if first.label in walked:
                continue
            walked.add(first.label)
            if len(walked) > self._limits.packages:
                raise PackageUnavailable(f"{self._spec} needs too many peers.", reason="too_large")
            await anyio.lowlevel.checkpoint()
            await self._peers(asker, first, found, walked)
        return found

    async def _quietly(self, wanted: Wanted) -> Manifest | None:
        try:
            return await self._source.manifest(specs.parse(wanted.name, wanted.spec))
        except PackageUnavailable:
            return None

    def _push(self, node: Node) -> None:
        heapq.heappush(self._queue, (node.depth, _collated(node.at), id(node), node))

    def _broken(self) -> set[Node]:
        """What failed, and what cannot do without what failed."""
        broken = {node for node in self._failures if _there(node)}
        grown = True
        while grown:
            grown = False
            for node in self._root.everything():
                if node in broken:
                    continue
                for wanted in node.manifest.wanted:
                    if wanted.kind in ("dependency", "peer") and seen_from(node, wanted) in broken:
                        broken.add(node)
                        grown = True
                        break
        return broken

    def _judge(self) -> None:
        """Raises the first failure that the asked-for package cannot do without, and for a tree that is too large."""
        if self._root in self._broken():
            raise next(e for node, e in self._failures.items() if _there(node))
        count = sum(1 for _ in _needed(self._root, self._broken())) - 1
        if count > self._limits.packages:
            raise PackageUnavailable(
                f"{self._spec} needs {count} packages, more than the {self._limits.packages} that one may need.",
                reason="too_large",
            )


def _missing(node: Node, wanted: Wanted) -> bool:
    """An optional peer is missed only where another version of it is there."""
    there = seen_from(node, wanted)
    return wanted.kind != "peer_optional" if there is None else not fits(there.manifest, wanted)


def _there(node: Node) -> bool:
    """Whether `node` is still part of its tree."""
    return all(one.parent is None or one.parent.children.get(one.name) is one for one in node.ancestry())


def _needed(root: Node, broken: set[Node]) -> Iterator[Node]:
    """What is reached from the root without what is broken; a peer that is optional is reached if it is there."""
    waiting, seen = [root], {root}
    while waiting:
        node = waiting.pop()
        yield node
        for wanted in node.manifest.wanted:
            there = seen_from(node, wanted)
            if there is not None and there not in seen and there not in broken:
                seen.add(there)
                waiting.append(there)


def _collated(text: str) -> str:
    return text.lower().translate(_ORDER)
