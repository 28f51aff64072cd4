"""Asks a real Node what the expressions of the Intl tests give, and writes tests/data/intl.json.

`python -m tests.data.intl`; `L` in an expression is the locale. Node is this machine's, or the one of builds.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

from guest import images, npm

FIXTURE: Final = Path(__file__).with_suffix(".json")
LOCALES: Final = (
    *("en-US", "en-GB", "en-IN", "de", "de-AT", "de-CH", "fr", "fr-CA", "es", "es-MX", "it", "pt", "pt-PT", "nl"),
    *("sv", "da", "nb", "fi", "pl", "cs", "sk", "hu", "ro", "bg", "el", "ru", "uk", "sr", "hr", "sl", "lt", "lv", "et"),
    *("tr", "ar", "ar-EG", "he", "hi", "bn", "ta", "mr", "vi", "id", "ko", "ja", "zh", "zh-TW", "sw", "ca", "fa", "th"),
)
_WHEN: Final = "new Date(1720001107089)"
EXPRESSIONS: Final = (
    "(-1234567.891).toLocaleString(L)",
    "(12345678901234567890n).toLocaleString(L)",
    "(0.256).toLocaleString(L, { style: 'percent', maximumFractionDigits: 1 })",
    "(-1234.5).toLocaleString(L, { style: 'currency', currency: 'EUR' })",
    "(1234).toLocaleString(L, { style: 'currency', currency: 'JPY', currencyDisplay: 'code' })",
    "(1234.5).toLocaleString(L, { style: 'currency', currency: 'USD', currencyDisplay: 'name' })",
    "(-5).toLocaleString(L, { style: 'currency', currency: 'USD', currencySign: 'accounting' })",
    "[1234, 99999, 1.5e6, 2e9].map((n) => n.toLocaleString(L, { notation: 'compact' }))",
    "[1234, 1.5e6].map((n) => n.toLocaleString(L, { notation: 'compact', compactDisplay: 'long' }))",
    "['kilometer-per-hour', 'megabyte', 'celsius'].map((unit) => (2).toLocaleString(L, { style: 'unit', unit }))",
    "[1, 3].map((n) => n.toLocaleString(L, { style: 'unit', unit: 'day', unitDisplay: 'long' }))",
    "(3).toLocaleString(L, { signDisplay: 'always', minimumFractionDigits: 1 })",
    f"{_WHEN}.toLocaleString(L, {{ timeZone: 'Asia/Tokyo' }})",
    f"['full', 'long', 'medium', 'short'].map((dateStyle) => {_WHEN}.toLocaleDateString(L, {{ dateStyle }}))",
    f"['full', 'short'].map((timeStyle) => {_WHEN}.toLocaleTimeString(L, {{ timeStyle, timeZone: 'Europe/Berlin' }}))",
    f"{_WHEN}.toLocaleString(L, {{ dateStyle: 'long', timeStyle: 'short', timeZone: 'America/New_York' }})",
    f"{_WHEN}.toLocaleDateString(L, {{ weekday: 'short', month: 'short', day: 'numeric' }})",
    f"{_WHEN}.toLocaleDateString(L, {{ year: 'numeric', month: 'long' }})",
    f"{_WHEN}.toLocaleTimeString(L, {{ hour: 'numeric', minute: '2-digit', hour12: true }})",
    f"{_WHEN}.toLocaleTimeString(L, {{ timeZone: 'America/Los_Angeles', timeZoneName: 'long' }})",
    f"new Intl.DateTimeFormat(L, {{ month: 'short', day: 'numeric' }}).formatRange({_WHEN}, 1720401107089)",
    f"new Intl.DateTimeFormat(L, {{ year: '2-digit', month: 'numeric' }}).formatToParts({_WHEN}).map((p) => p.type)",
    "[0, 1, 2, 5, 21, 1.5].map((n) => new Intl.PluralRules(L).select(n))",
    "[1, 2, 3, 4, 22].map((n) => new Intl.PluralRules(L, { type: 'ordinal' }).select(n))",
    "[-1, 2].map((n) => new Intl.RelativeTimeFormat(L, { numeric: 'auto' }).format(n, 'day'))",
    "[-3, 5].map((n) => new Intl.RelativeTimeFormat(L, { style: 'short' }).format(n, 'month'))",
    "['conjunction', 'disjunction'].map((type) => new Intl.ListFormat(L, { type }).format(['a', 'b', 'c']))",
    "['DE', 'US'].map((code) => new Intl.DisplayNames(L, { type: 'region' }).of(code))",
    "['en-GB', 'zh-Hant', 'pt-AO'].map((code) => new Intl.DisplayNames(L, { type: 'language' }).of(code))",
    "new Intl.DisplayNames(L, { type: 'currency' }).of('CHF')",
    "['ñu', 'nz', 'Zebra', 'ähnlich', 'apfel', 'ö', 'oz', 'a10', 'a9'].sort(new Intl.Collator(L).compare)",
)


def main() -> None:
    source = f"const of = {json.dumps(EXPRESSIONS)}, locales = {json.dumps(LOCALES)};" + (
        "const found = Object.fromEntries(of.map((one) => [one, Object.fromEntries(locales.map((L) =>"
        " [L, new Function('L', `return ${one}`)(L)]))]));"
        "console.log(JSON.stringify({ node: process.version, cldr: process.versions.cldr, found }))"
    )
    node = [*map(str, npm.node(images.cache_dir())), "-e", source]
    told = subprocess.run(node, capture_output=True, check=True, timeout=60, env={"TZ": "UTC"})
    FIXTURE.write_text(json.dumps(json.loads(told.stdout), ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
