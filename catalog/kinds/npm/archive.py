"""A package's archive, read into a map of paths and bytes. Nothing is written, and nothing but plain files is read.

The headers are read here and not by `tarfile`, which allocates what a header asks for and follows where a link leads.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from typing import Final

from bridge.wire.errors import PackageUnavailable
from catalog.kinds.npm.limits import Limits

BLOCK: Final = 512
_CHUNK: Final = 64 * 1024
_EXTENDED: Final = 64 * 1024
"""Bytes of one extended header; a path is far shorter."""
_ALL_EXTENDED: Final = 8 * 1024 * 1024
"""Bytes of all of them: reading their records takes far longer than reading files."""
_MEMBERS: Final = 4_096
_FILES: Final = frozenset({b"0", b"\0", b"7"})
_LINKS: Final = frozenset({b"1", b"2"})
_DRIVE: Final = re.compile(r"\A[A-Za-z]:")
_ZERO: Final = bytes(BLOCK)
UNUSED: Final = (".d.ts", ".d.mts", ".d.cts", ".map", ".flow", ".tsbuildinfo", ".md", ".markdown")
"""Endings of files that nothing reads at run time: they are neither kept nor counted."""


class BadArchive(ValueError):
    """Raised when an archive is not one, or holds what is not read; `reason` as in PackageUnavailable."""

    def __init__(self, message: str, reason: str = "refused") -> None:
        super().__init__(message)
        self.reason = reason


class Inflated:
    """The decompressed bytes of a gzip archive, as they are asked for and at most `limit` of them."""

    def __init__(self, data: bytes, limit: int) -> None:
        self._data = memoryview(data)
        self._at = 0
        self._limit = limit
        self._given = 0
        self._members = 1
        self._member = zlib.decompressobj(31)
        self._ready = bytearray()

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end. Raises BadArchive."""
        while len(self._ready) < size and self._more():
            pass
        part = bytes(self._ready[:size])
        del self._ready[:size]
        return part

    def _more(self) -> bool:
        if self._member.eof:
            if bytes(self._data[self._at : self._at + 2]) != b"\x1f\x8b":
                return False
            self._members += 1
            if self._members > _MEMBERS:
                raise BadArchive(f"it is more than {_MEMBERS} archives, one behind the other", "too_large")
            self._member = zlib.decompressobj(31)
        # What is left over of a piece is copied, so the pieces are small.
        piece = self._data[self._at : self._at + _CHUNK]
        if not piece:
            return False
        try:
            part = self._member.decompress(piece, _CHUNK)
        except zlib.error:
            raise BadArchive("it is not a gzip archive, or a damaged one") from None
        rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        self._at += len(piece) - len(rest)
        self._given += len(part)
        if self._given > self._limit:
            raise BadArchive(f"it unpacks to more than {self._limit} bytes", "too_large")
        self._ready += part
        return True

    @property
    def whole(self) -> bool:
        """Whether the end of the compressed stream was there."""
        return self._member.eof


def read_archive(data: bytes, limits: Limits) -> dict[str, bytes]:
    """The plain files of a package's archive by their path within the package, its first folder taken off.

    Raises PackageUnavailable for links, devices, sparse files, paths that lead out of it, and for more than `limits`.
    """
    if len(data) > limits.packed:
        raise PackageUnavailable(
            f"it is {len(data)} bytes packed, more than the {limits.packed} that a package may have",
            reason="too_large",
        )
    try:
        return _read(data, limits)
    except BadArchive as e:
        reason = "too_large" if e.reason == "too_large" else "refused"
        raise PackageUnavailable(str(e), reason=reason) from None  # type: ignore[arg-type]


def _read(data: bytes, limits: Limits) -> dict[str, bytes]:
    # Headers and padding come on top of what is in the files, and so does what is not kept.
    stream = Inflated(data, 4 * limits.unpacked + BLOCK * 4 * limits.files)
    found: dict[str, bytes] = {}
    folded: dict[str, str] = {}
    total = entries = headers = 0
    extended: dict[str, str] = {}
    while (header := stream.read(BLOCK)) and header != _ZERO:
        entries += 1
        if entries > 8 * limits.files:
            raise BadArchive(f"it has more than {8 * limits.files} entries", "too_large")
        _check_sum(header)
        kind, size = header[156:157], _number(header[124:136])
        if kind in (b"x", b"g", b"L", b"K"):
            body = _body(stream, size, _EXTENDED)
            headers += size
            if headers > _ALL_EXTENDED:
                raise BadArchive(f"its extended headers have more than {_ALL_EXTENDED} bytes", "too_large")
            if kind == b"x":
                extended = _pax(body)
            elif kind == b"L":
                extended["path"] = _text(body.rstrip(b"\0"))
            continue
        if "size" in extended:
            size = _decimal(extended["size"])
        raw = extended.get("path") or _name(header)
        sparse = any(key.startswith("GNU.sparse") for key in extended)
        extended = {}
        if kind in _LINKS:
            raise BadArchive(f"it holds a link, {raw[:120]!r}")
        if kind == b"5" or (kind in _FILES and raw.endswith("/")):
            check_path(raw, limits)
            _skip(stream, size)
            continue
        if kind not in _FILES or sparse:
            raise BadArchive(f"it holds something that is no plain file, {raw[:120]!r}")
        path = check_path(raw, limits)
        if path is None:
            raise BadArchive(f"it holds a file beside the package, {raw[:120]!r}")
        if path.endswith(UNUSED):
            _skip(stream, size)
            continue
        total += size
        if total > limits.unpacked:
            raise BadArchive(f"it unpacks to more than {limits.unpacked} bytes", "too_large")
        if len(found) >= limits.files and path not in found:
            raise BadArchive(f"it has more than {limits.files} files", "too_large")
        _check_alone(path, folded)
        found[path] = _body(stream, size, limits.unpacked)
    _check_nesting(found)
    if not stream.whole and not found:
        raise BadArchive("it ends before its end")
    return found


def check_path(raw: str, limits: Limits) -> str | None:
    """The path within the package of an entry `raw`; None for the package's folder itself. Raises BadArchive."""
    if "\0" in raw or "\\" in raw or any(ord(mark) < 32 or ord(mark) == 127 for mark in raw):
        raise BadArchive(f"it holds a path with a character that no path has, {raw[:120]!r}")
    if raw.startswith("/") or _DRIVE.match(raw):
        raise BadArchive(f"it holds an absolute path, {raw[:120]!r}")
    parts = [part for part in raw.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BadArchive(f"it holds a path that leads out of it, {raw[:120]!r}")
    if len(raw) > limits.path or len(parts) > limits.path_depth or any(len(part.encode()) > 255 for part in parts):
        raise BadArchive(f"it holds a path that is too long or too deep, {raw[:120]!r}", "too_large")
    return "/".join(parts[1:]) or None


def _check_alone(path: str, folded: dict[str, str]) -> None:
    """The same path again takes the place of the earlier, as everywhere; two that only some systems tell apart do not
    go together."""
    key = unicodedata.normalize("NFC", path).casefold()
    if folded.setdefault(key, path) != path:
        raise BadArchive(f"it holds two paths that differ in case or spelling alone, {path[:120]!r}")


def _check_nesting(found: dict[str, bytes]) -> None:
    for path in found:
        at = path.find("/")
        while at != -1:
            if path[:at] in found:
                raise BadArchive(f"it holds a file where there is a folder, {path[:at][:120]!r}")
            at = path.find("/", at + 1)


def _check_sum(header: bytes) -> None:
    if len(header) < BLOCK:
        raise BadArchive("it ends within a header")
    stated = _number(header[148:156])
    if stated != sum(header[:148]) + 8 * 32 + sum(header[156:]):
        raise BadArchive("it holds a header whose sum is wrong")


def _number(field: bytes) -> int:
    """An octal number, or GNU's binary form of one that octal has no room for. Never negative."""
    if field[0] & 0x80:
        if field[0] != 0x80 or any(field[1:-8]):
            raise BadArchive("it holds a number that no file has")
        return int.from_bytes(field[-8:], "big")
    text = field.strip(b"\0 ")
    if not text:
        return 0
    if re.fullmatch(rb"[0-7]{1,12}", text) is None:
        raise BadArchive("it holds a number that is none")
    return int(text, 8)


def _decimal(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,15}", text) is None:
        raise BadArchive("it holds a size that is none")
    return int(text)


def _body(stream: Inflated, size: int, limit: int) -> bytes:
    if size > limit:
        raise BadArchive(f"it holds an entry of {size} bytes", "too_large")
    data = stream.read(size)
    if len(data) != size:
        raise BadArchive("it ends within a file")
    stream.read(-size % BLOCK)
    return data


def _skip(stream: Inflated, size: int) -> None:
    left = size + -size % BLOCK
    while left > 0:
        part = stream.read(min(left, _CHUNK))
        if not part:
            raise BadArchive("it ends within a file")
        left -= len(part)


def _pax(body: bytes) -> dict[str, str]:
    """The records of an extended header, each `LENGTH KEY=VALUE` and a newline (POSIX pax)."""
    found: dict[str, str] = {}
    at = 0
    while at < len(body):
        digits, mark, _ = body[at : at + 20].partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 9 else 0
        record = body[at + len(digits) + 1 : at + length]
        if not mark or length < len(digits) + 2 or at + length > len(body) or not record.endswith(b"\n"):
            raise BadArchive("it holds an extended header that is none")
        key, _, value = record[:-1].partition(b"=")
        found[_text(key)] = _text(value)
        at += length
    return found


def _name(header: bytes) -> str:
    name = _text(header[:100].split(b"\0", 1)[0])
    prefix = _text(header[345:500].split(b"\0", 1)[0]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadArchive("it holds a name that is not UTF-8") from None
