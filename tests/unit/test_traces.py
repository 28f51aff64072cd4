"""What is logged of an exception holds no local variable and no secret, whoever has configured logging, or nobody."""

import subprocess
import sys
from pathlib import Path

from bridge.scrub import Scrubber
from bridge.traces import LONGEST, traced

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import asyncio
from executor import Config, Executor, ToolError

def fails(args):
    token = "".join(["cnry", "-", "of", "-", "locals"])
    return len(token) / 0

async def main():
    async with Executor.open(config=Config(workers=1)) as ex:
        ex.tool("s.org.main.fails", fails, side_effect="read")
        answer = await ex.run("await tools.s.org.main.fails({ secret: input })", input="-".join(["cnry", "of", "args"]))
        assert answer.error["name"] == "ToolError", answer.error

asyncio.run(main())
"""


def test_an_unforeseen_failure_is_logged_without_local_variables_when_nothing_has_configured_logging() -> None:
    """structlog's own default draws them."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT, check=True)
    said = done.stdout + done.stderr
    assert "ZeroDivisionError" in said
    assert "tool_failed" in said
    assert "cnry" not in said
    assert done.stdout == ""


def test_a_secret_in_the_message_of_an_exception_or_of_its_cause_is_masked() -> None:
    try:
        try:
            raise ValueError("refused header b'Bearer cnry-0123456789'")
        except ValueError as e:
            raise RuntimeError("while sending cnry-0123456789") from e
    except RuntimeError as error:
        text = traced(error, Scrubber(["cnry-0123456789"]))
    assert "cnry" not in text
    assert text.count("[secret]") >= 2
    assert "ValueError" in text


def test_a_message_without_end_is_cut() -> None:
    assert len(traced(ValueError("x" * 10**6))) == LONGEST


def test_no_module_hands_an_exception_itself_to_a_log() -> None:
    found = [
        path
        for folder in ("bridge", "catalog", "executor", "runtime")
        for path in (ROOT / folder).rglob("*.py")
        if "exc_info" in (text := path.read_text()).replace("format_exc_info", "") or "_log.exception(" in text
    ]
    assert found == []
