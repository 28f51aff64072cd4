"""What a JSON-RPC message must be before anything reads it further, and what is said of one that is not."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final, NoReturn

import mcp_types as types
from pydantic import ValidationError

METHOD_CHARS: Final = 200
_EXACT: Final = 2**53
"""Integers beyond it are not the same number for everybody."""


def fault(body: bytes) -> types.JSONRPCError | None:
    """The error that answers `body`, or None for one request, notification or response. JSON-RPC 2.0, section 5.1:
    -32700 for what is not JSON or says a key twice, -32600 for what is not a message; the id of the message where it
    has a usable one."""
    try:
        message = json.loads(body, parse_constant=_no_constant, object_pairs_hook=_distinct)
        # A lone surrogate is JSON, and no text.
        json.dumps(message, ensure_ascii=False).encode()
    except _Repeated as e:
        return _error(None, types.PARSE_ERROR, f"the key {str(e)[:100]!r} appears twice in one object")
    except (ValueError, RecursionError):
        return _error(None, types.PARSE_ERROR, "the body is not JSON in UTF-8")
    problem = _problem(message)
    if problem is None:
        try:
            types.jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValidationError:
            problem = "this is not a JSON-RPC 2.0 request, notification or response"
    if problem is None:
        return None
    id = message.get("id") if isinstance(message, dict) else None
    return _error(id if _is_id(id) else None, types.INVALID_REQUEST, problem)


def wire(error: types.JSONRPCError) -> bytes:
    """An error as it is sent; its id is there even when it is null."""
    return json.dumps(error.model_dump(mode="json", by_alias=True, exclude_none=True) | {"id": error.id}).encode()


def _problem(message: Any) -> str | None:
    if isinstance(message, list):
        return "batches are not served: send one message at a time"
    if not isinstance(message, dict):
        return "a message is a JSON object"
    if message.get("jsonrpc") != "2.0":
        return '`jsonrpc` must be "2.0"'
    if "id" in message and not _is_id(message["id"]):
        return "`id` must be a string or a whole number that every reader holds exactly"
    if "method" not in message:
        return None if "result" in message or "error" in message else "`method` is missing"
    if not isinstance(message["method"], str):
        return "`method` must be a string"
    if len(message["method"]) > METHOD_CHARS:
        return f"`method` is longer than {METHOD_CHARS} characters"
    if "params" in message and not isinstance(message["params"], dict):
        return "`params` must be an object"
    return None


def _is_id(id: Any) -> bool:
    return (isinstance(id, str) and len(id) <= METHOD_CHARS) or (type(id) is int and abs(id) < _EXACT)


def _error(id: Any, code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=message))


class _Repeated(ValueError):
    """Raised for a key that comes twice: two readers may not take the same of its values for the one that counts."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Repeated(next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1))
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
