"""Clients hear that their list of tools is another one: over both transports, in both eras, each of its own alone."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from executor import Config, Executor
from executor.http.app import build_app
from executor.http.server import Server
from executor.http.settings import EdgeSettings
from executor.mcp.caller import Caller
from executor.mcp.server import Door

pytestmark = pytest.mark.anyio

SETTINGS = EdgeSettings(require_key=False)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex():
    async with Executor.open(config=Config(workers=1, search="words")) as executor:
        executor.tool("base.org.main.ping", lambda args: 1, side_effect="read")
        yield executor


@pytest.fixture(scope="module")
async def url(ex: Executor):
    app = build_app(ex, SETTINGS)
    server = Server(app, host="127.0.0.1", port=0, max_body=SETTINGS.largest_body)
    await server.start()
    yield f"http://127.0.0.1:{server.port}/mcp"
    await server.stop_accepting()
    await app.close()
    await server.close()


class Ear:
    """Counts what a client hears."""

    def __init__(self) -> None:
        self.heard = 0
        self._news = asyncio.Event()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.heard += 1
            self._news.set()

    async def news(self) -> None:
        async with asyncio.timeout(20):
            await self._news.wait()
        self._news.clear()


@asynccontextmanager
async def hearing(transport: Any, era: str):
    """A client that has listed its tools and hears of changes."""
    ear = Ear()
    async with Client(transport, mode=era, message_handler=ear) as client:
        await client.list_tools()
        if era == "legacy":
            yield client, ear
            return
        async with client.listen(tools_list_changed=True) as events:

            async def follow() -> None:
                async for _ in events:
                    ear.heard += 1
                    ear._news.set()

            following = asyncio.create_task(follow())
            try:
                yield client, ear
            finally:
                following.cancel()
                await asyncio.wait([following])


async def named(client: Client) -> str:
    tools = (await client.list_tools()).tools
    return next((tool.description for tool in tools if tool.name == "run_code"), "")


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_client_hears_that_an_integration_was_added_and_removed(ex: Executor, era: str):
    async with hearing(Door(ex, lambda _: Caller()).server(), era) as (client, ear):
        assert client.server_capabilities.tools.list_changed
        assert not client.server_capabilities.prompts.list_changed
        await ex.add_http("news", ["https://example.com"])
        await ear.news()
        assert "news" in await named(client)
        await ex.toolbox.remove("news", connections=True)
        await ear.news()
        assert "news" not in await named(client)


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_client_hears_over_http_too(ex: Executor, url: str, era: str):
    async with (
        httpx2.AsyncClient(timeout=60) as http,
        hearing(streamable_http_client(url, http_client=http), era) as (client, ear),
    ):
        # The standing stream of a session is opened beside its first requests.
        for attempt in range(10):
            await ex.add_http(f"web{attempt}", ["https://example.com"])
            try:
                async with asyncio.timeout(2):
                    await ear._news.wait()
                break
            except TimeoutError:
                continue
        assert ear.heard
        assert f"web{attempt}" in await named(client)
    for number in range(attempt + 1):
        await ex.toolbox.remove(f"web{number}", connections=True)


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_client_of_tools_one_by_one_hears_of_them_alone(ex: Executor, era: str):
    kit = f"kit{era}"
    await ex.toolbox.toolkits.create(kit, ["base.*"])
    narrow = Caller(toolkit=kit, direct=True)
    async with (
        hearing(Door(ex, lambda _: narrow).server(), era) as (client, ear),
        hearing(Door(ex, lambda _: Caller()).server(), era) as (_, other),
    ):
        await ex.add_http("far", ["https://example.com"])
        await other.news()
        assert ear.heard == 0
        await ex.toolbox.toolkits.update(kit, tools=["base.*", "far.*"])
        await ear.news()
        assert len((await client.list_tools()).tools) == 4
        await ex.toolbox.add_policy("far", "http.request", "block")
        await ear.news()
        assert len((await client.list_tools()).tools) == 3
    await ex.toolbox.remove("far", connections=True)
    await ex.toolbox.toolkits.remove(kit)


async def test_many_changes_in_a_row_are_one_word_and_nobody_is_watched_for_afterwards(ex: Executor):
    door = Door(ex, lambda _: Caller())
    async with hearing(door.server(), "auto") as (_, ear):
        for number in range(20):
            await ex.add_http(f"row{number}", ["https://example.com"])
        await ear.news()
        for number in range(20):
            await ex.toolbox.remove(f"row{number}", connections=True)
        await ear.news()
        assert ear.heard < 20
    for _ in range(200):
        if not door._changes._watchers:
            break
        await asyncio.sleep(0.05)
    assert not door._changes._watchers
    assert door._changes._looking is None
