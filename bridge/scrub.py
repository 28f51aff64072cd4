"""Secrets out of whatever comes back: the value itself and the forms that servers repeat it in.

Short needles are looked for one by one; for many, the text is read once in steps of four bytes, each looked up among
the needles' own four-byte pieces, so that the time does not grow with their number.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable
from itertools import compress
from typing import Any, Final
from urllib.parse import quote

MASK: Final = "[secret]"
MIN_LENGTH: Final = 8
"""Characters of the shortest secret that is masked: masking shorter ones would damage ordinary text."""
FEW: Final = 80
"""Needles up to which a plain search for each is the faster way."""

_GRAM: Final = 4


def forms(secret: str) -> set[bytes]:
    """The byte sequences under which `secret` may show: raw, backwards, base64 at each alignment, URL, hex,
    JSON, HTML."""
    raw = secret.encode("utf-8", "surrogatepass")
    found = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    url = quote(raw, safe="")
    found |= {url.encode(), _lower_escapes(url).encode(), quote(raw, safe="/").encode()}
    escaped = "%" + raw.hex("%")
    found |= {escaped.encode(), escaped.upper().encode()}
    found |= {raw[::-1], secret[::-1].encode("utf-8", "surrogatepass")}
    points = [ord(character) for character in secret]
    found |= {(form * len(points) % tuple(points)).encode() for form in ("&#%d;", "&#x%x;", "&#x%X;")}
    found |= {json.dumps(secret)[1:-1].encode(), html.escape(secret).encode("utf-8", "surrogatepass")}
    units = raw.decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
    digits = units.hex("/", 2)
    found |= {("/" + hexadecimal).replace("/", "\\u").encode() for hexadecimal in (digits, digits.upper())}
    for shift in range(3):
        # Characters that also depend on the neighbours of the secret are cut off both ends.
        text = base64.b64encode(b"\0" * shift + raw)
        inner = text[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        found |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return {form for form in found if len(form) >= MIN_LENGTH}


def _lower_escapes(text: str) -> str:
    pieces = text.split("%")
    return pieces[0] + "".join("%" + piece[:2].lower() + piece[2:] for piece in pieces[1:])


class Scrubber:
    """Masks the given secrets. Those under eight characters are left as they are."""

    def __init__(self, secrets: Iterable[str]) -> None:
        needles: set[bytes] = set()
        for secret in secrets:
            if len(secret) >= MIN_LENGTH:
                needles |= forms(secret)
        self._needles = sorted(needles, key=len, reverse=True)
        self._grams: dict[int, list[tuple[int, bytes]]] | None = None

    def __bool__(self) -> bool:
        return bool(self._needles)

    def finds(self, data: bytes) -> bool:
        """Whether a secret shows anywhere in `data`, in any of its forms."""
        if len(self._needles) <= FEW:
            return any(needle in data for needle in self._needles)
        return bool(self._gram_spans(data))

    def data(self, data: bytes) -> bytes:
        spans = self._spans(data)
        if not spans:
            return data
        out = bytearray()
        at = 0
        for start, end in spans:
            if start >= at:
                out += data[at:start] + MASK.encode()
            at = max(at, end)
        return bytes(out + data[at:])

    def text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        clean = self.data(data)
        return text if clean is data else clean.decode("utf-8", "replace")

    def value(self, value: Any) -> Any:
        """`value` with every string, byte string and key in it masked; what holds no secret comes back as it was."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.data(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        return value

    def _spans(self, data: bytes) -> list[tuple[int, int]]:
        """Where needles stand, by their beginning; overlaps are reported and merged by the caller."""
        if len(self._needles) <= FEW:
            found: list[tuple[int, int]] = []
            for needle in self._needles:
                at = data.find(needle)
                while at >= 0:
                    found.append((at, at + len(needle)))
                    at = data.find(needle, at + len(needle))
            return sorted(found, key=lambda span: (span[0], -span[1]))
        return self._gram_spans(data)

    def _gram_spans(self, data: bytes) -> list[tuple[int, int]]:
        """Every aligned four-byte piece of the text is looked up; a needle of seven bytes or more always covers one."""
        grams = self._index()
        pieces = memoryview(data + b"\0" * (-len(data) % _GRAM)).cast("I")
        found = []
        for position in compress(range(len(pieces)), map(grams.__contains__, pieces)):
            for offset, needle in grams[pieces[position]]:
                start = position * _GRAM - offset
                if start >= 0 and data.startswith(needle, start):
                    found.append((start, start + len(needle)))
        return sorted(found, key=lambda span: (span[0], -span[1]))

    def _index(self) -> dict[int, list[tuple[int, bytes]]]:
        if self._grams is None:
            grams: dict[int, list[tuple[int, bytes]]] = {}
            for needle in self._needles:
                for offset in range(_GRAM):
                    (gram,) = memoryview(needle[offset : offset + _GRAM]).cast("I")
                    grams.setdefault(gram, []).append((offset, needle))
            self._grams = grams
        return self._grams
