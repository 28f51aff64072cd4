"""What can go wrong between us and a server, and what of it a session acts on itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bridge.wire.errors import ToolError
from catalog.kinds.mcp.texts import cleaned

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

MAX_MESSAGE: Final = 1000
MAX_DETAIL: Final = 16 * 1024
MAX_PAGES: Final = 5
UNKNOWN: Final = frozenset({-32601, -32602})
"""JSON-RPC: no such method, invalid params. What a server says that has no such tool, or does not like arguments."""
ABOUT_VERSION: Final = frozenset({400, 404, 405, 406, 415, 500, 501})
"""What servers of the older era answer to a question of the newer one."""


class Retired(Exception):
    """Raised before anything is sent: the session has ended and another one is needed."""


class Lost(ToolError):
    """Raised when the server does not know the session any more: nothing was done."""


class Hangup(ToolError):
    """Raised when a server ends while it is greeted."""


class Unknown(ToolError):
    """Raised when the server may not have the tool any more."""


class Mismatch(ToolError):
    """Raised where headers do not repeat the arguments as the server wants them."""


def refusal(error: MCPError, label: str) -> ToolError:
    """What a server said, as a ToolError."""
    from mcp.types import HEADER_MISMATCH, PARSE_ERROR, REQUEST_TIMEOUT, URL_ELICITATION_REQUIRED

    if error.code == REQUEST_TIMEOUT:
        return ToolError("upstream_timeout", f"{label} did not answer in time.")
    if error.code == PARSE_ERROR:
        return ToolError("upstream_error", f"The answer of {label} cannot be read.", retryable=False)
    details: dict[str, Any] = {"code": error.code}
    if error.error.data is not None and len(repr(error.error.data)) <= MAX_DETAIL:
        details["data"] = error.error.data
    if error.code == URL_ELICITATION_REQUIRED and (pages := _pages(error.error.data)):
        return ToolError(
            "upstream_error",
            f"{label} wants a person to open a page first: {pages[0]['url']}",
            hint="Open it only if you trust the server and know why it asks; then call again.",
            details={"code": error.code, "pages": pages},
            retryable=False,
        )
    kind = Mismatch if error.code == HEADER_MISMATCH else Unknown if error.code in UNKNOWN else ToolError
    said = cleaned(error.error.message, MAX_MESSAGE) or "it does not say why"
    return kind("upstream_error", f"{label} refused the call: {said}", details=details, retryable=False)


def _pages(data: Any) -> list[dict[str, str]]:
    """The pages that a server wants opened, where they are of the web: a link is shown, and nobody goes there."""
    asked = data.get("elicitations") if isinstance(data, dict) else None
    found = [one for one in asked[:MAX_PAGES] if isinstance(one, dict)] if isinstance(asked, list) else []
    pages = [
        {"url": cleaned(one.get("url"), MAX_MESSAGE), "message": cleaned(one.get("message"), 500)} for one in found
    ]
    return [one for one in pages if one["url"].startswith(("https://", "http://"))]


def misread(error: ValueError, label: str) -> ToolError:
    """An answer that is not what the protocol says."""
    errors = getattr(error, "errors", None)
    first = errors(include_url=False, include_input=False)[0] if errors is not None else {}
    where = cleaned(".".join(str(part) for part in first.get("loc", ())), 100) or "its form"
    return ToolError(
        "upstream_error", f"The answer of {label} is not what the protocol says: {where}.", retryable=False
    )


def too_many_tools(most: int) -> ToolError:
    return ToolError("upstream_error", f"The server lists more than {most} tools.", retryable=False)


def again(error: ToolError) -> ToolError:
    """The same failure for another call: each call makes its own additions to what it raises."""
    return type(error)(
        error.code,  # type: ignore[arg-type]
        error.message,
        hint=error.hint,
        details=error.details,
        status=error.status,
        retryable=error.retryable,
    )


def plain(error: BaseException) -> ToolError | None:
    """The ToolError in what task groups raised."""
    if isinstance(error, ToolError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for one in error.exceptions if (found := plain(one)) is not None), None)
    return None


def versions(error: MCPError) -> list[str]:
    """The versions that a server names when it does not have the one that was asked for."""
    from mcp.types import UNSUPPORTED_PROTOCOL_VERSION

    data = error.error.data
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or not isinstance(data, dict):
        return []
    supported = data.get("supported")
    return [str(one) for one in supported] if isinstance(supported, list) else []
