"""A home directory: what is set up in it is there after a restart, and only ciphertext of its secrets."""

from pathlib import Path

import anyio
import pytest

from executor import Config, Executor

pytestmark = pytest.mark.anyio


async def test_a_restart_keeps_runs_integrations_rules_secrets_and_keys(tmp_path: Path, monkeypatch):
    """SEC-20"""
    monkeypatch.setenv("EXECUTOR_KEY_FILE", str(tmp_path / "master.key"))
    home, config = tmp_path / "home", Config(workers=1)
    async with Executor.open(home, config=config) as ex:
        await ex.add_http("web", ["api.example.com"])
        await ex.toolbox.add_policy("web", "*", "block", reason="not yet")
        await ex.toolbox.set_secret("token", "correct-horse-battery")
        row, key = await ex.keys.create("ci")
        answer = await ex.run("console.log('kept'); ({a: 1n})", labels={"k": "v"})
    async with Executor.open(home, config=config) as ex:
        assert [each["name"] for each in ex.toolbox.integrations()] == ["web"]
        assert [rule["reason"] for rule in ex.toolbox.policies()] == ["not yet"]
        assert await ex.toolbox.secret_names() == ["token"]
        found = await ex.keys.find(key.encode())
        assert found is not None
        assert found.id == row.id
        record = await ex.get_run(answer.run_id)
        assert record.as_dict() | answer.as_dict() == record.as_dict()
        assert record.labels == {"k": "v"}
        assert [event.type async for event in ex.events(answer.run_id)][-1] == "result"
    at_rest = b"".join(path.read_bytes() for path in home.iterdir())
    assert b"correct-horse-battery" not in at_rest
    assert key.encode() not in at_rest
    assert home.stat().st_mode & 0o777 == 0o700


async def test_a_home_in_memory_seals_its_secrets_under_a_key_that_is_never_written(tmp_path: Path, monkeypatch):
    key_file = tmp_path / "master.key"
    monkeypatch.setenv("EXECUTOR_KEY_FILE", str(key_file))
    async with Executor.open(None, config=Config(workers=1)) as ex:
        await ex.toolbox.set_secret("token", "correct-horse-battery")
        assert await ex.toolbox.secret_names() == ["token"]
    assert not await anyio.Path(key_file).exists()
