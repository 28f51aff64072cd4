"""OAuth as a client: signing in, and tokens that are renewed in time, against a strict server on loopback."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.oauth import tokens as kept
from bridge.secrets.ports import MemorySecrets
from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import ToolError
from tests.unit.authority import CLIENT, auth, authority, connected, signed_in
from tests.unit.upstream import call, response, toolbox

pytestmark = pytest.mark.anyio
GET = "api.org.main.http.get"


async def api(box: Toolbox) -> Any:
    return (await call(box, GET, {"path": "/api"})).value


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
        await _age(box, 1000)
        answers = await asyncio.gather(*(api(box) for _ in range(50)))
        assert all(answer["ok"] for answer in answers)
        assert one.refreshes == 1


async def _age(box: Toolbox, seconds: float) -> None:
    """Make the tokens of the account as old as that."""
    account = box.connections.get("api", "org", "main")
    version, tokens = await box.oauth.shelf.read(account)
    assert tokens is not None
    expires = None if tokens.expires_at is None else tokens.expires_at - seconds
    older = replace(tokens, obtained_at=tokens.obtained_at - seconds, expires_at=expires)
    assert await box.oauth.shelf.swap(account, older, version) is not None


async def test_two_that_share_a_store_renew_an_expired_token_once(tmp_path: Path) -> None:
    store, settings = MemorySecrets(), ToolboxSettings(key_file=tmp_path / "master.key")
    async with authority(lifetime=1000) as one, Toolbox(settings, secrets=store, keys=store) as first:
        await first.add_policy("*", "*", "approve")
        await connected(first, one)
        await signed_in(first)
        await _age(first, 1000)
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
            await _age(box, 1000)
            assert (await api(box))["ok"]
        assert one.refreshes == 3
        one.families.clear()
        await _age(box, 1000)
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
        await _age(box, 990)
        await api(box)
        assert len(one.asked) == 2


async def test_a_refresh_that_fails_once_with_500_is_tried_again() -> None:
    failures = iter([response({}, status=500)])
    async with authority(lifetime=1000) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await _age(box, 1000)
        one.answer = lambda fields: next(failures, None)
        assert (await api(box))["ok"]
        assert one.refreshes == 2


async def test_tokens_without_an_expiry_are_used_until_they_are_refused() -> None:
    async with authority(lifetime=None) as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        await _age(box, 10**7)
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


async def test_the_client_of_a_connection_is_shown_without_its_secret() -> None:
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        facts = await box.account_facts("api", "org", "main")
        assert facts["oauth"]["client_id"] == CLIENT
        assert facts["secrets"] == ["local:client"]
        assert not any(secret in repr(facts) for secret in one.issued)
        assert auth(one)["client_id"] == CLIENT
