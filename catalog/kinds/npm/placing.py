"""A tree of `node_modules` folders as it grows: what each name leads to from where, and where a package may go.

The rules are npm's: a package goes as high as it can without taking from anybody what they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bridge.wire.errors import PackageUnavailable
from catalog.kinds.npm import specs
from catalog.kinds.npm.manifest import Manifest, Wanted
from catalog.kinds.npm.tree import FOLDER


@dataclass(eq=False, slots=True)
class Node:
    """A package at its place, or the root, which has no manifest of a package that is there."""

    name: str
    manifest: Manifest
    parent: Node | None = None
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def at(self) -> str:
        if self.parent is None:
            return ""
        above = self.parent.at
        return f"{above}/{FOLDER}/{self.name}" if above else f"{FOLDER}/{self.name}"

    @property
    def depth(self) -> int:
        return sum(1 for _ in self.ancestry()) - 1

    @property
    def root(self) -> Node:
        return list(self.ancestry())[-1]

    def ancestry(self) -> Iterator[Node]:
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def within(self, other: Node) -> bool:
        return any(one is other for one in self.ancestry())

    def resolve(self, name: str) -> Node | None:
        """What `name` leads to from here, as Node finds it."""
        return next((one.children[name] for one in self.ancestry() if name in one.children), None)

    def wanted(self, name: str) -> Wanted | None:
        return next((one for one in self.manifest.wanted if one.name == name), None)

    def everything(self) -> Iterator[Node]:
        yield self
        for child in list(self.children.values()):
            yield from child.everything()


def fits(manifest: Manifest, wanted: Wanted) -> bool:
    """Whether that version is what is wanted. Tags are satisfied by what they were resolved to, whatever that is."""
    try:
        spec = specs.parse(wanted.name, wanted.spec)
    except PackageUnavailable:
        return False
    if spec.name != manifest.name:
        return False
    if spec.kind == "version":
        return spec.text == manifest.version
    return spec.kind == "tag" or spec.text == "*" or specs.satisfies(manifest.version, spec.text)


def dependents(node: Node) -> Iterator[tuple[Node, Wanted]]:
    """Who has `node` for a name that they want."""
    assert node.parent is not None
    for one in node.parent.everything():
        wanted = one.wanted(node.name)
        if wanted is not None and seen_from(one, wanted) is node:
            yield one, wanted


def seen_from(node: Node, wanted: Wanted) -> Node | None:
    """What is there for `wanted`. A peer is looked for beside a package, never in its own folder."""
    start = node.parent if wanted.kind.startswith("peer") and node.parent is not None else node
    return start.resolve(wanted.name)


def place(asker: Node, wanted: Wanted, manifest: Manifest, peers: dict[str, Manifest]) -> Node | None:
    """Put `manifest` where `asker` finds it, as high as nobody minds; None when what is there serves as well.

    `peers` are what it needs beside itself.
    """
    is_peer = wanted.kind.startswith("peer")
    start = asker.parent if is_peer and asker.parent is not None else asker
    best: Node | None = None
    for target in start.ancestry():
        own = target.wanted(wanted.name)
        if target.parent is not None and own is not None and own.kind.startswith("peer"):
            continue
        verdict = _verdict(asker, wanted, target, manifest, peers, is_peer)
        if verdict == "keep":
            return None
        if verdict == "conflict":
            break
        best = target
    if best is None and is_peer and wanted.name in start.children:
        # Two that cannot have what they want beside them go with what the first of them got, as with npm.
        return None
    target = best or start
    node = Node(wanted.name, manifest, target)
    target.children[wanted.name] = node
    _dedupe(node)
    return node


def _verdict(
    asker: Node, wanted: Wanted, target: Node, manifest: Manifest, peers: dict[str, Manifest], is_peer: bool
) -> str:
    present = target.children.get(wanted.name)
    own = target.wanted(wanted.name)
    if present is None:
        if own is not None and target is not asker and not fits(manifest, own):
            return "conflict"
        if not _shadows_nothing(target, wanted.name, manifest, asker):
            return "conflict"
        return "ok" if _peers_fit(target, peers, manifest) else "conflict"
    if present.manifest.label == manifest.label and fits(present.manifest, wanted):
        return "keep"
    newer = specs.compare(manifest.version, present.manifest.version) >= 0
    if (newer or is_peer) and _replaces(manifest, present, asker) and _peers_fit(target, peers, manifest):
        return "ok"
    if fits(present.manifest, wanted):
        return "keep"
    if target is asker and not is_peer:
        return "ok"
    return "ok" if is_peer and _yields(present, manifest, asker, target) else "conflict"


def _yields(present: Node, manifest: Manifest, asker: Node, target: Node) -> bool:
    """Whether all who have `present` and cannot do with `manifest` can have theirs deeper, and `asker` cannot."""
    if _deepest(asker, present.name) is not target:
        return False
    for one, wanted in dependents(present):
        if one is not asker and fits(present.manifest, wanted) and not fits(manifest, wanted):
            place = _deepest(one, present.name) if wanted.kind.startswith("peer") else one
            if place is target or not place.within(target):
                return False
    return True


def _deepest(node: Node, name: str) -> Node:
    """The deepest folder in which what `node` calls `name` can be: above all that want it beside them."""
    return next(one for one in node.ancestry() if one.parent is None or not _is_peer(one.wanted(name)))


def _is_peer(wanted: Wanted | None) -> bool:
    return wanted is not None and wanted.kind.startswith("peer")


def _shadows_nothing(target: Node, name: str, manifest: Manifest, asker: Node) -> bool:
    """Whether nobody under `target` who has something from further up would lose it."""
    present = target.resolve(name) if target is not asker else None
    if present is None:
        return True
    users = (wanted for one, wanted in dependents(present) if one.within(target) and one is not target)
    return all(fits(manifest, one) or not fits(present.manifest, one) for one in users)


def _replaces(manifest: Manifest, present: Node, asker: Node) -> bool:
    users = ((one, wanted) for one, wanted in dependents(present) if one is not asker)
    return all(fits(manifest, wanted) or not fits(present.manifest, wanted) for _, wanted in users)


def _peers_fit(target: Node, peers: dict[str, Manifest], manifest: Manifest) -> bool:
    """Whether what `manifest` needs beside it is at `target`, or can go there."""
    for wanted in manifest.wanted:
        if wanted.kind != "peer":
            continue
        there = target.resolve(wanted.name)
        if there is None or fits(there.manifest, wanted):
            continue
        peer = peers.get(wanted.name)
        own = target.wanted(wanted.name)
        if peer is None:
            return False
        if own is not None and not fits(peer, own):
            return False
        if there.parent is target:
            if not _replaces(peer, there, target):
                return False
        elif not _shadows_nothing(target, wanted.name, peer, target.root):
            return False
    return True


def _dedupe(placed: Node) -> None:
    """Take away what is deeper down and no longer needed, now that `placed` is there."""
    assert placed.parent is not None
    for node in list(placed.parent.everything()):
        if node is placed or node.name != placed.name or node.parent is placed.parent or node.parent is None:
            continue
        assert node.parent is not None
        above = node.parent.parent.resolve(node.name) if node.parent.parent is not None else None
        if above is None:
            continue
        if above.manifest.label == node.manifest.label or (
            specs.compare(above.manifest.version, node.manifest.version) >= 0
            and all(fits(above.manifest, wanted) for _, wanted in dependents(node))
        ):
            del node.parent.children[node.name]
