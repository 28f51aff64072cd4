"""The part of the MCP group that is about Executor as an OAuth client: what comes back with a browser is a stranger's
word, and what an authorization server says is not much more."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bridge.oauth.flows import LIFE_S, MAX_OWN, MAX_PENDING, Callback
from bridge.wire.errors import ExecutorError, Forbidden, ImportFailed, InvalidRequest, NotFound, Overloaded, ToolError
from tests.unit.authority import REDIRECT, SECRET, auth, authority, connected, signed_in, visit
from tests.unit.upstream import call, redirect, response, toolbox

pytestmark = pytest.mark.anyio

ORIGIN = "http://127.0.0.1:1"


async def begun(box: Any, **more: Any) -> dict[str, Any]:
    facts: dict[str, Any] = await box.authorize("api", **({"redirect_uri": REDIRECT} | more))
    return facts


async def test_a_state_that_is_missing_wrong_or_used_ends_nothing() -> None:
    """MCP-18"""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        came = await visit((await begun(box))["url"])
        for code in ("", "\ud800", "a\nb", "x" * 5000):
            odd = await visit((await begun(box))["url"])
            with pytest.raises(ToolError, match="did not let"):
                await box.finish_authorization(odd._replace(code=code), principal="sdk")
        for state in (None, "", "x" * 43, came.state + "x", "\ud800"):
            with pytest.raises(InvalidRequest, match="no sign-in"):
                await box.finish_authorization(came._replace(state=state), principal="sdk")
        assert one.asked == []
        assert (await box.finish_authorization(came, principal="sdk"))["oauth"]["signed_in"]
        with pytest.raises(InvalidRequest, match="no sign-in"):
            await box.finish_authorization(came, principal="sdk")
        assert len(one.asked) == 1


async def test_a_sign_in_is_over_after_ten_minutes_and_after_any_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """MCP-18"""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        came = await visit((await begun(box))["url"])
        monkeypatch.setattr(box.oauth.flows, "_clock", lambda: time.monotonic() + LIFE_S)
        with pytest.raises(InvalidRequest, match="no sign-in"):
            await box.finish_authorization(came, principal="sdk")
        monkeypatch.undo()
        came = await visit((await begun(box))["url"])
        with pytest.raises(ToolError) as caught:
            await box.finish_authorization(Callback(came.state, error="access_denied"), principal="sdk")
        assert caught.value.code == "credential_rejected"
        with pytest.raises(InvalidRequest):
            await box.finish_authorization(came, principal="sdk")
        assert one.asked == []


async def test_a_sign_in_is_ended_by_whoever_began_it() -> None:
    """MCP-18 MCP-19"""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        for principal in ("key_other", None):
            came = await visit((await begun(box))["url"])
            with pytest.raises(Forbidden, match="somebody else"):
                await box.finish_authorization(came, principal=principal, browser="x")
        assert one.asked == []


async def test_pkce_is_s256_with_a_verifier_of_its_own_each_time() -> None:
    """MCP-18"""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await signed_in(box)
        verifiers = [fields["code_verifier"] for fields in one.asked]
        assert len(set(verifiers)) == 2
        assert all(43 <= len(verifier) <= 128 for verifier in verifiers)
        for asked, verifier in zip(one.authorized, verifiers, strict=True):
            assert asked["code_challenge_method"] == "S256"
            digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
            assert asked["code_challenge"] == digest.decode()
            assert verifier not in repr(asked)
        assert len({asked["state"] for asked in one.authorized}) == 2


async def test_a_server_that_offers_only_plain_is_refused() -> None:
    """MCP-18"""
    async with authority(extra={"code_challenge_methods_supported": ["plain"]}) as one, toolbox() as box:
        with pytest.raises(ImportFailed, match="S256"):
            await connected(box, one, issuer=one.base, authorization_url=None, token_url=None)


@pytest.mark.parametrize(
    ("promised", "iss", "fits"),
    [
        (True, "own", True),
        (True, None, False),
        (True, "https://evil.test", False),
        (True, "own/", False),
        (False, "https://evil.test", False),
        (False, None, True),
    ],
)
async def test_an_answer_of_another_issuer_is_refused_before_the_code_goes_anywhere(
    promised: bool, iss: str | None, fits: bool
) -> None:
    """MCP-18: mix-up, RFC 9207."""
    async with authority(promises_iss=promised) as one, toolbox() as box:
        await connected(box, one, issuer=one.base, authorization_url=None, token_url=None)
        came = await visit((await begun(box))["url"])
        came = came._replace(iss=None if iss is None else iss.replace("own", one.base))
        if fits:
            assert (await box.finish_authorization(came, principal="sdk"))["oauth"]["signed_in"]
            return
        with pytest.raises(Forbidden, match="another authorization server"):
            await box.finish_authorization(came, principal="sdk")
        assert one.asked == []


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:1/callback?x=1",
        "http://127.0.0.1:1/callback#x",
        "http://localhost:1/callback",
        "https://127.0.0.1:1/callback",
        "http://127.0.0.1.evil.test/callback",
        "http://evil.test/callback",
        "http://127.0.0.1@evil.test/",
        "http://127.1/callback",
        "HTTP://127.0.0.1:1/callback",
        "javascript:alert(1)",
        "/callback",
        "",
    ],
)
async def test_a_browser_comes_back_to_a_loopback_address_or_to_this_server_and_nowhere_else(uri: str) -> None:
    """MCP-18 MCP-22"""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        with pytest.raises(InvalidRequest):
            await begun(box, redirect_uri=uri)


async def test_the_redirect_is_the_same_to_the_letter_in_both_requests() -> None:
    """MCP-18"""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        assert one.authorized[0]["redirect_uri"] == one.asked[0]["redirect_uri"] == REDIRECT


async def test_a_code_is_sent_once_whatever_the_server_answers() -> None:
    """MCP-18"""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        one.answer = lambda fields: response({}, status=500)
        came = await visit((await begun(box))["url"])
        with pytest.raises(ToolError):
            await box.finish_authorization(came, principal="sdk")
        with pytest.raises(InvalidRequest):
            await box.finish_authorization(came, principal="sdk")
        assert len(one.asked) == 1


async def test_the_hosted_callback_takes_only_the_browser_that_opened_the_page() -> None:
    """MCP-19: an attacker begins, and a victim's browser lands on the callback."""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        flows = box.oauth.flows
        flows.origin = ORIGIN
        for browser in (None, "", "x" * 43, "theirs"):
            url = (await begun(box, redirect_uri=None))["url"]
            assert url.startswith(f"{ORIGIN}/oauth/begin?ticket=")
            pending, cookie = flows.opened(parse_qs(urlsplit(url).query)["ticket"][0])
            if browser == "theirs":
                browser = (await _another_cookie(box)) + cookie[:1]
            came = await visit(pending.url)
            with pytest.raises(Forbidden, match="another browser"):
                await box.finish_authorization(came, principal=None, browser=browser)
        # Whoever never opened the page has no cookie that could fit.
        url = (await begun(box, redirect_uri=None))["url"]
        unopened = list(flows._pending.values())[-1]
        with pytest.raises(Forbidden, match="another browser"):
            await box.finish_authorization(await visit(unopened.url), principal=None, browser="")
        assert one.asked == []
        url = (await begun(box, redirect_uri=None))["url"]
        pending, cookie = flows.opened(parse_qs(urlsplit(url).query)["ticket"][0])
        done = await box.finish_authorization(await visit(pending.url), principal=None, browser=cookie)
        assert done["oauth"]["signed_in"]
        with pytest.raises(NotFound):
            flows.opened(parse_qs(urlsplit(url).query)["ticket"][0])


async def _another_cookie(box: Any) -> str:
    url = (await begun(box, redirect_uri=None))["url"]
    cookie: str = box.oauth.flows.opened(parse_qs(urlsplit(url).query)["ticket"][0])[1]
    return cookie


async def test_a_key_cannot_end_what_belongs_to_a_browser() -> None:
    """MCP-19"""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        box.oauth.flows.origin = ORIGIN
        url = (await begun(box, redirect_uri=None))["url"]
        pending, cookie = box.oauth.flows.opened(parse_qs(urlsplit(url).query)["ticket"][0])
        with pytest.raises(Forbidden):
            await box.finish_authorization(await visit(pending.url), principal="sdk", browser=cookie)
        assert one.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://login.evil.test/authorize",
        "-flag",
        "--version",
        "https://login.test/$(id) x",
        "https://login.test/\\evil",
        "https://user@login.test/authorize",
        "https://login.test/\r\nx: 1",
        "data:text/html,x",
        "",
        None,
        7,
    ],
)
async def test_a_page_to_sign_in_at_is_a_plain_web_page_or_refused(url: Any) -> None:
    """MCP-20: from the operator, and from a server's own metadata."""
    async with authority() as one, toolbox() as box:
        with pytest.raises(ExecutorError):
            await connected(box, one, authorization_url=url or "")
        if url is None or url == "":
            return
        one.extra = {"authorization_endpoint": url}
        with pytest.raises(ExecutorError):
            await connected(box, one, issuer=one.base, authorization_url=None, token_url=None)
        assert box.connections.all() == []


async def test_shell_metacharacters_in_a_page_arrive_encoded_in_one_url() -> None:
    """MCP-20"""
    async with authority() as one, toolbox() as box:
        await connected(box, one, authorization_url=one.base + "/authorize?a=`id`|b;c&state=mine&x='\"")
        url = (await begun(box))["url"]
        assert not any(character in url for character in '`|"<> \n')
        assert parse_qs(urlsplit(url).query)["state"] == [(await visit(url)).state]


async def test_sign_ins_under_way_are_bounded_and_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    """MCP-22: as far as a client can be flooded."""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        for key in range(MAX_PENDING // MAX_OWN):
            for _ in range(MAX_OWN):
                await begun(box, principal=f"key_{key}")
            assert len(box.oauth.flows._pending) == (key + 1) * MAX_OWN
            with pytest.raises(Overloaded):
                await begun(box, principal=f"key_{key}")
        with pytest.raises(Overloaded):
            await begun(box, principal="another")
        monkeypatch.setattr(box.oauth.flows, "_clock", lambda: time.monotonic() + LIFE_S)
        await begun(box)
        assert len(box.oauth.flows._pending) == 1


async def test_a_registration_that_answers_oddly_registers_nothing() -> None:
    """MCP-22"""
    odd: list[bytes] = [
        response({"client_id": ""}, status=201),
        response({"client_id": "x" * 2000}, status=201),
        response({"client_id": "a\nb"}, status=201),
        response({"client_id": 7}, status=201),
        response({"client_id": "a", "token_endpoint_auth_method": "private_key_jwt"}, status=201),
        response(b"<html>hello</html>", status=201),
        response({"error": "invalid_redirect_uri"}, status=400),
        redirect("http://127.0.0.1:1/"),
    ]
    async with authority() as one, toolbox() as box:
        await connected(box, one, issuer=one.base, authorization_url=None, token_url=None, client_id=None, secret=None)
        for answer in odd:
            one.server.answers["/register"] = answer
            with pytest.raises(ToolError):
                await begun(box)
        assert box.oauth.flows._pending == {}


HOSTILE: dict[str, Any] = {
    "html": response(b"<html><script>alert(1)</script>", status=502, headers={"content-type": "text/html"}),
    "redirect": redirect("http://127.0.0.1:1/token", 307),
    "an array": response([1, 2]),
    "no token": response({"token_type": "Bearer"}),
    "a token with a line break": response({"access_token": "abcdefgh\r\nx: 1"}),
    "a token too short to mask": response({"access_token": "abc"}),
    "a huge token": response({"access_token": "x" * 20_000}),
    "another type": response({"access_token": "x" * 20, "token_type": "DPoP"}),
    "an error with 200": response({"error": "bad_verification_code"}),
    "too much": response(b"x" * 300_000),
    "deep": response(b"[" * 100_000),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_hostile_token_endpoint_ends_in_one_typed_error(what: str) -> None:
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        one.answer = lambda fields: HOSTILE[what]
        came = await visit((await begun(box))["url"])
        with pytest.raises(ToolError) as caught:
            await box.finish_authorization(came, principal="sdk")
        assert caught.value.code in ("credential_rejected", "upstream_unreachable", "too_large")
        said = json.dumps(caught.value.as_dict())
        assert "<" not in said
        assert came.code not in said
        assert SECRET not in said
        with pytest.raises(ToolError, match="Nobody has signed in"):
            await call(box, "api.org.main.http.get", {"path": "/api"})


async def test_an_error_that_repeats_what_was_sent_is_masked() -> None:
    """MCP-18: neither the code, the verifier nor the client's secret comes back in an error."""
    async with authority() as one, toolbox() as box:
        await connected(box, one, token_auth="post")

        def echo(fields: dict[str, str]) -> bytes:
            return response({"error": fields["code"], "error_description": f"got {fields} ‮"}, status=400)

        one.answer = echo
        came = await visit((await begun(box))["url"])
        with pytest.raises(ToolError) as caught:
            await box.finish_authorization(came, principal="sdk")
        said = json.dumps(caught.value.as_dict(), ensure_ascii=False)
        assert not any(one.asked[0][name] in said for name in ("code", "code_verifier", "client_secret"))
        assert "‮" not in said


async def test_what_a_server_asks_for_more_is_a_command_that_a_shell_takes_as_it_is() -> None:
    """MCP-20: step-up."""
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        challenge = 'Bearer error="insufficient_scope", scope="files:read $(id) \'x\' `y` repo"'
        one.server.answers["/more"] = response({}, status=403, headers={"www-authenticate": challenge})
        with pytest.raises(ToolError) as caught:
            await call(box, "api.org.main.http.get", {"path": "/more"})
        assert caught.value.code == "credential_rejected"
        assert str(caught.value.hint).endswith("executor connect api --oauth-scopes 'files:read repo'")
        assert one.refreshes == 0
        done = await signed_in(box, scopes=["files:read", "repo"])
        assert done["oauth"]["scopes"] == ["a", "b", "files:read", "repo"]
        assert auth(one)["scopes"] == ["a", "b"]
