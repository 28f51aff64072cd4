from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox import server as blackbox
from tests.blackbox.server import Server, serving
from tests.threats.kit.invariants import Invariants


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that leave it as they found it."""
    with serving(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(autouse=True)
def invariants(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After each case that uses the shared server: what must be so whatever the case was (kit/invariants.py)."""
    if "server" not in request.fixturenames:
        yield
        return
    running: Server = request.getfixturevalue("server")
    held = Invariants(running)
    ask, until_closed = Server.ask, blackbox.until_closed

    def listening(self: Server, *arguments: Any, **options: Any) -> blackbox.Reply:
        reply = ask(self, *arguments, **options)
        if self is running:
            held.heard(repr(reply.headers).encode() + reply.body)
        return reply

    def read(sock: Any) -> bytes:
        data = until_closed(sock)
        held.heard(data)
        return data

    monkeypatch.setattr(Server, "ask", listening)
    monkeypatch.setattr(blackbox, "until_closed", read)
    yield
    monkeypatch.undo()
    held.check()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
