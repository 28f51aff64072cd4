"""What Intl needs of a locale's CLDR files, as flat tables: a path to each text.

A text with plural forms is `other`, `zero`, `one`, `two`, `few`, `many`, joined by FORM; what is like `other` is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

Table = dict[str, str]

FORM: Final = "\x02"
_FORMS: Final = ("other", "zero", "one", "two", "few", "many")
_WIDTHS: Final = ("abbreviated", "narrow", "wide")
_SYMBOLS: Final = (
    *("decimal", "group", "percentSign", "plusSign", "minusSign", "exponential", "infinity", "nan"),
    *("approximatelySign", "currencyDecimal", "currencyGroup"),
)
_UNITS: Final = (
    *("area-acre", "digital-bit", "digital-byte", "temperature-celsius", "length-centimeter", "duration-day"),
    *("angle-degree", "temperature-fahrenheit", "volume-fluid-ounce", "length-foot", "volume-gallon"),
    *("digital-gigabit", "digital-gigabyte", "mass-gram", "area-hectare", "duration-hour", "length-inch"),
    *("digital-kilobit", "digital-kilobyte", "mass-kilogram", "length-kilometer", "volume-liter"),
    *("digital-megabit", "digital-megabyte", "length-meter", "duration-microsecond", "length-mile"),
    *("length-mile-scandinavian", "volume-milliliter", "length-millimeter", "duration-millisecond"),
    *("duration-minute", "duration-month", "duration-nanosecond", "mass-ounce", "concentr-percent"),
    *("digital-petabyte", "mass-pound", "duration-second", "mass-stone", "digital-terabit"),
    *("digital-terabyte", "duration-week", "length-yard", "duration-year"),
)
"""The units that ECMA-402 names (table 2), with the kinds that CLDR puts in front."""

_COMPOUNDS: Final = (
    *("consumption-liter-per-kilometer", "consumption-mile-per-gallon"),
    *("speed-kilometer-per-hour", "speed-meter-per-second", "speed-mile-per-hour"),
)
_COMMON: Final = frozenset(
    (
        *("arz", "ast", "bho", "brx", "ceb", "chr", "ckb", "doi", "dsb", "fil", "fur", "gsw", "haw", "hsb", "kab"),
        *("kea", "kgp", "kok", "ksh", "lij", "mai", "mni", "mul", "nds", "nqo", "pcm", "quc", "sah", "sat", "scn"),
        *("smn", "und", "vec", "xnr", "yue", "zgh", "zxx"),
    )
)
CALENDARS: Final = {"persian": ("fa", "fa-AF"), "buddhist": ("th",)}
"""The locales where another calendar than the Gregorian is the usual one, and that have texts for it."""

_STYLES: Final = ("full", "long", "medium", "short")
_FIELDS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_NAMED: Final = (*_FIELDS, "era", "weekOfMonth", "weekday", "dayperiod", "zone")


def _forms(node: Mapping[str, str], prefix: str) -> str:
    found = [node.get(f"{prefix}-count-{form}", "") for form in _FORMS]
    return FORM.join(text if at == 0 or text != found[0] else "" for at, text in enumerate(found)).rstrip(FORM)


def numbers(found: Mapping[str, Any]) -> Table:
    own = found["numbers"]
    default, native = own["defaultNumberingSystem"], own["otherNumberingSystems"].get("native", "latn")
    table = {"system": default, "native": native, "min": own["minimumGroupingDigits"]}
    taken: set[str] = set()
    for place, system in (("latn", "latn"), ("default", default), ("native", native)):
        symbols = own.get(f"symbols-numberSystem-{system}")
        if symbols is not None and system not in taken:
            taken.add(system)
            table |= {f"{place}/{name}": symbols[name] for name in _SYMBOLS if name in symbols}
            table |= {f"{place}/{name}": text for name, text in _patterns(own, system).items()}
    return table


def _patterns(own: Mapping[str, Any], system: str) -> Table:
    decimal, money = own[f"decimalFormats-numberSystem-{system}"], own[f"currencyFormats-numberSystem-{system}"]
    table = {
        "plain": decimal["standard"],
        "percent": own[f"percentFormats-numberSystem-{system}"]["standard"],
        "scientific": own[f"scientificFormats-numberSystem-{system}"]["standard"],
        "range": own[f"miscPatterns-numberSystem-{system}"]["range"],
        "approximately": own[f"miscPatterns-numberSystem-{system}"]["approximately"],
        "named": _forms(money, "unitPattern"),
    }
    table |= {name: money[name] for name in ("standard", "accounting")}
    compact = {
        "short": decimal.get("short", {}).get("decimalFormat", {}),
        "long": decimal.get("long", {}).get("decimalFormat", {}),
        "money": money.get("short", {}).get("standard", {}),
    }
    for name, patterns in compact.items():
        for zeros in range(3, 20):
            power = f"1{'0' * zeros}"
            table[f"{name}/{zeros}"] = _forms(patterns, power)
    return table


def currencies(found: Mapping[str, Any]) -> Table:
    table: Table = {}
    for code, names in found["numbers"]["currencies"].items():
        for name, text in (
            ("symbol", names.get("symbol", code)),
            ("narrow", names.get("symbol-alt-narrow", names.get("symbol", code))),
            ("name", names.get("displayName", code)),
            ("named", _forms(names, "displayName")),
        ):
            if text not in (code, "") or name == "name":
                table[f"{name}/{code}"] = text
        table |= {f"{name}/{code}": names[name] for name in ("pattern", "decimal", "group") if name in names}
        if table.get(f"narrow/{code}") == table.get(f"symbol/{code}"):
            table.pop(f"narrow/{code}", None)
    return table


def units(found: Mapping[str, Any]) -> Table:
    table: Table = {}
    for width in ("long", "short", "narrow"):
        own = found["units"][width]
        table[f"{width}/per"] = own["per"]["compoundUnitPattern"]
        for unit in (*_UNITS, *_COMPOUNDS):
            if node := own.get(unit):
                name = unit.partition("-")[2]
                table[f"{width}/{name}"] = _forms(node, "unitPattern")
                if "perUnitPattern" in node:
                    table[f"{width}/{name}/per"] = node["perUnitPattern"]
    return table


def dates(found: Mapping[str, Any]) -> Table:
    own = found["dates"]["calendars"]["gregorian"]
    table = calendar(own, "")
    for kind in ("days", "dayPeriods"):
        table |= _worded(own, kind, "")
    for style in _STYLES:
        table[f"time/{style}"] = _pattern(own["timeFormats"][style])
        table[f"joined/{style}"] = own["dateTimeFormats"][style]
        table[f"at/{style}"] = own["dateTimeFormats-atTime"]["standard"][style]
    table |= {f"append/{name}": text for name, text in own["dateTimeFormats"]["appendItems"].items()}
    return table


def calendar(own: Mapping[str, Any], prefix: str) -> Table:
    """What is said otherwise in another calendar."""
    table = _worded(own, "months", prefix)
    for name in ("eraNames", "eraAbbr", "eraNarrow"):
        table |= {f"{prefix}{name}/{era}": own["eras"][name][era] for era in ("0", "1") if era in own["eras"][name]}
    both = own["dateTimeFormats"]
    for style in _STYLES:
        table[f"{prefix}date/{style}"] = _pattern(own["dateFormats"][style])
    table |= {f"{prefix}skeleton/{name}": text for name, text in both["availableFormats"].items() if "-" not in name}
    for name, node in both["intervalFormats"].items():
        if isinstance(node, str):
            table[f"{prefix}between"] = node
        else:
            fields = {field: text for field, text in node.items() if "-" not in field}
            table |= {f"{prefix}interval/{name}/{field}": text for field, text in fields.items()}
    return table


def _worded(own: Mapping[str, Any], kind: str, prefix: str) -> Table:
    return {
        f"{prefix}{kind}/{context}/{width}/{name}": text
        for context in ("format", "stand-alone")
        for width in (*_WIDTHS, "short")
        for name, text in own[kind][context].get(width, {}).items()
        if "-alt-" not in name
    }


def _pattern(node: str | Mapping[str, str]) -> str:
    return node if isinstance(node, str) else node["_value"]


def words(found: Mapping[str, Any]) -> Table:
    table: Table = {}
    for name, node in found["listPatterns"].items():
        for part in ("start", "middle", "end", "2"):
            table[f"{name.removeprefix('listPattern-type-')}/{part}"] = node[part]
    for name, node in found["dates"]["fields"].items():
        base = name.partition("-")[0]
        if base in _NAMED and "displayName" in node:
            table[f"{name}/field"] = node["displayName"]
        if base in _FIELDS:
            for key, text in node.items():
                if key.startswith("relative-type-"):
                    table[f"{name}/{key.removeprefix('relative-type-')}"] = text
            for way in ("past", "future"):
                table[f"{name}/{way}"] = _forms(node[f"relativeTime-type-{way}"], "relativeTimePattern")
    return table


def zones(found: Mapping[str, Any]) -> Table:
    own = found["dates"]["timeZoneNames"]
    table = {name: own[name] for name in ("hourFormat", "gmtFormat", "gmtZeroFormat")}
    table |= {"regionFormat": own["regionFormat"]}
    for name, node in own.get("metazone", {}).items():
        for width, texts in node.items():
            table |= {f"{name}/{width}/{kind}": text for kind, text in texts.items()}
    for name, node in _leaves(own.get("zone", {})):
        for width in ("long", "short"):
            table |= {f"{name}/{width}/{kind}": text for kind, text in node.get(width, {}).items()}
    return table


def _leaves(node: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Mapping[str, Any]]]:
    for name, inner in node.items():
        if any(isinstance(one, dict) and not {"standard", "daylight", "generic"} & set(one) for one in inner.values()):
            yield from _leaves(inner, f"{before}{name}/")
        else:
            yield f"{before}{name}", inner


def _is_common(code: str) -> bool:
    """Whether a language has a code of two letters, or is one of the few others that are written by many."""
    language = code.partition("-")[0]
    return len(language) == 2 or language in _COMMON


def names(found: Mapping[str, Any]) -> Table:
    own = found["localeDisplayNames"]
    table = {name: own["localeDisplayPattern"][name] for name in ("localePattern", "localeSeparator")}
    for kind in ("languages", "territories", "scripts"):
        for code, text in own.get(kind, {}).items():
            code, _, variant = code.partition("-alt-")
            if kind == "languages" and not _is_common(code):
                continue
            if variant == "short" or (not variant and text != code):
                table[f"{kind}/{code}{'/' if variant else ''}{variant}"] = text
    return table


AREAS: Final[dict[str, tuple[Callable[[Mapping[str, Any]], Table], tuple[tuple[str, str], ...]]]] = {
    "numbers": (numbers, (("cldr-numbers-full", "numbers"),)),
    "currencies": (currencies, (("cldr-numbers-full", "currencies"),)),
    "units": (units, (("cldr-units-full", "units"),)),
    "dates": (dates, (("cldr-dates-full", "ca-gregorian"),)),
    "words": (words, (("cldr-misc-full", "listPatterns"), ("cldr-dates-full", "dateFields"))),
    "zones": (zones, (("cldr-dates-full", "timeZoneNames"),)),
    "names": (
        names,
        tuple(("cldr-localenames-full", one) for one in ("languages", "territories", "scripts", "localeDisplayNames")),
    ),
}
"""Each area of the tables: what makes it, and of which files of which packages."""
