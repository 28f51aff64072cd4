"""Signing in to an account from the command line: the browser is opened here and comes back here."""

from __future__ import annotations

import asyncio
import html
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from bridge.oauth.flows import LIFE_S, Callback
from bridge.wire.errors import ExecutorError, InvalidRequest
from executor.cli import output
from executor.cli.options import UsageError
from executor.cli.session import Session

PATH: Final = "/callback"
HEAD_BYTES: Final = 32 * 1024
HEAD_S: Final = 10.0
POLL_S: Final = 1.0
_HEADERS: Final = (
    "content-type: text/html; charset=utf-8\r\ncontent-security-policy: default-src 'none'; frame-ancestors 'none'\r\n"
    "referrer-policy: no-referrer\r\ncache-control: no-store\r\nconnection: close\r\n"
)

Label = tuple[str, str, str]


class Loopback:
    """Listens on this machine alone for the one answer with the right state; whatever else comes is turned away."""

    def __init__(self) -> None:
        self.url = ""
        self._state = ""
        self._netloc = ""
        self._came: asyncio.Future[Callback] = asyncio.get_running_loop().create_future()
        self._said: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @classmethod
    @asynccontextmanager
    async def open(cls, port: int) -> AsyncIterator[Loopback]:
        """Raises UsageError when the port cannot be had."""
        one = cls()
        tasks: set[asyncio.Task[None]] = set()

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(one._serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        try:
            server = await asyncio.start_server(accepted, "127.0.0.1", port, limit=HEAD_BYTES)
        except OSError as e:
            raise UsageError(f"cannot listen on 127.0.0.1:{port}: {e.strerror}") from None
        one._netloc = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        one.url = f"http://{one._netloc}{PATH}"
        try:
            yield one
        finally:
            server.close()
            if not one._said.done():
                one._said.set_result("The sign-in was given up.")
            if tasks:
                await asyncio.wait(list(tasks), timeout=2.0)
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def callback(self, state: str) -> Callback:
        """What the browser comes back with. Raises TimeoutError after ten minutes."""
        self._state = state
        async with asyncio.timeout(LIFE_S):
            return await asyncio.shield(self._came)

    def say(self, text: str) -> None:
        """What the browser shows in the end."""
        if not self._said.done():
            self._said.set_result(text)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status, text = await self._answer(head.split("\r\n"))
            body = f"<!doctype html><meta charset=utf-8><title>Executor</title><p>{html.escape(text)}</p>".encode()
            writer.write(f"HTTP/1.1 {status}\r\n{_HEADERS}content-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _answer(self, lines: list[str]) -> tuple[str, str]:
        method, target, *_ = [*lines[0].split(" "), "", ""]
        hosts = [line.partition(":")[2].strip() for line in lines[1:] if line.lower().startswith("host:")]
        if method != "GET" or urlsplit(target).path != PATH or hosts != [self._netloc]:
            return "404 Not Found", "There is nothing here."
        try:
            came = Callback.of_url(target)
        except InvalidRequest as e:
            return "400 Bad Request", e.message
        if not self._state or came.state != self._state or self._came.done():
            return "400 Bad Request", "This belongs to no sign-in that is under way."
        self._came.set_result(came)
        return "200 OK", await asyncio.shield(self._said)


async def sign_in(session: Session, label: Label, *, scopes: list[str], port: int, browser: bool) -> dict[str, Any]:
    """Have a person sign in, in a browser that comes back to this machine: `{connection, oauth}`. Raises ExecutorError,
    also when nobody has in ten minutes."""
    async with Loopback.open(port) as listening:
        begun = await session.authorize(*label, redirect_uri=listening.url, scopes=scopes)
        await _show(begun["url"], browser)
        try:
            came = await listening.callback(begun["state"])
        except TimeoutError:
            raise _late() from None
        try:
            done = await session.finish_authorization(came._asdict())
        except ExecutorError as e:
            listening.say(f"Not connected: {e.message}")
            raise
        listening.say("Signed in. You can close this page.")
        return done


async def sign_in_at_server(session: Session, label: Label, *, scopes: list[str], browser: bool) -> dict[str, Any]:
    """The same where the browser comes back to the server: it is asked each second whether that has happened."""
    began = time.time()
    before = (await session.connection(*label)).get("oauth", {}).get("obtained_at")
    begun = await session.authorize(*label, redirect_uri=None, scopes=scopes)
    await _show(begun["url"], browser)
    while time.time() - began < LIFE_S:
        facts = await session.connection(*label)
        oauth = facts.get("oauth", {})
        if oauth.get("signed_in") and oauth.get("obtained_at") != before:
            return {"connection": facts["path"], "oauth": oauth}
        await asyncio.sleep(POLL_S)
    raise _late()


def _late() -> ExecutorError:
    return InvalidRequest("nobody has signed in within ten minutes", hint="begin again")


async def _show(url: str, browser: bool) -> None:
    from rich.text import Text

    # The page is the server's word: it opens in a browser as one argument, never through a shell.
    if urlsplit(url).scheme not in ("https", "http"):
        raise InvalidRequest("the page to sign in at is no web page")
    output.say("sign in on this page:", "quiet")
    output.notes.print(Text(url), soft_wrap=True)
    if browser and _has_browser():
        import webbrowser

        await asyncio.to_thread(webbrowser.open, url)


def _has_browser() -> bool:
    """Whether opening one would show a window, and not take over this terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
