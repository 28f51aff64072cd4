"""The listening server: hypercorn's HTTP/1.1 protocol on asyncio streams, with every wait bounded.

Hypercorn's own transport waits for ever for a body and for a slow reader, and accepts connections without end. Here a
connection has a deadline for its head, for being idle and for each write; there is a cap on connections, and at the
cap the one that has been idle longest makes room.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr

from executor.http.protocol import HEAD_BYTES, EdgeProtocol

READ_BYTES: Final = 64 * 1024
LINGER_S: Final = 1.0
LINGER_BYTES: Final = 4 * 1024 * 1024
"""After an early refusal the peer may still be sending; reading on for a moment lets it see the answer."""

TURNED_AWAY: Final = 256
"""Connections above the cap that are told so at once; further ones are dropped."""
_NO_ROOM: Final = (
    b"HTTP/1.1 503 \r\ncontent-type: application/json\r\ncontent-length: 73\r\nretry-after: 1\r\n"
    b'connection: close\r\n\r\n{"error":{"code":"overloaded","message":"too many connections are open"}}'
)

log = structlog.get_logger("executor.http")

App = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: `head` from a request's first byte to its last header, `idle` between requests, `write` for a write."""

    head: float = 5.0
    idle: float = 20.0
    write: float = 20.0


class Server:
    """Serves an ASGI application on one address. Raises OSError when the address cannot be bound."""

    def __init__(
        self,
        app: App,
        *,
        host: str,
        port: int,
        max_body: int,
        max_connections: int = 2048,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.app = ASGIWrapper(app)
        self.host = host
        self.port = port
        self.max_body = max_body
        self.max_connections = max_connections
        self.timeouts = timeouts or Timeouts()
        self.context = WorkerContext(None)
        self.config = Config()
        self.config.include_server_header = False
        self.config.errorlog = None
        self.config.accesslog = None
        self.config.h11_max_incomplete_size = HEAD_BYTES
        self.connections: dict[Connection, None] = {}
        self._listener: asyncio.Server | None = None
        self._turned_away = 0

    async def start(self) -> None:
        """Listen. Afterwards `port` is the real one, also when 0 was asked for."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.setblocking(False)
            listening.bind((self.host, self.port))
            self._listener = await asyncio.start_server(self._accept, sock=listening, limit=READ_BYTES, backlog=1024)
        except BaseException:
            listening.close()
            raise
        self.port = listening.getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self.connections) >= self.max_connections:
            idle = next((each for each in self.connections if each.idle), None)
            if idle is None:
                await self._turn_away(reader, writer)
                return
            idle.abort()
        connection = Connection(self, reader, writer)
        self.connections[connection] = None
        try:
            await connection.run()
        finally:
            self.connections.pop(connection, None)

    async def _turn_away(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Say that there is no room, unless too many are being told so already."""
        if self._turned_away < TURNED_AWAY:
            self._turned_away += 1
            try:
                writer.write(_NO_ROOM)
                writer.write_eof()
                async with asyncio.timeout(LINGER_S):
                    while await reader.read(READ_BYTES):
                        pass
            except (OSError, TimeoutError):
                pass
            finally:
                self._turned_away -= 1
        writer.transport.abort()

    async def stop_accepting(self) -> None:
        """Close the listener and the idle connections; requests in flight go on, each the last on its connection."""
        if self._listener is not None:
            self._listener.close()
        await self.context.terminated.set()
        for connection in list(self.connections):
            if connection.idle:
                connection.abort()

    async def wait_quiet(self, timeout: float) -> bool:
        """Wait until no request is in flight, at most `timeout` seconds. Says whether that came true."""
        try:
            async with asyncio.timeout(timeout):
                while self.connections:
                    await asyncio.wait([each.closed for each in self.connections])
                    await asyncio.sleep(0)
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Stop at once: every connection is dropped and its request told that the client is gone."""
        await self.stop_accepting()
        for connection in list(self.connections):
            connection.abort()
        await self.wait_quiet(2.0)


class Connection:
    """One client. Owns the socket, the deadlines and the task of the request in flight."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer
        self.loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self.idle = True
        self._head_started = False
        self._closing = False
        self._request: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._wait(server.timeouts.head)

    async def run(self) -> None:
        sock = self.writer.get_extra_info("socket")
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.protocol = EdgeProtocol(
                self.server.app,
                self.server.config,
                self.server.context,
                self,  # type: ignore[arg-type]  # of a task group, the protocol only uses spawn_app
                ConnectionState({}),
                False,
                parse_socket_addr(sock.family, sock.getpeername()),
                parse_socket_addr(sock.family, sock.getsockname()),
                self._on_event,
            )
            self.protocol.max_body = self.server.max_body
            await self.protocol.initiate()
            await self._read()
        except OSError:
            pass
        finally:
            await self._finish()

    async def _read(self) -> None:
        left = LINGER_BYTES
        while left > 0:
            await self.protocol.can_read.wait()
            data = await self.reader.read(READ_BYTES)
            if not data:
                return
            if self._closing:
                left -= len(data)
                continue
            if self.idle and not self._head_started:
                self._head_started = True
                self._wait(self.server.timeouts.head)
            await self.protocol.handle(RawData(data))

    async def _on_event(self, event: Event) -> None:
        """What the protocol wants done."""
        if isinstance(event, RawData):
            await self._write(event.data)
        elif isinstance(event, Closed):
            self._hang_up()
        elif isinstance(event, Updated):
            self.idle = event.idle
            if event.idle:
                self._head_started = False
                self._wait(self.server.timeouts.idle)
                if self.server.connections.pop(self, 0) is None:
                    self.server.connections[self] = None
            else:
                self._stop_waiting()

    async def _write(self, data: bytes) -> None:
        if self.writer.is_closing():
            return
        self.writer.write(data)
        if self.writer.transport.get_write_buffer_size() == 0:
            return
        try:
            async with asyncio.timeout(self.server.timeouts.write):
                await self.writer.drain()
        except TimeoutError:
            self.abort()
        except (ConnectionError, RuntimeError):
            await self.protocol.handle(Closed())

    async def spawn_app(
        self, app: Any, config: Config, scope: Any, send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[Any], Awaitable[None]]:
        """Run the application on a request; called by hypercorn's HTTP stream."""
        inbox = Inbox(config.max_app_queue_size)

        async def answer() -> None:
            try:
                await app(scope, inbox.get, send, None, None)
            except Exception:
                log.error("a request was left unanswered", exception=traceback.format_exc())
            finally:
                await send(None)

        self._request = self.loop.create_task(answer())
        return inbox.put

    def _hang_up(self) -> None:
        """Send what is left and half-close; the reading task goes on for a moment, so that the peer gets to read the
        answer before its own unread bytes cause a reset (RFC 9112 §9.6)."""
        if self._closing:
            return
        self._closing = True
        with contextlib.suppress(OSError, RuntimeError):
            self.writer.write_eof()
        self._wait(LINGER_S, self._stop_lingering)

    def _stop_lingering(self) -> None:
        if self.writer.transport.get_write_buffer_size():
            self._wait(self.server.timeouts.write)
        else:
            self.abort()

    def abort(self) -> None:
        self._closing = True
        self._stop_waiting()
        self.writer.transport.abort()

    def _wait(self, seconds: float, then: Callable[[], None] | None = None) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(seconds, then or self.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    async def _finish(self) -> None:
        self._stop_waiting()
        try:
            if hasattr(self, "protocol"):
                await self.protocol.handle(Closed())
            if self._request is not None:
                await asyncio.wait([self._request])
            self.writer.close()
            with contextlib.suppress(OSError):
                await self.writer.wait_closed()
        finally:
            if not self.closed.done():
                self.closed.set_result(None)


class Inbox:
    """What an application may receive: parts of a body wait for room, the news that the client is gone never does."""

    def __init__(self, size: int) -> None:
        self._events: deque[Any] = deque()
        self._size = size
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._gone: Any = None

    async def put(self, event: Any) -> None:
        if event["type"] == "http.disconnect":
            self._gone = event
        while self._gone is None and len(self._events) >= self._size:
            self._room.clear()
            await self._room.wait()
        if self._gone is None:
            self._events.append(event)
        self._room.set()
        self._news.set()

    async def get(self) -> Any:
        while not self._events:
            if self._gone is not None:
                return self._gone
            self._news.clear()
            await self._news.wait()
        self._room.set()
        return self._events.popleft()
