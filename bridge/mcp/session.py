"""One session with a server: opened, listed, called, and closed by the one task that owns it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import anyio.to_thread

from bridge.asking import Put
from bridge.mcp.errors import (
    ABOUT_VERSION,
    Hangup,
    Mismatch,
    Retired,
    again,
    misread,
    plain,
    refusal,
    too_many_tools,
)
from bridge.mcp.greeting import OLDER, greet
from bridge.mcp.talks import Refusal, Talks
from bridge.scrub import Scrubber
from bridge.secrets.ports import Secret
from bridge.wire.errors import ToolError
from catalog.kinds.mcp.texts import cleaned

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.exceptions import MCPError

    from bridge.mcp.dispatcher import Dispatcher

OPEN_S: Final = 60.0
"""For a server to start and to say hello; some are installed when they are first started."""
LIST_S: Final = 60.0
MAX_PAGES: Final = 200
MAX_TOOLS: Final = 10_000
MAX_CALLS: Final = 64
"""Calls at once in one session; further ones wait."""
CLOSE_S: Final = 15.0
FIRST_TO_ASK: Final = "2025-06-18"
"""The first version of the protocol with elicitation."""


class Link(Protocol):
    """A transport of the SDK's, and what it knows of failures and secrets."""

    revealed: dict[str, Secret]

    def streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]: ...

    def failure(self, data: Any) -> ToolError | None:
        """The failure that a JSON-RPC error's data stands for."""
        ...

    @property
    def why(self) -> ToolError | None:
        """What ended the session, where that was not our own doing."""
        ...

    @property
    def said(self) -> str: ...

    @property
    def local(self) -> bool: ...


class Listed:
    """What a server lists. Each tool is `{name, title, description, inputSchema, outputSchema, annotations}`."""

    def __init__(self, title: str, instructions: str, era: str) -> None:
        self.title = title
        self.instructions = instructions
        self.era = era
        self.tools: list[dict[str, Any]] = []
        self.diagnostics: list[tuple[str, str]] = []

    def as_config(self) -> dict[str, Any]:
        facts = {"title": self.title, "instructions": self.instructions}
        return facts | {"tools": self.tools, "diagnostics": self.diagnostics}


class Session:
    """Use `start`, then `tools` and `call` from any task of the loop, and `close`. `changed` hears that the server's
    list has."""

    def __init__(self, link: Link, label: str, era: str | None, changed: Callable[[], None]) -> None:
        self._link = link
        self._label = label
        self._era = era
        self._changed = changed
        self._client: ClientSession | None = None
        self._dispatcher: Dispatcher | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._places = anyio.Semaphore(MAX_CALLS)
        self._talks = Talks(label)
        self.calls = 0
        """Calls and listings that are under way or wait."""
        self.ended = False

    @property
    def revealed(self) -> dict[str, Secret]:
        return self._link.revealed

    def scrubber(self) -> Scrubber:
        """What masks the secrets that were given to the server."""
        return Scrubber(secret.reveal() for secret in self._link.revealed.values())

    @property
    def said(self) -> str:
        """The end of what a program wrote to its standard error."""
        return self._link.said

    def start(self) -> None:
        self._task = asyncio.create_task(self._own(), name=f"mcp {self._label}")

    async def close(self) -> None:
        """End it, and the program behind it. Safe to call again."""
        self._stop.set()
        self.ended = True
        task = self._task
        if task is not None and not task.done():
            if not self._ready.done():
                # It is still being opened: nobody waits for that any more.
                task.cancel()
            _, late = await asyncio.wait([task], timeout=CLOSE_S)
            if late:
                task.cancel()
                await asyncio.wait([task], timeout=CLOSE_S)

    async def _own(self) -> None:
        try:
            # The first time that takes most of a second, which others need not wait for.
            await anyio.to_thread.run_sync(_import)
            try:
                await self._live(self._era)
            except Exception as e:
                if not isinstance(plain(e), Hangup):
                    raise
                # Some programs end at the first word of the newer era.
                await self._live(OLDER)
        except Exception as e:
            self._failed(self._link.why or plain(e) or ToolError("upstream_error", f"{self._label} failed to open."))
        finally:
            self.ended = True
            self._failed(self._over())

    def _failed(self, error: ToolError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            # Whoever waits hears of it; perhaps nobody does.
            self._ready.exception()

    async def _live(self, era: str | None) -> None:
        async with self._opened() as (client, dispatcher):
            self._dispatcher = dispatcher
            await self._greeted(client, era)
            dispatcher.version = client.protocol_version or OLDER
            self._client = client
            if not self._ready.done():
                self._ready.set_result(None)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen, client)
                stop = asyncio.ensure_future(self._stop.wait())
                gone = asyncio.ensure_future(dispatcher.ended.wait())
                try:
                    await asyncio.wait([stop, gone], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    stop.cancel()
                    gone.cancel()
                    self.ended = True
                tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[ClientSession, Dispatcher]]:
        from mcp.types import Implementation

        from bridge.mcp.dispatcher import Client, Dispatcher

        async with self._link.streams() as (read, write):
            dispatcher = Dispatcher(read, write)
            info = Implementation(name="executor", version="1")
            async with Client(
                dispatcher=dispatcher,
                client_info=info,
                message_handler=self._hear,
                elicitation_callback=self._elicited,
            ) as client:
                yield client, dispatcher

    async def _greeted(self, client: ClientSession, era: str | None) -> None:
        """Raises ToolError; Hangup for a program that ended at the first word."""
        from mcp.shared.exceptions import MCPError

        try:
            with anyio.fail_after(OPEN_S):
                await greet(client, era, lambda e: self._vet(e, era))
        except MCPError as e:
            raise self._translated(e) from None
        except TimeoutError:
            raise ToolError("upstream_timeout", f"{self._label} did not open a session in {OPEN_S:.0f} s.") from None
        except ValueError as e:
            raise misread(e, self._label) from None
        except RuntimeError as e:
            what = cleaned(str(e), 300)
            raise ToolError("upstream_error", f"{self._label} opens no session: {what}", retryable=False) from None

    def _vet(self, error: MCPError, era: str | None) -> None:
        """Raises ToolError for what is no word of a server about its version."""
        failure = self._link.failure(error.error.data)
        if failure is not None and failure.status not in ABOUT_VERSION:
            raise failure
        if self._is_over(error):
            if self._link.local and era is None and self._link.why is None:
                raise Hangup("upstream_unreachable", f"{self._label} ended while it was greeted.")
            raise self._over()

    async def _listen(self, client: ClientSession) -> None:
        """Ask a server of the newer era to say when its list changes."""
        from mcp.client.subscriptions import SubscriptionLost, listen
        from mcp.shared.exceptions import MCPError
        from mcp.types.version import MODERN_PROTOCOL_VERSIONS

        tools = client.server_capabilities.tools if client.server_capabilities is not None else None
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        with contextlib.suppress(MCPError, SubscriptionLost, TimeoutError):
            async with listen(client, tools_list_changed=True) as events:
                async for _ in events:
                    self._changed()

    async def _hear(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed()

    async def tools(self) -> Listed:
        """Every page of the server's list. Raises ToolError, also for a list that does not end, and Retired."""
        with self._busy():
            client = await self._at_hand()
            try:
                with anyio.fail_after(LIST_S):
                    return await self._pages(client)
            except TimeoutError:
                why = f"{self._label} did not list its tools in {LIST_S:.0f} s."
                raise ToolError("upstream_timeout", why) from None

    async def _pages(self, client: ClientSession) -> Listed:
        from mcp.types import PaginatedRequestParams

        info, abilities = client.server_info, client.server_capabilities
        title = (info.title or info.name) if info is not None else ""
        listed = Listed(title, client.instructions or "", client.protocol_version or OLDER)
        if abilities is not None and abilities.tools is None:
            return listed
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            page = await self._spoken(client.list_tools(params=PaginatedRequestParams(cursor=cursor)))
            listed.tools += [_told(tool) for tool in page.tools]
            if len(listed.tools) > MAX_TOOLS:
                raise too_many_tools(MAX_TOOLS)
            cursor = page.next_cursor
            if not cursor:
                assert self._dispatcher is not None
                listed.diagnostics += self._dispatcher.broken()
                return listed
            if cursor in seen:
                break
            seen.add(cursor)
        raise ToolError("upstream_error", f"The list of tools of {self._label} does not end.", retryable=False)

    async def call(
        self,
        name: str,
        args: dict[str, Any],
        announce: Callable[[], Awaitable[None]],
        put: Put | None = None,
        state: str | None = None,
        responses: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """The result of a tool, as it came. `announce` is awaited before anything is sent; what a server of the older
        era asks meanwhile goes to `put`. `state` and `responses` are those of another round of the same call.

        Raises ToolError, of which Unknown says that the tool may be gone and Lost that the session is, and Retired.
        """
        with self._busy():
            client = await self._at_hand()
            async with self._places:
                if self.ended:
                    raise Retired
                if not _asks_in_between(client.protocol_version):
                    await announce()
                    return await self._called(client, name, args, state, responses)
                async with self._talks.turn(name) as talk:
                    if self.ended:
                        raise Retired
                    await announce()
                    try:
                        result = await self._talks.conversed(self._called(client, name, args), talk, put)
                    except ToolError:
                        if talk.turned_away is not None:
                            raise talk.turned_away from None
                        raise
                    if talk.turned_away is not None and result.get("isError") is True:
                        raise talk.turned_away
                    return result

    async def _called(
        self,
        client: ClientSession,
        name: str,
        args: dict[str, Any],
        state: str | None = None,
        responses: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        from mcp.types import CallToolRequest, CallToolRequestParams, ElicitResult
        from pydantic import TypeAdapter

        given: Any = {key: ElicitResult.model_validate(one) for key, one in responses.items()} if responses else None
        params = CallToolRequestParams(name=name, arguments=args, request_state=state, input_responses=given)
        request = CallToolRequest(params=params)
        anything = TypeAdapter(dict[str, Any])
        try:
            result: dict[str, Any] = await self._spoken(client.send_request(request, anything))
        except Mismatch:
            # The newer era repeats some arguments in headers, for which the session must have listed the tool.
            await self._pages(client)
            result = await self._spoken(client.send_request(request, anything))
        return result

    async def _elicited(self, context: Any, params: Any) -> Any:
        """A server of the older era asks a person something, in the middle of a call."""
        from mcp.types import INVALID_PARAMS, ElicitResult, ErrorData

        try:
            reply = await self._talks.answer(params.model_dump(by_alias=True))
        except Refusal as e:
            return ErrorData(code=INVALID_PARAMS, message=str(e))
        return ElicitResult(action=reply.action, content=reply.content if reply.action == "accept" else None)

    async def _at_hand(self) -> ClientSession:
        """Wait until it is open; being cancelled leaves it opening for the next one."""
        try:
            await asyncio.shield(self._ready)
        except ToolError as e:
            raise again(e) from None
        if self.ended or self._client is None:
            raise Retired
        return self._client

    @contextlib.contextmanager
    def _busy(self) -> Iterator[None]:
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1

    async def _spoken(self, asking: Awaitable[Any]) -> Any:
        """What comes of a request. Raises ToolError."""
        from mcp.shared.exceptions import MCPError

        try:
            return await asking
        except MCPError as e:
            raise self._translated(e) from None
        except ValueError as e:
            raise misread(e, self._label) from None

    def _translated(self, error: MCPError) -> ToolError:
        if (failure := self._link.failure(error.error.data)) is not None:
            return failure
        if self._is_over(error):
            # An answer that was lost on its way says nothing about the session.
            self.ended = self.ended or self._link.local
            return self._over()
        # Before it is cut, so that no half of a secret stands at its end.
        error.error.message = self.scrubber().text(error.error.message)
        return refusal(error, self._label)

    def _is_over(self, error: MCPError) -> bool:
        """Whether no answer can come any more. The SDK's number for that is also a common one among servers."""
        from mcp.types import CONNECTION_CLOSED

        if error.code != CONNECTION_CLOSED or error.error.data is not None:
            return False
        if self._dispatcher is not None and self._dispatcher.closed:
            return True
        return not self._link.local and error.error.message.startswith(("SSE stream", "Connection closed"))

    def _over(self) -> ToolError:
        if self._link.why is not None:
            return again(self._link.why)
        how = "ended" if self._link.local else "closed the session"
        return ToolError("upstream_unreachable", f"{self._label} {how} before it answered.")


def _asks_in_between(version: str | None) -> bool:
    """Whether a server of that version may ask a person while a call is under way."""
    from mcp.types.version import MODERN_PROTOCOL_VERSIONS

    return version is not None and version >= FIRST_TO_ASK and version not in MODERN_PROTOCOL_VERSIONS


def _told(tool: Any) -> dict[str, Any]:
    annotations = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else None
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": annotations,
    }


def _import() -> None:
    """Load the SDK, and hush it."""

    import bridge.mcp.dispatcher  # noqa: F401

    _hush()


def _hush() -> None:
    """The SDK logs what a server sent, with its stack, where we tell whoever asked what went wrong."""
    for name in ("mcp.client", "mcp.shared", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
