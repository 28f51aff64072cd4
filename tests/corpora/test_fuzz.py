"""Bytes that nobody would think of, against every reader of hostile text. The long form is a coverage-guided fuzzer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpora.beside import environment, ours
from tests.corpora.targets import TARGETS
from tests.examples import examples

ROOT = Path(__file__).parents[2]
SECONDS = 60
SEEDS = {
    "frames": (b"\x93\x01\x02\x03", b"\x81\xa1a\x01", b"\x95\x01\x03\x04\x02\xc0", b"\xdd\x00\x00\x00\x01\x01"),
    "urls": (b"\x00a.test/x?y=1#z", b"\x00u:p@[::1]:80/../%2e", b"\x02../..//a;b/./c", b"\x00xn--bcher-kva.test."),
    "json": (b'{"a": [1, -2.5e3, "\\ud83d\\ude00", null]}', b"[" * 200 + b"]" * 200, b"1e400", b'{"a":1,"a":2}'),
    "paths": (b"\x00\x00a/../b", b"\x01\x01a|b", b"\x05\x02k|v", b"\x00\x00..", b"\x02\x00\xff%2f"),
}


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=examples(150))
@given(data=st.data())
def test_any_bytes_are_read_or_refused_with_a_typed_error(target: str, data: st.DataObject) -> None:
    """MSG-08, HTTP-02: bytes as they come, and ones that begin as what is expected."""
    random_bytes = data.draw(st.binary(max_size=200), label="bytes")
    seed = data.draw(st.sampled_from(SEEDS[target]), label="seed")
    at = data.draw(st.integers(0, len(seed)), label="at")
    TARGETS[target](random_bytes)
    TARGETS[target](seed[:at] + random_bytes[:8] + seed[at:])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.timeout(1200)
def test_a_fuzzer_finds_nothing_in_a_minute(target: str, long: bool, tmp_path: Path) -> None:
    if not long:
        for seed in SEEDS[target]:
            TARGETS[target](seed)
        return
    python = environment("atheris", "atheris")
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number, seed in enumerate(SEEDS[target]):
        (folder / str(number)).write_bytes(seed)
    done = subprocess.run(
        [str(python), "-m", "tests.corpora.fuzz", target, str(SECONDS), str(folder)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), ours()))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS * 5 + 120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr
