"""The tables of locales in the Node image: what is kept of the CLDR, and how a locale is like its parent."""

from __future__ import annotations

import zlib
from typing import Any

from guest.node import cldr
from guest.node.cldr_areas import AREAS, FORM, currencies, numbers


def money(**names: str) -> dict[str, Any]:
    return {"numbers": {"currencies": {"EUR": names}}}


def test_plural_forms_are_one_text_and_those_like_the_general_one_are_empty() -> None:
    names = {"displayName-count-one": "euro", "displayName-count-few": "eura", "displayName-count-other": "euro"}
    assert currencies(money(**names))["named/EUR"] == f"euro{FORM}{FORM}{FORM}{FORM}eura"


def test_a_symbol_that_is_the_code_is_not_kept() -> None:
    assert currencies(money(displayName="euro", symbol="EUR")) == {"name/EUR": "euro"}


def test_a_locale_without_symbols_of_its_native_digits_has_those_of_its_others() -> None:
    symbols = {"decimal": ",", "group": "."}
    formats = {"standard": "#,##0.###", "accounting": "¤0"}
    own = {
        "defaultNumberingSystem": "latn",
        "otherNumberingSystems": {"native": "beng"},
        "minimumGroupingDigits": "1",
        "symbols-numberSystem-latn": symbols,
        **{f"{kind}Formats-numberSystem-latn": formats for kind in ("decimal", "percent", "scientific", "currency")},
        "miscPatterns-numberSystem-latn": {"range": "{0}–{1}", "approximately": "~{0}"},
    }
    table = numbers({"numbers": own})
    assert (table["latn/decimal"], table["native"]) == (",", "beng")
    assert not [path for path in table if path.startswith(("native/", "default/"))]


def test_a_locale_keeps_what_its_parent_has_not_and_says_what_it_lacks() -> None:
    tables = {area: {"und": {}, "de": {}, "de-AT": {}} for area in AREAS}
    tables["words"] = {"und": {"a": "1"}, "de": {"a": "1", "b": "2", "c": "3"}, "de-AT": {"b": "9", "c": "3"}}
    blob, index = cldr._packed(tables, {"und": "", "de": "und", "de-AT": "de"}, {})  # type: ignore[arg-type]
    rows = {name: rest for name, *rest in (line.split() for line in index["locales"].split("\n") if line)}
    at = list(AREAS).index("words")

    def texts(locale: str) -> list[str]:
        _, start, *sizes = rows[locale]
        offset = int(start) + sum(map(int, sizes[:at]))
        packed = blob[offset : offset + int(sizes[at])]
        return zlib.decompress(packed, -15).decode().split(cldr.NEXT) if packed else []

    assert [rows[locale][0] for locale in rows] == ["-", "und", "de"]
    assert texts("und") == ["1"]
    assert texts("de") == ["", "2", "3"]
    assert texts("de-AT") == [cldr.GONE, "9"]
