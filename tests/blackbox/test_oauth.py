"""Signing in through every door, at a real OpenID provider and at a strict server, and what is left of it on disk."""

from __future__ import annotations

import asyncio
import html
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from bridge.wire.errors import InvalidRequest
from executor import Executor
from executor.config import Config
from tests.blackbox.command import cli
from tests.blackbox.openid import log_in, openid_provider
from tests.blackbox.server import COMMAND, Server, environment, serving
from tests.threats.test_sec import spellings
from tests.unit.authority import CLIENT, SECRET, Authority, auth, authority, authority_running


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with openid_provider() as running:
        yield running


def add(server: Server, name: str, base: str, **auth: Any) -> None:
    assert server.ask("PUT", "/secrets/client", {"value": SECRET}).status == 204
    facts = {"type": "oauth2", "client_id": CLIENT, "secret": "local:client"} | auth
    body = {"kind": "http", "name": name, "allow": [base], "auth": facts, "allow_private": ["localhost", "127.0.0.1"]}
    reply = server.ask("POST", "/integrations", body)
    assert reply.status == 201, reply.body


def call(server: Server, name: str, path: str) -> Any:
    return server.ask("POST", f"/tools/{name}.org.main.http.get/call", {"args": {"path": path}})


def test_a_person_signs_in_at_a_real_provider_and_comes_back_to_the_server(server: Server, issuer: str) -> None:
    add(server, "me", issuer, issuer=issuer, scopes=["openid", "email"])
    assert call(server, "me", "/userinfo").code == "connection_missing"
    begun = server.ask("POST", "/connections/me/org/main/authorize", {}).json
    assert "state" not in begun
    with httpx2.Client(trust_env=False) as browser:
        page = browser.get(begun["url"])
        assert page.status_code == 200
        for said in ("me.org.main", urlsplit(issuer).netloc, "openid, email", begun["redirect_uri"]):
            assert said in page.text
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert re.search("executor-oauth-.*; HttpOnly; SameSite=Lax", page.headers["set-cookie"])
        (link,) = re.findall('href="([^"]+)"', page.text)
        location = log_in(html.unescape(link), "ann@example.com")
        assert location.startswith(begun["redirect_uri"] + "?")
        # Another browser has no such cookie, and the attempt ends the sign-in.
        done = browser.get(location)
        assert done.status_code == 200, done.text
        assert "me.org.main is signed in" in done.text
        assert browser.get(location).status_code == 400
    assert call(server, "me", "/userinfo").json["value"]["email"] == "ann@example.com"
    facts = server.ask("GET", "/connections/me/org/main").json
    assert facts["oauth"]["signed_in"]
    assert facts["oauth"]["scopes"] == ["openid", "email"]


def test_the_command_line_waits_for_a_browser_that_comes_back_to_the_server(server: Server, issuer: str) -> None:
    add(server, "there", issuer, issuer=issuer, scopes=["openid"])
    process = subprocess.Popen(
        [*COMMAND, "connect", "there", "--no-browser", "--at-server"],
        env=environment() | {"EXECUTOR_HOME": str(server.home)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        with httpx2.Client(trust_env=False) as browser:
            page = browser.get(next(line.strip() for line in process.stderr if line.startswith("http")))
            (link,) = re.findall('href="([^"]+)"', page.text)
            assert browser.get(log_in(html.unescape(link), "eve@example.com")).status_code == 200
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait(20)
    assert process.returncode == 0
    assert "signed in to there.org.main: openid" in said


def test_another_browser_cannot_come_back(server: Server, issuer: str) -> None:
    """MCP-19"""
    add(server, "them", issuer, issuer=issuer, scopes=["openid"])
    begun = server.ask("POST", "/connections/them/org/main/authorize", {}).json
    page = httpx2.get(begun["url"], trust_env=False)
    (link,) = re.findall('href="([^"]+)"', page.text)
    location = log_in(html.unescape(link), "mallory@example.com")
    refused = httpx2.get(location, trust_env=False)
    assert refused.status_code == 403
    assert "begun in another browser" in refused.text
    assert call(server, "them", "/userinfo").code == "connection_missing"


def test_the_command_line_signs_in_on_the_machine_where_it_runs(server: Server, issuer: str, tmp_path: Path) -> None:
    """MCP-20: the browser gets the page as one argument, and no shell has a look at it."""
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/opened\n')
    browser.chmod(0o700)
    add(server, "cli", issuer, issuer=issuer, scopes=["openid", "email"])
    process = subprocess.Popen(
        [*COMMAND, "connect", "cli", "--json"],
        env=environment() | {"EXECUTOR_HOME": str(server.home), "BROWSER": str(browser)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        page = next(line.strip() for line in process.stderr if line.startswith("http"))
        location = log_in(page, "bob@example.com")
        for stray in ("/callback", "/callback?state=x&code=y", "/favicon.ico", "/callback?state=x&state=y"):
            assert httpx2.get(location.partition("/callback")[0] + stray, trust_env=False).status_code in (400, 404)
        shown = httpx2.get(location, trust_env=False)
        assert "Signed in" in shown.text
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait(20)
    assert process.returncode == 0
    assert (tmp_path / "opened").read_text() == page + "\n"
    assert json.loads(out)["oauth"]["scopes"] == ["openid", "email"]
    assert call(server, "cli", "/userinfo").json["value"]["email"] == "bob@example.com"


@pytest.mark.anyio
async def test_a_program_signs_in_by_itself() -> None:
    async with authority() as one, Executor.open(config=Config(workers=1, require="process")) as ex:
        await ex.set_secret("client", SECRET)
        await ex.add_http("api", [one.base], auth=auth(one), allow_private=["127.0.0.1"])
        begun = await ex.authorize("api", redirect_uri="http://127.0.0.1:1/callback")
        async with httpx2.AsyncClient(trust_env=False) as browser:
            location = (await browser.get(begun["url"])).headers["location"]
        assert (await ex.finish_authorization(location))["oauth"]["signed_in"]
        assert await ex.call("api.org.main.http.get", {"path": "/api"}) == {"ok": True, "target": "/api"}
        with pytest.raises(InvalidRequest):
            await ex.finish_authorization(location + "&state=x")


def test_pages_say_nothing_that_a_stranger_put_in(server: Server) -> None:
    """MCP-22: escaped."""
    for path in (
        "/oauth/callback?state=%3Cscript%3E&error=%3Cimg%20src%3Dx%3E",
        "/oauth/begin?ticket=%3Cscript%3E",
        "/oauth/callback",
    ):
        reply = server.ask("GET", path, key=None)
        assert reply.status in (400, 404)
        assert b"<script" not in reply.body
        assert b"<img" not in reply.body
    assert server.ask("GET", "/oauth/client.json", key=None).status == 404


def sign_in(server: Server, one: Authority, name: str = "api") -> dict[str, str]:
    """Sign in over HTTP with a loopback redirect: what the browser came back with."""
    body = {"redirect_uri": "http://127.0.0.1:1/callback"}
    begun = server.ask("POST", f"/connections/{name}/org/main/authorize", body).json
    location = httpx2.get(begun["url"], trust_env=False).headers["location"]
    came = dict(parse_qsl(urlsplit(location).query))
    reply = server.ask("POST", "/oauth/finish", came)
    assert reply.status == 200, reply.body
    return came


def strict(server: Server, one: Authority) -> None:
    add(server, "api", one.base, authorization_url=one.base + "/authorize", token_url=one.base + "/token", scopes=["a"])


def test_what_is_removed_with_its_accounts_says_whose_tokens_its_server_kept(server: Server) -> None:
    with authority_running() as one:
        strict(server, one)
        sign_in(server, one)
        gone = server.ask("DELETE", "/integrations/api?connections=true")
        assert (gone.status, gone.json) == (200, {"rules": 0, "unrevoked": {"api.org.main": ""}})
        strict(server, one)
        sign_in(server, one)
        told = cli(server.home, "remove", "api", "--connections")
        assert told.returncode == 0
        assert "the server of api.org.main takes no tokens back: revoke them there" in " ".join(told.stderr.split())
        strict(server, one)
        assert server.ask("DELETE", "/integrations/api?connections=true").status == 204


def test_no_token_is_in_the_home_in_a_log_or_in_an_answer(home: Path) -> None:
    """SEC-20 SEC-24 MCP-18"""
    with authority_running(lifetime=0.001) as one, serving(home) as server:
        strict(server, one)
        came = sign_in(server, one)
        said = []
        for _ in range(3):
            reply = call(server, "api", "/api")
            assert reply.status == 200
            said.append(reply.body)
        script = 'await tools.api.org.main.http.get({ path: "/api" })'
        said.append(json.dumps(server.run(script)).encode())
        one.families.clear()
        refused = call(server, "api", "/api")
        assert refused.code == "credential_rejected"
        said += [refused.body, *(server.ask("GET", path).body for path in PATHS)]
        secrets = {*one.issued, SECRET, came["code"], *(each.get("code_verifier", "") for each in one.asked)} - {""}
        assert len(secrets) > 10
        needles = [form.encode() for secret in secrets for form in spellings(secret).values()]
        assert not any(needle in text for text in said for needle in needles)
    for file in home.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not any(needle in data for needle in needles), file


PATHS = ("/connections", "/connections/api/org/main", "/integrations", "/secrets", "/runs", "/policies", "/metrics")


@pytest.mark.parametrize("answered", [False, True])
def test_a_kill_in_the_middle_of_a_renewal_loses_nothing_or_says_to_connect_again(home: Path, answered: bool) -> None:
    """`answered`: the server has used the refresh token up, and its answer is lost."""
    reached = threading.Event()

    async def stuck() -> None:
        reached.set()
        await asyncio.Event().wait()

    with authority_running(lifetime=0.001) as one:
        with serving(home) as server:
            strict(server, one)
            sign_in(server, one)
            one.hold, one.keep = (None, stuck) if answered else (stuck, None)
            caller = threading.Thread(target=_call_until_gone, args=(server,), daemon=True)
            caller.start()
            assert reached.wait(30)
            server.process.kill()
            server.process.wait(20)
            caller.join(20)
        one.hold = one.keep = None
        with serving(home) as server:
            reply = call(server, "api", "/api")
            if answered:
                assert reply.code == "credential_rejected"
                assert reply.json["error"]["hint"] == "Connect again: executor connect api"
                one.families.clear()
                sign_in(server, one)
            assert call(server, "api", "/api").status == 200


def _call_until_gone(server: Server) -> None:
    try:
        call(server, "api", "/api")
    except OSError:
        return
