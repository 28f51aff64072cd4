"""From an answer over HTTP to the value of a call, and from GraphQL errors to a ToolError.

An answer with data is a value, even where some of it is missing: its errors are told beside it, under `http.errors`. An
answer without data, or whose every root field is null because of an error, is a failure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from bridge.wire.errors import ToolError
from catalog.kinds import payload
from catalog.kinds.decoding import SHOWN
from catalog.kinds.reading import read
from catalog.model import Outbound, OutboundResponse, ToolValue
from catalog.patience import retry_after_ms

ERRORS_KEPT: Final = 20
MESSAGE_KEPT: Final = 1000
PATH_KEPT: Final = 20
EXTENSIONS_KEPT: Final = 2000

_REJECTED: Final = frozenset(
    {
        "UNAUTHENTICATED",
        "UNAUTHORIZED",
        "AUTHENTICATION_ERROR",
        "AUTHENTICATION_REQUIRED",
        "INVALID_TOKEN",
        "INVALIDTOKENERROR",
        "EXPIREDSIGNATUREERROR",
        "JSONWEBTOKENERROR",
    }
)
_FORBIDDEN: Final = frozenset({"FORBIDDEN", "ACCESS_DENIED", "INSUFFICIENT_SCOPES", "PERMISSIONDENIED"})
_BUSY: Final = frozenset({"RATE_LIMITED", "RATELIMITED", "THROTTLED", "TOO_MANY_REQUESTS"})


async def value(answer: OutboundResponse, outbound: Outbound, field: str | None, connection: str) -> ToolValue:
    """What the root field returned, or all data where `field` is None. Raises ToolError."""
    if answer.status in (401, 403, 429) or answer.status >= 500:
        await _refused(answer, outbound, connection)
    body = await _body(answer, outbound, connection)
    errors = told(body.get("errors"))
    data = body.get("data")
    if not isinstance(data, dict) and not errors:
        raise _no_graphql(answer)
    found = data if field is None or not isinstance(data, dict) else data.get(field)
    missing = not isinstance(data, dict) or (errors and all(one is None for one in data.values()))
    if missing or (field is not None and isinstance(data, dict) and field not in data):
        raise failure(errors, answer, connection)
    facts = payload.http_facts(answer)
    return ToolValue(found, facts | {"errors": errors} if errors else facts, answer.url)


async def _refused(answer: OutboundResponse, outbound: Outbound, connection: str) -> None:
    """A refusal by HTTP says more than one that is made up from the errors, unless those are all there is."""
    error = payload.failure(answer, connection=connection)
    if answer.status not in (401, 403) or answer.credentialed:
        try:
            body = await read(answer, outbound)
        except ToolError:
            raise error from None
        if isinstance(body, dict) and (isinstance(body.get("data"), dict) and body["data"]):
            return
    raise error


async def _body(answer: OutboundResponse, outbound: Outbound, connection: str) -> dict[str, Any]:
    """The GraphQL response. GraphQL over HTTP, 6.4: with its own media type any status may carry one."""
    ok = 200 <= answer.status < 300
    try:
        body = await read(answer, outbound)
    except ToolError:
        if ok:
            raise
        raise payload.failure(answer, connection=connection) from None
    if isinstance(body, str) and body.lstrip()[:1] == "{":
        # Some servers say text where they mean JSON.
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            body = None
    if isinstance(body, dict) and ("data" in body or isinstance(body.get("errors"), list)):
        return body
    raise _no_graphql(answer) if ok else payload.failure(answer, connection=connection)


def _no_graphql(answer: OutboundResponse) -> ToolError:
    return ToolError(
        "upstream_error",
        "The answer is not a GraphQL response: it has neither data nor errors.",
        hint="See that the integration's endpoint is the API's GraphQL endpoint; details.body is how it answers.",
        details={"body": answer.body[:SHOWN].decode("utf-8", "replace")},
        status=answer.status,
    )


def told(errors: Any) -> list[dict[str, Any]]:
    """The errors of a response, as many and as much of each as is worth keeping."""
    found = []
    for one in errors[:ERRORS_KEPT] if isinstance(errors, list) else ():
        facts = one if isinstance(one, dict) else {"message": str(one)}
        message = facts.get("message")
        kept: dict[str, Any] = {"message": (message if isinstance(message, str) else str(message))[:MESSAGE_KEPT]}
        path = facts.get("path")
        if isinstance(path, list):
            kept["path"] = [part if isinstance(part, int) else str(part)[:200] for part in path[:PATH_KEPT]]
        extensions: dict[str, Any] = {"type": facts["type"]} if isinstance(facts.get("type"), str) else {}
        given = facts.get("extensions")
        extensions |= given if isinstance(given, dict) else {}
        if extensions and len(json.dumps(extensions, default=str)) <= EXTENSIONS_KEPT:
            kept["extensions"] = extensions
        elif extensions:
            kept["extensions"] = {key: str(extensions[key])[:200] for key in ("code", "type") if key in extensions}
        found.append(kept)
    return found


def failure(errors: Sequence[dict[str, Any]], answer: OutboundResponse, connection: str) -> ToolError:
    """What a response without data says. Its HTTP status is told where that is one of failure."""
    said = "; ".join(" ".join(one["message"].split()) for one in errors[:3])[:MESSAGE_KEPT]
    codes = {code for one in errors for code in _codes(one)}
    details: dict[str, Any] = {"errors": list(errors)}
    status = None if 200 <= answer.status < 300 else answer.status
    if answer.credentialed and codes & (_REJECTED | _FORBIDDEN):
        what = "rejected the credential" if codes & _REJECTED else "does not permit this with the credential"
        return ToolError(
            "credential_rejected",
            f"The server {what} of {connection}" + (f": {said}" if said else "."),
            hint=f"Renew the secret of the connection {connection}, or give its account the right that is missing.",
            details=details,
            status=status,
        )
    busy = bool(codes & _BUSY)
    return ToolError(
        "upstream_error",
        f"The server answered with errors and no data{f': {said}' if said else '.'}"
        if errors
        else "The server answered without the field that was asked for, and without an error.",
        hint=_hint(codes, answer),
        details=details,
        status=status,
        retryable=busy,
        retry_after_ms=retry_after_ms(answer.headers) if busy else None,
    )


def _codes(error: dict[str, Any]) -> list[str]:
    extensions = error.get("extensions") or {}
    exception = extensions.get("exception")
    given = [extensions.get("code"), extensions.get("type")]
    given.append(exception.get("code") if isinstance(exception, dict) else None)
    return [one.upper().replace(" ", "_").replace("-", "_") for one in given if isinstance(one, str)]


def _hint(codes: set[str], answer: OutboundResponse) -> str | None:
    if codes & _REJECTED and not answer.credentialed:
        return "No credential was sent: give the connection a secret with `executor connect`."
    if codes & {"GRAPHQL_VALIDATION_FAILED", "UNDEFINEDFIELD"}:
        return "The API's schema may have changed since it was read: executor refresh reads it again."
    return None
