"""Bearer keys, and the patience with wrong ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from bridge.wire.errors import Conflict, InvalidRequest, NotFound, Unauthorized
from executor.http.answers import TooManyRequests
from executor.http.auth import BURST, Doorkeeper
from executor.keys import REFRESH_S, USE_RECORDED_EVERY_S, Access, Keyring
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


async def test_a_key_has_an_access_and_with_a_toolkit_only_that_of_running() -> None:
    database = await Database.open(None)
    keyring = Keyring(Keys(database))
    made = [
        (await keyring.create(f"k{number}", access=access, toolkit=toolkit))[0]
        for number, (access, toolkit) in enumerate([(None, None), ("read", None), (None, "kit"), ("run", "kit")])
    ]
    assert [(row.access, row.toolkit) for row in made] == [
        *(("full", None), ("read", None)),
        *(("run", "kit"), ("run", "kit")),
    ]
    kept = {row.id: (row.access, row.toolkit) for row in await keyring.list()}
    assert kept == {row.id: (row.access, row.toolkit) for row in made}
    wrong: list[tuple[object, str | None]] = [("all", None), ("Full", None), ("full", "kit"), ("read", "kit")]
    for access, toolkit in wrong:
        with pytest.raises(InvalidRequest):
            await keyring.create("other", access=access, toolkit=toolkit)  # type: ignore[arg-type]
    assert len(await keyring.list()) == len(made)
    await database.close()


async def test_names_differ_and_any_other_is_free() -> None:
    database = await Database.open(None)
    keyring = Keyring(Keys(database))
    rows = [(await keyring.create(name))[0] for name in ("a", "b")]
    with pytest.raises(Conflict):
        await keyring.create("b")
    gone = await keyring.revoke(rows[0].id)
    assert (gone.id, gone.name) == (rows[0].id, "a")
    assert gone.revoked_at is not None
    assert {row.name: row.revoked_at is None for row in await keyring.list()} == {"a": False, "b": True}
    await database.close()


async def test_a_revoked_key_is_refused_here_at_once() -> None:
    database = await Database.open(None)
    keyring = Keyring(Keys(database), clock=Clock())
    row, key = await keyring.create("a")
    assert await keyring.find(key.encode()) is not None
    await keyring.revoke(row.name)
    assert await keyring.find(key.encode()) is None
    await database.close()


async def test_the_use_of_a_key_is_noted_now_and_then_and_that_of_a_lent_one_never() -> None:
    noted: list[str] = []

    class Noting(Keys):
        async def mark_key_used(self, id: str, used_at: float) -> None:
            noted.append(id)
            await super().mark_key_used(id, used_at)

    database, clock = await Database.open(None), Clock()
    clock.now = 0.0
    keyring = Keyring(Noting(database), clock=clock)
    row, key = await keyring.create("a")
    other, second = await keyring.create("b")
    lent = keyring.lend("console")
    for seconds, times in ((0.0, 1), (USE_RECORDED_EVERY_S - 1, 1), (USE_RECORDED_EVERY_S, 2), (1e6, 3)):
        clock.now = seconds
        for one in (key, key, lent):
            assert await keyring.find(one.encode()) is not None
        assert noted == [row.id] * times
    assert await keyring.find(second.encode()) is not None
    assert noted[-1] == other.id
    await database.close()


async def test_keys_are_read_again_after_a_second_and_not_before() -> None:
    reads: list[None] = []

    class Counting(Keys):
        async def list_keys(self) -> Any:
            reads.append(None)
            return await super().list_keys()

    database, clock = await Database.open(None), Clock()
    keyring = Keyring(Counting(database), clock=clock)
    for seconds, times in ((0.0, 1), (REFRESH_S * 0.9, 1), (REFRESH_S, 2)):
        clock.now = 1000 + seconds
        await keyring.find(b"exk_" + b"A" * 43)
        assert len(reads) == times
    await database.close()


@pytest.mark.parametrize(
    ("level", "permitted"),
    [
        ("full", "run read admin"),
        ("run", "run"),
        ("read", "read"),
        ("admin", "read admin"),
        ("Full", ""),
        ("", ""),
        ("none that there is", ""),
    ],
)
def test_an_access_permits_what_it_is_for(level: str, permitted: str) -> None:
    access = Access(level)
    needs: tuple[Any, ...] = ("run", "read", "admin")
    assert [need for need in needs if access.allows(need)] == permitted.split()
    assert access.allows(*needs) == bool(permitted)
    assert not access.allows()
