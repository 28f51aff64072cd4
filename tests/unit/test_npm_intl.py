"""Intl for en-US: what Node gives, for the formats that packages use. The values are Node 24's, in UTC."""

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


@pytest.fixture(scope="module")
def found() -> list[Any]:
    async def run() -> list[Any]:
        async with Toolbox() as box, Dispatcher(DispatcherSettings(workers=1)) as dispatcher:
            call = PackageCall(PackageSource.of(esm(SOURCE)), "tool", {"of": list(EXPECTED)})
            result = await Packages(dispatcher, box.proxy).run(
                call, BudgetPolicy().resolve(None, "node"), CallContext()
            )
            found: list[Any] = result.unwrap()
            return found

    return asyncio.run(asyncio.wait_for(run(), 120))


@pytest.mark.parametrize("at", range(len(EXPECTED)), ids=[json.dumps(one)[:60] for one in EXPECTED])
def test_a_value_is_formatted_as_node_formats_it(found: list[Any], at: int) -> None:
    expression, expected = list(EXPECTED.items())[at]
    assert found[at] == expected, expression
