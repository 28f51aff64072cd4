"""The driver against a worker that says what no honest guest would, and against clocks that stand still."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from bridge.calls import CallOutcome, CallRecord
from bridge.wire import frames
from bridge.wire.errors import Overloaded, ToolError
from runtime.budgets import BudgetPolicy
from runtime.results import RunResult
from runtime.runs import Runs
from runtime.slot import Lost
from runtime.store.store import Store

pytestmark = pytest.mark.anyio

Frame = frames.Pending | frames.Ended | Lost
USAGE = frames.Usage(100, 2_000_000, 1_500, 0)


def ended(result: bytes | None = None, failure: frames.Failure | None = None, **other: Any) -> frames.Ended:
    frame = frames.Ended(1, frames.ENDED, 1, result, failure, [], [], USAGE, False)
    return frame._replace(**other)


def pending(*calls: frames.Call, wake_us: int | None = None, **other: Any) -> frames.Pending:
    frame = frames.Pending(1, frames.PENDING, 1, list(calls), [], [], wake_us, USAGE)
    return frame._replace(**other)


def call(id: int, args: bytes = b"\x80", meta: bool = False) -> frames.Call:
    return frames.Call(id, "t.org.main.do", args, meta)


class FakeSlot:
    """A slot whose worker says the next frame of `says` at each step, or what a function makes of the step."""

    def __init__(self, sink: Callable[[Frame], None], says: list[Any]) -> None:
        self.sink = sink
        self.says = list(says)
        self.steps: list[tuple[int, list[frames.Answer]]] = []
        self.cancelled = 0
        self.released = 0

    def start(self, *, now_us: int, **rest: Any) -> None:
        self._step(now_us, [])

    def resume(self, now_us: int, answers: list[frames.Answer]) -> None:
        self._step(now_us, answers)

    def _step(self, now_us: int, answers: list[frames.Answer]) -> None:
        self.steps.append((now_us, answers))
        if self.says:
            said = self.says.pop(0)
            frame = said(now_us) if callable(said) else said
            asyncio.get_running_loop().call_soon(self.sink, frame)

    def cancel(self) -> None:
        self.cancelled += 1
        failure = frames.Failure("cancelled", None, "", None, None, None, None)
        asyncio.get_running_loop().call_soon(self.sink, ended(None, failure))

    def release(self) -> None:
        self.released += 1


class Places:
    def __init__(self) -> None:
        self.says: list[Any] = []
        self.slots: list[FakeSlot] = []
        self.refusal: Exception | None = None

    async def prepare(self, language: str) -> None:
        pass

    def image(self, language: str) -> str:
        return "image"

    async def acquire(self, sink: Callable[[Frame], None], *, isolation: str | None = None) -> FakeSlot:
        if self.refusal is not None:
            raise self.refusal
        self.slots.append(FakeSlot(sink, self.says))
        return self.slots[-1]


class Proxy:
    """Answers each call with its arguments; `hold` lists paths that never answer."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.error: Exception | None = None

    def check_view(self, toolkit: Any, narrowings: Any) -> None:
        pass

    async def call(self, ctx: Any, path: str, args: Any, *, journal: Any, call_id: int, **rest: Any) -> CallOutcome:
        self.made.append((path, args))
        if self.error is not None:
            raise self.error
        record = CallRecord(call_id, path, side_effect="read", outcome="done")
        await journal.finished(record)
        return CallOutcome(args, None, record, msgpack.packb(args))


class House:
    def __init__(self, runs: Runs, places: Places, proxy: Proxy) -> None:
        self.runs, self.places, self.proxy = runs, places, proxy

    async def run(self, *says: Any, budgets: dict[str, int] | None = None, wait: bool = True) -> RunResult:
        self.places.says = list(says)
        return await self.runs.run(
            "1",
            language="javascript",
            input=None,
            budgets=budgets,
            ceilings=None,
            toolkit=None,
            narrowings=(),
            labels=None,
            isolation=None,
            idempotency_key=None,
            wait=wait,
            principal="test",
        )

    @property
    def slot(self) -> FakeSlot:
        return self.places.slots[-1]


@pytest.fixture
async def house():
    store = await Store.open(None)
    places, proxy = Places(), Proxy()
    runs = Runs(
        store.runs,
        places,  # type: ignore[arg-type]
        proxy,  # type: ignore[arg-type]
        BudgetPolicy(),
        languages=("javascript",),
        isolation="shared",
        max_live=10,
        journal_bytes=1_000_000,
    )
    yield House(runs, places, proxy)
    await runs.close()
    await store.close()


def code_of(answer: RunResult) -> str:
    assert answer.error is not None, answer
    code: str = answer.error["code"]
    return code


async def test_a_result_with_a_number_that_json_lacks_is_named_by_its_path(house: House):
    answer = await house.run(ended(msgpack.packb({"rows": [1.0, float("nan")]})))
    assert (code_of(answer), answer.error and answer.error["path"]) == ("unserializable", "$.rows[1]")
    assert answer.result is None


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x01\x01", b"\x82\xa1a\x01\xa1a\x02", b"\x81\x01\x01", b"\xd4\x01\x00"]
)
async def test_a_result_that_is_no_value_is_refused(house: House, data: bytes):
    assert code_of(await house.run(ended(data))) == "unserializable"


async def test_a_result_that_unfolds_into_too_many_parts_is_refused(house: House):
    """BUD-17"""
    bomb = bytes([0xDD]) + (3_000_000).to_bytes(4, "big") + b"\x90" * 3_000_000
    for inline in (0, 64 * 1024 * 1024):
        answer = await house.run(ended(bomb), budgets={"result_bytes": inline})
        assert code_of(answer) == "result_too_large"
        assert "parts" in (answer.error or {})["message"]
        assert answer.limit is None


async def test_an_emitted_value_that_is_none_ends_the_run(house: House):
    answer = await house.run(pending(call(1), emitted=[b"\xc1"]))
    assert code_of(answer) == "unserializable"
    assert house.proxy.made == []
    assert house.slot.cancelled == 1
    assert code_of(await house.run(ended(b"\x01", emitted=[b"\xc1"]))) == "unserializable"


async def test_arguments_that_are_no_value_fail_the_call_and_not_the_run(house: House):
    answer = await house.run(pending(call(1, args=b"\xc1")), ended(b"\x01"))
    assert answer.result == 1
    (told,) = house.slot.steps[1][1]
    assert (told.ok, msgpack.unpackb(told.value)["code"]) == (False, "invalid_arguments")
    assert (answer.calls[0]["outcome"], answer.calls[0]["code"]) == ("failed", "invalid_arguments")
    assert house.proxy.made == []


async def test_an_unforeseen_error_of_a_call_is_a_reference_and_nothing_more(house: House):
    house.proxy.error = RuntimeError("/home/operator/secret")
    await house.run(pending(call(1)), ended(b"\x01"))
    (told,) = house.slot.steps[1][1]
    error = msgpack.unpackb(told.value)
    assert error["code"] == "internal"
    assert "reference" in error["message"]
    assert "secret" not in error["message"]


async def test_details_that_cannot_cross_stay_behind(house: House):
    house.proxy.error = ToolError("upstream_error", "no", path="x", details={"at": object()}, status=500)
    await house.run(pending(call(1)), ended(b"\x01"))
    error = msgpack.unpackb(house.slot.steps[1][1][0].value)
    assert error == {"code": "upstream_error", "message": "no", "path": "x", "retryable": False, "status": 500}


def uncaught(message: str, name: str = "ToolError") -> frames.Ended:
    return ended(None, frames.Failure("script_error", name, message, 1, 1, None, None))


async def test_a_tool_error_that_the_script_did_not_catch_says_what_to_do_next(house: House):
    suggestions = {"suggestions": ["t.org.main.done"]}
    house.proxy.error = ToolError(
        "tool_not_found", "no such tool", path="t.x", hint="search first", details=suggestions
    )
    answer = await house.run(pending(call(1)), uncaught("no such tool"))
    assert answer.error is not None
    assert answer.error["hint"] == "search first"
    assert answer.error["details"] == suggestions | {"code": "tool_not_found", "path": "t.x", "retryable": False}
    assert answer.calls[0]["error"] == {"code": "tool_not_found", "message": "no such tool", "hint": "search first"}


@pytest.mark.parametrize("failure", [uncaught("something else"), uncaught("no such tool", name="Error")])
async def test_an_error_that_is_no_calls_gets_no_call_s_details(house: House, failure: frames.Ended):
    house.proxy.error = ToolError("tool_not_found", "no such tool", hint="search first")
    answer = await house.run(pending(call(1)), failure)
    assert answer.error is not None
    assert not {"hint", "details"} & set(answer.error)


async def test_of_calls_that_failed_alike_the_last_one_counts(house: House):
    house.proxy.error = ToolError("upstream_error", "no", path="first", status=500)
    second = ToolError("upstream_error", "no", path="second", status=502)

    def then(now_us: int) -> frames.Pending:
        house.proxy.error = second
        return pending(call(2))

    answer = await house.run(pending(call(1)), then, uncaught("no"))
    assert answer.error is not None
    assert (answer.error["details"]["path"], answer.error["details"]["status"]) == ("second", 502)


async def test_a_run_whose_worker_died_before_it_said_anything_begins_again_elsewhere_once(house: House):
    """PER-19"""

    def die(now_us: int) -> Lost:
        house.places.says = [ended(b"\x01")]
        return Lost("killed", untouched=True)

    answer = await house.run(die)
    assert answer.result == 1
    assert [len(slot.steps) for slot in house.places.slots] == [1, 1]
    assert [slot.released for slot in house.places.slots] == [1, 1]


async def test_a_run_whose_second_worker_dies_too_is_lost(house: House):
    """PER-19"""
    answer = await house.run(Lost("killed", untouched=True))
    assert code_of(answer) == "worker_lost"
    assert len(house.places.slots) == 2


async def test_a_run_that_its_worker_died_of_does_not_begin_again(house: House):
    """PER-19"""
    assert code_of(await house.run(Lost("killed"))) == "worker_lost"
    assert len(house.places.slots) == 1


async def test_a_run_that_finds_no_second_place_is_lost(house: House):
    def die(now_us: int) -> Lost:
        house.places.refusal = Overloaded("no place")
        return Lost("killed", untouched=True)

    answer = await house.run(die)
    assert code_of(answer) == "worker_lost"
    assert "no place" in (answer.error or {})["message"]


@pytest.mark.parametrize("budget", [None, {"wall_ms": 20}])
async def test_a_run_that_waits_for_a_second_place_can_be_cancelled_and_has_its_deadline(
    house: House, budget: dict[str, int] | None
):
    first, waiting = house.places.acquire, asyncio.Event()

    async def acquire(sink: Callable[[Frame], None], *, isolation: str | None = None) -> FakeSlot:
        if house.places.slots:
            waiting.set()
            await asyncio.Event().wait()
        return await first(sink, isolation=isolation)

    house.places.acquire = acquire  # type: ignore[method-assign]
    queued = await house.run(Lost("killed", untouched=True), budgets=budget, wait=False)
    await waiting.wait()
    record = await (house.runs.cancel(queued.run_id) if budget is None else house.runs.wait(queued.run_id))
    assert code_of(record) == ("cancelled" if budget is None else "deadline_exceeded")


async def test_an_internal_failure_has_a_reference_and_not_the_workers_words(house: House):
    failure = frames.Failure("internal", None, "trap at /usr/lib/engine.so", None, None, None, None)
    answer = await house.run(ended(None, failure))
    assert code_of(answer) == "internal"
    assert answer.error is not None
    assert "reference" in answer.error["message"]
    assert "/usr" not in answer.error["message"]


async def test_a_lost_worker_ends_the_run_and_its_calls(house: House):
    async def never(*args: Any, **rest: Any) -> None:
        await asyncio.Event().wait()

    house.proxy.call = never  # type: ignore[method-assign, assignment]

    def die(now_us: int) -> frames.Pending:
        asyncio.get_running_loop().call_later(0.01, house.slot.sink, Lost("the worker process ended"))
        return pending(call(1))

    answer = await house.run(die)
    assert (code_of(answer), answer.error and answer.error["message"]) == ("worker_lost", "the worker process ended")
    assert [each["outcome"] for each in answer.calls] == ["failed"]
    assert house.slot.released == 1


async def test_a_timer_in_the_far_future_is_not_waited_for_beyond_the_deadline(house: House):
    answer = await house.run(pending(wake_us=2**64 - 1), budgets={"wall_ms": 20})
    assert code_of(answer) == "deadline_exceeded"


async def test_a_timer_in_the_past_is_due_at_once_and_the_clock_never_goes_back(house: House):
    await house.run(pending(wake_us=0), pending(wake_us=0), lambda now: pending(wake_us=now + 5_000), ended(b"\x01"))
    clocks = [now_us for now_us, _ in house.slot.steps]
    assert clocks == sorted(clocks)
    assert clocks[3] - clocks[2] >= 5_000


async def test_answers_that_are_ready_together_go_in_one_step(house: House):
    await house.run(pending(call(1), call(2), call(3)), pending(wake_us=0), ended(b"\x01"))
    assert [answer.id for _, answers in house.slot.steps for answer in answers] == [1, 2, 3]
    assert len(house.slot.steps[1][1]) == 3


async def test_a_run_that_no_worker_takes_leaves_no_record_when_it_was_waited_for(house: House):
    house.places.refusal = Overloaded("no place")
    with pytest.raises(Overloaded):
        await house.run()
    assert (await house.runs.records.list(status=None, label=None, limit=10, cursor=None)).items == []


async def test_a_run_that_was_promised_and_that_no_worker_takes_fails(house: House):
    house.places.refusal = Overloaded("no place")
    queued = await house.run(wait=False)
    record = await house.runs.wait(queued.run_id)
    assert (record.status, code_of(record)) == ("failed", "worker_lost")


async def test_machinery_that_breaks_ends_the_run_as_internal(house: House):
    def broken(now_us: int) -> frames.Pending:
        return pending(call(1), wake_us="soon")

    answer = await house.run(broken)
    assert code_of(answer) == "internal"
    assert house.slot.cancelled == 1
    assert house.slot.released == 1
