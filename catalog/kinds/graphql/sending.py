"""The one kind of request that a GraphQL API gets: one operation in one JSON object, by POST."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from bridge.wire.errors import ToolError
from catalog.model import OutboundRequest
from catalog.origin import Url

ACCEPT: Final = "application/graphql-response+json, application/json;q=0.9"


def request(url: Url, body: Mapping[str, Any]) -> OutboundRequest:
    """Raises ToolError(invalid_arguments) for values that JSON does not have."""
    try:
        data = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_refuse)
    except (ValueError, TypeError) as e:
        raise ToolError("invalid_arguments", f"The arguments cannot be sent as JSON: {str(e)[:200]}.") from None
    headers = [("accept", ACCEPT), ("content-type", "application/json")]
    return OutboundRequest("POST", url, headers, data.encode("utf-8", "replace"))


def _refuse(value: Any) -> Any:
    what = "bytes are not" if isinstance(value, bytes) else f"{type(value).__name__} is not"
    raise TypeError(f"{what} JSON")
