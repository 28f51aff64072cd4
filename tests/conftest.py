import pytest
from hypothesis import settings

import tests.examples  # noqa: F401 - the profiles


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="the long forms of the tests that have one")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("long" if config.getoption("--long") else "quick")


@pytest.fixture(scope="session")
def long(pytestconfig: pytest.Config) -> bool:
    """Whether the long forms were asked for."""
    return bool(pytestconfig.getoption("--long"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
