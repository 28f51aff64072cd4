import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="the long forms of the tests that have one")


@pytest.fixture(scope="session")
def long(pytestconfig: pytest.Config) -> bool:
    """Whether the long forms were asked for."""
    return bool(pytestconfig.getoption("--long"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
