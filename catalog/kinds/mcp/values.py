"""What a call of a server's tool gives back, as the value of the call.

Structured content is the value as it is. Otherwise the content is: nothing is null, one block is that block, several
are a list. A text is a string, also where it happens to be JSON; a picture or sound is `{type, mimeType, data}` with
its bytes; an embedded resource `{type, uri, mimeType?, text | data}`; a link to one `{type, uri, name, …}`, and nobody
goes where it points.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from bridge.wire.errors import ToolError
from catalog.kinds.mcp.texts import cleaned
from catalog.model import ToolValue

MAX_MESSAGE: Final = 1000
MAX_DETAIL: Final = 16 * 1024
MAX_BLOCKS: Final = 10_000

_LINK: Final = ("uri", "name", "title", "description", "mimeType", "size")


def value_of(result: Mapping[str, Any]) -> ToolValue:
    """The value of a result. Beside structured content, blocks that are no text are in `http.content`.

    Raises ToolError for a result that says that the tool failed, or that cannot be read.
    """
    content = result.get("content")
    content = content if isinstance(content, list) else []
    bounded(content)
    if result.get("isError") is True:
        raise _failure(content, result.get("structuredContent"))
    if structured(result):
        more = [_block(one) for one in content if not _is_text(one)]
        return ToolValue(result["structuredContent"], {"content": more} if more else None)
    blocks = [_block(one) for one in content]
    return ToolValue(blocks[0] if len(blocks) == 1 else blocks or None)


def bounded(content: Any) -> None:
    """Raises ToolError for content of more parts than are read."""
    if isinstance(content, list) and len(content) > MAX_BLOCKS:
        raise _broken(f"has more than {MAX_BLOCKS} parts")


def unwrapped(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The result with the value that its server put into an object, where it did."""
    content = result.get("structuredContent")
    if not isinstance(content, Mapping) or set(content) != {"result"}:
        return result
    return {**result, "structuredContent": content["result"]}


def structured(result: Mapping[str, Any]) -> bool:
    """Whether there is structured content; some servers write null where there is none."""
    given = "structuredContent" in result
    return given and (result["structuredContent"] is not None or not result.get("content"))


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text"


def _block(block: Any) -> Any:
    if not isinstance(block, Mapping):
        raise _broken("holds a part that is no object")
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in ("image", "audio"):
        return {"type": kind, "mimeType": block.get("mimeType"), "data": _bytes(block.get("data"))}
    if kind == "resource" and isinstance(resource := block.get("resource"), Mapping):
        out = {"type": kind} | {key: resource[key] for key in ("uri", "mimeType") if resource.get(key) is not None}
        if "blob" in resource:
            return out | {"data": _bytes(resource["blob"])}
        return out | {"text": str(resource.get("text", ""))}
    if kind == "resource_link":
        return {"type": kind} | {key: block[key] for key in _LINK if block.get(key) is not None}
    return dict(block)


def _bytes(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise _broken("holds data that is not base64") from None


def _broken(what: str) -> ToolError:
    return ToolError("upstream_error", f"The answer of the server {what}.", retryable=False)


def _failure(content: list[Any], structured: Any) -> ToolError:
    """The tool's own words about what went wrong."""
    said = "\n".join(str(one.get("text", "")) for one in content if _is_text(one))[:MAX_DETAIL]
    message = cleaned(" ".join(said.split()), MAX_MESSAGE)
    details: dict[str, Any] = {"text": said} if said and said != message else {}
    if structured is not None and len(repr(structured)) <= MAX_DETAIL:
        details["structured"] = structured
    return ToolError("upstream_error", message or "The tool failed and does not say why.", details=details or None)
