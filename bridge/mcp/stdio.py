"""A program that speaks MCP over its standard streams: one message a line, bounded, and nothing left behind.

The SDK has such a transport too. This one differs in what a hostile or broken program can do: a line has a limit, noise
and floods end the session, the environment is exactly what is given, and the program ends with this process, however
this process ends (see `bridge.mcp.keeper`).
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from bridge.mcp import keeper
from bridge.mcp.endpoint import Program
from bridge.wire.errors import ToolError

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

LEAVE_S: Final = 1.5
"""For the program to end after its input has; then it is told to, then killed, for which the keeper has two seconds."""
KILL_S: Final = 4.0
FLUSH_S: Final = 0.3
MAX_NOISE: Final = 4 * 1024 * 1024
"""Bytes of lines that are no messages before a program is taken to speak something else."""
MAX_REQUESTS: Final = 10_000
"""Requests that a program may make of us in one session; all of them are refused or trivial."""
TAIL: Final = 4096
HEAD: Final = 1024
PARSED_AT_ONCE: Final = 256 * 1024
_ID: Final = re.compile(rb'"id"\s*:\s*([0-9]{1,15})\b')
HEARD: Final = frozenset(
    {"notifications/tools/list_changed", "notifications/cancelled", "notifications/subscriptions/acknowledged"}
)


class Stdio:
    """One run of a program. `why` says what ended it where that was not our own doing."""

    def __init__(self, program: Program, environ: Mapping[str, str], limit: int, label: str) -> None:
        self._program = program
        self._environ = dict(environ)
        self._limit = limit
        self._label = label
        self._noise = 0
        self._asked = 0
        self._stderr: deque[bytes] = deque()
        self.why: ToolError | None = None
        self.pid: int | None = None

    @property
    def said(self) -> str:
        """The end of what the program wrote to its standard error."""
        return b"".join(self._stderr)[-TAIL:].decode("utf-8", "replace")

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Run the program; the streams are of SessionMessages, from it and to it. Raises ToolError."""
        inward, read = anyio.create_memory_object_stream[Any](0)
        write, outward = anyio.create_memory_object_stream[Any](0)
        process, begun = await self._start()
        control: int | None = begun
        flushed, heard = anyio.Event(), anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, process, inward)
                tasks.start_soon(self._write, process, outward, inward, flushed)
                tasks.start_soon(self._listen, process, heard)
                try:
                    yield read, write
                finally:
                    with anyio.CancelScope(shield=True):
                        read.close()
                        write.close()
                        with anyio.move_on_after(FLUSH_S):
                            await flushed.wait()
                        control = await self._stop(process, begun)
                        with anyio.move_on_after(FLUSH_S):
                            await heard.wait()
                    tasks.cancel_scope.cancel()
        finally:
            for stream in (inward, read, write, outward):
                stream.close()
            if control is not None:
                os.close(control)
            with anyio.CancelScope(shield=True):
                await _discard(process)

    async def _start(self) -> tuple[Process, int]:
        theirs, ours = os.pipe()
        try:
            process = await anyio.open_process(
                [sys.executable, "-I", "-S", str(Path(keeper.__file__)), str(theirs), *self._program.argv],
                env=self._environ,
                cwd=self._program.cwd,
                start_new_session=True,
                pass_fds=(theirs,),
            )
        except OSError as e:
            os.close(ours)
            raise ToolError("upstream_unreachable", f"{self._label} cannot be started: {e.strerror}.") from None
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self.pid = process.pid
        return process, ours

    async def _stop(self, process: Process, control: int) -> int | None:
        """End the program: its input first, then by its keeper, then the keeper itself."""
        assert process.stdin is not None
        with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
        if await _ended(process, LEAVE_S):
            return control
        os.close(control)
        if not await _ended(process, KILL_S):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await _ended(process, KILL_S)
        return None

    async def _read(self, process: Process, inward: MemoryObjectSendStream[Any]) -> None:
        assert process.stdout is not None
        async with inward:
            try:
                async for line in self._lines(process.stdout):
                    message = await self._message(line)
                    if message is not None:
                        await inward.send(message)
            except ToolError as e:
                self.why = e
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
                pass
        await _drained(process.stdout)

    async def _lines(self, stdout: ByteReceiveStream) -> AsyncIterator[bytes]:
        """Raises ToolError for a line that is too long."""
        buffer, searched = bytearray(), 0
        async for chunk in stdout:
            buffer += chunk
            while (end := buffer.find(b"\n", searched)) >= 0:
                line = bytes(buffer[:end])
                del buffer[: end + 1]
                searched = 0
                yield line
            searched = len(buffer)
            if searched > self._limit:
                raise ToolError(
                    "too_large",
                    f"{self._label} sent a message of more than {self._limit} bytes, which ended the session with it.",
                )

    async def _message(self, line: bytes) -> SessionMessage | None:
        """The message on a line; None for noise, and for notifications that nobody listens to. Raises ToolError."""
        from mcp.shared.message import SessionMessage
        from mcp.types import (
            PARSE_ERROR,
            ErrorData,
            JSONRPCError,
            JSONRPCNotification,
            JSONRPCRequest,
            jsonrpc_message_adapter,
        )

        if not line.strip():
            return None
        try:
            parse = partial(jsonrpc_message_adapter.validate_json, line, by_name=False)
            message = parse() if len(line) <= PARSED_AT_ONCE else await anyio.to_thread.run_sync(parse)
        except ValueError:
            if (unread := _answered(line)) is not None:
                error = ErrorData(code=PARSE_ERROR, message="not read")
                return SessionMessage(JSONRPCError(jsonrpc="2.0", id=unread, error=error))
            self._noise += len(line)
            if self._noise > MAX_NOISE:
                raise ToolError("upstream_error", f"{self._label} writes what is no MCP.", retryable=False) from None
            return None
        if isinstance(message, JSONRPCNotification) and message.method not in HEARD:
            return None
        if isinstance(message, JSONRPCRequest):
            self._asked += 1
            if self._asked > MAX_REQUESTS:
                raise ToolError("upstream_error", f"{self._label} asks more than {MAX_REQUESTS} things of its client.")
        return SessionMessage(message)

    async def _write(
        self,
        process: Process,
        outward: MemoryObjectReceiveStream[SessionMessage],
        inward: MemoryObjectSendStream[Any],
        flushed: anyio.Event,
    ) -> None:
        assert process.stdin is not None
        try:
            async with outward:
                async for item in outward:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await process.stdin.send(text.encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            # Nobody hears us any more, so nobody will answer.
            inward.close()
        finally:
            flushed.set()

    async def _listen(self, process: Process, heard: anyio.Event) -> None:
        """Keep the end of what the program says to a person."""
        assert process.stderr is not None
        kept = 0
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async for chunk in process.stderr:
                self._stderr.append(chunk)
                kept += len(chunk)
                while kept - len(self._stderr[0]) > TAIL:
                    kept -= len(self._stderr.popleft())
        heard.set()


def _answered(line: bytes) -> int | None:
    """Which request a line that cannot be read seems to answer: one that is nested too deeply, or half written."""
    head = line[:HEAD]
    if not head.lstrip().startswith(b"{") or b'"jsonrpc"' not in head or b'"method"' in head:
        return None
    found = _ID.search(head)
    return int(found[1]) if found is not None else None


async def _ended(process: Process, seconds: float) -> bool:
    """Whether the process ends in time. `Process.wait` also waits for whoever else holds its pipes."""
    deadline = anyio.current_time() + seconds
    while process.returncode is None and anyio.current_time() < deadline:  # noqa: ASYNC110 - nothing else tells
        await anyio.sleep(0.005)
    return process.returncode is not None


async def _drained(stdout: ByteReceiveStream) -> None:
    """Read on, so that a program that still writes comes to read that its input has ended."""
    with contextlib.suppress(
        anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError, OSError
    ):
        while True:
            await stdout.receive()


async def _discard(process: Process) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await stream.aclose()
    # asyncio warns about a transport that a descendant's open pipe keeps; nothing public closes it.
    close = getattr(getattr(getattr(process, "_process", None), "_transport", None), "close", None)
    if callable(close):
        close()
