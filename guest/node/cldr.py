"""The locales that Intl knows, from the CLDR: one blob of compressed tables, of which a run inflates what it asks for.

A locale's table of an area is its texts in the order of the area's paths, joined by NEXT. What is like in the parent
locale's table is empty, so that most regional locales are a few bytes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from guest import npm, toolchain
from guest.context import BuildContext
from guest.node.cldr_areas import AREAS, CALENDARS, Table, calendar
from guest.node.cldr_world import lines, world

NEXT: Final = "\x01"
GONE: Final = "\x03"
"""What the parent has and the locale does not."""

PACKAGES: Final = (
    *("cldr-core", "cldr-bcp47", "cldr-dates-full", "cldr-localenames-full", "cldr-misc-full", "cldr-numbers-full"),
    *("cldr-units-full", "cldr-cal-persian-full", "cldr-cal-buddhist-full"),
)
_ROOT: Final = "und"
_MOST_BYTES: Final = 512 << 20


@dataclass
class Blob:
    """Raw DEFLATE streams, one after another."""

    data: bytearray = field(default_factory=bytearray)

    def add(self, text: str) -> int:
        """The number of bytes that it takes; none for an empty text."""
        if not text:
            return 0
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(text.encode()) + packer.flush()
        self.data += packed
        return len(packed)


def cldr(ctx: BuildContext) -> tuple[bytes, dict[str, Any]]:
    """The blob and where things are in it: `{areas, paths, world, locales, tags}`.

    `areas` names the areas, `paths` has the sizes of their lists of paths, which come first in the blob; `world` the
    names and sizes of what is not of one locale; `locales` is a line for each locale: name, parent, where its tables
    begin and their sizes; `tags` for each other tag that is a locale of its own, and the locale whose tables it has.
    Raises BuildFailed when a package is not to be had or is not the expected one.
    """
    ctx.progress("getting the CLDR")
    npm.fetch(list(PACKAGES), ctx.cache)
    for name in PACKAGES:
        ctx.inputs[name] = " ".join(toolchain.lock()[name].values())
    core = {
        path.removeprefix("package/"): json.loads(body)
        for path, body in _files("cldr-core", ctx)
        if path.endswith(".json")
    }
    zone_names = next(json.loads(body) for path, body in _files("cldr-bcp47", ctx) if path.endswith("/timezone.json"))
    parents = _parents(core)
    ctx.progress("making the tables of locales")
    tables = _tables(ctx, parents)
    blob, index = _packed(tables, parents, world(core, zone_names, set(parents)))
    return blob, {**index, "tags": lines(dict(sorted(_tags(core, set(parents)).items())))}


def _files(package: str, ctx: BuildContext, under: tuple[str, ...] = ("package/",)) -> Iterator[tuple[str, bytes]]:
    yield from npm.files(package, ctx.cache, under=under, most=_MOST_BYTES)


def _parents(core: dict[str, Any]) -> dict[str, str]:
    """Each locale that the CLDR covers at least in its basic parts, and its parent; `und` has none."""
    covered = core["coverageLevels.json"]["effectiveCoverageLevels"]
    full = [one for one in core["availableLocales.json"]["availableLocales"]["full"] if one in covered and one != _ROOT]
    named = core["supplemental/parentLocales.json"]["supplemental"]["parentLocales"]["parentLocale"]
    likely = core["supplemental/likelySubtags.json"]["supplemental"]["likelySubtags"]
    known = {_ROOT, *full}

    def parent(tag: str) -> str:
        language, *rest = tag.split("-")
        if tag in named:
            found = str(named[tag])
        elif len(rest) == 1 and len(rest[0]) == 4 and likely.get(language, "").split("-")[1:2] != rest:
            found = "root"
        else:
            found = "-".join((language, *rest[:-1])) if rest else "root"
        return _ROOT if found == "root" else found if found in known else parent(found)

    return {_ROOT: "", **{tag: parent(tag) for tag in sorted(full)}}


def _tags(core: dict[str, Any], locales: set[str]) -> dict[str, str]:
    """What is supported beside the locales with tables: `de-DE` is like `de`, and `zh-TW` like `zh-Hant-TW`."""
    likely = core["supplemental/likelySubtags.json"]["supplemental"]["likelySubtags"]

    def script(tag: str) -> str:
        language, *rest = tag.split("-")
        if rest and len(rest[0]) == 4:
            return rest[0]
        known = [f"{language}-{rest[0]}", language] if rest else [language]
        return next((str(likely[one]).split("-")[1] for one in known if one in likely), "")

    found: dict[str, str] = {}
    for tag in core["defaultContent.json"]["defaultContent"]:
        data = tag.rpartition("-")[0]
        while data and data not in locales:
            data = data.rpartition("-")[0]
        if data and tag not in locales and script(data) == script(tag):
            found[tag] = data
    for tag, data in [*((one, one) for one in locales), *found.items()]:
        language, *rest = tag.split("-")
        if len(rest) == 2 and len(rest[0]) == 4:
            short = f"{language}-{rest[1]}"
            if short not in locales and script(short) == rest[0]:
                found.setdefault(short, data)
    # Node's ICU has none of these by themselves
    return {tag: data for tag, data in found.items() if tag != "nb-NO"}


def _tables(ctx: BuildContext, locales: dict[str, str]) -> dict[str, dict[str, Table]]:
    """The table of each area for each locale. Archives are read in one pass each, and their files one by one."""
    tables: dict[str, dict[str, Table]] = {area: {} for area in AREAS}
    wanted = {file: area for area, (_, files) in AREAS.items() for _, file in files}
    waiting: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for package in PACKAGES[2:-2]:
        for path, body in _files(package, ctx, ("package/main/",)):
            _, _, locale, name = path.split("/")
            area = wanted.get(name.removesuffix(".json"))
            if area is None or locale not in locales:
                continue
            build, files = AREAS[area]
            parts = waiting.setdefault((area, locale), [])
            parts.append(json.loads(body)["main"][locale])
            if len(parts) == len(files) or (locale == _ROOT and area == "names"):
                tables[area][locale] = build(_merged(waiting.pop((area, locale))))
    for name, homes in CALENDARS.items():
        for path, body in _files(f"cldr-cal-{name}-full", ctx, tuple(f"package/main/{one}/" for one in homes)):
            locale = path.split("/")[2]
            own = json.loads(body)["main"][locale]["dates"]["calendars"][name]
            tables["dates"][locale] |= calendar(own, f"{name}/")
    return tables


def _merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, dict) and key in whole:
                whole[key] = whole[key] | value
            else:
                whole[key] = value
    return whole


def _packed(
    tables: dict[str, dict[str, Table]], parents: dict[str, str], world: dict[str, Any]
) -> tuple[bytes, dict[str, Any]]:
    blob = Blob()
    paths = {area: sorted({path for table in found.values() for path in table}) for area, found in tables.items()}
    index: dict[str, Any] = {"areas": list(AREAS), "paths": [blob.add(NEXT.join(paths[area])) for area in AREAS]}
    index["world"] = {
        name: blob.add(
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        )
        for name, value in world.items()
    }
    rows = []
    for locale, parent in parents.items():
        sizes = [len(blob.data)]
        for area in AREAS:
            own, above = tables[area].get(locale, {}), tables[area].get(parent, {})
            texts = ("" if own.get(path) == above.get(path) else own.get(path, GONE) for path in paths[area])
            sizes.append(blob.add(NEXT.join(texts).rstrip(NEXT)))
        rows.append(" ".join((locale, parent or "-", *map(str, sizes))))
    return bytes(blob.data), {**index, "locales": "\n".join(("", *rows, ""))}
