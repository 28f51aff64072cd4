"""What Intl needs of the CLDR that is of no single locale, as small JSON values that are read when they are needed."""

from __future__ import annotations

from typing import Any, Final

_PLURALS: Final = ("zero", "one", "two", "few", "many")


def world(core: dict[str, Any], zone_names: dict[str, Any], locales: set[str]) -> dict[str, Any]:
    """JSON values by name; `likely`, `languages`, `regions` and `subtags` are lines in which one is looked for."""

    def part(name: str, *keys: str) -> Any:
        found = core[f"supplemental/{name}.json"]["supplemental"]
        for key in keys:
            found = found[key]
        return found

    languages = {tag.split("-")[0] for tag in locales}
    alias = part("aliases", "metadata", "alias")
    times = part("timeData", "timeData")
    return {
        "likely": lines(
            {
                tag: full
                for tag, full in part("likelySubtags", "likelySubtags").items()
                if tag.split("-")[0] in languages or len(tag.split("-")[0]) == 2
            }
        ),
        "languages": _replacements(alias["languageAlias"]),
        "regions": _replacements(alias["territoryAlias"]),
        "subtags": _replacements(alias["scriptAlias"] | alias["variantAlias"]),
        "places": {
            "calendars": {
                region: found[0] for region, found in part("calendarPreferenceData", "calendarPreferenceData").items()
            },
            "week": {name: part("weekData", "weekData", name) for name in ("firstDay", "weekendStart", "weekendEnd")},
        },
        "plurals": {
            "cardinal": _rules(part("plurals", "plurals-type-cardinal")),
            "ordinal": _rules(part("ordinals", "plurals-type-ordinal")),
            "ranges": {
                language: {_range(key): to for key, to in node.items()}
                for language, node in part("pluralRanges", "plurals").items()
            },
        },
        "numbers": {
            "digits": {
                name: node["_digits"]
                for name, node in part("numberingSystems", "numberingSystems").items()
                if node["_type"] == "numeric"
            },
            "fractions": {
                code: int(node["_digits"]) for code, node in part("currencyData", "currencyData", "fractions").items()
            },
        },
        "times": {
            "hours": {region: f"{node['_preferred']} {node['_allowed']}" for region, node in times.items()},
            "periods": {
                language: {name: [rule.get(k, "") for k in ("_at", "_from", "_before")] for name, rule in node.items()}
                for language, node in part("dayPeriods", "dayPeriodRuleSet").items()
            },
        },
        "zones": _zones(part("metaZones", "metaZones"), zone_names) | {"primary": part("primaryZones", "primaryZones")},
    }


def lines(found: dict[str, str]) -> str:
    """A line for each entry, each with a line feed before and behind it."""
    return "\n" + "".join(f"{name} {value}\n" for name, value in found.items())


def _replacements(found: dict[str, dict[str, str]]) -> str:
    return lines({tag: node["_replacement"] for tag, node in found.items()})


def _rules(found: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """`{language: {category: condition}}` without the samples."""
    return {
        language: {
            name: rules[f"pluralRule-count-{name}"].partition("@")[0].strip()
            for name in _PLURALS
            if f"pluralRule-count-{name}" in rules
        }
        for language, rules in found.items()
    }


def _range(key: str) -> str:
    """`pluralRange-start-one-end-other` as `one other`."""
    return key.removeprefix("pluralRange-start-").replace("-end-", " ")


def _zones(found: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """`meta`: `{zone: [[metazone, from, to], …]}`; `alias`: `{zone: the name that the CLDR has it by}`.

    `region` is each zone's by that name.
    """
    meta: dict[str, list[list[str]]] = {}

    def walk(node: dict[str, Any], before: str) -> None:
        for name, inner in node.items():
            if isinstance(inner, dict):
                walk(inner, f"{before}{name}/")
            else:
                uses = [one["usesMetazone"] for one in inner]
                meta[before + name] = [[use["_mzone"], use.get("_from", ""), use.get("_to", "")] for use in uses]

    walk(found["metazoneInfo"]["timezone"], "")
    alias: dict[str, str] = {}
    regions: dict[str, str] = {}
    for code, node in names["keyword"]["u"]["tz"].items():
        if isinstance(node, dict) and "_alias" in node:
            first, *rest = node["_alias"].split()
            alias |= dict.fromkeys(rest, first)
            if len(code) == 5 and "_deprecated" not in node:
                regions[first] = str(node.get("_region", code[:2])).upper()
    return {"meta": meta, "alias": alias, "region": regions}
