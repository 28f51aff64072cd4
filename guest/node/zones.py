"""Time zones as the Node image holds them: from the compiled tz database, the transitions since 1970 of each zone."""

from __future__ import annotations

import struct
from typing import Any, Final

from guest.context import BuildContext
from guest.zones import compiled

_HEADER: Final = struct.Struct(">4s1s15x6L")
_FROM: Final = 0


def zones(ctx: BuildContext) -> dict[str, Any]:
    """`{names: {zone: index}, data: [[rule, times, kinds, chosen], …]}`; zones that are alike share an entry.

    `kinds` are `[offset, daylight, abbreviation]`; the first holds before the first of `times`, the POSIX `rule` after
    the last. Raises BuildFailed.
    """
    names: dict[str, int] = {}
    data: list[Any] = []
    known: dict[bytes, int] = {}
    for name, zone in compiled(ctx).items():
        if zone not in known:
            known[zone] = len(data)
            data.append(_zone(zone))
        names[name] = known[zone]
    return {"names": names, "data": data}


def _zone(file: bytes) -> list[Any]:
    """The second, 64-bit part of a file and its footer (RFC 9636)."""
    _, _, isut, isstd, leap, timecnt, typecnt, charcnt = _HEADER.unpack_from(file)
    at = _HEADER.size + timecnt * 5 + typecnt * 6 + charcnt + leap * 8 + isstd + isut
    _, _, isut, isstd, leap, timecnt, typecnt, charcnt = _HEADER.unpack_from(file, at)
    at += _HEADER.size
    times = struct.unpack_from(f">{timecnt}q", file, at)
    chosen = file[at + timecnt * 8 : at + timecnt * 9]
    at += timecnt * 9
    raw = [struct.unpack_from(">lBB", file, at + i * 6) for i in range(typecnt)]
    text = file[at + typecnt * 6 : at + typecnt * 6 + charcnt]
    kinds = [[offset, dst, text[start : text.index(b"\0", start)].decode()] for offset, dst, start in raw]
    at += typecnt * 6 + charcnt + leap * 12 + isstd + isut
    rule = file[at:].strip(b"\n").decode()
    first = next((i for i, time in enumerate(times) if time >= _FROM), timecnt)
    before = chosen[first - 1] if first else 0
    used = [before, *dict.fromkeys(kind for kind in chosen[first:] if kind != before)]
    return [rule, list(times[first:]), [kinds[kind] for kind in used], [used.index(kind) for kind in chosen[first:]]]
