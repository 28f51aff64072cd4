"""Answers as JSON: values, and every error in the one shape `{"error": {"code", "message", "hint"?, "details"?}}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from bridge.wire.errors import (
    ExecutorError,
    ImportFailed,
    Overloaded,
    RangeNotSatisfiable,
    RequestRefused,
    ToolError,
    Unserializable,
)
from bridge.wire.errors import Unauthorized as _Unauthorized
from runtime import values

TOOL_STATUS: Final[dict[str, int]] = {
    "tool_not_found": 404,
    "invalid_arguments": 400,
    "blocked": 403,
    "approval_required": 403,
    "approval_denied": 403,
    "approval_expired": 403,
    "input_required": 409,
    "connection_missing": 409,
    "credential_rejected": 502,
    "egress_denied": 403,
    "upstream_error": 502,
    "upstream_timeout": 504,
    "upstream_unreachable": 502,
    "too_large": 413,
    "outcome_unknown": 502,
}
"""What a failed tool call answers when it was asked for directly, not from a script."""


class MethodNotAllowed(RequestRefused):
    """Raised when the path exists and the method does not; `allow` are the methods that do."""

    code = "method_not_allowed"
    status = 405

    def __init__(self, message: str, *, allow: tuple[str, ...]) -> None:
        super().__init__(message, details={"allow": list(allow)})
        self.allow = allow


class RequestTimeout(RequestRefused):
    """Raised when a body did not arrive within its deadline."""

    code = "request_timeout"
    status = 408


class MisdirectedRequest(RequestRefused):
    """Raised when the Host header names another server."""

    code = "misdirected_request"
    status = 421


class TooManyRequests(RequestRefused):
    """Raised when an address keeps sending wrong keys; try again after `retry_after_s` seconds."""

    code = "too_many_requests"
    status = 429

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


def encode(value: Any) -> bytes:
    """`value` as compact UTF-8 JSON, bytes as `{"$bytes": …}`. A lone surrogate, which UTF-8 has no form for, becomes
    `?`."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=values.said_in_json)
    return text.encode("utf-8", "replace")


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(value), status, headers, "application/json")


def status_of(error: ExecutorError) -> int:
    """The HTTP status of a deliberate error."""
    if isinstance(error, RequestRefused):
        return error.status
    if isinstance(error, ToolError):
        return TOOL_STATUS.get(error.code, 500)
    if isinstance(error, ImportFailed):
        return 422
    if isinstance(error, Unserializable):
        return 400
    return 409 if error.code == "config_error" else 500


def error_answer(error: ExecutorError, *, close: bool = False) -> Response:
    """The answer to a request that `error` ended; with `close`, the last on its connection."""
    headers: dict[str, str] = {}
    if isinstance(error, Overloaded | TooManyRequests):
        headers["retry-after"] = str(error.retry_after_s)
    elif isinstance(error, RangeNotSatisfiable):
        headers["content-range"] = f"bytes */{error.total}"
    elif isinstance(error, MethodNotAllowed):
        headers["allow"] = ", ".join(error.allow)
    elif isinstance(error, _Unauthorized):
        headers["www-authenticate"] = "Bearer"
    if close:
        headers["connection"] = "close"
    return json_answer({"error": error.as_dict()}, status_of(error), headers)


def unknown_path(*, close: bool = False) -> Response:
    """The answer for a path that there is not."""
    error = {"code": "not_found", "message": "there is nothing at this path"}
    headers = {"connection": "close"} if close else None
    return json_answer({"success": False, "error": error}, 404, headers)


def internal_answer(correlation_id: str, *, close: bool = False) -> Response:
    """The answer to a request that hit a defect. Nothing of the defect leaves; the id finds it in the log."""
    error = {
        "code": "internal",
        "message": "something went wrong in the server",
        "hint": f"the server's log names the cause under {correlation_id}",
        "details": {"correlation_id": correlation_id},
    }
    return json_answer({"error": error}, 500, {"connection": "close"} if close else None)
