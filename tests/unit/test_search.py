"""Search: ranked, paged, the same order every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import anyio.lowlevel
import pytest

from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from bridge.wire.errors import ToolError
from catalog.model import Tool, ToolSpec
from catalog.ranking import Entry, WordRanker
from catalog.search import SearchIndex
from catalog.words import words_of
from tests.unit.upstream import toolbox

pytestmark = pytest.mark.anyio

TOOLS = {
    "issues.create": ("Create an issue", "write"),
    "issues.createComment": ("Create an issue comment", "write"),
    "issues.list": ("List issues of a repository", "read"),
    "issues.delete": ("Delete an issue", "delete"),
    "pulls.list": ("List pull requests", "read"),
    "repos.listBranches": ("List branches", "read"),
    "users.getAuthenticated": ("Get the authenticated user", "read"),
    "chat.postMessage": ("Send a message to a channel", "write"),
    "städte.suche": ("Städte nach Namen suchen", "read"),
}


def tool(name: str, title: str = "", effect: Any = "read", integration: str = "github", **more: Any) -> Tool:
    spec = ToolSpec(name, title=title, side_effect=effect, **more)
    return Tool(f"{integration}.org.main.{name}", integration, "org", "main", spec, {})


@pytest.fixture
def index() -> Iterator[SearchIndex]:
    one = SearchIndex()
    one.add([tool(name, title, effect) for name, (title, effect) in TOOLS.items()])
    yield one
    one.close()


def names(index: SearchIndex, query: str, **more: Any) -> list[str]:
    return [path.removeprefix("github.org.main.") for path in index.search(query, **more).paths]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create an issue", "issues.create"),
        ("make a new issue", "issues.create"),
        ("list open issues", "issues.list"),
        ("remove issue", "issues.delete"),
        ("show pull requests", "pulls.list"),
        ("branches", "repos.listBranches"),
        ("listBranches", "repos.listBranches"),
        ("send message to channel", "chat.postMessage"),
        ("isseu create", "issues.create"),
        ("brnches", "repos.listBranches"),
        ("my user", "users.getAuthenticated"),
        ("stadte", "städte.suche"),
        ("STÄDTE", "städte.suche"),
        ("who am i", "users.getAuthenticated"),
        ("open a ticket", "issues.create"),
        ("comment on a bug", "issues.createComment"),
        ("which pull requests are there", "pulls.list"),
        ("einen Fehler anlegen", "issues.create"),
        ("mandar un mensaje", "chat.postMessage"),
        ("创建问题", "issues.create"),
    ],
)
def test_the_tool_that_is_meant_comes_first(index: SearchIndex, query: str, first: str) -> None:
    assert names(index, query)[0] == first


def test_the_name_of_an_integration_filters_and_is_no_word(index: SearchIndex) -> None:
    index.add([tool("issues.list", "List issues", integration="jira"), tool("x.jira", "The jira of github")])
    assert index.search("jira issues").paths == ["jira.org.main.issues.list"]
    assert set(names(index, "issues", integration="jira")) == {"jira.org.main.issues.list"}
    assert set(names(index, "jira")) == {"jira.org.main.issues.list", "x.jira"}


@pytest.mark.parametrize(
    ("name", "query"),
    [("kubernetes", "k8s nodes"), ("msgraph", "microsoft graph nodes"), ("my-shop", "my shop nodes")],
)
def test_an_integration_is_known_by_what_its_name_is_short_for(index: SearchIndex, name: str, query: str) -> None:
    index.add([tool("nodes.list", integration=name), tool("nodes.list", "k8s microsoft graph my shop")])
    assert index.search(query).paths == [f"{name}.org.main.nodes.list"]


def test_a_word_that_only_happens_to_name_an_integration_hides_nothing(index: SearchIndex) -> None:
    index.add([tool("unrelated", integration="branches")])
    assert "repos.listBranches" in names(index, "list branches")


def test_text_without_spaces_is_found_by_a_part_of_it(index: SearchIndex) -> None:
    index.add([tool("a1", "查询城市天气预报"), tool("a2", "東京の天気を調べる")])
    assert names(index, "城市天气")[0] == "a1"
    assert names(index, "天気")[0] == "a2"


def test_the_plainest_of_very_many_comes_first(index: SearchIndex) -> None:
    index.add([tool(f"users.part{number}.list", f"List the parts of users {number}") for number in range(1500)])
    index.add([tool("users.list", "Users. " * 3, description="The users, " + "told at length. " * 30)])
    assert names(index, "list users")[0] == "users.list"


def test_a_search_gives_the_same_order_every_time(index: SearchIndex) -> None:
    index.add([tool(f"pets.op{number}", "About pets") for number in range(50)])
    assert index.search("pets") == index.search("pets")
    assert names(index, "pets") == sorted(names(index, "pets"))


def test_a_removed_tool_is_found_no_more_and_its_integration_no_longer_filters(index: SearchIndex) -> None:
    index.add([tool("issues.list", "List issues", integration="jira")])
    index.remove(["jira.org.main.issues.list"])
    assert "jira.org.main.issues.list" not in index.search("issues").paths
    assert names(index, "jira issues")[0].startswith("issues.")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "!!!",
        '" OR *',
        "NEAR(",
        "a:b",
        "-",
        "x" * 10_000,
        "\x00",
        "'; DROP TABLE tools",
        "\ud800 x",
        "a" * 600 + " b",
    ],
)
def test_no_query_is_a_syntax_error(index: SearchIndex, query: str) -> None:
    index.search(query)
    assert names(index, "issues")


def test_words_come_apart_at_case_digits_and_marks() -> None:
    assert words_of("listPullRequests get_HTTPStatus XMLHttp2 naïve-日本語") == [
        *("list", "pull", "requests", "get", "http", "status", "xml", "http2", "naïve", "日本語")
    ]


def test_another_ranker_can_order_the_candidates() -> None:
    class Backwards(WordRanker):
        def rank(self, asked: Any, candidates: Sequence[Entry], rarity: Any, text: str) -> list[Entry]:
            return sorted(candidates, key=lambda one: one.path, reverse=True)

    index = SearchIndex(Backwards())
    index.add([tool("a", "pet"), tool("b", "pet"), tool("c", "pet")])
    assert names(index, "pet") == ["c", "b", "a"]
    index.close()


async def _filled(box: Toolbox, count: int) -> None:
    for number in range(count):
        box.add_code_tool(f"shop.org.main.pet.op{number:02d}", lambda args: 1, title="About pets", side_effect="read")


async def test_pages_follow_each_other_without_gap_or_repetition() -> None:
    async with toolbox() as box:
        await _filled(box, 25)
        for query in ("pets", ""):
            paths, cursor = [], None
            for expected in (10, 10, 5):
                page = box.search(query, limit=10, cursor=cursor)
                assert (len(page["items"]), page["total"]) == (expected, 25)
                paths += [item["path"] for item in page["items"]]
                cursor = page["next"]
            assert cursor is None
            assert len(set(paths)) == 25
            again = [item["path"] for item in box.search(query, limit=200)["items"]]
            assert again == paths


async def test_a_blocked_tool_is_neither_found_nor_counted() -> None:
    async with toolbox() as box:
        await _filled(box, 5)
        await box.add_policy("shop", "pet.op03", "block")
        found = box.search("pets")
        assert found["total"] == 4
        assert "shop.org.main.pet.op03" not in str(found)
        assert box.list_tools()["total"] == 4


@pytest.mark.parametrize("args", [{"cursor": "x"}, {"cursor": "-1"}, {"limit": 0}, {"limit": -5}])
async def test_a_page_that_does_not_exist_is_an_argument_error(args: dict[str, Any]) -> None:
    async with toolbox() as box:
        await _filled(box, 3)
        with pytest.raises(ToolError) as caught:
            box.search("pets", **args)
        assert caught.value.code == "invalid_arguments"


async def test_an_item_says_what_it_is_in_one_line() -> None:
    async with toolbox() as box:
        box.add_code_tool(
            "shop.org.main.pet.get",
            lambda args: 1,
            title="Get a pet",
            description="Get a pet by its number. " + "Much more text. " * 40,
            input_schema={"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
            output_schema={"type": "string"},
            side_effect="read",
        )
        (item,) = box.search("pet")["items"]
        assert item == {
            "path": "shop.org.main.pet.get",
            "description": "Get a pet by its number.",
            "side_effect": "read",
            "signature": "(args: { id: number }) => Promise<string>",
        }


async def test_others_have_their_turn_between_searches_that_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes a while, and a script may ask for as many as it may make calls."""
    order: list[str] = []
    plain = SearchIndex.search

    def searched(self: SearchIndex, *args: Any) -> Any:
        order.append("search")
        return plain(self, *args)

    async def others() -> None:
        while True:
            order.append("others")
            await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(SearchIndex, "search", searched)
    async with toolbox() as box, anyio.create_task_group() as group:
        box.add_code_tool("shop.org.main.get", lambda args: 1)
        group.start_soon(others)
        async with anyio.create_task_group() as searches:
            for number in range(40):
                searches.start_soon(box.proxy.call, CallContext(run_id="run_x"), "$search", {"query": f"get {number}"})
        group.cancel_scope.cancel()
    assert order.count("search") == 40
    assert ("search", "search") not in pairwise(order)


def test_a_word_said_again_and_again_is_looked_for_once(index: SearchIndex) -> None:
    asked: list[str] = []
    index._db.set_trace_callback(asked.append)
    assert "github.org.main.issues.create" in index.candidates("create issue " * 40, 5)
    assert sum(text.count('"issu') for text in asked) == 1
