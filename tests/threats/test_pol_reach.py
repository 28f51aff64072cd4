"""The POL group of the threat catalogue: paths, redirects and methods stay within what was allowed."""

from __future__ import annotations

import pytest

from tests.unit.upstream import call, redirect, refusal, toolbox, upstream

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../admin",
        "/v1/%2e%2e/admin",
        "/v1/..%2fadmin",
        "/v1/%252e%252e/admin",
        "/v1/..;/admin",
        "/v1/.%2e/admin",
        "/v1\\..\\admin",
        "/v1/..%5cadmin",
        "/v10/x",
        "/admin",
        "//evil.test/v1/",
        "/v1/x/../../admin?a=/v1/",
    ],
)
async def test_a_path_cannot_leave_its_allowed_prefix(path: str) -> None:
    """POL-26"""
    async with upstream() as server, toolbox() as box:
        await box.add_http("web", [f"GET {server.base}/v1"], allow_private=["127.0.0.1"])
        assert await refusal(box, "web.org.main.http.get", {"path": path}) in ("egress_denied", "invalid_arguments")
        assert server.seen == []


async def test_the_path_that_was_checked_is_the_path_that_is_sent() -> None:
    """POL-26"""
    async with upstream() as server, toolbox() as box:
        await box.add_http("web", [f"GET {server.base}/v1"], allow_private=["127.0.0.1"])
        for path, target in (("/v1/a/../b", "/v1/b"), ("/v1/./c?x=../y", "/v1/c?x=../y"), ("/v1", "/v1")):
            await call(box, "web.org.main.http.get", {"path": path})
            assert server.seen[-1].target == target


async def test_a_redirect_cannot_leave_the_allowed_prefix_or_method() -> None:
    """POL-26"""
    async with upstream() as server, toolbox() as box:
        await box.add_http("web", [f"GET {server.base}/v1"], allow_private=["127.0.0.1"])
        for target in ("/admin", "../admin", "/v1/../admin", "/v1/%2e%2e/admin", "/v1/..;/admin", "/v1/..%2fadmin"):
            server.answers["/v1/go"] = redirect(target)
            assert await refusal(box, "web.org.main.http.get", {"path": "/v1/go"}) == "egress_denied"
        assert {one.target for one in server.seen} == {"/v1/go"}


async def test_a_method_outside_the_allowlist_is_refused_before_it_is_sent() -> None:
    """POL-26"""
    async with upstream() as server, toolbox() as box:
        await box.add_http("web", [f"GET {server.base}", f"POST {server.base}/forms"], allow_private=["127.0.0.1"])
        assert (
            await refusal(box, "web.org.main.http.request", {"method": "DELETE", "path": "/forms"})
            == "invalid_arguments"
        )
        assert await refusal(box, "web.org.main.http.request", {"method": "POST", "path": "/x"}) == "egress_denied"
        assert server.seen == []
        assert await refusal(box, "web.org.main.http.request", {"method": "POST", "path": "/forms"}) == "done"
