"""Bearer keys, and the patience with wrong ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bridge.wire.errors import Conflict, InvalidRequest, NotFound, Unauthorized
from executor.http.answers import TooManyRequests
from executor.http.auth import BURST, Doorkeeper
from executor.keys import REFRESH_S, Keyring
from runtime.store.keys import Keys
from runtime.store.sqlite import Database

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_key_is_found_and_only_its_digest_is_stored(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "keys.db")
    keyring = Keyring(Keys(database))
    row, key = await keyring.create("laptop")
    found = await keyring.find(key.encode())
    assert found is not None
    assert (found.id, found.name) == (row.id, "laptop")
    assert row.digest == hashlib.sha256(key.encode()).digest()
    await database.close()
    for file in list(tmp_path.iterdir()):  # noqa: ASYNC240
        assert key.encode() not in file.read_bytes()


async def test_whatever_is_not_exactly_the_key_is_not_found() -> None:
    database = await Database.open(None)
    keyring = Keyring(Keys(database))
    _, key = await keyring.create("laptop")
    good = key.encode()
    for wrong in (b"", good[:-1], good + b" ", good + b"\0", good.upper(), good[4:], b"exk_" + b"A" * 43, good * 2):
        assert await keyring.find(wrong) is None
    await database.close()


async def test_another_keyring_of_the_home_sees_changes_within_a_second() -> None:
    """The command line makes and revokes keys beside a running server."""
    database = await Database.open(None)
    clock = Clock()
    here, there = Keyring(Keys(database), clock=clock), Keyring(Keys(database))
    assert await here.find(b"exk_" + b"A" * 43) is None
    row, key = await there.create("late")
    assert await here.find(key.encode()) is None
    clock.now += REFRESH_S
    assert await here.find(key.encode()) is not None
    await there.revoke(row.id)
    clock.now += REFRESH_S
    assert await here.find(key.encode()) is None
    await database.close()


async def test_a_name_is_used_once_and_is_free_again_after_revocation() -> None:
    database = await Database.open(None)
    keyring = Keyring(Keys(database))
    await keyring.create("a")
    with pytest.raises(Conflict):
        await keyring.create("a")
    await keyring.revoke("a")
    with pytest.raises(NotFound):
        await keyring.revoke("a")
    await keyring.create("a")
    for name in ("", "a b", "-a", "a" * 65, "a\n", "é"):
        with pytest.raises(InvalidRequest):
            await keyring.create(name)
    await database.close()


async def test_patience_is_per_address_grows_back_and_never_keeps_a_right_key_out() -> None:
    """HTTP-16"""
    database = await Database.open(None)
    clock = Clock()
    keyring = Keyring(Keys(database))
    _, key = await keyring.create("good")
    door = Doorkeeper(keyring, clock=clock)
    wrong = [(b"authorization", b"Bearer exk_wrong")]
    for _ in range(BURST):
        with pytest.raises(Unauthorized):
            await door.admit(wrong, b"", "10.0.0.1")
    with pytest.raises(TooManyRequests):
        await door.admit(wrong, b"", "10.0.0.1")
    with pytest.raises(Unauthorized):
        await door.admit(wrong, b"", "10.0.0.2")
    with pytest.raises(Unauthorized):
        await door.admit([], b"", "10.0.0.1")
    assert await door.admit([(b"authorization", f"bearer {key}".encode())], b"", "10.0.0.1")
    clock.now += 1
    with pytest.raises(Unauthorized):
        await door.admit(wrong, b"", "10.0.0.1")
    await database.close()


@pytest.mark.parametrize("query", [b"key=x", b"a=1&api_key=x", b"API_KEY=x", b"access_token=", b"token=x&b=1"])
async def test_a_key_in_the_query_is_refused_beside_a_right_one(query: bytes) -> None:
    """HTTP-13"""
    database = await Database.open(None)
    keyring = Keyring(Keys(database))
    _, key = await keyring.create("good")
    door = Doorkeeper(keyring)
    headers = [(b"authorization", f"Bearer {key}".encode())]
    assert await door.admit(headers, b"monkey=x&limit=1", "")
    with pytest.raises(Unauthorized):
        await door.admit(headers, query, "")
    await database.close()


async def test_a_lent_key_is_good_for_this_process_and_stored_nowhere() -> None:
    database = await Database.open(None)
    keyring = Keyring(Keys(database))
    key = keyring.lend("console")
    row = await keyring.find(key.encode())
    assert row is not None
    assert row.id == "console"
    assert await keyring.list() == []
    assert await Keyring(Keys(database)).find(key.encode()) is None
    await database.close()
