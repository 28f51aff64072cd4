"""What the command line shows a person: times, places of errors, tables, and lines about what takes long."""

from __future__ import annotations

import io
import sys

import pytest
import structlog

from bridge.wire.errors import Conflict, ExecutorError, NotFound, ToolError
from executor import logs
from executor.cli import output
from executor.cli.commands import tools

CODE = "rows = [1, 2]\nrows[5]"


def _shown(capsys: pytest.CaptureFixture[str], show: object) -> str:
    assert callable(show)
    show()
    return "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (None, ""),
        (0.123, "0.12 ms"),
        (4.04, "4 ms"),
        (412.4, "412 ms"),
        (999.4, "999 ms"),
        (999.6, "1 s"),
        (4039, "4.04 s"),
        (61000, "61 s"),
        (1234000, "1234 s"),
    ],
)
def test_a_time_is_shown_in_the_unit_that_a_person_would_say_it_in(milliseconds: float | None, shown: str) -> None:
    assert output.duration(milliseconds) == shown


def _failed(*frames: str) -> dict[str, object]:
    stack = "\n".join(["Traceback (most recent call last):", *frames, "IndexError: list index out of range"])
    return {"code": "script_error", "message": "list index out of range", "name": "IndexError", "stack": stack} | {
        "line": 2,
        "column": 1,
    }


def test_a_traceback_of_one_frame_says_nothing_that_the_place_did_not(capsys: pytest.CaptureFixture[str]) -> None:
    run = {"run_id": "run_1", "status": "failed", "error": _failed('  File "<script>", line 2, in <module>')}
    shown = _shown(capsys, lambda: output.show_run(run, CODE))
    assert "rows[5]" in shown
    assert shown.count("IndexError") == 1
    assert "<script>" not in shown


def test_a_traceback_of_several_frames_is_shown_without_the_message_again(capsys: pytest.CaptureFixture[str]) -> None:
    frames = ('  File "<script>", line 2, in <module>', '  File "<script>", line 1, in rows')
    run = {"run_id": "run_1", "status": "failed", "error": _failed(*frames)}
    shown = _shown(capsys, lambda: output.show_run(run, CODE))
    assert "line 1, in rows" in shown
    assert shown.count("IndexError") == 1


def test_a_table_leaves_no_blanks_at_the_end_of_its_lines_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    rows = output.table("name", "reason")
    rows.add_row("a", "long enough")
    rows.add_row("b", "")
    lines = _shown(capsys, lambda: output.out.print(rows)).splitlines()
    assert len(lines) == 3
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ToolError("egress_denied", "no", hint="by naming it as a private host (allow_private)."), "--allow-private"),
        (Conflict("There is one.", hint="Remove it first, or replace it."), "`--replace` replaces it"),
        (Conflict("There is one.", hint="Name it otherwise, or replace it."), "`--replace` the one that is there"),
        (NotFound("There is none.", hint="`GET /integrations` lists them."), "`executor integrations list`"),
    ],
)
def test_a_hint_names_options_of_the_command_line(
    capsys: pytest.CaptureFixture[str], error: ExecutorError, said: str
) -> None:
    assert said in _shown(capsys, lambda: output.say_error(error))


def test_a_command_says_what_takes_long_and_what_goes_wrong_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    before = structlog.get_config()
    try:
        logs.configure_for_command(for_good=False)
        log = structlog.get_logger()
        log.info("building_image", step="compiling the shim")
        log.info("integration_removed", integration="x")
        log.warning("image_not_built", reason="no compiler")
    finally:
        structlog.configure(**before)
    step, warning = said.getvalue().splitlines()
    assert step == "· compiling the shim"
    assert "image_not_built" in warning
    assert "no compiler" in warning


def test_an_event_names_a_built_in_call_as_a_script_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    event = {"type": "call", "data": {"path": "$search", "state": "done"}}
    assert "call  tools.search  done" in _shown(capsys, lambda: output.show_event(event))


def test_a_call_that_waits_for_a_person_has_taken_no_time_yet(capsys: pytest.CaptureFixture[str]) -> None:
    call = {"path": "a.org.main.b", "outcome": "waiting", "duration_ms": 0.0, "args_bytes": 1, "value_bytes": 0}
    shown = _shown(capsys, lambda: output.show_run({"run_id": "run_1", "status": "waiting", "calls": [call]}))
    assert "a.org.main.b" in shown
    assert "ms" not in shown


def test_a_tool_that_awaits_review_says_so_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    tool = {"path": "a.org.main.b", "side_effect": "delete", "effect": "block", "status": "awaits review"}
    assert "delete: block  awaits review: a refresh added it" in _shown(
        capsys, lambda: tools._head(tool | {"reason": "a refresh added it"})
    )
