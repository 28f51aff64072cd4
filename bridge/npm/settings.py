"""What an operator decides about npm packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from catalog.kinds.npm.limits import Limits


@dataclass(frozen=True, slots=True)
class NpmSettings:
    """`registry` is its URL; None: no package can be installed. `folder` is where archives and locks are kept, shared
    by all processes of this user.

    `allow`: packages that may be asked for (None: any). `deny`: packages that may be in no tree. An entry is a name
    or has one `*`, such as `@scope/*`, and a denied one may go on with `@` and a range. `min_age_s`: versions that are
    younger are not there. `sha1`: content with a SHA-1 where the registry states nothing stronger.
    """

    registry: str | None = None
    folder: Path | None = None
    allow: Sequence[str] | None = None
    deny: Sequence[str] = ()
    min_age_s: float = 0.0
    sha1: bool = False
    timeout_s: float = 60.0
    fresh_s: float = 60.0
    cache_bytes: int = 4 * 1024**3
    limits: Limits = field(default_factory=Limits)
