"""Signing in to an MCP server: what protects it is discovered, the client registers itself, tokens are renewed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge.wire.errors import ImportFailed, ToolError
from executor.http.server import Server
from tests.blackbox.mcp_guarded import People, guarded
from tests.unit.authority import REDIRECT, authority, visit
from tests.unit.upstream import call, response, toolbox

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def protected() -> AsyncIterator[tuple[str, People]]:
    people, apps = People(), []

    async def app(*parts: Any) -> None:
        await apps[0](*parts)

    server = Server(app, host="127.0.0.1", port=0, max_body=2**20)
    await server.start()
    base = f"http://127.0.0.1:{server.port}"
    apps.append(guarded(people, base).streamable_http_app())
    async with apps[0].router.lifespan_context(apps[0]):
        try:
            yield base, people
        finally:
            await server.close()


async def test_a_protected_server_is_signed_in_to_and_then_lists_its_tools() -> None:
    async with protected() as (base, people), toolbox() as box:
        url = base + "/mcp"
        with pytest.raises(ImportFailed) as caught:
            await box.add_mcp("sums", url=url, allow_private=["127.0.0.1"])
        assert "--oauth" in str(caught.value.hint)

        report = await box.add_mcp("sums", url=url, auth="oauth2", allow_private=["127.0.0.1"])
        assert report.tools == []
        assert [one.where for one in report.diagnostics] == ["oauth"]
        begun = await box.authorize("sums", redirect_uri=REDIRECT)
        assert "resource=" in begun["url"]
        done = await box.finish_authorization(await visit(begun["url"]), principal="sdk")
        assert done["tools"] == ["sums.org.main.add"]
        assert done["oauth"]["scopes"] == ["use"]
        assert len(people.clients) == 1
        assert (await call(box, "sums.org.main.add", {"a": 2, "b": 3})).value == {"result": 5}

        # A token that is gone is renewed once; a refresh token that is gone too needs a person.
        people.tokens.clear()
        assert (await call(box, "sums.org.main.add", {"a": 2, "b": 4})).value == {"result": 6}
        assert len(people.refreshes) == 1
        people.tokens.clear()
        people.refreshes.clear()
        box.oauth._renewal._refused_at.clear()
        with pytest.raises(ToolError) as refused:
            await call(box, "sums.org.main.add", {"a": 2, "b": 5})
        assert refused.value.code == "credential_rejected"
        assert refused.value.hint == "Connect again: executor connect sums"


@pytest.mark.parametrize("resource", ["https://other.test/mcp", "own/mcp/deeper", "own/mc", None])
async def test_a_server_whose_protection_is_about_another_resource_is_refused(resource: str | None) -> None:
    async with authority() as one, toolbox() as box:
        named = None if resource is None else resource.replace("own", one.base)
        one.server.answers["/mcp"] = response({}, status=401)
        one.server.reply("/.well-known/oauth-protected-resource", {"resource": named})
        one.server.answers["/.well-known/oauth-protected-resource/mcp"] = response({}, status=404)
        with pytest.raises(ImportFailed, match="protection"):
            await box.add_mcp("sums", url=one.base + "/mcp", auth="oauth2", allow_private=["127.0.0.1"])
        assert box.integrations() == []
        assert one.registered == []


async def test_a_server_of_another_name_than_its_metadata_is_refused() -> None:
    """MCP-18: mix-up."""
    async with authority(extra={"issuer": "https://login.test"}) as one, toolbox() as box:
        one.server.answers["*"] = response({}, status=404)
        with pytest.raises(ImportFailed, match="another one"):
            await box.add_mcp("sums", url=one.base + "/mcp", auth="oauth2", allow_private=["127.0.0.1"])
