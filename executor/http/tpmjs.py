"""The TPMJS executor protocol 1.0 at the edge: which paths are its own, who may ask, and the form of its refusals."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from bridge.wire.errors import ExecutorError, Forbidden, NotFound, Overloaded, Unauthorized
from executor.http.answers import encode, error_answer, json_answer, status_of

PROTOCOL: Final = "1.0"
EXECUTE: Final = "/execute-tool"
PATHS: Final = frozenset({EXECUTE, "/health", "/info"})
PREFIX: Final = "/api"
"""Every path of the protocol is also there behind this."""

CORS: Final = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (b"access-control-allow-headers", b"Content-Type, Authorization, X-TPMJS-Protocol-Version"),
]
"""On every answer. No cookie is ever read, so that a page can do here only what its own key permits."""


def of_protocol(path: str) -> str | None:
    """The path of the protocol that `path` is, without the prefix; None for any other."""
    bare = path.removeprefix(PREFIX)
    return bare if bare in PATHS else None


def refusal(error: ExecutorError, *, close: bool = False) -> Response:
    """The answer to a request that `error` ended, as the protocol has it."""
    answer = error_answer(error, close=close)
    message = error.message if error.hint is None else f"{error.message}; {error.hint}"
    if isinstance(error, Unauthorized):
        message = "Invalid or missing API key"
    told = {"success": False, "error": {"code": _code(error), "message": message}}
    answer.body = encode(told)
    answer.headers["content-length"] = str(len(answer.body))
    return answer


def _code(error: ExecutorError) -> str:
    if isinstance(error, Unauthorized):
        return "UNAUTHORIZED"
    if isinstance(error, Forbidden):
        return "FORBIDDEN"
    if isinstance(error, NotFound):
        return "NOT_FOUND"
    if isinstance(error, Overloaded) or status_of(error) >= 500:
        return "INTERNAL_ERROR"
    return "INVALID_REQUEST"


def defect(correlation_id: str, *, close: bool = False) -> Response:
    """The answer to a request that hit a defect of ours."""
    message = f"something went wrong in the executor; its log names the cause under {correlation_id}"
    headers = {"connection": "close"} if close else None
    return json_answer({"success": False, "error": {"code": "INTERNAL_ERROR", "message": message}}, 500, headers)
