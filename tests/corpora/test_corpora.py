"""Published collections through our doors, where EXECUTOR_CORPORA names a folder that holds some: the long form alone.

They are nobody's to copy into this repository, and a machine that runs tests may reach no other: `./scripts/corpora`
says which there are.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.corpora.run import CORPORA, _literal, advisories

FOLDER = Path(os.environ.get("EXECUTOR_CORPORA") or "/nonexistent")


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.timeout(3600)
def test_nothing_in_a_collection_does_what_nothing_may(name: str, long: bool) -> None:
    """ESC-26, HTTP-02, SSRF-60"""
    if long and (FOLDER / name).exists():
        tally = CORPORA[name](FOLDER / name)
        assert tally.total() > 0
        assert tally.wrong == []


def test_a_script_is_taken_out_of_the_test_that_runs_it(tmp_path: Path) -> None:
    folder = tmp_path / "test" / "ghsa" / "made"
    folder.mkdir(parents=True)
    (folder / "repro.js").write_text(
        "vm.run('6 * \\'7\\''); new VM().run(`\n let a = \\`x\\`;\n a`); other.walk(`no`);"
    )
    tally = advisories(tmp_path)
    assert dict(tally) == {"completed": 2}
    assert tally.wrong == []
    assert _literal("'a\\n\\\\b'") == "a\n\\b"


def test_what_a_script_got_hold_of_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "test" / "ghsa" / "made"
    folder.mkdir(parents=True)
    (folder / "repro.js").write_text("vm.run('globalThis.process = { pid: 1 }')")
    assert advisories(tmp_path).wrong == ["made/repro#1: reached ['process']"]
