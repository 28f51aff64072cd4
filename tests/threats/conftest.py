from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.server import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that leave it as they found it."""
    with serving(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
