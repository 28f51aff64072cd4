"""Names, versions and ranges of npm packages: what may be asked for, and what is refused before anything is fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cmp_to_key, lru_cache
from typing import Any, Final, Literal

import nodesemver

from bridge.wire.errors import PackageUnavailable

MAX_NAME: Final = 214
MAX_SPEC: Final = 256
"""Longer ranges are refused: reading one takes time in proportion to its length."""
MAX_PARTS: Final = 32
"""Alternatives and comparators of one range."""

_NAME: Final = re.compile(r"\A(?:@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*\Z")
_OLD_NAME: Final = re.compile(r"\A(?:@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~!()'*-]*\Z")
"""Names that were taken before there were rules, such as JSONStream: as a dependency, never as what is asked for."""
_RESERVED: Final = frozenset({"node_modules", "favicon.ico"})
_VERSION: Final = re.compile(r"\A[v=\s]*\d{1,15}\.\d{1,15}\.\d{1,15}(?:-?[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?\Z")
_COMPARATOR: Final = re.compile(
    r"(?:[<>=~^]{0,3}v?(?:[xX*]|\d+)(?:\.(?:[xX*]|\d+)){0,2}-?[0-9A-Za-z.+-]*|[<>=~^]{1,3}|-)?\Z"
)
"""One word of a range. In the loose reading, words that are none of these would be passed over."""
_TAG: Final = re.compile(r"\A[A-Za-z][A-Za-z0-9._-]{0,127}\Z")
_LONG_NUMBER: Final = re.compile(r"\d{16}")
_ALIAS: Final = re.compile(r"\Anpm:((?:@[^/@]+/)?[^@/]+)(?:@(.*))?\Z", re.DOTALL)

Kind = Literal["version", "range", "tag"]


@dataclass(frozen=True, slots=True)
class Spec:
    """What is asked for of one package: an exact version, a range, or a dist-tag."""

    name: str
    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.name}@{self.text}"


def check_name(name: str, *, old: bool = False) -> str:
    """`name`, if it can be a package's. `old`: also one from before there were rules. Raises PackageUnavailable."""
    pattern = _OLD_NAME if old else _NAME
    bare = name.rpartition("/")[2]
    if len(name) > MAX_NAME or not pattern.match(name) or bare.lower() in _RESERVED or ".." in name:
        raise PackageUnavailable(
            f"{name[:80]!r} is not the name of an npm package.",
            hint="A name is lower case, such as left-pad or @scope/left-pad.",
        )
    return name


@lru_cache(4096)
def parse(name: str, text: str, *, asked: bool = False) -> Spec:
    """The spec `text` of the package `name`.

    `asked`: it comes from a caller, who names the package itself: no alias, no name from before the rules. Anything
    that is not in the registry (git, files, URLs, workspaces) is refused. Raises PackageUnavailable.
    """
    check_name(name, old=not asked)
    text = text.strip()
    if not asked and (alias := _ALIAS.match(text)) is not None:
        return parse_known(check_name(alias[1], old=True), (alias[2] or "*").strip())
    return parse_known(name, text)


def parse_known(name: str, text: str) -> Spec:
    """The spec `text` of a package whose name has been checked. Raises PackageUnavailable."""
    if len(text) > MAX_SPEC or len(re.findall(r"[\s|]+", text)) > MAX_PARTS:
        raise _refused(name, text, "it is too long")
    if text in ("", "*", "x", "X"):
        return Spec(name, "range", "*")
    if _LONG_NUMBER.search(text):
        raise _refused(name, text, "it has a number that no version has")
    if _VERSION.match(text) and (version := nodesemver.valid(text.strip("v= \t"), True)) is not None:
        return Spec(name, "version", str(version))
    if all(_COMPARATOR.match(word) for word in re.split(r"[\s|]+", text)) and _readable(text):
        return Spec(name, "range", text)
    if _TAG.match(text):
        return Spec(name, "tag", text)
    raise _refused(name, text, "only a version, a range or a dist-tag of the registry can be installed")


def _readable(text: str) -> bool:
    try:
        return nodesemver.valid_range(text, True) is not None
    except (ValueError, TypeError, AttributeError, IndexError):
        return False


def _refused(name: str, text: str, why: str) -> PackageUnavailable:
    return PackageUnavailable(f"{text[:80]!r} cannot be asked for of {name}: {why}.")


@lru_cache(4096)
def _range(text: str) -> Any:
    return nodesemver.make_range(text, True)


@lru_cache(65536)
def _version(text: str) -> Any:
    try:
        return nodesemver.make_semver(text, True)
    except (ValueError, TypeError, AttributeError, IndexError):
        return None


@lru_cache(65536)
def satisfies(version: str, text: str) -> bool:
    """Whether `version` is within the range `text`, as npm's own semver says in its loose reading."""
    parsed = _version(version)
    if parsed is None:
        return False
    try:
        return bool(_range(text).test(parsed))
    except (ValueError, TypeError, AttributeError, IndexError):
        return False


def compare(a: str, b: str) -> int:
    """Less than, equal to or more than 0, by precedence. What is no version comes before all that are."""
    one, other = _version(a), _version(b)
    if one is None or other is None:
        return (one is not None) - (other is not None)
    return int(one.compare(other))


precedence: Final = cmp_to_key(compare)
"""A key to sort versions by."""
