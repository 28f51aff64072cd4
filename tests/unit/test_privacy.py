"""The home and its files are their owner's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import structlog

from bridge.wire.errors import ConfigError
from runtime.engine.sealed import Sealed
from runtime.store.store import Store

pytestmark = pytest.mark.anyio


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def loosen(path: Path, mode: int) -> None:
    path.chmod(mode)


def common(folder: Path, mode: int) -> None:
    """Make the folder one that holds other things."""
    folder.chmod(mode)
    (folder / "somebody's.txt").touch()


async def opened(home: Path) -> list[str]:
    """The events that opening and closing the home logs."""
    with structlog.testing.capture_logs() as logged:
        store = await Store.open(home)
        await store.close()
    return [one["event"] for one in logged]


async def test_a_new_home_is_private_whatever_the_umask_is(tmp_path: Path) -> None:
    earlier = os.umask(0)
    try:
        store = await Store.open(tmp_path / "home")
        modes = {path.name: mode(path) for path in (tmp_path / "home").iterdir()}
        await store.close()
    finally:
        os.umask(earlier)
    assert mode(tmp_path / "home") == 0o700
    assert modes.keys() >= {"executor.db", "executor.db-wal"}
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("wrong", [0o777, 0o770, 0o755])
async def test_a_home_that_was_open_to_others_is_closed_with_a_warning(tmp_path: Path, wrong: int) -> None:
    home = tmp_path / "home"
    await opened(home)
    loosen(home, wrong)
    loosen(home / "executor.db", 0o666)
    assert await opened(home) == ["home_open_to_others", "database_open_to_others"]
    assert (mode(home), mode(home / "executor.db")) == (0o700, 0o600)
    assert await opened(home) == []


@pytest.mark.parametrize("name", ["executor.db", "executor.db-wal"])
async def test_a_link_in_the_place_of_the_database_is_refused_and_what_it_leads_to_keeps_its_mode(
    tmp_path: Path, name: str
) -> None:
    home, other = tmp_path / "home", tmp_path / "passwd"
    await opened(home)
    other.touch()
    loosen(other, 0o644)
    (home / name).unlink(missing_ok=True)
    (home / name).symlink_to(other)
    with pytest.raises(ConfigError, match="not a plain file"):
        await Store.open(home)
    assert mode(other) == 0o644


@pytest.mark.parametrize("wrong", [0o777, 0o1777, 0o775])
async def test_a_common_folder_that_others_write_to_is_no_home(tmp_path: Path, wrong: int) -> None:
    common(tmp_path, wrong)
    with pytest.raises(ConfigError, match="written to by others"):
        await Store.open(tmp_path)
    assert mode(tmp_path) == wrong
    assert os.listdir(tmp_path) == ["somebody's.txt"]


async def test_a_folder_that_others_only_read_keeps_its_mode_and_the_database_is_private(tmp_path: Path) -> None:
    common(tmp_path, 0o755)
    assert await opened(tmp_path) == ["home_open_to_others"]
    assert (mode(tmp_path), mode(tmp_path / "executor.db")) == (0o755, 0o600)


@pytest.mark.parametrize(
    ("content", "wrong", "said"), [(b"", 0o600, "is empty"), (b"abc", 0o600, "3 bytes"), (bytes(32), 0o644, "0600")]
)
def test_a_key_of_the_module_cache_that_is_none_is_said_once(
    tmp_path: Path, content: bytes, wrong: int, said: str
) -> None:
    key = tmp_path / "cache.key"
    key.write_bytes(content)
    key.chmod(wrong)
    cache = Sealed("x", ".x", b"TESTSEAL", entries=1, most_bytes=1, folder=tmp_path / "folder", key_file=key)
    with structlog.testing.capture_logs() as logged:
        assert cache.get(b"header") is None
        assert cache.get(b"header") is None
    (one,) = logged
    assert said in one["reason"]
    assert "cache.key" in one["reason"]
    assert key.read_bytes() == content
