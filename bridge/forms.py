"""The forms under which a secret may show in what servers say: the bytes to look for."""

from __future__ import annotations

import base64
import html
import json
from typing import Final

MIN_LENGTH: Final = 8
"""Characters of the shortest secret that is masked, and of the shortest form of one that is looked for: masking shorter
ones would damage ordinary text."""

_BIT: Final = bytes.maketrans(b"01", b"\0\1")
_DIGIT: Final = bytes.maketrans(bytes(range(32)), b"abcdefghijklmnopqrstuvwxyz234567")


def exact(secret: str) -> set[bytes]:
    """Raw, backwards, with a plus for a space, base64 at each alignment, JSON, HTML."""
    raw = secret.encode("utf-8", "surrogatepass")
    found = {raw, raw.replace(b" ", b"+"), raw[::-1], secret[::-1].encode("utf-8", "surrogatepass")}
    found |= {json.dumps(secret)[1:-1].encode(), html.escape(secret).encode("utf-8", "surrogatepass")}
    found.add("".join([f"&#{ord(character)};" for character in secret]).encode())
    for shift in range(3):
        # Characters that also depend on the neighbours of the secret are cut off both ends.
        text = base64.b64encode(b"\0" * shift + raw)
        inner = text[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        found |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return {form for form in found if len(form) >= MIN_LENGTH}


def folded(secret: str) -> set[bytes]:
    """Forms whose letters may be of either case, here in lower case: hex, base32 at each alignment, and the escapes
    that are written in hex."""
    raw = secret.encode("utf-8", "surrogatepass")
    units = secret.encode("utf-16-be", "surrogatepass").hex("~", 2)
    found = {raw.hex(), "\\x" + raw.hex("~").replace("~", "\\x"), "\\u" + units.replace("~", "\\u")}
    if secret.isascii() and secret.isprintable():
        found.add(f"&#x{raw.hex('~').replace('~', ';&#x')};")
    else:
        found.add("".join([f"&#x{ord(character):x};" for character in secret]))
    return {form for form in map(str.encode, found) if len(form) >= MIN_LENGTH} | _base32(raw)


def _base32(raw: bytes) -> set[bytes]:
    """The characters of base32 that `raw` alone decides, at each of the five places where it can begin within one.

    A character has five bits: each of them is taken from all characters at once, as the bytes of one large number.
    """
    size = 8 * len(raw)
    bits = format(int.from_bytes(raw), f"0{size}b").encode().translate(_BIT)
    found = set()
    for first in range(5):
        count = (size - first) // 5
        values = 0
        for place in range(first, first + 5):
            values = 2 * values + int.from_bytes(bits[place : first + 5 * count : 5])
        found.add(values.to_bytes(count).translate(_DIGIT))
    return {form for form in found if len(form) >= MIN_LENGTH}
