"""Tokens of accounts: renewed, refused, kept and given up."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from bridge.oauth import tokens as kept
from bridge.secrets.ports import MemorySecrets
from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import InvalidRequest, StorageFull, ToolError
from tests.unit.authority import (
    CLIENT,
    SECRET,
    Authority,
    aged,
    api,
    auth,
    authority,
    connected,
    signed_in,
)
from tests.unit.upstream import response, toolbox

pytestmark = pytest.mark.anyio


async def test_a_person_signs_in_and_calls_carry_the_token() -> None:
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        with pytest.raises(ToolError) as caught:
            await api(box)
        assert caught.value.code == "connection_missing"
        assert caught.value.hint == "Sign in: executor connect api"
        done = await signed_in(box)
        assert done["connection"] == "api.org.main"
        assert done["oauth"]["signed_in"]
        assert done["oauth"]["scopes"] == ["a", "b"]
        assert (await api(box))["ok"]
        (asked,) = one.authorized
        assert asked["scope"] == "a b"
        assert asked["code_challenge_method"] == "S256"
        assert len(one.asked) == 1


async def test_fifty_calls_at_once_renew_an_expired_token_once() -> None:
    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await aged(box, 1000)
        answers = await asyncio.gather(*(api(box) for _ in range(50)))
        assert all(answer["ok"] for answer in answers)
        assert one.refreshes == 1


async def test_two_that_share_a_store_renew_an_expired_token_once(tmp_path: Path) -> None:
    store, settings = MemorySecrets(), ToolboxSettings(key_file=tmp_path / "master.key")
    async with authority(lifetime=1000) as one, Toolbox(settings, secrets=store, keys=store) as first:
        await first.add_policy("*", "*", "approve")
        await connected(first, one)
        await signed_in(first)
        await aged(first, 1000)
        async with Toolbox(settings, secrets=store, keys=store) as second:
            await second.add_policy("*", "*", "approve")
            await connected(second, one)
            answers = await asyncio.gather(*(api(box) for _ in range(25) for box in (first, second)))
        assert all(answer["ok"] for answer in answers)
        assert one.refreshes == 1


async def test_a_refused_token_is_renewed_once_and_the_call_is_made_again() -> None:
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        one.revoke()
        assert (await api(box))["ok"]
        assert one.refreshes == 1
        one.revoke()
        with pytest.raises(ToolError) as caught:
            await api(box)
        assert caught.value.code == "credential_rejected"
        assert caught.value.hint == "Connect again: executor connect api"
        assert one.refreshes == 1


async def test_a_rotated_token_replaces_the_old_one_and_reuse_ends_in_connect_again() -> None:
    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        for _ in range(3):
            await aged(box, 1000)
            assert (await api(box))["ok"]
        assert one.refreshes == 3
        one.families.clear()
        await aged(box, 1000)
        with pytest.raises(ToolError) as caught:
            await api(box)
        assert caught.value.code == "credential_rejected"
        assert caught.value.details == {"error": "invalid_grant"}
        assert "executor connect api" in str(caught.value.hint)
        with pytest.raises(ToolError):
            await api(box)
        assert one.refreshes == 4


async def test_client_credentials_need_nobody() -> None:
    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one, flow="client_credentials")
        await asyncio.gather(*(api(box) for _ in range(10)))
        assert [fields["grant_type"] for fields in one.asked] == ["client_credentials"]
        await aged(box, 990)
        await api(box)
        assert len(one.asked) == 2


async def test_a_refresh_that_fails_once_with_500_is_tried_again() -> None:
    failures = iter([response({}, status=500)])
    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await aged(box, 1000)
        one.answer = lambda fields: next(failures, None)
        assert (await api(box))["ok"]
        assert one.refreshes == 2


async def test_tokens_without_an_expiry_are_used_until_they_are_refused() -> None:
    async with authority(lifetime=None) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await aged(box, 10**7)
        assert (await api(box))["ok"]
        assert one.refreshes == 0


def test_a_token_is_renewed_a_minute_or_a_fifth_of_its_life_early() -> None:
    now = time.time()
    long = kept.Tokens("b", "x" * 20, obtained_at=now, expires_at=now + 3600)
    short = kept.Tokens("b", "x" * 20, obtained_at=now, expires_at=now + 10)
    assert [long.fresh(now + at) for at in (3539, 3541, 3600)] == [True, False, False]
    assert [short.fresh(now + at) for at in (7.9, 8.1)] == [True, False]
    assert long.valid(now + 3599)
    assert not long.valid(now + 3600)


async def test_a_call_that_is_given_up_loses_no_token() -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        arrived.set()
        await go_on.wait()

    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await aged(box, 1000)
        one.keep = wait
        calling = asyncio.create_task(api(box))
        await arrived.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        go_on.set()
        assert (await api(box))["ok"]
        assert one.refreshes == 1


async def test_tokens_that_cannot_be_stored_are_held_until_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await aged(box, 1000)
        swap, full = box.oauth.shelf.swap, [False, True, True]

        async def swapped(*parts: Any) -> int | None:
            if full and full.pop(0):
                raise StorageFull("no room")
            return await swap(*parts)

        monkeypatch.setattr(box.oauth.shelf, "swap", swapped)
        for _ in range(3):
            assert (await api(box))["ok"]
        assert full == []
        assert one.refreshes == 1
        _, tokens = await box.oauth.shelf.read(box.connections.get("api", "org", "main"))
        assert tokens is not None
        assert tokens.access in one.tokens


async def test_a_full_store_is_noticed_before_a_refresh_token_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await aged(box, 1000)

        async def full(*parts: Any) -> None:
            raise StorageFull("no room")

        monkeypatch.setattr(box.oauth.shelf, "swap", full)
        with pytest.raises(ToolError):
            await api(box)
        assert one.refreshes == 0


async def test_an_account_that_is_connected_anew_meanwhile_does_not_get_the_old_tokens() -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        arrived.set()
        await go_on.wait()

    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await aged(box, 1000)
        one.keep = wait
        calling = asyncio.create_task(api(box))
        await arrived.wait()
        await box.connect("api", auth=auth(one, token_auth="post", client_id="another"), replace=True)
        go_on.set()
        with pytest.raises(ToolError, match="anew"):
            await calling
        with pytest.raises(ToolError, match="Nobody has signed in"):
            await api(box)


async def test_an_account_that_is_removed_leaves_no_token() -> None:
    store = MemorySecrets()
    async with (
        authority() as one,
        Toolbox(secrets=store, keys=store, settings=ToolboxSettings(ephemeral_key=True)) as box,
    ):
        await box.add_policy("*", "*", "approve")
        for gone in (box.disconnect("api"), box.remove("api", connections=True)):
            await connected(box, one)
            await box.connect("api", auth=auth(one), replace=True)
            await signed_in(box)
            assert [row.name for row in await store.secrets()] == ["client", "oauth:api.main"]
            await gone
            assert [row.name for row in await store.secrets()] == ["client"]


async def published(box: Toolbox, one: Authority, **extra: Any) -> None:
    """An account that is signed in to, whose server publishes itself."""
    one.extra |= extra
    facts = {"type": "oauth2", "issuer": one.base, "client_id": CLIENT, "secret": "local:client", "scopes": ["a"]}
    await box.set_secret("client", SECRET)
    await box.add_http("api", [one.base], auth=facts, allow_private=["127.0.0.1"])
    await signed_in(box)


async def test_the_tokens_of_an_account_that_is_removed_are_taken_back_at_their_server() -> None:
    async with authority() as one, toolbox() as box:
        await published(box, one, revocation_endpoint=one.base + "/revoke")
        await box.connect("api", connection="other")
        assert await box.remove("api", connections=True) == (0, {})
        assert [(each["token_type_hint"], each["token"]) for each in one.revocations] == [
            ("refresh_token", one.issued[1]),
            ("access_token", one.issued[0]),
        ]
        assert not one.tokens
        assert not one.families


@pytest.mark.parametrize("whole", [False, True], ids=["account", "integration"])
async def test_tokens_that_a_server_does_not_take_back_are_told_and_the_account_is_gone_all_the_same(
    monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    monkeypatch.setattr("bridge.oauth.revocation.REVOKE_S", 0.2)
    for answers, said in ((503, "server_error: not now, [secret]"), (None, "no answer within 0 s")):
        async with authority(takes_back=answers) as one, toolbox() as box:
            await published(box, one, revocation_endpoint=one.base + "/revoke")
            if whole:
                assert await box.remove("api", connections=True) == (0, {"api.org.main": said})
            else:
                assert await box.disconnect("api") == (0, said)
            assert len(one.revocations) == 1
            assert box.connections.all() == []
            with pytest.raises(ToolError):
                await api(box)


async def test_a_server_without_a_usable_revocation_endpoint_is_said_to_have_none() -> None:
    for extra in ({}, {"revocation_endpoint": 5}, {"revocation_endpoint": "http://203.0.113.9/revoke"}):
        async with authority() as one, toolbox() as box:
            await published(box, one, **extra)
            assert (await box.disconnect("api")).unrevoked == ""


async def test_tokens_outlive_a_change_of_the_master_key_and_no_reference_reaches_them() -> None:
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        assert (await box.local.rotate())["damaged"] == []
        assert (await api(box))["ok"]
        assert await box.secret_names() == ["client"]
        assert not await box.delete_secret("oauth:api.main")
        for ref in ("local:oauth:api.main", "oauth:token", "oauth:api.main"):
            with pytest.raises(InvalidRequest):
                await box.connect("api", connection="mine", auth="bearer", secret=ref)


async def test_a_server_that_is_down_is_no_reason_to_drop_a_token_that_still_lasts() -> None:
    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        one.answer = lambda fields: response({}, status=503)
        await aged(box, 960)
        assert (await api(box))["ok"]
        assert one.refreshes == 2
        await aged(box, 40)
        with pytest.raises(ToolError) as caught:
            await api(box)
        assert caught.value.code == "upstream_unreachable"
        assert caught.value.retryable
        one.answer = None
        assert (await api(box))["ok"]


async def test_a_refresh_token_stays_where_the_server_gives_no_new_one() -> None:
    async with authority(lifetime=1000, rotates=False) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        for _ in range(2):
            await aged(box, 1000)
            assert (await api(box))["ok"]
        assert len({fields["refresh_token"] for fields in one.asked[1:]}) == 1


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.oauth.servers.TIMEOUT_S", 0.2)
    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await aged(box, 1000)
        one.hold = one.server.released.wait  # type: ignore[assignment]
        with pytest.raises(ToolError) as caught:
            await api(box)
        assert caught.value.code == "upstream_unreachable"
        assert one.refreshes == 2
