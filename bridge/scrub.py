"""Secrets out of whatever comes back: the value itself and the forms that servers repeat it in.

Short needles are looked for one by one; for many, the text is read once in steps of four bytes, each looked up among
the needles' own four-byte pieces, so that the time does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import Any, Final

from bridge import forms
from bridge.forms import MIN_LENGTH
from bridge.percent import Escaped

MASK: Final = "[secret]"
FEW: Final = 80
"""Needles up to which a plain search for each is the faster way."""

_GRAM: Final = 4


class Needles:
    """Looks for byte sequences of at least MIN_LENGTH."""

    def __init__(self, needles: Iterable[bytes]) -> None:
        self._needles = sorted(needles, key=len, reverse=True)
        self._grams: dict[int, list[tuple[int, bytes]]] | None = None

    def __len__(self) -> int:
        return len(self._needles)

    def are_in(self, data: bytes) -> bool:
        if len(self._needles) <= FEW:
            return any(needle in data for needle in self._needles)
        return bool(self._gram_spans(data))

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Where they stand; overlaps are for the caller to merge."""
        if len(self._needles) <= FEW:
            found: list[tuple[int, int]] = []
            for needle in self._needles:
                at = data.find(needle)
                while at >= 0:
                    found.append((at, at + len(needle)))
                    at = data.find(needle, at + len(needle))
            return found
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
        return found

    def _index(self) -> dict[int, list[tuple[int, bytes]]]:
        if self._grams is None:
            grams: dict[int, list[tuple[int, bytes]]] = {}
            for needle in self._needles:
                for offset in range(_GRAM):
                    (gram,) = memoryview(needle[offset : offset + _GRAM]).cast("I")
                    grams.setdefault(gram, []).append((offset, needle))
            self._grams = grams
        return self._grams


class Scrubber:
    """Masks the given secrets. Those under eight characters are left as they are."""

    def __init__(self, secrets: Iterable[str]) -> None:
        masked = {secret for secret in secrets if len(secret) >= MIN_LENGTH}
        self._exact = Needles(set[bytes]().union(*map(forms.exact, masked)))
        self._folded = Needles(set[bytes]().union(*map(forms.folded, masked)))
        raw = {secret.encode("utf-8", "surrogatepass") for secret in masked}
        self._escaped = Escaped(raw | {one.replace(b" ", b"+") for one in raw})

    def __bool__(self) -> bool:
        return len(self._exact) > 0

    def finds(self, data: bytes) -> bool:
        """Whether a secret shows anywhere in `data`, in any of its forms."""
        return (
            self._exact.are_in(data)
            or self._folded.are_in(data.lower())
            or next(self._escaped.spans(data), None) is not None
        )

    def data(self, data: bytes) -> bytes:
        spans = [*self._exact.spans(data), *self._folded.spans(data.lower()), *self._escaped.spans(data)]
        if not spans:
            return data
        out = bytearray()
        at = 0
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
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
