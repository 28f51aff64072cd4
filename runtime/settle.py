"""From how a run ended to what its answer says: the result read and placed, the failure explained."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from typing import Any, Final

import structlog

from bridge.wire import frames
from bridge.wire.errors import FrameError, ToolError, Unserializable
from runtime import values
from runtime.budgets import STORED_RESULT_BYTES, limit_of
from runtime.driver import Ending
from runtime.live import Live
from runtime.results import RunStatus
from runtime.run import failure

PREVIEW_BYTES: Final = 1024
INLINE_DECODE: Final = 256 * 1024
"""Bytes of the largest result that is read on the event loop; larger ones are read on a thread."""

HINTS: Final[dict[str, str]] = {
    "syntax_error": "nothing ran; correct the script at the line and column given",
    "never_settles": "every promise needs something that settles it: a tool call, a timer, or the script itself",
    "stack_exhausted": "recursion went too deep; use a loop, or catch the RangeError (in Python the RecursionError)",
    "unserializable": "return JSON data or bytes; the path names the part that cannot cross",
    "result_too_large": "return less: a count, a page, a summary",
    "fuel_exhausted": "the script computed too much; do less, or raise budgets.fuel",
    "deadline_exceeded": "calls listed as unknown may have happened; do less, or raise budgets.wall_ms",
    "memory_exhausted": "hold less at once, or raise budgets.memory_bytes",
    "calls_exhausted": "make fewer or larger calls, or raise budgets.bridge_calls",
    "worker_lost": "the script did not end; it can be run again if repeating its calls does no harm",
}

_CALLED: Final = re.compile(r"tools\.[^\n]{1,300} is not a function")
_VALUE: Final = (
    "what the call gave back was called, not the tool; a search gives {items, total, next}, and a tool that it found "
    "is called by its path: await tools[item.path](args)"
)

_log = structlog.get_logger("executor.run")


async def settle(live: Live, ending: Ending) -> list[bytes]:
    """Give `live` its final status, result or error. Returns the blobs that its record refers to."""
    result, reason = ending
    blobs: list[bytes] = []
    if result is not None:
        reason = await _place(live, result, blobs)
    if reason is None:
        reason = await _keep_large(live, blobs)
    if reason is None:
        live.ended("completed")
        return blobs
    live.result = live.result_packed = live.result_ref = None
    live.ended(_status(reason.code))
    live.error = _error(live, reason)
    live.limit = limit_of(reason.code, live.request.budgets, live.usage())
    return blobs


def _status(code: str) -> RunStatus:
    return "cancelled" if code == "cancelled" else "expired" if code == "expired" else "failed"


async def _place(live: Live, result: bytes, blobs: list[bytes]) -> frames.Failure | None:
    """Put the result into the answer, or into a blob. The failure that it turns out to be, if it is one."""
    size = live.result_bytes = len(result)
    if size + live.output.emitted_bytes > STORED_RESULT_BYTES:
        return failure("result_too_large", f"the result has {size} bytes; at most {STORED_RESULT_BYTES} can be stored")
    inline = size <= live.request.budgets.result_bytes
    try:
        if inline and size <= INLINE_DECODE:
            live.result = values.vetted(result)
        elif inline:
            live.result = await asyncio.to_thread(values.vetted, result)
        else:
            document, live.result_ref = await asyncio.to_thread(_stored, live.id, result)
            blobs.append(document)
    except values.TooManyNodes:
        return failure("result_too_large", f"the result has more than {values.MAX_NODES} parts")
    except Unserializable as e:
        return failure("unserializable", e.message)._replace(path=e.path)
    except FrameError as e:
        return failure("unserializable", f"the result is not a value: {e.message}")
    live.result_packed = result if inline else None
    return None


async def _keep_large(live: Live, blobs: list[bytes]) -> frames.Failure | None:
    for index, data in live.output.large.items():
        try:
            document, ref = await asyncio.to_thread(_stored, f"{live.id}/emitted/{index}", data)
        except values.TooManyNodes:
            return failure("result_too_large", f"an emitted value has more than {values.MAX_NODES} parts")
        except (Unserializable, FrameError) as e:
            return failure("unserializable", f"an emitted value is not one: {e.message}")
        blobs.append(document)
        live.output.emitted[index] = {"$ref": ref | {"emitted": index}}
    return None


def _stored(id: str, data: bytes) -> tuple[bytes, dict[str, Any]]:
    """The JSON document of a value that goes into a blob, and the reference to it."""
    document = values.document(values.vetted(data))
    return document, {
        "id": id,
        "bytes": len(document),
        "media_type": "application/json",
        "sha256": hashlib.sha256(document).hexdigest(),
        "preview": document[:PREVIEW_BYTES].decode(errors="ignore"),
    }


def _of_the_call(error: ToolError | None) -> dict[str, Any]:
    """What the answer says of the call whose error the script did not catch: what to do next, and the facts."""
    if error is None:
        return {}
    told = error.as_dict()
    details = {key: told[key] for key in ("code", "path", "status", "retryable") if key in told}
    return {"hint": error.hint, "details": (error.details or {}) | details}


def _error(live: Live, reason: frames.Failure) -> dict[str, Any]:
    message = reason.message
    if reason.code == "internal":
        reference = secrets.token_hex(6)
        _log.error("a run ended by an internal error", run_id=live.id, reference=reference, reason=reason.message)
        message = f"{message} (reference {reference})"
    facts = {
        "code": reason.code,
        "message": message,
        "name": reason.name,
        "line": reason.line,
        "column": reason.column,
        "stack": reason.stack,
        "path": reason.path,
        "hint": HINTS.get(reason.code),
    }
    if reason.code == "script_error" and reason.name == "ToolError" and live.calls is not None:
        facts |= _of_the_call(live.calls.failure(reason.message))
    elif reason.code == "script_error" and _CALLED.fullmatch(reason.message or ""):
        facts["hint"] = _VALUE
    return {key: value for key, value in facts.items() if value is not None}
