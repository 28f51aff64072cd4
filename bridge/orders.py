"""What the egress gate let pass, on its way to the connection that it may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bridge.egress import Grant
from catalog.origin import Url


class Order(NamedTuple):
    """What the gate let pass, as the extension `ORDER` of the request that must be it. `limit` is in bytes of body;
    `before_sending` runs when the connection stands and before a byte leaves; `deadline`, on the loop's clock, is when
    the call ends, by other hands. `opened`: the body of the answer is read as it comes, by whoever asked."""

    url: Url
    grant: Grant
    limit: int
    before_sending: Callable[[], Awaitable[None]] | None = None
    deadline: float | None = None
    opened: bool = False
