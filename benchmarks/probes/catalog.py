"""The catalog by size: how long a document takes to import, to index, to search, and one tool to describe.

CPU time, so that what else the machine does counts little.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from benchmarks.catalog_made import document, tools
from benchmarks.measure import Figure, latency
from catalog import semantic
from catalog.describe import describe
from catalog.kinds.openapi.integration import OpenApi
from catalog.model import Tool
from catalog.search import SearchIndex

PROBE = "catalog"
SIZES = {2_000: 20.0, 20_000: 20.0, 90_000: 60.0}
QUERIES = (
    *("create an issue comment", "list labels of a repository", "who am i"),
    *("remove a webook", "einen Kommentar löschen"),
)


def run(scale: float) -> list[Figure]:
    rounds = max(3, round(30 * scale))
    figures = [_import(1_200, 3_000.0), _import(11_400, 15_000.0)]
    for size, target in SIZES.items():
        if scale < 1 and size > 20_000:
            continue
        made = tools(size)
        figures += _search(made, target, rounds)
        if size == 2_000:
            figures.append(_describe(made, rounds))
    if semantic.available():
        figures += _meaning(tools(2_000 if scale < 1 else 20_000), rounds)
    return figures


def _cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _import(operations: int, target: float) -> Figure:
    data = json.dumps(document(operations)).encode()
    config = {"document": data, "base_url": "https://made.example"}
    taken = _cpu(lambda: OpenApi("made").resolve_tools(config))
    name = f"import {operations} operations ({len(data) / 1e6:.1f} MB)"
    return Figure(PROBE, name, taken * 1e3, "ms", target)


def _search(made: list[Tool], target: float, rounds: int) -> list[Figure]:
    index = SearchIndex()
    added = _cpu(lambda: index.add(made))
    index.search(QUERIES[0])
    taken = [_cpu(lambda query=query: index.search(query)) for _ in range(rounds) for query in QUERIES]  # type: ignore[misc]
    index.close()
    return [
        Figure(PROBE, f"index {len(made)} tools", added * 1e3, "ms"),
        latency(PROBE, f"search {len(made)} tools", taken, target=target),
    ]


def _describe(made: list[Tool], rounds: int) -> Figure:
    some = made[:: max(1, len(made) // 50)]
    taken = [_cpu(lambda one=one: describe(one, effect="approve")) for _ in range(rounds) for one in some]  # type: ignore[misc]
    return latency(PROBE, "describe one tool (40 properties a type)", taken, target=10.0)


def _meaning(made: list[Tool], rounds: int) -> list[Figure]:
    index = SearchIndex(semantic.SemanticRanker())
    added = _cpu(lambda: index.add(made))
    # A query that was asked before is remembered, so each is asked in a way of its own.
    asked = [f"{query} {number}" for number in range(rounds) for query in QUERIES]
    taken = [_cpu(lambda query=query: index.search(query)) for query in asked]  # type: ignore[misc]
    index.close()
    return [
        Figure(PROBE, f"index {len(made)} tools by meaning", added * 1e3, "ms"),
        latency(PROBE, f"search {len(made)} tools by meaning", taken, target=60.0),
    ]
