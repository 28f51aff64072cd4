"""The tool proxy: every step of a call, and what is recorded of it however it ends."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bridge import proxy
from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from bridge.wire import codec
from bridge.wire.errors import StorageFull, ToolError
from tests.unit.proxied import ECHO, failing
from tests.unit.upstream import Journal, Seen, call, document, operation, parameter, response, toolbox, upstream

pytestmark = pytest.mark.anyio


def echoing(box: Toolbox, **more: Any) -> None:
    async def echo(args: dict[str, Any]) -> Any:
        return args

    box.add_code_tool(ECHO, echo, **{"side_effect": "read"} | more)


async def test_a_call_returns_the_value_its_encoding_and_a_record_of_it() -> None:
    journal = Journal()
    async with toolbox() as box:
        echoing(box)
        outcome = await call(box, ECHO, {"a": 1, "b": b"\x00"}, journal=journal, call_id=7)
        assert outcome.value == {"a": 1, "b": b"\x00"}
        assert codec.decode(outcome.encoded) == outcome.value
        record = outcome.record
        assert (record.id, record.path, record.outcome, record.decision) == (7, ECHO, "done", "approve")
        assert record.args_bytes == record.value_bytes == len(outcome.encoded)
        assert record.sent
        assert journal.heard == [("sending", "sending"), ("finished", "done")]
        assert journal.records == [record]


async def test_meta_puts_the_http_facts_beside_the_value() -> None:
    async with upstream() as server, toolbox() as box:
        server.reply("/x", {"id": 9}, status=201, headers={"location": "/x/9"})
        await box.add_openapi("api", document({"/x": {"post": operation()}}, server.base), allow_private=["127.0.0.1"])
        outcome = await call(box, "api.org.main.op", meta=True)
        decoded = codec.decode(outcome.encoded)
        assert decoded["value"] == {"id": 9}
        assert decoded["http"]["status"] == outcome.record.status == 201
        assert decoded["http"]["headers"]["location"] == "/x/9"
        assert codec.decode((await call(box, "api.org.main.op")).encoded) == {"id": 9}


async def test_an_unknown_path_names_the_paths_that_may_have_been_meant() -> None:
    async with toolbox() as box:
        for name in ("pet.getById", "pet.findByStatus", "store.order"):
            box.add_code_tool(f"shop.org.main.{name}", lambda args: 1, side_effect="read")
        error = await failing(box, "shop.org.main.pet.getByID")
        assert error.code == "tool_not_found"
        assert error.details["suggestions"][0] == "shop.org.main.pet.getById"
        assert "shop.org.main.pet.getById" in error.hint


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"count": "many"}, 'count: "many" is not of type integer'),
        ({}, "Missing count"),
        ({"count": 1, "cuont": 2}, "Unknown argument 'cuont'. Did you mean count? Accepted: count, tag."),
        ({"count": 1, "tag": {"deep": [1]}}, "tag.deep[0]: 1 is not of type string"),
        ([1], "one object"),
        ("text", "one object"),
    ],
)
async def test_arguments_that_do_not_fit_say_what_is_wrong_with_them(args: Any, message: str) -> None:
    async with toolbox() as box:
        deep = {"type": "object", "properties": {"deep": {"type": "array", "items": {"type": "string"}}}}
        schema = {
            "type": "object",
            "properties": {"count": {"type": "integer"}, "tag": deep},
            "required": ["count"],
            "additionalProperties": False,
        }
        echoing(box, input_schema=schema)
        error = await failing(box, args=args)
        assert error.code == "invalid_arguments"
        assert message in error.message
        assert (await call(box, ECHO, {"count": 1})).value == {"count": 1}


async def test_a_call_without_arguments_is_a_call_with_an_empty_object() -> None:
    async with toolbox() as box:
        echoing(box)
        assert (await call(box, ECHO, None)).value == {}


async def test_arguments_and_values_over_their_limits_are_too_large() -> None:
    async with toolbox() as box:
        echoing(box)
        ctx = CallContext(args_bytes=100)
        assert (await failing(box, args={"a": "x" * 200}, ctx=ctx)).code == "too_large"
        ctx = CallContext(value_bytes=100)
        error = await failing(box, args={"a": "x" * 200}, ctx=ctx)
        assert error.code == "too_large"
        assert error.details["limit"] == 100


async def test_an_answer_over_the_limit_is_cut_off_while_it_arrives() -> None:
    async with upstream() as server, toolbox() as box:
        written = 0

        async def endless(seen: Seen, reader: Any, writer: Any) -> None:
            nonlocal written
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
                written += 65_536
                await writer.drain()

        server.answers["/x"] = endless
        await box.add_openapi("api", document({"/x": {"get": operation()}}, server.base), allow_private=["127.0.0.1"])
        error = await failing(box, "api.org.main.op", ctx=CallContext(value_bytes=100_000))
        assert error.code == "too_large"
        assert written < 32 << 20


async def test_a_plain_function_runs_in_a_thread_and_a_coroutine_function_does_not() -> None:
    threads: list[int] = []

    class Callable:
        async def __call__(self, args: dict[str, Any]) -> int:
            threads.append(threading.get_ident())
            return 2

    async with toolbox() as box:
        box.add_code_tool("demo.org.main.plain", lambda args: threads.append(threading.get_ident()), side_effect="read")
        box.add_code_tool("demo.org.main.object", Callable(), side_effect="read")
        await call(box, "demo.org.main.plain")
        assert (await call(box, "demo.org.main.object")).value == 2
    assert threads[0] != threading.get_ident() == threads[1]


async def test_a_tool_error_of_a_python_tool_reaches_its_caller_and_any_other_error_does_not() -> None:
    async with toolbox() as box:

        def deliberate(args: dict[str, Any]) -> Any:
            raise ToolError("upstream_error", "the shop is closed", retryable=True, details={"opens": 9})

        def accident(args: dict[str, Any]) -> Any:
            return {}["/srv/secret"]

        box.add_code_tool("demo.org.main.deliberate", deliberate, side_effect="read")
        box.add_code_tool("demo.org.main.accident", accident, side_effect="read")
        error = await failing(box, "demo.org.main.deliberate")
        assert (error.message, error.retryable, error.details) == ("the shop is closed", True, {"opens": 9})
        error = await failing(box, "demo.org.main.accident")
        assert error.code == "internal"
        assert "/srv" not in str(error.as_dict())


async def test_a_value_that_cannot_cross_names_its_place_and_one_that_can_be_mended_is() -> None:
    values = {
        "set": ({"rows": [{1, 2}]}, None),
        "tuple": ((1, (2,)), [1, [2]]),
        "surrogate": ("a\ud800b", "a\ufffdb"),
        "huge": (2**80, str(2**80)),
        "exact": (2**63, 2**63),
    }
    async with toolbox() as box:
        for name, (value, _) in values.items():
            box.add_code_tool(f"demo.org.main.{name}", lambda args, value=value: value, side_effect="read")
        for name, (_, expected) in values.items():
            if expected is not None:
                assert codec.decode((await call(box, f"demo.org.main.{name}")).encoded) == expected
        assert "$.rows[0]" in (await failing(box, "demo.org.main.set")).message


async def test_a_python_tools_value_nested_too_deeply_is_too_large() -> None:
    """MSG-16"""
    deep: Any = {}
    for level in range(100):
        deep = {"a": deep} if level % 2 else [deep, ["a"]]
    endless: list[Any] = []
    endless += [endless, endless]
    async with toolbox() as box:
        for name, value, why in (("deep", deep, "nested deeper than 100 levels"), ("endless", endless, "parts")):
            box.add_code_tool(f"demo.org.main.{name}", lambda args, value=value: value, side_effect="read")
            error = await failing(box, f"demo.org.main.{name}")
            assert error.code == "too_large"
            assert why in error.message
        wide: Any = [[{"n": [n]}] for n in range(1_000)]
        box.add_code_tool("demo.org.main.wide", lambda args: wide, side_effect="read")
        assert (await call(box, "demo.org.main.wide")).value == wide


async def test_a_result_that_breaks_the_output_schema_is_an_error() -> None:
    async with toolbox() as box:
        echoing(box, output_schema={"type": "object", "required": ["id"]})
        assert (await call(box, ECHO, {"id": 1})).value == {"id": 1}
        error = await failing(box, args={"no": 1})
        assert error.code == "internal"
        assert "Missing id" in error.message


async def test_a_tool_that_takes_too_long_times_out_and_a_write_is_then_unknown() -> None:
    async def forever(args: dict[str, Any]) -> None:
        await anyio.sleep_forever()

    for side_effect, outcome in (("read", "failed"), ("write", "unknown")):
        journal = Journal()
        async with toolbox(tool_timeout_s=0.05) as box:
            box.add_code_tool(ECHO, forever, side_effect=side_effect)  # type: ignore[arg-type]
            error = await failing(box, journal=journal)
        assert error.code == "upstream_timeout"
        assert error.retryable is (side_effect == "read")
        assert journal.heard == [("sending", "sending"), ("finished", outcome)]


async def test_the_nearer_of_the_tools_and_the_runs_deadline_ends_the_call() -> None:
    async def forever(args: dict[str, Any]) -> None:
        await anyio.sleep_forever()

    async with toolbox(tool_timeout_s=30) as box:
        box.add_code_tool(ECHO, forever, side_effect="read")
        with anyio.fail_after(10):
            error = await failing(box, ctx=CallContext(deadline=anyio.current_time() + 0.05))
        assert error.code == "upstream_timeout"


@pytest.mark.parametrize(("side_effect", "outcome"), [("read", "failed"), ("write", "unknown"), ("delete", "unknown")])
async def test_a_cancelled_call_is_recorded_as_it_stands(side_effect: Any, outcome: str) -> None:
    journal, started = Journal(), anyio.Event()

    async def forever(args: dict[str, Any]) -> None:
        started.set()
        await anyio.sleep_forever()

    async with toolbox() as box:
        box.add_code_tool(ECHO, forever, side_effect=side_effect)
        async with anyio.create_task_group() as group:

            async def make() -> None:
                await call(box, ECHO, journal=journal)

            group.start_soon(make)
            await started.wait()
            group.cancel_scope.cancel()
    assert journal.heard == [("sending", "sending"), ("finished", outcome)]
    assert journal.records[0].code == "cancelled"


async def test_a_call_that_is_cancelled_before_it_was_sent_has_failed() -> None:
    journal, asking, added = Journal(), anyio.Event(), False

    async def resolver(name: str, port: int) -> list[str]:
        if not added:
            return ["93.184.216.34"]
        asking.set()
        await anyio.sleep_forever()
        return []

    async with toolbox(resolver) as box:
        await box.add_http("web", ["http://api.test"])
        added = True
        async with anyio.create_task_group() as group:

            async def make() -> None:
                await call(box, "web.org.main.http.request", {"path": "/", "method": "POST"}, journal=journal)

            group.start_soon(make)
            await asking.wait()
            group.cancel_scope.cancel()
    assert journal.heard == [("finished", "failed")]


async def test_nothing_leaves_before_the_journal_has_heard_of_it() -> None:
    async with upstream() as server, toolbox() as box:
        await box.add_openapi("api", document({"/x": {"post": operation()}}, server.base), allow_private=["127.0.0.1"])

        class Full(Journal):
            async def sending(self, record: Any) -> None:
                assert server.seen == []
                raise StorageFull("no room")

        journal = Full()
        error = await failing(box, "api.org.main.op", journal=journal)
        assert error.code == "internal"
        assert server.seen == []
        assert journal.heard == [("finished", "failed")]


async def test_a_refused_connection_fails_and_a_lost_one_leaves_a_write_unknown() -> None:
    async def vanish(seen: Seen, reader: Any, writer: Any) -> None:
        writer.close()

    async def break_off(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello")
        writer.close()

    async with upstream() as server, toolbox() as box:
        described = {"/x": {"post": operation(), "get": operation(operationId="get")}}
        await box.add_openapi("api", document(described, server.base), allow_private=["127.0.0.1"])
        for how, path, outcome, retryable in (
            (vanish, "op", "unknown", False),
            (vanish, "get", "failed", True),
            (break_off, "op", "unknown", False),
            (break_off, "get", "failed", True),
        ):
            server.answers["/x"] = how
            journal = Journal()
            error = await failing(box, f"api.org.main.{path}", journal=journal)
            assert (error.code, error.retryable) == ("upstream_unreachable", retryable)
            assert journal.heard[-1] == ("finished", outcome)
    async with toolbox() as box:
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        journal = Journal()
        error = await failing(box, "web.org.main.http.request", {"path": "/", "method": "POST"}, journal=journal)
        assert error.code == "upstream_unreachable"
        assert journal.heard == [("finished", "failed")]


async def test_a_path_with_a_mark_asks_for_more_or_for_one_type() -> None:
    pet = {"type": "object", "properties": {"name": {"type": "string"}}}
    async with toolbox() as box:
        await box.add_openapi("api", _pets(pet), base_url="https://pets.example")
        path = "api.org.main.pets.list"
        assert box.describe(f"{path}#3")["path"] == path
        assert box.describe(f"{path}#Pet")["signature"] == "type Pet = { name?: string };"
        with pytest.raises(ToolError) as caught:
            box.describe(f"{path}#Pett")
        assert caught.value.code == "tool_not_found"
        assert caught.value.details == {"suggestions": ["Pet"]}
        with pytest.raises(ToolError) as caught:
            box.describe("api.org.main.pets.lst#Pet")
        assert caught.value.details == {"suggestions": [path]}


def _pets(pet: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}}}
    listing = {"get": {"responses": {"200": {"description": "", "content": content}}}}
    return {"openapi": "3.0.3", "info": {}, "paths": {"/pets": listing}, "components": {"schemas": {"Pet": pet}}}


async def test_search_and_describe_are_calls_like_any_other() -> None:
    journal = Journal()
    async with toolbox() as box:
        echoing(box, description="Gives back what it gets.")
        found = await call(box, "$search", {"query": "gives back"}, journal=journal)
        assert found.value["items"][0]["path"] == ECHO
        told = await call(box, "$describe", {"path": ECHO}, journal=journal)
        assert told.value["signature"].splitlines()[0] == f"// tools.{ECHO}()"
        assert told.value == box.describe(ECHO)
        assert journal.heard == [("finished", "done"), ("finished", "done")]
        for path, args in (
            ("$search", {"q": "x"}),
            ("$search", {"query": 1}),
            ("$describe", {}),
            ("$describe", {"path": f"{ECHO}#9"}),
            ("$describe", {"path": f"{ECHO}#"}),
            ("$search", {"limit": 0}),
        ):
            assert (await failing(box, path, args)).code == "invalid_arguments"
        assert (await failing(box, "$describe", {"path": "no.org.such.tool"})).code == "tool_not_found"


async def test_a_tool_in_place_of_another_is_checked_by_its_own_schema() -> None:
    async with toolbox() as box:
        echoing(box, input_schema={"type": "object", "required": ["a"]})
        await failing(box)
        echoing(box, input_schema={"type": "object", "required": ["b"]})
        assert (await call(box, ECHO, {"b": 1})).value == {"b": 1}


async def test_many_calls_at_once_do_not_wait_for_each_other() -> None:
    async with upstream() as server, toolbox() as box:
        arrived = anyio.Semaphore(0)

        async def together(seen: Seen, reader: Any, writer: Any) -> None:
            arrived.release()
            await server.released.wait()
            writer.write(response(seen.target))

        server.answers["/x"] = together
        described = document({"/x": {"get": operation(parameter("q"))}}, server.base)
        await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        values: dict[int, Any] = {}

        async def make(number: int) -> None:
            values[number] = (await call(box, "api.org.main.op", {"q": str(number)})).value

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for number in range(10):
                    group.start_soon(make, number)
                for _ in range(10):
                    await arrived.acquire()
                server.released.set()
        assert values == {number: f"/x?q={number}" for number in range(10)}


async def test_the_check_of_a_tool_among_many_definitions_is_made_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made_in: list[int] = []

    def checker(*args: Any, **options: Any) -> Any:
        made_in.append(threading.get_ident())

    monkeypatch.setattr(proxy, "checker", checker)
    body = {"$ref": "#/components/schemas/One0"}
    for count, beside in ((2, False), (proxy.MANY_DEFINITIONS + 1, True)):
        schemas = {
            f"One{n}": {"type": "object", "properties": {"next": {"$ref": f"#/components/schemas/One{n + 1}"}}}
            for n in range(count)
        }
        schemas[f"One{count}"] = {"type": "string"}
        async with upstream() as server, toolbox(allow_private=["127.0.0.1"]) as box:
            described = document({"/x": {"post": operation(body=body)}}, server.base, components={"schemas": schemas})
            await box.add_openapi("api", described)
            await call(box, "api.org.main.op", {"body": {}})
        assert (made_in.pop() != threading.get_ident()) is beside
