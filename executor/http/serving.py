"""From a running Executor to a listening server, and back down in order when told to stop."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import re
import resource
import signal
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from bridge.wire.errors import ConfigError
from catalog.origin import parse_url
from executor import running
from executor.http.app import build_app
from executor.http.server import Server
from executor.http.settings import LOOPBACK_NAMES, EdgeSettings

if TYPE_CHECKING:
    from executor.executor import Executor

FINISH_S: Final = 3.0
"""How long requests in flight may go on after the first signal, before their runs are cancelled."""
CANCEL_S: Final = 4.0
STOP_S: Final = 10.0
"""Whatever happens, the process is gone this long after the first signal."""
MAX_CONNECTIONS: Final = 2048

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\sA-Z]+")

_log = structlog.get_logger("executor.serve")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Where to listen and whom to answer. `host` is an address or `localhost`; commands find the server by `home`,
    browsers at `public_url`. `tool_key` is the bearer key of `/execute-tool`."""

    host: str = "127.0.0.1"
    port: int = 8321
    require_key: bool = True
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    home: Path | None = None
    public_url: str | None = None
    tool_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        try:
            loopback = self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            raise ConfigError(f"{self.host!r} is not an address", hint="such as 127.0.0.1, ::1 or 0.0.0.0") from None
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"{self.port} is not a port", hint="0 to 65535; 0 takes a free one")
        if not loopback and not self.require_key:
            raise ConfigError(
                f"without keys, only this machine may connect: {self.host} is not a loopback address",
                hint="leave --no-auth out, or --host",
            )
        for name in self.allowed_hosts:
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{name!r} is not the name of a host", hint="such as tools.example.com, without a port"
                )
        for origin in self.allowed_origins:
            if not _ORIGIN.fullmatch(origin):
                # Browsers say an origin in this one form, so that another would never be met.
                raise ConfigError(f"{origin!r} is not an origin", hint="such as https://console.example.com, no path")

    @property
    def address(self) -> str:
        return "127.0.0.1" if self.host == "localhost" else self.host

    def edge(self) -> EdgeSettings:
        names = {name.lower() for name in (*LOOPBACK_NAMES, *self.allowed_hosts)}
        if self.public_url is not None:
            names.add(parse_url(self.public_url).host.authority)
        return EdgeSettings(
            require_key=self.require_key,
            hosts=frozenset(names),
            origins=frozenset(self.allowed_origins),
            tool_key=self.tool_key,
        )

    def reached_at(self, port: int) -> str | None:
        """The origin that browsers come back to: as it was set, else this machine's own; None where neither will do."""
        return self.public_url or running.url_from_here(self.address, port)


def url_of(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


async def serve(
    executor: Executor, settings: ServeSettings, on_ready: Callable[[str], Awaitable[None]] | None = None
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. `on_ready` is told the URL once connections are accepted.

    A first signal stops accepting, lets requests finish for a moment, then cancels and records what still runs. A
    second one ends the process on the spot. Raises ConfigError when the address cannot be bound.
    """
    edge = settings.edge()
    app = build_app(executor, edge)
    server = Server(
        app,
        host=settings.address,
        port=settings.port,
        max_body=edge.largest_body,
        max_connections=_connection_limit(),
    )
    try:
        await server.start()
    except OSError as e:
        where = url_of(settings.address, settings.port)
        raise ConfigError(f"cannot listen on {where}: {e.strerror}", hint="choose another --port") from None
    executor.toolbox.own.listens(settings.address, server.port)
    executor.toolbox.oauth.flows.origin = settings.reached_at(server.port)
    stop = _stop_signal()
    executor.take_up()
    _calm_collector()
    try:
        _announce(executor, settings, server.port)
        if on_ready is not None:
            await on_ready(url_of(settings.address, server.port))
        await stop.wait()
        _stop_in_any_case()
        await server.stop_accepting()
        await app.close()
        if not await server.wait_quiet(FINISH_S):
            await asyncio.wait([asyncio.ensure_future(executor.close())], timeout=CANCEL_S)
            await server.wait_quiet(1.0)
    finally:
        if settings.home is not None:
            running.withdraw(settings.home)
        await app.close()
        await server.close()


def _announce(executor: Executor, settings: ServeSettings, port: int) -> None:
    url = running.url_from_here(settings.address, port)
    if settings.home is None or url is None:
        return
    key = executor.keys.lend("cli") if settings.require_key else None
    try:
        running.announce(settings.home, running.Running(url, key))
    except OSError as e:
        _log.warning("server_not_announced", reason=e.strerror)


def _calm_collector() -> None:
    """Python's collector looks at everything after each 700 new containers; a large request makes a million at once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stopped(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopped, number)
    return stop


def _stop_in_any_case() -> None:
    timer = threading.Timer(STOP_S, os._exit, (1,))
    timer.daemon = True
    timer.start()


def _connection_limit() -> int:
    """As many connections as there can be, with file descriptors left for workers, store and outbound calls."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(hard, 4096)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(16, min(MAX_CONNECTIONS, soft - 128))
