"""Values too large to be handed over: kept, named by a handle, read in parts by whoever they were made for."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import sqlite3
import time
from typing import Any, Final

from bridge.wire.errors import FrameError, NotFound, ToolError, Unserializable
from runtime import values
from runtime.references import sha256_in
from runtime.store.runs import RunStore, put_blob

READ: Final = "executor.results.read"
"""The path by which a script reads a handle: `tools.executor.results.read({id, offset?, length?})`."""
VALUE_BYTES: Final = 16 * 1024 * 1024
"""Bytes (msgpack) of the largest value that is kept for a script."""
RUN_BYTES: Final = 256 * 1024 * 1024
"""Bytes that the values of one run may take together."""
PART_BYTES: Final = 64 * 1024
"""Bytes of a part when nobody says how many."""
MAX_PART_BYTES: Final = 1024 * 1024
PREVIEW_BYTES: Final = 1024
_OF_RUN: Final = re.compile(r"(run_[0-9a-f]{32})(?:/emitted/(\d{1,5}))?")


class Handles:
    def __init__(self, store: RunStore) -> None:
        self._store = store

    async def keep(self, run: int, principal: str, value: Any) -> dict[str, Any]:
        """Keep `value` for a run, durably, as a JSON document; what stands for it. Raises ToolError, StorageError."""
        try:
            document = await asyncio.to_thread(values.document, value)
        except (Unserializable, FrameError) as e:
            raise ToolError("too_large", f"The answer is too large to hand over, and cannot be kept: {e}.") from None
        id = f"res_{secrets.token_hex(16)}"
        sha256 = hashlib.sha256(document).digest()

        def keep(connection: sqlite3.Connection) -> bool:
            query = "SELECT coalesce(sum(bytes), 0) FROM handles WHERE run = ?"
            (used,) = connection.execute(query, (run,)).fetchone()
            if used + len(document) > RUN_BYTES:
                return False
            put_blob(connection, run, document)
            row = (id, run, principal, sha256, len(document), time.time())
            connection.execute("INSERT INTO handles VALUES (?, ?, ?, ?, ?, ?)", row)
            return True

        if not await self._store.database.write(keep):
            raise ToolError(
                "too_large",
                f"The answer is too large to hand over, and the run has had {RUN_BYTES} bytes of such answers kept.",
                hint="Ask for less: a page, a range, or fewer fields.",
            )
        return {
            "$ref": {
                "id": id,
                "bytes": len(document),
                "media_type": "application/json",
                "sha256": sha256.hex(),
                "preview": document[:PREVIEW_BYTES].decode(errors="ignore"),
                "read": f"await tools.{READ}({{ id, offset, length }})",
            }
        }

    async def part(self, principal: str, id: Any, offset: int, length: int | None) -> tuple[bytes, int]:
        """The bytes of a document from `offset` on, and its size. Raises NotFound, for what is another's too."""
        found = await self._find(principal, id) if isinstance(id, str) else None
        part = None if found is None else await self._store.blob(*found, offset, length)
        if part is None:
            raise NotFound("there is no such result", hint="it goes with its run, and only its maker may read it")
        return part

    async def read(self, principal: str, args: Any) -> dict[str, Any]:
        """What a script gets for `{id, offset?, length?}`: `{text, offset, next, bytes}`, where `next` is null at the
        end. Raises ToolError."""
        given = args if isinstance(args, dict) else {}
        offset, length = given.get("offset", 0), given.get("length", PART_BYTES)
        if set(given) - {"id", "offset", "length"} or "id" not in given:
            raise ToolError("invalid_arguments", "results.read takes { id, offset?, length? }.")
        for name, figure, least in (("offset", offset, 0), ("length", length, 4)):
            if type(figure) is not int or not least <= figure < 2**53:
                raise ToolError("invalid_arguments", f"{name} is a whole number of bytes, {least} or more.")
        try:
            data, total = await self.part(principal, given["id"], offset, min(length, MAX_PART_BYTES))
        except NotFound as e:
            raise ToolError("invalid_arguments", f"{e.message[0].upper()}{e.message[1:]}.", hint=e.hint) from None
        text, taken = _text(data, last=offset + len(data) >= total)
        end = offset + taken
        return {"text": text, "offset": offset, "next": end if end < total else None, "bytes": total}

    async def _find(self, principal: str, id: str) -> tuple[int, bytes] | None:
        """The run and the SHA-256 of what `id` names: a handle, or a result or emitted value of a run."""
        of_run = _OF_RUN.fullmatch(id)
        if of_run is None:
            query = "SELECT run, sha256 FROM handles WHERE id = ? AND principal = ?"
            row: tuple[int, bytes] | None = await self._store.database.read(
                lambda connection: connection.execute(query, (id, principal)).fetchone()
            )
            return row
        stored = await self._store.get(of_run[1])
        if stored is None or stored.principal != principal:
            return None
        sha256 = sha256_in(stored, of_run[2])
        return None if sha256 is None else (stored.n, sha256)


def _text(data: bytes, *, last: bool) -> tuple[str, int]:
    """`data` as text, without a character that it cuts off unless it is the `last` part, and how many bytes that is."""
    for cut in range(0 if last else 4):
        kept = len(data) - cut
        try:
            return data[:kept].decode(), kept
        except UnicodeDecodeError:
            continue
    # It does not begin with a character: whoever asked did not go by `next`.
    return data.decode(errors="replace"), len(data)
