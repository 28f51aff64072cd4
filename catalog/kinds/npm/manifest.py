"""What the registry says of a package: the versions there are, and what one of them needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from bridge.wire.errors import PackageUnavailable
from catalog.kinds.npm import specs
from catalog.kinds.npm.specs import Spec

NODE: Final = "22.12.0"
"""The Node that packages are told they run on; of equal candidates the version that wants another one comes later."""

MAX_VERSIONS: Final = 20_000
MAX_WANTED: Final = 1_000
_FEW: Final = 200
_KEPT: Final = (
    "name",
    "version",
    "dependencies",
    "optionalDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "bundleDependencies",
    "bundledDependencies",
    "engines",
    "deprecated",
    "os",
    "cpu",
    "libc",
)
"""What is kept of a version's manifest, beside where its archive is: a tenth of it."""
_DIST: Final = ("tarball", "integrity", "shasum")

EdgeKind = Literal["dependency", "optional", "peer", "peer_optional"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One dependency as a package's manifest has it: `name` is where it will be, `spec` what is asked for."""

    name: str
    kind: EdgeKind
    spec: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of one package. `native` says that it is for some systems only."""

    name: str
    version: str
    dist: Mapping[str, Any]
    wanted: tuple[Wanted, ...]
    native: bool = False

    @classmethod
    def read(cls, name: str, facts: Mapping[str, Any]) -> Manifest:
        """Raises PackageUnavailable when `facts` is not about that package, or has no archive."""
        version, dist = facts.get("version"), facts.get("dist")
        if facts.get("name") != name or not isinstance(version, str) or not isinstance(dist, Mapping):
            raise PackageUnavailable(f"What the registry says of {name} is about something else.", reason="integrity")
        wanted = tuple(_wanted(facts))
        if len(wanted) > MAX_WANTED:
            raise PackageUnavailable(f"{name}@{version} asks for {len(wanted)} packages.", reason="too_large")
        native = any(facts.get(key) for key in ("os", "cpu", "libc"))
        return cls(name, version, dist, wanted, native)

    @property
    def label(self) -> str:
        return f"{self.name}@{self.version}"


def _slim(facts: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: facts[key] for key in _KEPT if key in facts}
    dist = facts.get("dist")
    return kept | {"dist": {key: dist[key] for key in _DIST if key in dist}} if isinstance(dist, Mapping) else kept


def _wanted(facts: Mapping[str, Any]) -> list[Wanted]:
    """Where a name stands in several lists, an optional dependency goes before a dependency, and that before a peer."""
    found: dict[str, Wanted] = {}
    metas = _table(facts, "peerDependenciesMeta")
    for name, spec in _table(facts, "peerDependencies").items():
        meta = metas.get(name)
        optional = isinstance(meta, Mapping) and meta.get("optional") is True
        found[name] = Wanted(name, "peer_optional" if optional else "peer", _text(spec))
    for name, spec in _table(facts, "dependencies").items():
        found[name] = Wanted(name, "dependency", _text(spec))
    for name, spec in _table(facts, "optionalDependencies").items():
        found[name] = Wanted(name, "optional", _text(spec))
    bundled = facts.get("bundleDependencies", facts.get("bundledDependencies"))
    named = [one for one in bundled if isinstance(one, str)] if isinstance(bundled, list) else []
    carried = set(found if bundled is True else named)
    return sorted((one for one in found.values() if one.name not in carried), key=lambda one: one.name)


def _table(facts: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = facts.get(key)
    return value if isinstance(value, Mapping) else {}


def _text(spec: Any) -> str:
    return spec if isinstance(spec, str) else ""


class Packument:
    """All that the registry says of one package. `now` and `min_age_s`: versions younger than that are not there."""

    def __init__(self, name: str, facts: Mapping[str, Any], *, min_age_s: float = 0.0, now: float = 0.0) -> None:
        """Raises PackageUnavailable when `facts` is not about that package."""
        versions = facts.get("versions")
        if facts.get("name") != name or not isinstance(versions, Mapping):
            raise PackageUnavailable(f"What the registry says of {name} is about something else.", reason="integrity")
        if len(versions) > MAX_VERSIONS:
            raise PackageUnavailable(f"{name} has {len(versions)} versions.", reason="too_large")
        self.name = name
        known = {v: one for v, one in versions.items() if isinstance(one, Mapping) and len(v) <= specs.MAX_SPEC}
        self._versions = {version: _slim(one) for version, one in known.items()}
        self._tags = {t: v for t, v in _table(facts, "dist-tags").items() if isinstance(v, str)}
        self._times = _table(facts, "time")
        self._young: Callable[[str], bool] = lambda version: min_age_s > 0 and self._age(version, now) < min_age_s
        self._picked: dict[str, Manifest] = {}

    def _age(self, version: str, now: float) -> float:
        """Seconds since `version` was published; none at all where that is not said."""
        text = self._times.get(version)
        try:
            return now - datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
        except (ValueError, TypeError, OverflowError):
            return 0.0

    def picks_at_once(self, spec: Spec) -> bool:
        """Whether `pick` need not compare so many versions that others would wait for it."""
        return len(self._versions) <= _FEW or spec.text in self._picked

    def pick(self, spec: Spec, *, node: str = NODE) -> Manifest:
        """The version that npm would take. Raises PackageUnavailable (not_found)."""
        picked = self._picked.get(spec.text)
        if picked is not None:
            return picked
        version = self._choose(spec, node)
        manifest = Manifest.read(self.name, self._versions[version])
        if manifest.version != version:
            raise PackageUnavailable(
                f"The registry has {manifest.label} in the place of version {version[:40]}.", reason="integrity"
            )
        self._picked[spec.text] = manifest
        return manifest

    def _choose(self, spec: Spec, node: str) -> str:
        if spec.kind == "version":
            if spec.text not in self._versions:
                raise self._missing(spec)
            if self._young(spec.text):
                raise PackageUnavailable(f"{spec} is younger than the versions that may be installed here.")
            return spec.text
        text = spec.text
        if spec.kind == "tag":
            tagged = self._tags.get(text)
            if tagged is None or tagged not in self._versions:
                raise self._missing(spec)
            if not self._young(tagged):
                return tagged
            text = f"<={tagged}"
        return self._best(text, node) or self._none(spec)

    def _best(self, text: str, node: str) -> str | None:
        latest = self._tags.get("latest")
        if latest is not None and (text == "*" or specs.satisfies(latest, text)):
            facts = self._versions.get(latest)
            if facts is not None and not self._young(latest) and not _deprecated(facts) and _runs(facts, node):
                return latest
        fitting = [v for v in self._versions if specs.satisfies(v, text) and not self._young(v)]
        return max(fitting, key=lambda version: self._rank(version, node), default=None)

    def _rank(self, version: str, node: str) -> tuple[Any, ...]:
        facts = self._versions[version]
        kept, runs = not _deprecated(facts), _runs(facts, node)
        return kept and runs, runs, kept, specs.precedence(version)

    def _none(self, spec: Spec) -> str:
        raise self._missing(spec)

    def _missing(self, spec: Spec) -> PackageUnavailable:
        latest = self._tags.get("latest")
        hint = f"Its latest version is {latest}." if latest is not None else None
        return PackageUnavailable(f"There is no {spec} in the registry.", reason="not_found", hint=hint)


def _deprecated(facts: Mapping[str, Any]) -> bool:
    return bool(facts.get("deprecated"))


def _runs(facts: Mapping[str, Any], node: str) -> bool:
    engines = facts.get("engines")
    wanted = engines.get("node") if isinstance(engines, Mapping) else None
    return not isinstance(wanted, str) or len(wanted) > specs.MAX_SPEC or specs.satisfies(node, wanted)
