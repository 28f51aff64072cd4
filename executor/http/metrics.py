"""Counts of what the door did, in the Prometheus text exposition format."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any


class Metrics:
    """Labels are operation ids and statuses only: nothing that a client chose."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def note(self, operation: str, status: int, seconds: float) -> None:
        self._answers[operation, status] += 1
        self._seconds[operation] += seconds

    def text(self, health: dict[str, Any]) -> str:
        lines = [
            "# HELP executor_http_requests_total Requests answered.",
            "# TYPE executor_http_requests_total counter",
            *(
                f'executor_http_requests_total{{operation="{operation}",status="{status}"}} {count}'
                for (operation, status), count in sorted(self._answers.items())
            ),
            "# HELP executor_http_request_seconds_total Time spent on answers.",
            "# TYPE executor_http_request_seconds_total counter",
            *(
                f'executor_http_request_seconds_total{{operation="{operation}"}} {seconds:.6f}'
                for operation, seconds in sorted(self._seconds.items())
            ),
        ]
        for name, value in sorted(_gauges(health).items()):
            lines += [f"# TYPE executor_{name} gauge", f"executor_{name} {value}"]
        return "\n".join(lines) + "\n"


def _gauges(facts: dict[str, Any], prefix: str = "") -> dict[str, int | float]:
    """Every number in `facts`, under its path joined with `_`."""
    found: dict[str, int | float] = {}
    for key, value in facts.items():
        if type(value) is dict:
            found |= _gauges(value, f"{prefix}{key}_")
        elif type(value) in (int, float, bool):
            found[f"{prefix}{key}"] = int(value) if type(value) is bool else value
    return found
