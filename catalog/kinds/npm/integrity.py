"""What an archive must be: its digests as the registry states them, and the one that is kept here."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final

from bridge.wire.errors import PackageUnavailable

STRENGTH: Final = ("sha512", "sha384", "sha256")
"""The algorithms that are believed, the strongest first. SHA-1 is believed only where the operator says so."""


def integrity_of(archive: bytes) -> str:
    """The SHA-512 of `archive`, as a lock holds it."""
    return text_of(hashlib.sha512(archive).digest())


def text_of(sha512: bytes) -> str:
    """A SHA-512 as a lock holds it."""
    return "sha512-" + base64.b64encode(sha512).decode()


def stated(dist: Mapping[str, Any]) -> tuple[str, list[bytes]] | None:
    """The strongest algorithm that `dist` states and its digests, of which one must match (SRI 3.3.4); None: none."""
    found: dict[str, list[bytes]] = {}
    text = dist.get("integrity")
    for word in text.split() if isinstance(text, str) else ():
        algorithm, _, rest = word.partition("-")
        digest = _decoded(algorithm, rest.partition("?")[0])
        if digest is not None:
            found.setdefault(algorithm, []).append(digest)
    strongest = next((one for one in STRENGTH if one in found), None)
    return None if strongest is None else (strongest, found[strongest])


def _decoded(algorithm: str, text: str) -> bytes | None:
    if algorithm not in STRENGTH:
        return None
    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return digest if len(digest) == hashlib.new(algorithm).digest_size else None


def check(label: str, archive: bytes, dist: Mapping[str, Any], *, sha1: bool) -> None:
    """Raises PackageUnavailable (integrity) unless `archive` is what `dist` states.

    `sha1`: content with a SHA-1 where nothing stronger is stated, as for packages of before 2017.
    """
    claim = stated(dist)
    if claim is not None:
        algorithm, digests = claim
        actual = hashlib.new(algorithm, archive).digest()
        if not any(hmac.compare_digest(actual, one) for one in digests):
            raise _broken(label, f"its {algorithm} is not the one that the registry states")
        return
    shasum = dist.get("shasum")
    if dist.get("integrity"):
        raise _broken(label, "the registry states no digest of it that can be read")
    if not isinstance(shasum, str):
        raise _broken(label, "the registry states no digest of it")
    if not sha1:
        raise _broken(label, "the registry states only a SHA-1 of it, which is not accepted here")
    if not hmac.compare_digest(hashlib.sha1(archive, usedforsecurity=False).hexdigest(), shasum.lower()):
        raise _broken(label, "its SHA-1 is not the one that the registry states")


def _broken(label: str, why: str) -> PackageUnavailable:
    return PackageUnavailable(f"The archive of {label} is not accepted: {why}.", reason="integrity")
