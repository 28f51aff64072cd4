"""Which packages an operator lets in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bridge.wire.errors import ConfigError, PackageUnavailable
from catalog.kinds.npm import specs

_PATTERN: Final = re.compile(r"\A(?:@[A-Za-z0-9~*][A-Za-z0-9._~*-]*/)?[A-Za-z0-9~*][A-Za-z0-9._~*-]*\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """Packages by name, `*` standing for any run of characters but `/`, and by a range of versions."""

    text: str
    name: re.Pattern[str]
    range: str

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Raises ConfigError for what is not one: a mistake must not become a wider rule, or one that never applies."""
        at = text.rfind("@")
        name, versions = (text[:at], text[at + 1 :]) if at > 0 else (text, "*")
        if not _PATTERN.match(name) or len(text) > specs.MAX_SPEC:
            raise ConfigError(f"{text[:80]!r} does not name npm packages.", hint="Such as left-pad or @scope/*.")
        try:
            kind = specs.parse_known("x", versions).kind
        except PackageUnavailable:
            kind = "tag"
        if kind == "tag":
            raise ConfigError(f"{text[:80]!r} has no range of versions behind the @.", hint="Such as left-pad@<1.3.0.")
        pattern = "".join("[^/]*" if part == "*" else re.escape(part) for part in re.split(r"(\*)", name))
        return cls(text, re.compile(rf"\A{pattern}\Z"), versions.strip())

    def covers(self, name: str, version: str | None = None) -> bool:
        if not self.name.match(name):
            return False
        if self.range == "*":
            return True
        return version is not None and specs.satisfies(version, self.range)


class Rules:
    """`allow` None: any package may be asked for. A denied one is in no tree."""

    def __init__(self, allow: Sequence[str] | None, deny: Sequence[str]) -> None:
        self._allow = None if allow is None else [Rule.parse(one) for one in allow]
        self._deny = [Rule.parse(one) for one in deny]

    def check_asked(self, name: str) -> None:
        """Raises PackageUnavailable unless `name` may be asked for; versions are looked at when they are known."""
        if self._allow is not None and not any(rule.name.match(name) for rule in self._allow):
            raise PackageUnavailable(
                f"{name} is not among the packages that may be installed here.",
                hint="An operator can add it to npm_allow in the configuration.",
            )
        self.check_part(name, None)

    def check_resolved(self, name: str, version: str, parts: Iterable[tuple[str, str]]) -> None:
        """Raises PackageUnavailable unless that version and every one of `parts` may be installed."""
        if self._allow is not None and not any(rule.covers(name, version) for rule in self._allow):
            raise PackageUnavailable(f"{name}@{version} is not among the packages that may be installed here.")
        for part, its in parts:
            self.check_part(part, its)

    def check_part(self, name: str, version: str | None) -> None:
        denied = next((rule for rule in self._deny if rule.covers(name, version)), None)
        if denied is not None:
            label = name if version is None else f"{name}@{version}"
            raise PackageUnavailable(f"{label} may not be installed here: the operator denies {denied.text}.")
