"""Tools through the SDK: in-memory tools, direct calls, discovery, failures."""

import asyncio
import subprocess
import sys

import anyio
import pytest

from executor import Config, ConfigError, Executor, InvalidRequest, ToolError

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex():
    async with Executor.open(config=Config(workers=1)) as executor:
        executor.tool(
            "s.org.main.add",
            lambda args: args["a"] + args["b"],
            description="Add two numbers",
            input_schema={
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
                "additionalProperties": False,
            },
            side_effect="read",
        )
        yield executor


async def test_a_tool_is_called_the_same_way_inside_and_outside(ex: Executor):
    assert (await ex.run("await tools.s.org.main.add({a: 1, b: 2})")).unwrap() == 3
    assert await ex.call("s.org.main.add", {"a": 1, "b": 2}) == 3
    assert (await ex.call("s.org.main.add", {"a": 1, "b": 2}, meta=True))["value"] == 3


async def test_a_failing_call_has_the_same_code_inside_and_outside(ex: Executor):
    for path, args in (("s.org.main.add", {"a": "x", "b": 2}), ("s.org.main.nothing", {})):
        with pytest.raises(ToolError) as outside:
            await ex.call(path, args)
        inside = await ex.run(
            "try { await tools.call(input.path, input.args) } catch (e) { [e.code, e.path] }",
            input={"path": path, "args": args},
        )
        assert inside.unwrap() == [outside.value.code, path]


async def test_search_and_describe_are_the_same_inside_and_outside(ex: Executor):
    inside = await ex.run("[await tools.search('add numbers'), await tools.describe('s.org.main.add')]")
    assert inside.unwrap() == [await ex.search("add numbers"), await ex.describe("s.org.main.add")]
    assert [tool["path"] for tool in (await ex.tools())["items"]] == ["s.org.main.add"]


async def test_a_tool_that_raises_says_nothing_of_the_host(ex: Executor):
    def broken(args: dict) -> None:
        raise RuntimeError("at /home/operator/secret.py")

    ex.tool("broken.org.main.now", broken, side_effect="read")
    answer = await ex.run("try { await tools.broken.org.main.now({}) } catch (e) { [e.code, e.message] }")
    code, message = answer.unwrap()
    assert code == "internal"
    assert "secret" not in message
    assert "/" not in message


async def test_a_value_that_cannot_cross_is_an_error_not_an_empty_object(ex: Executor):
    ex.tool("odd.org.main.now", lambda args: {"at": object()}, side_effect="read")
    answer = await ex.run("await tools.odd.org.main.now({})")
    assert answer.status == "failed"
    assert answer.error is not None
    assert "$.at" in answer.error["message"]


@pytest.mark.parametrize("path", ["x", "x.y.z", "", "x.org.main.", "x.org.main.a b", ".org.main.a"])
async def test_a_path_that_is_none_is_refused(ex: Executor, path: str):
    with pytest.raises(InvalidRequest):
        ex.tool(path, lambda args: 1)


async def test_a_tool_at_a_path_in_use_takes_its_place(ex: Executor):
    for value in (1, 2):
        ex.tool("again.org.main.now", lambda args, value=value: value, side_effect="read")
        assert await ex.call("again.org.main.now") == value


async def test_a_tool_with_an_effect_needs_approval_and_is_not_called(ex: Executor):
    calls: list[dict] = []
    ex.tool("danger.org.main.drop", calls.append, side_effect="delete")
    answer = await ex.run("await tools.danger.org.main.drop({ n: 1 })")
    assert (answer.status, answer.interactions[0]["arguments"]) == ("waiting", {"n": 1})
    assert (await ex.cancel_run(answer.run_id)).status == "cancelled"
    with pytest.raises(ToolError) as refusal:
        await ex.call("danger.org.main.drop", {"n": 1})
    assert refusal.value.code == "approval_required"
    assert calls == []


async def test_cancelling_a_direct_call_cancels_the_tool(ex: Executor):
    called, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(args: dict) -> None:
        called.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    ex.tool("hang.org.main.now", hang, side_effect="read")
    task = asyncio.create_task(ex.call("hang.org.main.now"))
    await called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


async def test_a_tool_that_blocks_its_thread_does_not_outlast_the_deadline(ex: Executor):
    import threading

    release = threading.Event()
    ex.tool("block.org.main.now", lambda args: release.wait(60), side_effect="read")
    try:
        with anyio.fail_after(20):
            answer = await ex.run("await tools.block.org.main.now({})", budgets={"wall_ms": 100})
    finally:
        release.set()
    assert answer.error is not None
    assert answer.error["code"] == "deadline_exceeded"


async def test_health_says_how_the_house_stands(ex: Executor):
    health = ex.health()
    assert health["status"] == "ok"
    assert health["isolation"]["level"] in ("full", "syscalls", "process")
    assert health["runs"]["running"] == 0
    assert health["store"] == {"durable": False, "full": False}


def test_importing_the_package_loads_nothing_heavy():
    script = (
        "import sys, executor\n"
        "heavy = [m for m in ('wasmtime', 'httpx2', 'pydantic', 'starlette', 'anyio', 'msgpack') if m in sys.modules]\n"
        "print(heavy, all(hasattr(executor, name) for name in executor.__all__))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "[] True\n"


async def test_configuration_comes_from_the_home_and_then_the_environment(tmp_path, monkeypatch):
    (tmp_path / "config.toml").write_text(
        "workers = 1\nmax_running = 7\n[budgets]\nfuel = 1000000\n[ceilings]\nwall_ms = 900\n"
    )
    monkeypatch.setenv("EXECUTOR_MAX_RUNNING", "9")
    monkeypatch.setenv("EXECUTOR_CEILINGS_FUEL", "2000000")
    monkeypatch.setenv("EXECUTOR_ALLOW_PRIVATE", "127.0.0.1, 10.0.0.0/8")
    config = Config.load(tmp_path)
    assert (config.workers, config.max_running, config.allow_private) == (1, 9, ("127.0.0.1", "10.0.0.0/8"))
    async with Executor.open(tmp_path) as ex:
        record = await ex.get_run((await ex.run("1", budgets={"wall_ms": 5000})).run_id)
        assert (record.budgets["fuel"], record.budgets["wall_ms"]) == (1_000_000, 900)
        answer = await ex.run("for (;;);", budgets={"fuel": 10**12})
        assert answer.limit is not None
        assert answer.limit["limit"] == 2_000_000


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("workers = 0", "workers"),
        ("wrokers = 1", "wrokers"),
        ("[budgets]\nfule = 1", "fule"),
        ("[ceilings]\nfuel = 10000000000000", "ceilings"),
        ("not toml", "config.toml"),
    ],
)
def test_a_configuration_that_is_wrong_is_refused_by_name(tmp_path, text: str, named: str):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match=named):
        Config.load(tmp_path, environ={})


async def test_a_call_that_nobody_awaits_is_made_and_a_race_does_not_wait_for_its_loser(ex: Executor):
    made: list[int] = []

    async def slow(args: dict) -> None:
        made.append(args["n"])
        await asyncio.sleep(0.2)

    ex.tool("slow.org.main.write", slow, side_effect="write")
    await ex.toolbox.add_policy("slow", "*", "approve")
    alone = await ex.run("tools.slow.org.main.write({n: 1}); 'done'")
    assert (alone.result, [call["outcome"] for call in alone.calls]) == ("done", ["done"])
    race = await ex.run(
        "await Promise.race([tools.slow.org.main.write({n: 2}), new Promise(done => setTimeout(done, 5))]); 'done'"
    )
    assert (race.result, [call["outcome"] for call in race.calls]) == ("done", ["unknown"])
    assert made == [1, 2]


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), GeneratorExit()], ids=repr)
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_tool_that_raises_to_end_more_than_itself_fails_and_ends_nothing_else(
    ex: Executor, error: BaseException, kind: str
):
    def plain(args: dict) -> None:
        raise error

    async def waits(args: dict) -> None:
        raise error

    ex.tool("s.org.main.ends", plain if kind == "plain" else waits, side_effect="read")
    caught = "try { await tools.s.org.main.ends({}) } catch (e) { e.code }"
    with anyio.fail_after(20):
        assert (await ex.run(caught)).unwrap() == "internal"
        with pytest.raises(ToolError, match="failed unexpectedly"):
            await ex.call("s.org.main.ends")


async def test_a_call_that_is_cancelled_cancels_its_tool(ex: Executor):
    begun, ended = asyncio.Event(), asyncio.Event()

    async def waits(args: dict) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    ex.tool("s.org.main.waits", waits, side_effect="read")
    call = asyncio.create_task(ex.call("s.org.main.waits"))
    with anyio.fail_after(20):
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await ended.wait()


def shared() -> list:
    value: list = [1]
    for _ in range(40):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("value", "code"), [({"a": [{1: 2}]}, "internal"), (shared(), "too_large")], ids=["key", "shared"]
)
async def test_what_a_tool_returns_and_cannot_be_written_fails_its_call(ex: Executor, value: object, code: str):
    ex.tool("s.org.main.odd", lambda args: value, side_effect="read")
    assert (await ex.run("try { await tools.s.org.main.odd({}) } catch (e) { e.code }")).unwrap() == code


async def test_what_cannot_be_called_is_no_tool(ex: Executor):
    with pytest.raises(InvalidRequest, match="of type int cannot be called"):
        ex.tool("s.org.main.five", 5)  # type: ignore[arg-type]
