"""Reading a description again: what changed is shown, what could do more awaits review, what fails changes nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import Conflict, ImportFailed, InvalidRequest, NotFound, StorageFull, ToolError
from catalog.review import Pending, Review
from catalog.store import MemoryCatalog
from runtime.store.store import Store
from tests.unit.upstream import Upstream, call, document, operation, parameter, redirect, toolbox, upstream

pytestmark = pytest.mark.anyio

LOCAL = ["127.0.0.1"]


@asynccontextmanager
async def served(*, ops: dict[str, Any] | None = None) -> AsyncIterator[tuple[Upstream, Toolbox]]:
    """A toolbox with `api` added from a URL; `ops` maps paths to path items."""
    async with upstream() as server, toolbox() as box:
        server.reply("/doc", document(ops or START, server.base))
        await box.add_openapi("api", server.base + "/doc", allow_private=LOCAL)
        yield server, box


def op(name: str, *parameters: Any, **more: Any) -> dict[str, Any]:
    return operation(*parameters, operationId=name, **more)


START: dict[str, Any] = {"/pets": {"get": op("list")}, "/pets/{id}": {"get": op("show", parameter("id", "path"))}}


async def code(box: Toolbox, tool: str, args: Any = None) -> str:
    try:
        await call(box, f"api.org.main.{tool}", args)
    except ToolError as e:
        return e.code
    return "done"


async def test_a_refresh_without_a_change_changes_nothing() -> None:
    async with served() as (_, box):
        report = await box.refresh("api")
        assert (report.added, report.removed, report.changed, report.unchanged) == ([], [], [], 2)
        assert (report.awaiting, report.held) == ([], [])
        assert await code(box, "list") == "done"


async def test_a_new_operation_is_described_but_neither_found_nor_called_before_it_is_reviewed() -> None:
    """POL-06"""
    async with served() as (server, box):
        await box.add_policy("api", "*", "approve")
        new = START | {"/everything": {"delete": op("erase", summary="Erase the world")}}
        server.reply("/doc", document(new, server.base))
        report = await box.refresh("api")
        (added,) = report.added
        assert (added["tool"], added["side_effect"]) == ("erase", "delete")
        assert added["destination"] == f"DELETE {server.base}/everything"
        assert report.awaiting == ["erase"]
        with pytest.raises(ToolError, match="awaits review") as caught:
            await call(box, "api.org.main.erase")
        assert caught.value.code == "blocked"
        assert "executor review api --accept erase" in str(caught.value.hint)
        assert box.search("erase the world")["items"] == []
        assert "api.org.main.erase" not in [one["path"] for one in box.list_tools()["items"]]
        told = box.describe("api.org.main.erase")
        assert (told["status"], told["effect"]) == ("awaits review", "block")
        steps = box.explain("api.org.main.erase")["steps"]
        assert (steps[0]["step"], box.explain("api.org.main.erase")["effect"]) == ("review", "block")
        assert await code(box, "list") == "done"
        assert [one.target for one in server.seen if one.method == "DELETE"] == []
        left = await box.review("api", ["api.org.main.erase"])
        assert (left["accepted"], left["tools"]) == (["erase"], [])
        assert await code(box, "erase") == "done"
        assert [one["path"] for one in box.search("erase the world")["items"]] == ["api.org.main.erase"]
        assert "status" not in box.describe("api.org.main.erase")


async def test_a_removed_operation_says_so_and_is_itself_again_when_it_comes_back() -> None:
    async with served() as (server, box):
        server.reply("/doc", document({"/pets": START["/pets"]}, server.base))
        report = await box.refresh("api")
        assert [one["tool"] for one in report.removed] == ["show"]
        with pytest.raises(ToolError, match="a refresh removed it on 20") as caught:
            await call(box, "api.org.main.show", {"id": "1"})
        assert caught.value.code == "tool_not_found"
        assert "suggestions" in (caught.value.details or {})
        server.reply("/doc", document(START, server.base))
        report = await box.refresh("api")
        assert ([one["tool"] for one in report.added], report.awaiting) == (["show"], [])
        assert await code(box, "show", {"id": "1"}) == "done"


async def test_an_operation_that_comes_back_as_something_else_awaits_review() -> None:
    async with served() as (server, box):
        server.reply("/doc", document({"/pets": START["/pets"]}, server.base))
        await box.refresh("api")
        server.reply("/doc", document({"/pets": START["/pets"], "/x": {"get": op("show")}}, server.base))
        assert (await box.refresh("api")).awaiting == ["show"]
        assert await code(box, "show") == "blocked"


@pytest.mark.parametrize(
    ("ops", "what", "awaits"),
    [
        ({"/pets": {"post": op("list")}}, ["side_effect", "destination", "binding"], True),
        ({"/secrets": {"get": op("list")}}, ["destination", "binding"], True),
        ({"/pets": {"get": op("list", parameter("limit"))}}, ["input", "binding"], False),
        ({"/pets": {"get": op("list", description="Safe, no approval needed.")}}, ["description"], False),
        (
            {
                "/pets": {
                    "get": op(
                        "list",
                        responses={
                            "200": {
                                "description": "",
                                "content": {
                                    "application/json": {"schema": {"type": "array", "items": {"type": "string"}}}
                                },
                            }
                        },
                    )
                }
            },
            ["output"],
            False,
        ),
    ],
)
async def test_a_change_is_shown_by_its_parts_and_awaits_review_where_it_could_do_more(
    ops: Any, what: list[str], awaits: bool
) -> None:
    """POL-06"""
    async with served() as (server, box):
        await box.add_policy("api", "*", "approve")
        server.reply(
            "/doc", document(START | ops if "/pets" in ops else ops | {"/pets/{id}": START["/pets/{id}"]}, server.base)
        )
        report = await box.refresh("api")
        (changed,) = report.changed
        assert changed["tool"] == "list"
        assert set(what) <= set(changed["what"])
        assert changed["awaits_review"] is awaits
        assert await code(box, "list") == ("blocked" if awaits else "done")
        server.reply("/doc", document(START, server.base))
        assert (await box.refresh("api")).awaiting == []
        assert await code(box, "list") == "done"


async def test_a_side_effect_that_sinks_awaits_review_too() -> None:
    """POL-06, POL-07: what an API says about itself never lowers the level."""
    async with served(ops={"/pets": {"post": op("make")}}) as (server, box):
        server.reply("/doc", document({"/pets": {"get": op("make")}}, server.base))
        assert (await box.refresh("api")).awaiting == ["make"]
        assert await code(box, "make") == "blocked"
        (open_one,) = box.awaiting_review("api")["tools"]
        assert open_one["why"] == ["side_effect", "destination"]
        assert open_one["granted"]["side_effect"] == "write"


async def test_a_schema_that_changes_behind_a_reference_is_a_change() -> None:
    def described(kind: str) -> dict[str, Any]:
        deep = {"A": {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B"}}}, "B": {"type": kind}}
        answer = {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}
        ops = {"/x": {"get": op("x", responses={"200": {"description": "", "content": answer}})}}
        return document(ops, "http://127.0.0.1:9") | {"components": {"schemas": deep}}

    async with toolbox() as box:
        await box.add_openapi("api", described("string"), allow_private=LOCAL)
        (changed,) = (await box.refresh("api", described("integer"))).changed
        assert changed["what"] == ["output"]


async def test_another_host_is_held_back_and_gets_no_request_before_it_is_reviewed() -> None:
    """POL-06"""
    async with upstream() as server, upstream() as other, toolbox() as box:
        server.reply("/doc", document(START, server.base))
        await box.add_openapi("api", server.base + "/doc", allow_private=LOCAL)
        await box.add_policy("api", "*", "approve")
        moved = {"/pets": {"get": op("list")}, "/moved": {"get": op("moved", servers=[{"url": other.base}])}}
        server.reply("/doc", document(moved, server.base))
        report = await box.refresh("api")
        assert (report.awaiting, report.held) == (["moved"], [other.base])
        assert box.integrations()[0]["origins"] == [server.base]
        server.answers["/pets"] = redirect(other.base + "/pets")
        assert await code(box, "list") == "egress_denied"
        assert await code(box, "moved") == "blocked"
        assert other.seen == []
        assert (await box.review("api", ["moved"]))["held"] == []
        assert await code(box, "moved") == "done"
        assert len(other.seen) == 1


async def test_a_credential_goes_to_new_places_only_at_the_word_of_somebody_who_could_have_named_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """POL-06: a key of the API cannot have the credential of the machine sent to a place of its choice."""
    monkeypatch.setenv("POLICY_TOKEN", "canary-canary-1")
    async with upstream() as server, upstream() as other, toolbox() as box:
        kept = {"auth": "bearer", "secret": "env:POLICY_TOKEN", "allow_private": LOCAL}
        await box.add_openapi("api", document(START, server.base), **kept)
        assert await code(box, "list") == "done"
        stolen = document(START, other.base)
        assert (await box.refresh("api", stolen)).awaiting == ["list", "show"]
        told = await box.review("api", "all", host=False)
        assert told["unconnected"] == ["api.org.main"]
        assert await code(box, "list") == "connection_missing"
        await box.add_openapi("api", stolen, replace=True, host=False, allow_private=LOCAL)
        assert await code(box, "list") == "connection_missing"
        await box.remove("api")
        await box.add_openapi("api", stolen, host=False, allow_private=LOCAL)
        assert await code(box, "list") == "connection_missing"
        assert other.seen == []
        await box.add_openapi("api", stolen, replace=True, allow_private=LOCAL)
        assert await code(box, "list") == "done"
        assert other.seen[0].header("authorization") == "Bearer canary-canary-1"


async def test_a_refresh_that_fails_leaves_everything_as_it_was() -> None:
    catalog = MemoryCatalog()
    async with upstream() as server, Toolbox(ToolboxSettings(tool_timeout_s=5), catalog=catalog) as box:
        server.reply("/doc", document(START, server.base))
        await box.add_openapi("api", server.base + "/doc", allow_private=LOCAL)
        before = await catalog.integrations()
        shown = (
            box.list_tools(),
            box.search("list"),
            box.integrations(),
            box.describe("api.org.main.list", schemas=True),
        )
        private = document(START, "http://10.0.0.1")
        broken: list[Any] = [
            b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{{{",
        ]
        for answer in broken:
            server.answers["/doc"] = answer
            with pytest.raises(ImportFailed):
                await box.refresh("api")
        for bad in ({"openapi": "3.1.0"}, private, document({}, server.base), "/no/such/file.json"):
            with pytest.raises(ImportFailed):
                await box.refresh("api", bad)
        assert await catalog.integrations() == before
        after = (
            box.list_tools(),
            box.search("list"),
            box.integrations(),
            box.describe("api.org.main.list", schemas=True),
        )
        assert after == shown
        assert await code(box, "list") == "done"


async def test_a_store_without_room_keeps_the_old_catalog() -> None:
    class Full(MemoryCatalog):
        full = False

        async def put_integration(self, row: Any, connections: Any) -> None:
            if self.full:
                raise StorageFull("the disk is full")
            await super().put_integration(row, connections)

    catalog = Full()
    async with Toolbox(catalog=catalog) as box:
        await box.add_openapi("api", document(START, "http://127.0.0.1:9"), allow_private=LOCAL)
        catalog.full = True
        with pytest.raises(StorageFull):
            await box.refresh("api", document({"/pets": START["/pets"]}, "http://127.0.0.1:9"))
        assert box.list_tools()["total"] == 2
        assert box.describe("api.org.main.show")["effect"] == "approve"


async def test_a_description_is_read_again_from_its_file_and_one_that_was_given_has_nowhere(tmp_path: Path) -> None:
    file = tmp_path / "api.json"
    file.write_text(json.dumps(document(START, "http://127.0.0.1:9")))
    async with toolbox() as box:
        await box.add_openapi("api", file, allow_private=LOCAL)
        file.write_text(json.dumps(document({"/pets": START["/pets"]}, "http://127.0.0.1:9")))
        assert [one["tool"] for one in (await box.refresh("api")).removed] == ["show"]
        await box.add_openapi("given", document(START, "http://127.0.0.1:9"), allow_private=LOCAL)
        with pytest.raises(InvalidRequest, match="nowhere"):
            await box.refresh("given")
        assert (await box.refresh("given", file)).removed[0]["tool"] == "show"
        assert (await box.refresh("given")).unchanged == 1
        await box.add_http("web", ["https://93.184.216.34"])
        with pytest.raises(InvalidRequest, match="kind http"):
            await box.refresh("web")
        with pytest.raises(NotFound):
            await box.refresh("nothing")


async def test_what_awaits_review_still_does_after_a_restart(tmp_path: Path) -> None:
    more = START | {"/new": {"get": op("new")}}
    for start in (True, False):
        store = await Store.open(tmp_path)
        async with Toolbox(catalog=store.catalog) as box:
            if start:
                await box.add_openapi("api", document(START, "http://127.0.0.1:9"), allow_private=LOCAL)
                await box.refresh("api", document(more, "http://127.0.0.1:9"))
                await box.refresh("api", document(more | {"/pets": {"post": op("list")}}, "http://127.0.0.1:9"))
            assert await code(box, "new") == "blocked"
            assert [one["tool"] for one in box.awaiting_review("api")["tools"]] == ["list", "new"]
            assert box.search("new")["total"] == 0
        await store.close()


async def test_only_what_awaits_review_is_let_in_and_all_or_nothing_of_a_list() -> None:
    async with served() as (server, box):
        more = START | {"/a": {"get": op("a")}, "/b": {"get": op("b")}}
        server.reply("/doc", document(more, server.base))
        await box.refresh("api")
        for wrong in (["a", "nothing"], ["a", "list"], ["a", "A"], ["a", "a "], ["a", "а"]):
            with pytest.raises(NotFound, match="awaits review"):
                await box.review("api", wrong)
        assert await code(box, "a") == "blocked"
        assert (await box.review("api", ["a"]))["accepted"] == ["a"]
        assert (await code(box, "a"), await code(box, "b")) == ("done", "blocked")
        assert (await box.review("api", "all"))["accepted"] == ["b"]
        assert await code(box, "b") == "done"


async def test_a_removed_integration_keeps_its_connections_for_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLICY_TOKEN", "canary-canary-1")
    async with served() as (server, box):
        await box.connect("api", scope="user", connection="mine", auth="bearer", secret="env:POLICY_TOKEN")
        await box.connect("api", auth="bearer", secret="env:POLICY_TOKEN", replace=True)
        await box.remove("api")
        assert box.list_tools()["total"] == 0
        await box.add_openapi("api", server.base + "/doc", allow_private=LOCAL)
        for path in ("api.org.main.list", "api.user.mine.list"):
            await call(box, path)
            assert server.seen[-1].header("authorization") == "Bearer canary-canary-1"
        await box.remove("api", connections=True)
        await box.add_openapi("api", server.base + "/doc", allow_private=LOCAL)
        assert [each["name"] for each in box.integrations()[0]["connections"]] == ["main"]
        await call(box, "api.org.main.list")
        assert server.seen[-1].header("authorization") is None
        await box.remove("api")
        assert await box.remove("api", connections=True) == (0, {})
        with pytest.raises(NotFound):
            await box.remove("api", connections=True)


async def test_a_refresh_that_meets_another_change_is_refused() -> None:
    async with served() as (server, box):

        async def replaced(seen: Any, reader: Any, writer: Any) -> None:
            await box.add_openapi("api", document(START, server.base), replace=True, allow_private=LOCAL)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

        server.answers["/doc"] = replaced
        with pytest.raises((Conflict, ImportFailed)):
            await box.refresh("api")
        assert await code(box, "list") == "done"


def test_a_review_comes_back_from_its_json_and_a_broken_one_is_an_error() -> None:
    review = Review({"a": Pending(("added",), None)}, frozenset({"https://x.test"}))
    assert Review.from_json(review.as_json()) == review
    assert Review.from_json("{}") == Review()
    for text in ("", "[1]", '{"pending": {"a": 1}, "held": [], "removed": {}}'):
        with pytest.raises((ValueError, KeyError, TypeError)):
            Review.from_json(text)
