"""Every session with a server behind one handle: opened when first needed, few at once, closed when idle.

A session belongs to one connection and to one place: with another credential or another command there is another.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog

from bridge.asking import Question, Reply
from bridge.client import Client
from bridge.egress import Gate
from bridge.mcp.endpoint import program_of
from bridge.mcp.errors import Lost, Retired, Unknown
from bridge.mcp.links import Local, Remote
from bridge.mcp.rounds import Rounds
from bridge.mcp.session import Listed, Session
from bridge.oauth.accounts import OAuth
from bridge.outbound import Passage
from bridge.scrub import Scrubber
from bridge.secrets.ports import Secret
from bridge.secrets.providers import Providers
from bridge.wire.errors import ToolError
from catalog.kinds.mcp.integration import place
from catalog.model import Connection

MAX_SESSIONS: Final = 32
IDLE_S: Final = 300.0
SWEEP_S: Final = 30.0
TRIES: Final = 3
FIRST_PAUSE_S: Final = 1.0
LAST_PAUSE_S: Final = 60.0
"""Between two listings that a server asked for; doubled while it goes on asking."""

_MISSING: Final = re.compile(r"(?i)\b(unknown|no such|not find|not found|does not exist|not available)\b")
_log = structlog.get_logger("executor.mcp")

Relisted = Callable[[str, Listed], Awaitable[None]]
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server as one connection sees it. `config` is the integration's; `describes`: the catalog is made from what
    this connection is shown."""

    name: str
    config: Mapping[str, Any]
    connection: Connection
    describes: bool = True

    @property
    def key(self) -> Key:
        return self.name, self.connection.scope, self.connection.name

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a session of it depends on."""
        parts = (self.config.get(part) for part in ("url", "command", "cwd", "allow_private"))
        return repr(list(parts)), self.connection.placements, self.connection.reach, self.connection.oauth


Reoffered = Callable[[Upstream, Listed], Awaitable[None]]


class Servers:
    """`relisted` is awaited with what a server lists once it says that this has changed. Close it when done."""

    def __init__(
        self,
        client: Client,
        gate: Gate,
        providers: Providers,
        oauth: OAuth,
        limit: int,
        max_sessions: int = MAX_SESSIONS,
    ) -> None:
        self._client = client
        self._gate = gate
        self._providers = providers
        self._oauth = oauth
        self._limit = limit
        self._max = max_sessions
        self._open: dict[Key, tuple[tuple[Any, ...], Session]] = {}
        self._used: dict[Key, float] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._relisting: dict[Key, bool] = {}
        self._offers: dict[Key, tuple[Session, Mapping[str, Any]]] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._closed = False
        self.relisted: Relisted | None = None
        self.reoffered: Reoffered | None = None
        """The same for an account that the catalog is not made from."""
        self.last_words: dict[Key, str] = {}
        """What a program wrote to its standard error before its last listing failed."""

    async def call(self, upstream: Upstream, passage: Passage, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """The result of a tool, as it came. Raises ToolError: tool_not_found for one that the server has no more."""
        rounds = Rounds(upstream.name, passage)
        await rounds.taken_up()
        result = await self._round(upstream, passage, name, args, rounds)
        while await rounds.asked(result):
            result = await self._round(upstream, passage, name, args, rounds)
        return result

    async def _round(
        self, upstream: Upstream, passage: Passage, name: str, args: dict[str, Any], rounds: Rounds
    ) -> dict[str, Any]:
        for _ in range(TRIES):
            session = self._session(upstream)
            try:
                put = None if passage.put is None else partial(_put, passage, session)
                result = await session.call(name, args, passage.announce, put, rounds.state, rounds.responses)
            except (Retired, Lost):
                # Nothing was done: the session ended before the call, or the server does not know it any more.
                await self._discard(upstream.key, session)
                continue
            except Unknown as e:
                await self._check_there(upstream, session, name)
                raise ToolError("upstream_error", e.message, details=e.details, retryable=False) from None
            finally:
                passage.revealed.update(session.revealed)
            if result.get("isError") is True and _MISSING.search(str(result.get("content"))[:1000]):
                await self._check_there(upstream, session, name)
            # Of what went wrong the beginning is shown, and half a secret at its end would be found by nobody.
            return session.scrubber().value(result) if result.get("isError") is True else result
        raise ToolError("upstream_unreachable", f"{upstream.name} does not keep a session.")

    async def listing(self, upstream: Upstream) -> Listed:
        """What the server lists now. Raises ToolError."""
        self.last_words.pop(upstream.key, None)
        for _ in range(TRIES):
            session = self._session(upstream)
            try:
                return await session.tools()
            except (Retired, Lost):
                await self._discard(upstream.key, session)
            except asyncio.CancelledError:
                if session.calls == 0:
                    # Whoever wanted to know is gone, and nothing may have been added that the session is for.
                    self._leave(upstream.key, session)
                raise
            except ToolError:
                self.last_words[upstream.key] = Scrubber(one.reveal() for one in session.revealed.values()).text(
                    session.said
                )
                raise
        raise ToolError("upstream_unreachable", f"{upstream.name} does not keep a session.")

    async def offered(self, upstream: Upstream, *, anew: bool = False) -> Mapping[str, Any]:
        """What the server offers to an account: the annotations of each tool, by the server's own names. Asked for once
        in a session, and again when the server says that it has changed. Raises ToolError."""
        session = self._session(upstream)
        known = self._offers.get(upstream.key)
        if anew or known is None or known[0] is not session:
            listed = await self.listing(upstream)
            tools = {str(tool["name"]): tool.get("annotations") for tool in listed.tools}
            known = self._offers[upstream.key] = (self._session(upstream), tools)
        return known[1]

    async def drop(self, name: str, scope: str | None = None, connection: str | None = None) -> None:
        """Close the sessions of an integration, or of one connection of it."""
        for key in list(self._open):
            if key[0] == name and scope in (None, key[1]) and connection in (None, key[2]):
                await self._discard(key, self._open[key][1])

    async def aclose(self) -> None:
        """Close every session, and with them the programs. Safe to call again."""
        self._closed = True
        sweeping, self._sweeping = self._sweeping, None
        listing = [*self._tasks, *([sweeping] if sweeping is not None else [])]
        for task in listing:
            task.cancel()
        for key, (_, session) in list(self._open.items()):
            self._leave(key, session)
        # What is being closed is closed to the end: a program must not be left behind.
        if left := [*listing, *self._leaving]:
            await asyncio.wait(left)

    def _session(self, upstream: Upstream) -> Session:
        """The session of an upstream, opening where there was none. Raises ToolError when there are too many."""
        key = upstream.key
        known = self._open.get(key)
        if known is not None and (known[0] != upstream.identity or known[1].ended):
            self._leave(key, known[1])
            known = None
        if known is None:
            if self._closed:
                raise ToolError("upstream_unreachable", "The host is stopping.")
            self._make_room()
            session = Session(
                self._link(upstream), upstream.name, upstream.config.get("era"), lambda: self._changed(upstream)
            )
            known = self._open[key] = (upstream.identity, session)
            session.start()
            if self._sweeping is None:
                self._sweeping = asyncio.create_task(self._sweep())
        self._used[key] = asyncio.get_running_loop().time()
        return known[1]

    def _make_room(self) -> None:
        if len(self._open) < self._max:
            return
        idle = [key for key, (_, session) in self._open.items() if session.calls == 0]
        if not idle:
            raise ToolError(
                "upstream_error", f"Sessions with {self._max} servers are in use at once; no more are opened.",
                retryable=True,
            )  # fmt: skip
        oldest = min(idle, key=lambda key: self._used.get(key, 0.0))
        self._leave(oldest, self._open[oldest][1])

    def _link(self, upstream: Upstream) -> Local | Remote:
        where = place(upstream.config)
        grant = self._gate.grant((where,), upstream.config.get("allow_private", ()))

        def passage() -> Passage:
            return Passage(
                self._client,
                self._gate,
                grant,
                upstream.connection,
                self._providers,
                self._oauth,
                self._limit,
                _unannounced,
            )

        async def secrets() -> tuple[dict[str, str], dict[str, Secret]]:
            way = passage()
            return await way.environment(where), way.revealed

        program = program_of(upstream.config)
        if program is not None:
            return Local(program, secrets, self._limit, upstream.name)
        return Remote(str(upstream.config["url"]), passage, self._limit, upstream.name)

    async def _discard(self, key: Key, session: Session) -> None:
        await asyncio.shield(self._leave(key, session))

    def _leave(self, key: Key, session: Session) -> asyncio.Task[None]:
        """Take no further call to the session, and close it, whatever becomes of whoever asked for that."""
        known = self._open.get(key)
        if known is not None and known[1] is session:
            del self._open[key]
            self._offers.pop(key, None)
        task = asyncio.create_task(session.close())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            now = asyncio.get_running_loop().time()
            for key, (_, session) in list(self._open.items()):
                if session.ended or (session.calls == 0 and now - self._used.get(key, now) > IDLE_S):
                    await self._discard(key, session)

    async def _check_there(self, upstream: Upstream, session: Session, name: str) -> None:
        """Raises ToolError when the server does not list the tool any more; the catalog is told."""
        try:
            listed = await session.tools()
        except (ToolError, Retired):
            return
        if any(tool["name"] == name for tool in listed.tools):
            return
        if not upstream.describes:
            self._offers.pop(upstream.key, None)
            raise ToolError(
                "tool_not_found",
                f"{upstream.name} does not offer {name[:120]!r} to {upstream.connection.label} any more.",
            )
        await asyncio.shield(self._spawn(self._tell(upstream, listed)))
        raise ToolError(
            "tool_not_found",
            f"{upstream.name} has no tool {name[:120]!r} any more.",
            hint="The catalog has been brought up to date: search again.",
        )

    async def _tell(self, upstream: Upstream, listed: Listed) -> None:
        try:
            if upstream.describes and self.relisted is not None:
                await self.relisted(upstream.name, listed)
            elif not upstream.describes and self.reoffered is not None:
                await self.reoffered(upstream, listed)
        except Exception as e:
            _log.warning("mcp_relisting_failed", integration=upstream.name, reason=repr(e)[:300])

    def _changed(self, upstream: Upstream) -> None:
        """The server says that its list has changed, perhaps for the thousandth time."""
        self._offers.pop(upstream.key, None)
        if upstream.key in self._relisting:
            self._relisting[upstream.key] = True
        elif not self._closed:
            self._relisting[upstream.key] = False
            self._spawn(self._relist(upstream))

    async def _relist(self, upstream: Upstream) -> None:
        pause = FIRST_PAUSE_S
        try:
            while (known := self._open.get(upstream.key)) is not None:
                self._relisting[upstream.key] = False
                try:
                    await self._tell(upstream, await known[1].tools())
                except (ToolError, Retired) as e:
                    # What there was stays.
                    _log.warning("mcp_listing_failed", integration=upstream.name, reason=repr(e)[:300])
                await asyncio.sleep(pause)
                if not self._relisting[upstream.key]:
                    return
                pause = min(pause * 2, LAST_PAUSE_S)
        finally:
            del self._relisting[upstream.key]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _put(passage: Passage, session: Session, question: Question, gone: asyncio.Event) -> Reply:
    """Put a question of the session's server to a person, of whom nobody sees the session's secrets in it."""
    assert passage.put is not None
    passage.revealed.update(session.revealed)
    return await passage.put(question, gone)


async def _unannounced() -> None:
    """What keeps a session open has no effect that a call would be recorded for."""
