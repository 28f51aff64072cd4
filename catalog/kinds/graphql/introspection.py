"""Asking an endpoint for its schema, with the credential of the account that will use it."""

from __future__ import annotations

import json
from typing import Any, Final

import anyio.to_thread
from graphql import get_introspection_query

from bridge.wire.errors import ImportFailed, ToolError
from catalog.kinds.decoding import value_of
from catalog.kinds.graphql.answers import told
from catalog.kinds.graphql.sending import request
from catalog.model import Outbound, OutboundResponse
from catalog.origin import Url

_ELSE: Final = "Give the schema itself: its SDL or the JSON of an introspection, as a file or a URL."


def queries() -> list[str]:
    """What is asked, one after the other until one is answered: servers refuse what they are too old to know."""
    full = get_introspection_query(input_value_deprecation=False, one_of=True)
    return [full, get_introspection_query(), get_introspection_query(descriptions=False, type_depth=6)]


async def introspected(url: Url, outbound: Outbound) -> dict[str, Any]:
    """The answer that holds the schema. Raises ImportFailed with what the server says and what to do instead."""
    said = "it does not answer with a schema"
    for query in queries():
        try:
            answer = await outbound.send(request(url, {"query": query, "operationName": "IntrospectionQuery"}))
        except ToolError as e:
            hint = _ELSE if e.code in ("connection_missing", "too_large", "upstream_error") else e.hint
            raise _failed(url, e.message, hint) from None
        if answer.credentialed and answer.status in (401, 403):
            raise _failed(
                url,
                f"it answered {answer.status} to the credential",
                "See that the credential is right and may read the schema. " + _ELSE,
            )
        body = await anyio.to_thread.run_sync(_body, answer)
        data = body.get("data")
        if isinstance(data, dict) and isinstance(data.get("__schema"), dict):
            return body
        said = _said(answer, body)
        if answer.status in (401, 404, 405, 429) or answer.status >= 500:
            break
    raise _failed(url, said, _ELSE)


def _body(answer: OutboundResponse) -> dict[str, Any]:
    try:
        body = value_of(answer)
        body = json.loads(body) if isinstance(body, str) and body.lstrip()[:1] == "{" else body
    except (ToolError, ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _said(answer: OutboundResponse, body: dict[str, Any]) -> str:
    errors = told(body.get("errors"))
    if errors:
        return "it refuses introspection: " + "; ".join(" ".join(one["message"].split()) for one in errors[:2])[:300]
    if not 200 <= answer.status < 300:
        why = ": no credential was sent" if answer.status in (401, 403) and not answer.credentialed else ""
        return f"it answered {answer.status}{why}"
    return "its answer is not that of a GraphQL endpoint"


def _failed(url: Url, why: str, hint: str | None) -> ImportFailed:
    place = f"{url.origin}{url.path}"
    return ImportFailed(f"The schema of {place[:200]} cannot be asked for: {why.rstrip('.')}.", hint=hint)
