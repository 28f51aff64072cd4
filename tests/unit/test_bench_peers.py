"""The harness for peers survives whatever a peer does, loses nothing, and says what is not there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rich

from benchmarks import report
from benchmarks.peers import ALL, Peer, asked, compare, install

READY = "print('{\"ready\": true}', flush=True)\n"
PEER = Peer("made", "javascript", "made.py", ("made==1",))
FILE_S = 60


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Let every peer be this program, for which PROBE is sys.argv[1]; none need be installed for it."""
    monkeypatch.setattr(asked, "folder", lambda peer: tmp_path)

    def put(program: str) -> None:
        monkeypatch.setattr(asked, "words", lambda peer: [sys.executable, "-S", "-c", f"import sys\n{program}"])
        monkeypatch.setattr(compare, "words", lambda peer: [])

    return put


def test_the_last_line_is_the_answer(adapter: Callable[[str], None]) -> None:
    adapter(READY + "print('noise'); print('{\"us\": [1.5]}')")
    assert asked.ask(PEER, "bridge", 3, FILE_S)["us"] == [1.5]


@pytest.mark.parametrize(
    ("program", "ended"),
    [
        (READY + "while True: pass", "never ended"),
        ("import time; time.sleep(600)", "not ready after 0 s"),
        (READY + "sys.exit('no such thing')", "the process died: no such thing"),
        (READY + "sys.exit(3)", "the process died: exit status 3"),
        (READY, "the process died: exit status 0"),
        (READY + "print('[1]')", "the process died: exit status 0"),
    ],
)
def test_a_peer_that_gives_no_answer_is_killed_and_told(
    adapter: Callable[[str], None], program: str, ended: str
) -> None:
    adapter(program)
    answer = asked.ask(PEER, "one", 3, 0.3, ready=0.3 if "not ready" in ended else FILE_S)
    assert (answer["ended"], answer["killed"]) == (ended, True)


def test_more_output_than_a_pipe_holds_stops_nobody(adapter: Callable[[str], None]) -> None:
    adapter(READY + "print('x' * 3_000_000, file=sys.stderr); print('x' * 3_000_000); print('{\"ms\": [1]}')")
    assert asked.ask(PEER, "one", 3, FILE_S)["ms"] == [1]


def test_what_a_peer_leaves_behind_is_ended_and_not_waited_for(adapter: Callable[[str], None]) -> None:
    left = "import subprocess\nleft = subprocess.Popen(['sleep', '600'])\n"
    adapter(READY + left + "print('{\"ms\": [%d]}' % left.pid)")
    pid = int(asked.ask(PEER, "one", 3, FILE_S)["ms"][0])
    until = time.monotonic() + FILE_S
    while running(pid):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_what_a_peer_writes_for_a_while_goes_with_it(adapter: Callable[[str], None]) -> None:
    made = "import tempfile, json\nfolder = tempfile.mkdtemp()\n"
    adapter(READY + made + "print(json.dumps({'ms': [folder]}))")
    assert not Path(asked.ask(PEER, "one", 3, FILE_S)["ms"][0]).exists()


def running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def compared(names: tuple[str, ...], earlier: dict[str, Any], seconds: float = 600) -> tuple[dict[str, Any], list[str]]:
    said: list[str] = []
    results = compare.run(
        names, 0.1, False, said.append, seconds=seconds, keep=lambda found: said.append("kept"), earlier=earlier
    )
    return results, said


ANSWERS = READY + 'print(\'{"ms": [2, 2, 2]}\' if sys.argv[1] == \'one\' else \'{"ended": "Timeout", "seconds": 1.0}\')'


def test_a_probe_that_fails_is_a_reason_and_the_rest_goes_on(adapter: Callable[[str], None]) -> None:
    adapter(ANSWERS)
    results, said = compared(("quickjs", "run"), {})
    assert said.count("kept") == 4
    for name in ("quickjs", "run"):
        row = results["peers"][name]
        assert row["figures"]["a new sandbox and 1+1, ms"]["median"] == 2
        assert row["failed"] == {"loop": "Timeout", "bridge": "Timeout"}
        assert all(row["limits"][probe]["held"] for probe in compare.LIMITS)
    page = report.written(results, results)
    assert "| run | 2 |  |  | Timeout |" in page
    assert "| run | held, 1.00 s |" in page
    for table in compare.tables(results):
        rich.print(table)


def test_a_run_that_ended_early_is_gone_on_with(
    adapter: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter(ANSWERS)
    early, _ = compared(("quickjs",), {}, seconds=0)
    assert set(early["peers"]["quickjs"]["failed"].values()) == {compare.OUT_OF_TIME}
    whole, _ = compared(("quickjs", "run"), early)
    assert whole["peers"]["quickjs"]["figures"]
    assert compare.OUT_OF_TIME not in whole["peers"]["quickjs"]["failed"].values()
    monkeypatch.setattr(compare, "ask", lambda *words, **more: pytest.fail("nothing is left to ask"))
    again, _ = compared(("quickjs", "run"), whole)
    assert again["peers"] == whole["peers"]


def test_what_is_not_installed_says_so_and_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(install, "cache_dir", lambda: tmp_path)
    results, _ = compared(("run", "pyeryx"), {})
    reason = "not installed: executor bench peers --install brings it"
    assert [row["failed"] for row in results["peers"].values()] == [{"installed": reason}] * 2
    assert f"| pyeryx |  |  |  | {reason} |" in report.written(results, results)


def test_every_peer_has_its_adapter_and_pinned_packages() -> None:
    for peer in ALL.values():
        assert (asked.ADAPTERS / peer.adapter).is_file()
        assert all("==" in one or "@" in one[1:] for one in peer.packages)
