"""The programs on the pages run as they stand and print what stands below them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from guest import images

ROOT = Path(__file__).parents[2]
_PROGRAM = re.compile(r"```python\n(import asyncio\n.*?)```\n\n```console\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module", autouse=True)
def _images() -> None:
    images.build(sets=("javascript", "python"))


@pytest.mark.parametrize("page", ["README.md", "docs/sdk.md"])
def test_the_program_on_a_page_prints_what_stands_below_it(page: str, tmp_path: Path) -> None:
    found = _PROGRAM.search((ROOT / page).read_text())
    assert found is not None
    program = tmp_path / "program.py"
    program.write_text(found[1])
    done = subprocess.run(
        [sys.executable, str(program)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == found[2]
