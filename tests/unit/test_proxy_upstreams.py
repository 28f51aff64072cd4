"""The tool proxy and the other side: its errors, its credentials, and connections that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.wire.errors import Conflict, InvalidRequest, NotFound
from tests.unit.proxied import failing
from tests.unit.upstream import document, operation, parameter, toolbox, upstream

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("status", "body", "code", "message", "retryable"),
    [
        (404, {"message": "no such pet"}, "upstream_error", "404: no such pet", False),
        (422, {"errors": [{"detail": "name is empty"}]}, "upstream_error", "422: name is empty", False),
        (400, {"error": {"message": "bad id", "code": 7}}, "upstream_error", "400: bad id", False),
        (400, {"error": "invalid_grant", "error_description": "it is gone"}, "upstream_error", "it is gone", False),
        (500, "<html><h1>Oops</h1></html>", "upstream_error", "500: Oops", True),
        (503, {}, "upstream_error", "answered 503.", True),
        (429, {"title": "slow down"}, "upstream_error", "429: slow down", True),
        (401, {"message": "who?"}, "upstream_error", "401: who?", False),
    ],
)
async def test_an_upstreams_own_words_are_dug_out(
    status: int, body: Any, code: str, message: str, retryable: bool
) -> None:
    async with upstream() as server, toolbox() as box:
        server.reply("/x", body, status=status)
        await box.add_openapi("api", document({"/x": {"get": operation()}}, server.base), allow_private=["127.0.0.1"])
        error = await failing(box, "api.org.main.op")
        assert (error.code, error.status, error.retryable) == (code, status, retryable)
        assert message in error.message
        assert error.details["body"] == body


async def test_a_rejected_credential_says_which_connection_to_renew() -> None:
    async with upstream() as server, toolbox() as box:
        server.reply("/x", {"message": "expired"}, status=401)
        await box.set_secret("token", "a-secret-value")
        described = document({"/x": {"get": operation()}}, server.base)
        await box.add_openapi("api", described, secret="local:token", allow_private=["127.0.0.1"])
        error = await failing(box, "api.org.main.op")
        assert (error.code, error.status) == ("credential_rejected", 401)
        assert "api.org.main" in error.message
        server.reply("/x", {}, status=403)
        error = await failing(box, "api.org.main.op")
        assert (error.code, error.status) == ("credential_rejected", 403)
        assert "api.org.main" in error.message
        for header in ({"retry-after": "60"}, {"x-ratelimit-remaining": "0"}):
            server.reply("/x", {}, status=403, headers=header)
            assert (await failing(box, "api.org.main.op")).code == "upstream_error"


async def test_integrations_and_connections_come_and_go() -> None:
    async with upstream() as server, toolbox() as box:
        described = document({"/x": {"get": operation(parameter("q"))}}, server.base)
        report = await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        assert report.tools == ["api.org.main.op"]
        report = await box.connect("api", scope="user", connection="mine", auth="bearer", secret="env:EXECUTOR_T")
        assert report.tools == ["api.user.mine.op"]
        assert [item["path"] for item in box.list_tools()["items"]] == ["api.org.main.op", "api.user.mine.op"]
        with pytest.raises(Conflict):
            await box.connect("api", scope="user", connection="mine")
        await box.disconnect("api")
        assert (await failing(box, "api.org.main.op")).code == "connection_missing"
        assert (await failing(box, "api.org.main.none")).code == "tool_not_found"
        await box.remove("api")
        assert box.integrations() == []
        assert box.search("op")["total"] == 0
        for gone in (box.remove("api"), box.disconnect("api"), box.connect("api")):
            with pytest.raises(NotFound):
                await gone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "Api"}, "cannot be the name of an integration"),
        ({"name": "search"}, "taken"),
        ({"scope": "team"}, "scope"),
        ({"connection": "a.b"}, "cannot be the name of a connection"),
        ({"auth": "magic", "secret": "env:X"}, "not understood"),
        ({"auth": "bearer"}, "without a secret"),
        ({"secret": "my-secret-value"}, "secret reference"),
        ({"auth": {"type": "header"}, "secret": "env:X"}, "needs the name"),
        ({"auth": {"type": "header", "name": "a\nb"}, "secret": "env:X"}, "needs the name"),
        ({"auth": {"type": "scheme", "scheme": "nope"}, "secret": "env:X"}, "no security scheme"),
        ({"allow_private": ["10.0.0.1/8"]}, "private host"),
        ({"allow_private": ["0.0.0.0/0"]}, "more than private"),
        ({"allow_private": ["::/0"]}, "more than private"),
    ],
)
async def test_a_connection_that_cannot_be_understood_adds_nothing(arguments: dict[str, Any], message: str) -> None:
    async with toolbox() as box:
        described = document({"/x": {"get": operation()}}, "http://93.184.216.34")
        with pytest.raises(InvalidRequest, match=message):
            await box.add_openapi(**{"name": "api", "source": described} | arguments)
        assert box.integrations() == []
