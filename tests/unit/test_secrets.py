"""Secret references and their providers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bridge.secrets import file
from bridge.secrets.env import EnvSecrets
from bridge.secrets.file import FileSecrets
from bridge.secrets.local import LocalSecrets
from bridge.secrets.masterkey import create, read
from bridge.secrets.ports import MemorySecrets, SecretMissing
from bridge.secrets.references import parse_ref
from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import ConfigError, InvalidRequest, ToolError
from tests.unit.upstream import call, document, operation, upstream

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("text", ["", "token", ":x", "env:", "e nv:X", "env:a\nb", "énv:X"])
def test_a_reference_that_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_ref(text)


def test_a_reference_reads_as_it_was_written() -> None:
    assert str(parse_ref("file:/run/secrets/a:b")) == "file:/run/secrets/a:b"
    assert parse_ref("ENV:Name") == ("env", "Name")


async def test_an_environment_variable_is_read_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = EnvSecrets()
    for value in ("first-value", "second-value"):
        monkeypatch.setenv("EXECUTOR_TEST_TOKEN", value)
        assert (await provider.resolve("org", "EXECUTOR_TEST_TOKEN")).reveal() == value
    monkeypatch.setenv("EXECUTOR_TEST_TOKEN", "")
    with pytest.raises(SecretMissing, match="not set"):
        await provider.resolve("org", "EXECUTOR_TEST_TOKEN")


async def test_a_file_is_read_without_its_last_line_break(tmp_path: Path) -> None:
    path = tmp_path / "token"
    for data, value in ((b"abc\n", "abc"), (b"abc\r\n", "abc"), (b"a\nb\n\n", "a\nb\n"), ("ü".encode(), "ü")):
        path.write_bytes(data)
        assert (await FileSecrets().resolve("org", str(path))).reveal() == value


async def test_a_file_that_cannot_be_trusted_is_missing(tmp_path: Path) -> None:
    cases = {"empty": b"", "binary": b"\xff\xfe", "large": b"x" * 70_000}
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "open").write_bytes(b"value")
    (tmp_path / "open").chmod(0o666)
    os.mkfifo(tmp_path / "pipe")
    for name in (*cases, "open", "pipe", "absent", "."):
        with pytest.raises(SecretMissing):
            await FileSecrets().resolve("org", str(tmp_path / name))
    with pytest.raises(SecretMissing, match="absolute"):
        await FileSecrets().resolve("org", "token")


async def test_scopes_do_not_see_each_others_secrets() -> None:
    store = MemorySecrets()
    local = LocalSecrets(store, store, None)
    await local.set("org", "token", "org-secret-value")
    await local.set("user", "token", "user-secret-value")
    assert (await local.resolve("org", "token")).reveal() == "org-secret-value"
    assert (await local.resolve("user", "token")).reveal() == "user-secret-value"
    assert await local.names("org") == ["token"]
    assert await local.delete("org", "token")
    assert not await local.delete("org", "token")
    with pytest.raises(SecretMissing):
        await local.resolve("org", "token")


async def test_the_same_value_is_sealed_differently_each_time_and_its_version_counts_up() -> None:
    store = MemorySecrets()
    local = LocalSecrets(store, store, None)
    sealed = {}
    for _ in range(2):
        await local.set("org", "token", "the-same-value\n")
        row = await store.secret("org", "token")
        assert row is not None
        sealed[row.version] = row.sealed
    assert list(sealed) == [1, 2]
    assert sealed[1] != sealed[2]
    assert (await local.resolve("org", "token")).reveal() == "the-same-value"


async def test_one_flipped_bit_of_a_sealed_value_is_damage() -> None:
    store = MemorySecrets()
    local = LocalSecrets(store, store, None)
    await local.set("org", "token", "a-secret-value")
    row = await store.secret("org", "token")
    assert row is not None
    for at in range(len(row.sealed)):
        broken = bytearray(row.sealed)
        broken[at] ^= 1
        await store.put_secret(row._replace(sealed=bytes(broken)))
        with pytest.raises(SecretMissing, match="damaged"):
            await local.resolve("org", "token")


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "-a", "x" * 101, "a\n"])
async def test_a_name_that_is_not_one_is_refused(name: str) -> None:
    store = MemorySecrets()
    with pytest.raises(InvalidRequest):
        await LocalSecrets(store, store, None).set("org", name, "a-secret-value")


def test_a_key_file_is_raw_hex_or_base64_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key = create(path)
    assert read(path) == [key]
    with pytest.raises(ConfigError):
        create(path)
    for data in (key, key.hex().encode() + b"\n", __import__("base64").b64encode(key)):
        path.write_bytes(data)
        assert read(path) == [key]
    assert read(tmp_path / "absent") == []


async def test_a_key_is_made_when_the_first_secret_is_set_and_not_before(tmp_path: Path) -> None:
    store, key = MemorySecrets(), tmp_path / "config" / "master.key"
    settings = ToolboxSettings(key_file=key)
    async with Toolbox(settings, secrets=store, keys=store) as box:
        assert not key.exists()
        await box.set_secret("token", "a-secret-value")
        assert key.exists()
    async with Toolbox(settings, secrets=store, keys=store) as box:
        assert await box.secret_names() == ["token"]


async def test_a_home_in_memory_leaves_no_key_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_CONFIG_DIR", str(tmp_path))
    async with Toolbox() as box:
        await box.set_secret("token", "a-secret-value")
    assert os.listdir(tmp_path) == []


async def test_a_secret_reaches_the_server_from_each_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_TEST_TOKEN", "from-the-environment")
    (tmp_path / "token").write_text("from-a-file\n")
    async with upstream() as server, Toolbox() as box:
        await box.set_secret("token", "from-the-store")
        described = document({"/x": {"get": operation()}}, server.base)
        for ref in ("env:EXECUTOR_TEST_TOKEN", f"file:{tmp_path}/token", "local:token"):
            await box.add_openapi("api", described, secret=ref, allow_private=["127.0.0.1"], replace=True)
            await call(box, "api.org.main.op")
        assert [one.header("authorization") for one in server.seen] == [
            "Bearer from-the-environment",
            "Bearer from-a-file",
            "Bearer from-the-store",
        ]


@pytest.mark.parametrize("auth", ["bearer", {"type": "query", "name": "key"}, {"type": "basic"}])
async def test_a_value_that_is_no_text_or_too_large_is_missing_wherever_it_goes(
    auth: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment holds any bytes: no place of a request may stumble over them, and masking takes time."""
    async with upstream() as server, Toolbox() as box:
        described = document({"/x": {"get": operation()}}, server.base)
        await box.add_openapi(
            "api", described, auth=auth, secret="env:EXECUTOR_TEST_TOKEN", allow_private=["127.0.0.1"]
        )
        for value in (os.fsdecode(b"abc\xff\xfe-secret"), "x" * 65_537):
            monkeypatch.setenv("EXECUTOR_TEST_TOKEN", value)
            with pytest.raises(ToolError, match="not available") as failed:
                await call(box, "api.org.main.op")
            assert failed.value.code == "connection_missing"
        assert server.seen == []
        monkeypatch.setenv("EXECUTOR_TEST_TOKEN", "x" * 6_000)
        await call(box, "api.org.main.op")
        assert len(server.seen) == 1


async def test_what_is_stored_is_measured_in_bytes() -> None:
    async with Toolbox() as box:
        await box.set_secret("token", "x" * 65_536)
        with pytest.raises(InvalidRequest, match="65536 bytes"):
            await box.set_secret("token", "ü" * 32_769)


async def test_a_connection_whose_local_secret_is_not_set_is_reported() -> None:
    async with Toolbox() as box:
        report = await box.add_http("web", ["https://api.example.com"], secret="local:nope")
        assert [one for one in report.diagnostics if "local:nope is not set" in one.message]
        await box.set_secret("nope", "correct-horse-battery")
        report = await box.connect("web", connection="other", secret="local:nope")
        assert report.diagnostics == []


async def test_a_link_stays_in_its_folder_and_nobody_else_writes_to_a_file_or_its_folders(tmp_path: Path) -> None:
    """As volumes of container platforms are laid: token -> ..data/token, ..data -> ..2026."""
    mounted, outside = tmp_path / "mounted", tmp_path / "outside"
    (mounted / "..2026").mkdir(parents=True)
    (mounted / "..2026" / "token").write_text("mounted-value\n")
    (mounted / "..data").symlink_to("..2026")
    (mounted / "token").symlink_to("..data/token")
    outside.write_text("outside-value")
    (mounted / "out").symlink_to(outside)
    (mounted / "loop").symlink_to("loop")
    provider = FileSecrets()
    assert (await provider.resolve("org", str(mounted / "token"))).reveal() == "mounted-value"
    for name, why in (("out", "out of its folder"), ("loop", "cannot be read"), ("../outside", "without")):
        with pytest.raises(SecretMissing, match=why):
            await provider.resolve("org", f"{mounted}/{name}")
    (mounted / "..2026" / "token").chmod(0o660)
    with pytest.raises(SecretMissing, match="written by others"):
        await provider.resolve("org", str(mounted / "token"))
    (mounted / "..2026" / "token").chmod(0o444)
    for mode, who in ((0o777, "anyone"), (0o775, "its group")):
        mounted.chmod(mode)
        with pytest.raises(SecretMissing, match=f"{who} may write"):
            await provider.resolve("org", str(mounted / "token"))
    mounted.chmod(0o1775)
    assert (await provider.resolve("org", str(mounted / "token"))).reveal() == "mounted-value"


def test_a_secret_file_of_another_user_is_refused_also_to_root():
    another = os.stat_result((0o100600, 0, 0, 1, os.geteuid() + 12_345, 0, 0, 0, 0, 0))
    with pytest.raises(SecretMissing, match="belongs to another user"):
        file._check("/etc/token", another)
    file._check("/etc/token", os.stat_result((0o100600, 0, 0, 1, os.geteuid(), 0, 0, 0, 0, 0)))
