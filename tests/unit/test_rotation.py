"""A new master key: every secret opens whatever happens on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.secrets import masterkey
from bridge.secrets.local import LocalSecrets
from bridge.secrets.ports import MemorySecrets, SecretRow
from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import ConfigError
from runtime.store.store import Store

pytestmark = pytest.mark.anyio

NAMES = [f"token-{number}" for number in range(20)]

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from bridge.secrets import local, masterkey
from runtime.store import secrets
from runtime.store.store import Store

home, key, point = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]


def killing(owner, name, before):
    kept = getattr(owner, name)

    def change(*args, **options):
        if before:
            os.kill(os.getpid(), signal.SIGKILL)
        done = kept(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        return done

    async def changing(*args, **options):
        if before:
            os.kill(os.getpid(), signal.SIGKILL)
        await kept(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, changing if asyncio.iscoroutinefunction(kept) else change)


POINTS = {
    "before the key is written": (masterkey, "_write", True),
    "before the key file is replaced": (Path, "replace", True),
    "after the key file is replaced": (Path, "replace", False),
    "before the rows change": (secrets.Secrets, "reseal", True),
    "after the rows changed": (secrets.Secrets, "reseal", False),
    "before the old key goes": (masterkey, "keep_only", True),
    "after the old key went": (masterkey, "keep_only", False),
}


async def main():
    store = await Store.open(home)
    kept = local.LocalSecrets(store.secrets, store.secrets, key)
    await kept.verify()
    killing(*POINTS[point])
    await kept.rotate(forget=True)


asyncio.run(main())
"""


async def kept(home: Path, key: Path) -> dict[str, str]:
    """Every secret of the home, opened."""
    store = await Store.open(home)
    try:
        local = LocalSecrets(store.secrets, store.secrets, key)
        await local.verify()
        return {name: (await local.resolve("org", name)).reveal() for name in await local.names("org")}
    finally:
        await store.close()


async def filled(home: Path, key: Path) -> None:
    store = await Store.open(home)
    local = LocalSecrets(store.secrets, store.secrets, key)
    for name in NAMES:
        await local.set("org", name, f"value-of-{name}")
    await store.close()


@pytest.mark.parametrize(
    "point",
    [
        "before the key is written",
        "before the key file is replaced",
        "after the key file is replaced",
        "before the rows change",
        "after the rows changed",
        "before the old key goes",
        "after the old key went",
    ],
)
async def test_a_rotation_that_is_killed_leaves_every_secret_readable(tmp_path: Path, point: str) -> None:
    """SEC-20 SEC-22"""
    home, key = tmp_path / "home", tmp_path / "config" / "master.key"
    await filled(home, key)
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(home), str(key), point]
    done = await anyio.run_process(command, check=False, stderr=subprocess.PIPE)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert await kept(home, key) == {name: f"value-of-{name}" for name in NAMES}
    store = await Store.open(home)
    local = LocalSecrets(store.secrets, store.secrets, key)
    assert await local.rotate() == {"secrets": len(NAMES), "damaged": []}
    await store.close()
    assert await kept(home, key) == {name: f"value-of-{name}" for name in NAMES}
    assert os.listdir(key.parent) == ["master.key"]


async def test_the_old_key_opens_nothing_any_more_and_no_old_ciphertext_is_left(tmp_path: Path) -> None:
    """SEC-20"""
    home, key, old = tmp_path / "home", tmp_path / "config" / "master.key", tmp_path / "old.key"
    await filled(home, key)
    before = key.read_bytes()
    store = await Store.open(home)
    sealed = [row.sealed for row in await store.secrets.secrets()]
    local = LocalSecrets(store.secrets, store.secrets, key)
    await local.rotate()
    again = {row.sealed for row in await store.secrets.secrets()}
    await store.close()
    assert again.isdisjoint(sealed)
    data = (home / "executor.db").read_bytes()
    assert not [one for one in sealed if one in data]
    descriptor = os.open(old, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(descriptor, before)
    os.close(descriptor)
    with pytest.raises(ConfigError, match="not the one"):
        await kept(home, old)


async def test_another_home_with_the_same_key_file_still_opens_unless_its_key_is_forgotten(tmp_path: Path) -> None:
    key = tmp_path / "config" / "master.key"
    for name in ("one", "two"):
        await filled(tmp_path / name, key)
    store = await Store.open(tmp_path / "one")
    local = LocalSecrets(store.secrets, store.secrets, key)
    await local.rotate()
    assert len(await kept(tmp_path / "two", key)) == len(NAMES)
    await local.rotate(forget=True)
    await store.close()
    assert len(await kept(tmp_path / "one", key)) == len(NAMES)
    with pytest.raises(ConfigError, match="not the one"):
        await kept(tmp_path / "two", key)
    assert len(masterkey.read(key)) == 1


class Slow(MemorySecrets):
    """A store whose rows change only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.let = anyio.Event(), anyio.Event()

    async def reseal(self, rows: Any, key_check: bytes) -> None:
        self.reached.set()
        await self.let.wait()
        await super().reseal(rows, key_check)
        self.reached = anyio.Event()


async def test_secrets_are_read_and_set_while_the_key_changes(tmp_path: Path) -> None:
    """SEC-28"""
    store = Slow()
    local = LocalSecrets(store, store, tmp_path / "master.key")
    await local.set("org", "token", "a-secret-value")
    async with anyio.create_task_group() as group:
        group.start_soon(local.rotate)
        await store.reached.wait()
        assert (await local.resolve("org", "token")).reveal() == "a-secret-value"
        group.start_soon(local.set, "org", "later", "another-secret-value")
        group.start_soon(local.delete, "org", "token")
        store.let.set()
    fresh = LocalSecrets(store, store, tmp_path / "master.key")
    await fresh.verify()
    assert (await fresh.resolve("org", "later")).reveal() == "another-secret-value"
    assert await fresh.names("org") == ["later"]


async def test_a_row_that_did_not_open_before_is_left_as_it_is_and_named(tmp_path: Path) -> None:
    store = MemorySecrets()
    local = LocalSecrets(store, store, tmp_path / "master.key")
    await local.set("org", "token", "a-secret-value")
    await store.put_secret(SecretRow("org", "broken", 1, b"x" * 40, 0.0))
    assert await local.rotate() == {"secrets": 1, "damaged": ["org/broken"]}
    assert (await local.resolve("org", "token")).reveal() == "a-secret-value"


async def test_a_key_file_that_cannot_be_replaced_leaves_everything_as_it_was(tmp_path: Path) -> None:
    store, key = MemorySecrets(), tmp_path / "master.key"
    local = LocalSecrets(store, store, key)
    await local.set("org", "token", "a-secret-value")
    for _ in range(masterkey.MAX_KEYS - 1):
        await local.rotate()
    with pytest.raises(ConfigError, match="16 keys") as caught:
        await local.rotate()
    assert "--forget-old" in (caught.value.hint or "")
    assert (await local.resolve("org", "token")).reveal() == "a-secret-value"
    async with Toolbox(ToolboxSettings(key_file=key), secrets=store, keys=store) as box:
        assert await box.secret_names() == ["token"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["master.key"]  # noqa: ASYNC240
