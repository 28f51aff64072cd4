"""Vault and 1Password Connect, each as a small server on loopback that speaks its API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest

from bridge.secrets.cached import CachedSecrets
from bridge.secrets.local import LocalSecrets
from bridge.secrets.ports import MemorySecrets, Secret, SecretMissing, SecretUnavailable
from bridge.secrets.providers import Providers
from bridge.secrets.server import ServerSettings
from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import ConfigError, ToolError
from tests.unit.upstream import Seen, Upstream, call, document, operation, redirect, response, upstream

pytestmark = pytest.mark.anyio

TOKEN = "hvs.cnry_0123456789abcdef"
VALUE = "cnry_fedcba9876543210"
ITEM = "a" * 26
VAULT = "b" * 26


@pytest.fixture(autouse=True)
def _tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_TEST_TOKEN", TOKEN)


def providers(server: Upstream, *, cache_s: float = 0, **more: Any) -> Providers:
    settings = ServerSettings(server.base, "env:EXECUTOR_TEST_TOKEN", **more)
    store = MemorySecrets()
    return Providers(LocalSecrets(store, store, None), vault=settings, onepassword=settings, cache_s=cache_s)


def kv(fields: dict[str, Any]) -> dict[str, Any]:
    """An answer of Vault's key/value engine, version 2."""
    return {"request_id": "1", "data": {"data": fields, "metadata": {"version": 4, "destroyed": False}}}


async def refusal(known: Providers, ref: str) -> SecretMissing:
    with pytest.raises(SecretMissing) as caught:
        await known.resolve("org", ref)
    assert TOKEN not in caught.value.reason
    assert VALUE not in caught.value.reason
    return caught.value


async def test_a_field_of_a_vault_secret_is_read_with_token_namespace_and_version() -> None:
    async with upstream() as server:
        known = providers(server, namespace="team-a")
        server.reply("/v1/secret/data/apps/git%20hub", kv({"token": VALUE, "n": 1}))
        assert (await known.resolve("org", "vault:secret/apps/git hub#token")).reveal() == VALUE
        assert (await known.resolve("user", "vault:secret/apps/git hub?version=3#token")).reveal() == VALUE
        first, second = server.seen
        assert (first.method, first.target) == ("GET", "/v1/secret/data/apps/git%20hub")
        assert second.target == "/v1/secret/data/apps/git%20hub?version=3"
        assert first.header("x-vault-token") == TOKEN
        assert first.header("x-vault-namespace") == "team-a"
        assert first.header("x-vault-request") == "true"
        assert "no text" in (await refusal(known, "vault:secret/apps/git hub#n")).reason
        assert "no text" in (await refusal(known, "vault:secret/apps/git hub#absent")).reason
        await known.close()


@pytest.mark.parametrize(
    ("answer", "said", "passing"),
    [
        (response({"errors": ["permission denied"]}, status=403), "may not read", False),
        (response({"errors": []}, status=404), "no secret secret/x, or that version is deleted", False),
        (response({"errors": ["Vault is sealed"]}, status=503), "sealed", True),
        (response(b"oops", status=500), "500", True),
        (response({}, status=472), "472", True),
        (response({"errors": ["bad"]}, status=400), "malformed", False),
        (response({"data": {"token": VALUE}}), "version 2", False),
        (response(b"<html>"), "version 2", False),
        (redirect("http://127.0.0.1:9/v1/secret/data/x", 307), "redirects", False),
        (response({}, status=418), "418", False),
    ],
)
async def test_what_vault_refuses_is_typed_and_says_why(answer: bytes, said: str, passing: bool) -> None:
    async with upstream() as server:
        known = providers(server)
        server.answers["/v1/secret/data/x"] = answer
        error = await refusal(known, "vault:secret/x#token")
        assert said in error.reason
        assert isinstance(error, SecretUnavailable) is passing
        assert len(server.seen) == 1
        await known.close()


async def test_a_server_of_secrets_that_does_not_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.secrets.server.TIMEOUT_S", 0.05)
    async with upstream() as server:

        async def never(seen: Seen, reader: Any, writer: Any) -> None:
            await server.released.wait()

        known = providers(server)
        server.answers["/v1/secret/data/x"] = never
        assert isinstance(await refusal(known, "vault:secret/x#token"), SecretUnavailable)
        await known.close()
    known = providers(server)
    assert isinstance(await refusal(known, "vault:secret/x#token"), SecretUnavailable)
    await known.close()


async def test_an_answer_without_end_stops_at_its_limit() -> None:
    async with upstream() as server:
        known = providers(server)
        server.reply("/v1/secret/data/x", kv({"token": "x" * 2_000_000}))
        assert isinstance(await refusal(known, "vault:secret/x#token"), SecretUnavailable)
        await known.close()


async def test_a_token_that_is_not_there_is_said_and_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream() as server:
        known = providers(server)
        monkeypatch.delenv("EXECUTOR_TEST_TOKEN")
        assert "the token for Vault is not there" in (await refusal(known, "vault:secret/x#token")).reason
        monkeypatch.setenv("EXECUTOR_TEST_TOKEN", "a\r\nb")
        error = await refusal(known, "vault:secret/x#token")
        assert "cannot hold" in error.reason
        assert server.seen == []
        await known.close()


async def test_a_server_of_secrets_is_asked_in_clear_on_this_machine_alone() -> None:
    store = MemorySecrets()
    local = LocalSecrets(store, store, None)
    for address in ("http://10.0.0.5:8200", "http://vault.internal", "ftp://x", "https://a@b/", "https://x/?q=1"):
        with pytest.raises(ConfigError):
            Providers(local, vault=ServerSettings(address, "env:X"))
    with pytest.raises(ConfigError, match="never as itself"):
        Providers(local, vault=ServerSettings("https://vault.internal", TOKEN))
    for settings in (
        ServerSettings("http://10.0.0.5:8200", "env:X", plain_http=True),
        ServerSettings("https://10.0.0.5:8200", "env:X"),
    ):
        await Providers(local, vault=settings).close()
    reason = (await refusal(Providers(local), "vault:secret/x#token")).reason
    assert "vault_address" in reason


def connect(server: Upstream, items: list[Any], fields: list[Any], sections: list[Any]) -> None:
    """Make `server` a Connect server with one vault."""
    server.reply("/v1/vaults", [{"id": VAULT, "name": "Team"}, {"id": "c" * 26, "name": "team"}])
    server.reply(f"/v1/vaults/{VAULT}/items", items)
    server.reply(f"/v1/vaults/{VAULT}/items/{ITEM}", {"id": ITEM, "fields": fields, "sections": sections})


async def test_a_field_of_a_1password_item_is_found_by_name_or_id() -> None:
    fields = [
        {"id": "username", "label": "username", "value": "ann"},
        {"id": "f1", "label": "token", "value": VALUE, "section": {"id": "s1"}},
        {"id": "f2", "label": "token", "value": "other", "section": {"id": "s2"}},
    ]
    async with upstream() as server:
        connect(server, [{"id": ITEM, "title": "GitHub"}], fields, [{"id": "s1", "label": "Live"}, {"id": "s2"}])
        known = providers(server)
        for ref in (
            "op:Team/GitHub/Live/token",
            f"op:{VAULT}/{ITEM}/s1/token",
            "op:Team/GitHub/f1",
            "op://Team/GitHub/f1",
        ):
            assert (await known.resolve("org", ref)).reveal() == VALUE
        assert server.seen[0].header("authorization") == f"Bearer {TOKEN}"
        query = parse_qs(unquote(server.seen[0].target).partition("?")[2])
        assert query == {"filter": ['name eq "Team"']}
        assert "more than one field" in (await refusal(known, "op:Team/GitHub/token")).reason
        assert "no text in a field" in (await refusal(known, "op:Team/GitHub/none")).reason
        assert "no vault named Nobody" in (await refusal(known, "op:Nobody/GitHub/token")).reason
        server.reply(f"/v1/vaults/{VAULT}/items", [{"id": x * 26, "title": "GitHub"} for x in "de"])
        assert "more than one item" in (await refusal(known, "op:Team/GitHub/token")).reason
        await known.close()


@pytest.mark.parametrize(
    ("status", "said", "passing"),
    [
        (401, "not valid", False),
        (403, "not for it", False),
        (404, "no vault", False),
        (500, "500", True),
        (429, "429", True),
        (302, "redirects", False),
    ],
)
async def test_what_1password_refuses_is_typed_and_says_why(status: int, said: str, passing: bool) -> None:
    async with upstream() as server:
        known = providers(server)
        server.reply("/v1/vaults", {"message": TOKEN}, status=status, headers={"location": "http://127.0.0.1:9/"})
        error = await refusal(known, "op:Team/GitHub/token")
        assert said in error.reason
        assert isinstance(error, SecretUnavailable) is passing
        await known.close()


@pytest.mark.parametrize(
    "ref",
    [
        "vault:secret/x",
        "vault:secret#f",
        "vault:secret/../x#f",
        "vault:secret//x#f",
        "vault:secret/x?version=0#f",
        "vault:secret/x?v=1#f",
        "op:a/b",
        "op:a/b/c/d/e",
        "op:a//c",
        'op:a/"b/c',
        "keychain:a",
        "keychain:/a",
        "file:relative",
        "file:/a/../b",
        "file://a",
        "env:A-B",
        "local:a b",
        "ftp:x",
        "op:" + "x" * 600 + "/a/b",
    ],
)
async def test_a_reference_that_no_provider_could_resolve_is_refused_when_it_is_given(ref: str) -> None:
    async with Toolbox() as box:
        with pytest.raises(Exception, match=r"reference|name"):
            await box.add_http("web", ["https://api.example.com"], secret=ref)
        assert box.integrations() == []


async def test_a_call_fails_with_its_connection_and_no_value_while_vault_is_down_and_works_afterwards() -> None:
    async with upstream() as vault, upstream() as server:
        settings = ToolboxSettings(vault=ServerSettings(vault.base, "env:EXECUTOR_TEST_TOKEN"), secret_cache_s=0)
        async with Toolbox(settings) as box:
            described = document({"/x": {"get": operation()}}, server.base)
            await box.add_openapi("api", described, secret="vault:secret/x#token", allow_private=["127.0.0.1"])
            vault.reply("/v1/secret/data/x", {"errors": ["sealed"]}, status=503)
            with pytest.raises(ToolError) as caught:
                await call(box, "api.org.main.op")
            assert (caught.value.code, caught.value.retryable) == ("connection_missing", True)
            assert "api.org.main" in caught.value.message
            assert "executor connections check api.org.main" in (caught.value.hint or "")
            checked = await box.check_connection("api")
            assert (checked["status"], "sealed" in checked["message"]) == ("connection_missing", True)
            assert server.seen == []
            vault.reply("/v1/secret/data/x", kv({"token": VALUE}))
            await call(box, "api.org.main.op")
            assert server.seen[0].header("authorization") == f"Bearer {VALUE}"
            assert VALUE not in json.dumps([box.integrations(), box.connections.all()])


async def test_a_script_cannot_reach_the_server_of_secrets_by_its_address() -> None:
    async with upstream() as vault:
        settings = ToolboxSettings(vault=ServerSettings(vault.base, "env:EXECUTOR_TEST_TOKEN"))
        async with Toolbox(settings) as box:
            await box.add_http("web", ["https://api.example.com"])
            with pytest.raises(ToolError) as caught:
                await call(box, "web.org.main.http.get", {"path": vault.base + "/v1/secret/data/x"})
            assert caught.value.code == "egress_denied"
            assert vault.seen == []


class Counting:
    """A provider that counts, and that answers when it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.reached, self.let = asyncio.Event(), asyncio.Event()
        self.answer: Callable[[], Secret] = lambda: Secret(f"secret-{self.asked}")

    async def resolve(self, scope: str, key: str) -> Secret:
        self.asked += 1
        self.reached.set()
        await self.let.wait()
        return self.answer()


async def test_a_burst_asks_a_provider_once_and_a_later_call_asks_again() -> None:
    now = [0.0]
    provider = Counting()
    cached = CachedSecrets(provider, 1.0, lambda: now[0])
    waiting = [asyncio.ensure_future(cached.resolve("org", "k")) for _ in range(20)]
    await provider.reached.wait()
    waiting[0].cancel()
    provider.let.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert {one.reveal() for one in found[1:]} == {"secret-2"}  # type: ignore[union-attr]
    now[0] = 0.9
    assert (await cached.resolve("org", "k")).reveal() == "secret-2"
    now[0] = 1.1
    assert (await cached.resolve("org", "k")).reveal() == "secret-3"
    cached.forget()
    assert (await cached.resolve("org", "k")).reveal() == "secret-4"
    assert (await cached.resolve("user", "k")).reveal() == "secret-5"
    assert cached._asking == {}


async def test_a_provider_that_is_down_is_not_asked_by_every_caller_in_turn() -> None:
    def down() -> Secret:
        raise SecretUnavailable("it is down")

    provider = Counting()
    provider.answer = down
    provider.let.set()
    cached = CachedSecrets(provider, 1.0, lambda: 5.0)
    found = await asyncio.gather(*[cached.resolve("org", "k") for _ in range(20)], return_exceptions=True)
    assert [type(one) for one in found] == [SecretUnavailable] * 20
    assert provider.asked == 1
    for number in range(300):
        with pytest.raises(SecretUnavailable):
            await cached.resolve("org", f"k{number}")
    assert len(cached._kept) == 256


async def test_a_rejected_credential_is_asked_for_anew() -> None:
    async with upstream() as vault, upstream() as server:
        settings = ToolboxSettings(vault=ServerSettings(vault.base, "env:EXECUTOR_TEST_TOKEN"), secret_cache_s=300)
        async with Toolbox(settings) as box:
            described = document({"/x": {"get": operation()}}, server.base)
            await box.add_openapi("api", described, secret="vault:secret/x#token", allow_private=["127.0.0.1"])
            vault.reply("/v1/secret/data/x", kv({"token": "first-token-value"}))
            for _ in range(3):
                await call(box, "api.org.main.op")
            assert len(vault.seen) == 1
            vault.reply("/v1/secret/data/x", kv({"token": "second-token-value"}))
            server.reply("/x", {}, status=401)
            with pytest.raises(ToolError):
                await call(box, "api.org.main.op")
            server.reply("/x", {})
            await call(box, "api.org.main.op")
            assert server.seen[-1].header("authorization") == "Bearer second-token-value"
