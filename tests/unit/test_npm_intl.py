"""Intl in a package: what Node gives, for the formats that packages use. The values are Node 24's, in UTC.

Those of locales other than en-US are in tests/data/intl.json, which tests/data/intl.py records.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from catalog.kinds.npm.bundle import PackageSource
from runtime.budgets import BudgetPolicy
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.packages import PackageCall, Packages
from tests.data.intl import EXPRESSIONS, FIXTURE, LOCALES
from tests.unit.npm_trees import esm

SOURCE = "export const tool = { execute: ({ of }) => of.map((one) => (0, eval)(`(${one})`)) };"

EXPECTED: dict[str, Any] = {
    "new Date(0).toLocaleString()": "1/1/1970, 12:00:00 AM",
    "new Date(0).toLocaleDateString('en-US', { dateStyle: 'full' })": "Thursday, January 1, 1970",
    "new Date(0).toLocaleDateString(undefined, { month: 'short', day: 'numeric', year: 'numeric' })": "Jan 1, 1970",
    "new Date(0).toLocaleDateString('en-US', { weekday: 'short', month: 'long', day: '2-digit' })": "Thu, January 01",
    "new Date(0).toLocaleTimeString('en-US', { hour: '2-digit', minute: '2-digit', hour12: false })": "00:00",
    "new Date(NaN).toLocaleString()": "Invalid Date",
    "new Date(1.7e12).toLocaleString('en-US', { timeZone: 'America/New_York', timeZoneName: 'short' })": (
        "11/14/2023, 5:13:20 PM EST"
    ),
    "new Date(172e10).toLocaleString('en-US', { timeZone: 'Europe/Berlin', dateStyle: 'long', timeStyle: 'short' })": (
        "July 3, 2024 at 11:46 AM"
    ),
    "new Date(4e12).toLocaleString('en-US', { timeZone: 'America/New_York' })": "10/2/2096, 3:06:40 AM",
    "new Date(3e8).toLocaleString('en-US', { timeZone: 'Asia/Kolkata' })": "1/4/1970, 4:50:00 PM",
    "new Intl.DateTimeFormat().resolvedOptions().timeZone": "UTC",
    "(1234567.891).toLocaleString()": "1,234,567.891",
    "(1.005).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })": "1.01",
    "(0.256).toLocaleString('en-US', { style: 'percent' })": "26%",
    "(-1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })": "-$1,234.50",
    "(1234.5).toLocaleString('en-US', { style: 'currency', currency: 'JPY' })": "¥1,235",
    "(999999).toLocaleString('en-US', { notation: 'compact' })": "1M",
    "(1234).toLocaleString('en-US', { notation: 'compact' })": "1.2K",
    "(123456).toLocaleString('en-US', { maximumSignificantDigits: 2 })": "120,000",
    "(12345678901234567890n).toLocaleString()": "12,345,678,901,234,567,890",
    "(5).toLocaleString('en-US', { style: 'unit', unit: 'kilometer-per-hour' })": "5 km/h",
    "new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(-1, 'day')": "yesterday",
    "new Intl.RelativeTimeFormat('en').format(3, 'hours')": "in 3 hours",
    "new Intl.ListFormat('en').format(['a', 'b', 'c'])": "a, b, and c",
    "new Intl.PluralRules('en', { type: 'ordinal' }).select(22)": "two",
    "['b', 'a', 'B', 'A', 'é', 'f', 'e', '10', '9'].sort((x, y) => x.localeCompare(y)).join('')": "109aAbBeéf",
    "['a10', 'a9'].sort(new Intl.Collator(undefined, { numeric: true }).compare)": ["a9", "a10"],
    "[...new Intl.Segmenter().segment('e\\u0301👨‍👩‍👧a')].length": 3,
    "(() => { try { Intl.DateTimeFormat('en', { timeZone: 'No' }) } catch (e) { return e.name } })()": "RangeError",
    "[/^-;;$/v.test('-;;'), /[a-c]/v.test('b')]": [True, True],
}


RECORDED: dict[str, dict[str, Any]] = json.loads(FIXTURE.read_text())["found"]

GENERAL: dict[str, Any] = {
    "Intl.getCanonicalLocales(['EN-us', 'zh-hant-tw', 'iw', 'de-u-co-phonebk'])": [
        "en-US",
        "zh-Hant-TW",
        "he",
        "de-u-co-phonebk",
    ],
    "Intl.NumberFormat.supportedLocalesOf(['de-DE', 'tlh', 'zh-TW', 'xx-YY', 'pt-BR'])": ["de-DE", "zh-TW", "pt-BR"],
    "['de-DE', 'tlh', 'de-XX', 'zh-TW', 'en-GB'].map((L) => new Intl.NumberFormat(L).resolvedOptions().locale)": (
        ["de-DE", "en-US", "de", "zh-TW", "en-GB"]
    ),
    "new Intl.NumberFormat(['tlh', 'fr']).resolvedOptions().locale": "fr",
    "(() => { try { new Intl.NumberFormat('en_US') } catch (e) { return [e.name, e.message] } })()": (
        ["RangeError", "Incorrect locale information provided"]
    ),
    "(1234.5).toLocaleString('ar-EG')": "١٬٢٣٤٫٥",
    "(1234.5).toLocaleString('ar-EG-u-nu-latn')": "1,234.5",
    "(1234.5).toLocaleString('en', { numberingSystem: 'deva' })": "१,२३४.५",
    "['istanbul'.toLocaleUpperCase('tr'), 'IŞIK'.toLocaleLowerCase('tr'), 'i'.toLocaleUpperCase()]": [
        "İSTANBUL",
        "ışık",
        "I",
    ],
    "[1234.5, null, new Date(0)].toLocaleString('de')": "1.234,5,,1.1.1970, 00:00:00",
    "new Intl.NumberFormat('de', { style: 'currency', currency: 'EUR' }).formatRange(3, 5)": "3,00–5,00\u00a0€",
    "['en-DE', 'en-AT', 'en-IE'].map((L) => (5000).toLocaleString(L, { style: 'currency', currency: 'EUR' }))": (
        ["€5,000.00", "€\u00a05.000,00", "€5,000.00"]
    ),
    "new Intl.Locale('zh-TW').maximize().toString()": "zh-Hant-TW",
    "new Intl.DateTimeFormat('de', { timeZone: 'asia/kolkata' }).resolvedOptions().timeZone": "Asia/Calcutta",
    "Intl.supportedValuesOf('timeZone').length > 400": True,
    "Intl.NumberFormat('fr').formatToParts(-1234.5)": [
        {"type": "minusSign", "value": "-"},
        {"type": "integer", "value": "1"},
        {"type": "group", "value": "\u202f"},
        {"type": "integer", "value": "234"},
        {"type": "decimal", "value": ","},
        {"type": "fraction", "value": "5"},
    ],
}


async def evaluated(expressions: list[str]) -> list[Any]:
    """What a package's tool gives for each of the expressions, in one call."""
    async with Toolbox() as box, Dispatcher(DispatcherSettings(workers=1)) as dispatcher:
        call = PackageCall(PackageSource.of(esm(SOURCE)), "tool", {"of": expressions})
        result = await Packages(dispatcher, box.proxy).run(call, BudgetPolicy().resolve(None, "node"), CallContext())
        found: list[Any] = result.unwrap()
        return found


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    ours = [*EXPECTED, *GENERAL]
    others = [f"(L => {one})('{locale}')" for one in EXPRESSIONS for locale in LOCALES]
    values = asyncio.run(asyncio.wait_for(evaluated([*ours, *others]), 240))
    recorded = iter(values[len(ours) :])
    return {
        **dict(zip(ours, values, strict=False)),
        **{one: {locale: next(recorded) for locale in LOCALES} for one in EXPRESSIONS},
    }


@pytest.mark.parametrize("expression", [*EXPECTED, *GENERAL], ids=lambda one: json.dumps(one)[:60])
def test_a_value_is_formatted_as_node_formats_it(found: dict[str, Any], expression: str) -> None:
    assert found[expression] == {**EXPECTED, **GENERAL}[expression]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda one: json.dumps(one)[:80])
def test_other_locales_are_formatted_as_node_formats_them(found: dict[str, Any], expression: str) -> None:
    assert found[expression] == RECORDED[expression]
