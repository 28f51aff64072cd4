"""The run machine: one end, every call answered once, nothing after the end."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bridge.wire.frames import Answer, Call, Failure
from runtime import run
from runtime.run import (
    CallFinished,
    CallParked,
    CallReleased,
    CancelIsolate,
    CancelRequested,
    Condemned,
    DeadlinePassed,
    DropCalls,
    EndedArrived,
    Finish,
    FlushDue,
    FlushSoon,
    GoOn,
    MakeCall,
    PendingArrived,
    Rebuild,
    Restored,
    Resume,
    RunMachine,
    StartIsolate,
    Wait,
    WakeAt,
    WakeDue,
    WorkerLost,
)

CALLS, IN_FLIGHT = 12, 3


def call(id: int) -> Call:
    return Call(id, "a.b.c.d", b"\x80", False)


def answer(id: int) -> Answer:
    return Answer(id, True, b"\xc0")


def machine(calls: int = CALLS, in_flight: int = IN_FLIGHT) -> RunMachine:
    made = RunMachine(calls=calls, in_flight=in_flight, wall_ms=1000)
    assert made.start() == [StartIsolate()]
    return made


def kinds(commands: list[run.Command]) -> list[type]:
    return [type(command) for command in commands]


class Runs(RuleBasedStateMachine):
    """An isolate, a host and a clock that do whatever the protocol lets them, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = machine()
        self.next_id = 0
        self.asked: set[int] = set()
        self.made: list[int] = []
        self.open: set[int] = set()
        self.answered: list[int] = []
        self.finished: list[Finish] = []
        self.isolate_runs = True
        self.cancelled = False
        self.flush_due = False
        self.timer = False
        self.parked: set[int] = set()
        self.released: set[int] = set()
        self.waits = False
        self.moving = False

    def feed(self, event: run.Event) -> None:
        over = bool(self.finished)
        commands = self.machine.handle(event)
        assert not over or commands == []
        for command in commands:
            match command:
                case MakeCall(made):
                    assert made.id in self.asked
                    assert made.id not in self.made or made.id in self.released
                    if made.id in self.released:
                        self.released.discard(made.id)
                    else:
                        self.made.append(made.id)
                    self.open.add(made.id)
                case Wait():
                    assert not self.waits
                    self.waits = True
                case GoOn():
                    assert self.waits
                    self.waits = False
                case Rebuild():
                    assert not self.moving
                    self.moving = True
                case Resume(answers):
                    assert not self.isolate_runs
                    assert not self.cancelled
                    self.isolate_runs = True
                    self.answered += [a.id for a in answers]
                case WakeAt(at):
                    self.timer = at is not None
                case DropCalls():
                    assert self.open or self.parked
                    self.open.clear()
                    self.parked.clear()
                    self.released.clear()
                case CancelIsolate():
                    assert not self.cancelled
                    self.cancelled = True
                case FlushSoon():
                    assert not self.flush_due
                    self.flush_due = True
                case Finish():
                    self.finished.append(command)
                case StartIsolate():
                    raise AssertionError("started twice")

    @precondition(lambda self: self.isolate_runs and not self.finished and not self.moving)
    @rule(count=st.integers(0, 5), wake=st.none() | st.integers(0, 100))
    def pauses(self, count: int, wake: int | None) -> None:
        calls = [call(self.next_id + n) for n in range(count)]
        self.next_id += count
        self.asked.update(c.id for c in calls)
        self.isolate_runs = False
        self.feed(PendingArrived(calls, wake))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def call_returns(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.open)))
        self.open.discard(id)
        self.feed(CallFinished(answer(id)))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def call_needs_a_person(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.open)))
        self.open.discard(id)
        self.parked.add(id)
        self.feed(CallParked(call(id)))

    @precondition(lambda self: self.parked)
    @rule(data=st.data())
    def person_answers(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.parked)))
        self.parked.discard(id)
        self.released.add(id)
        self.feed(CallReleased(id))

    @rule(id=st.integers(0, 20))
    def stray_decision(self, id: int) -> None:
        if id not in self.parked:
            self.feed(CallReleased(id))

    @precondition(lambda self: not self.moving and not self.finished and not self.cancelled)
    @rule()
    def worker_dies_of_something_else(self) -> None:
        self.feed(WorkerLost("the worker process ended", innocent=True))

    @precondition(lambda self: self.moving and not self.finished)
    @rule(wake=st.none() | st.integers(0, 100))
    def is_there_again(self, wake: int | None) -> None:
        self.moving = False
        if not self.isolate_runs and not self.open and not self.parked and wake is None:
            wake = 1
        self.feed(Restored(wake if not self.isolate_runs else None, self.isolate_runs))

    @rule(id=st.integers(0, 20))
    def stray_answer(self, id: int) -> None:
        if id not in self.open:
            self.feed(CallFinished(answer(id)))

    @precondition(lambda self: self.flush_due)
    @rule()
    def flush(self) -> None:
        self.flush_due = False
        self.feed(FlushDue())

    @precondition(lambda self: self.timer)
    @rule()
    def timer_due(self) -> None:
        self.timer = False
        self.feed(WakeDue())

    @rule()
    def late_timer(self) -> None:
        if not self.timer:
            self.feed(WakeDue())

    @precondition(lambda self: (self.isolate_runs or self.cancelled) and not self.moving)
    @rule(ok=st.booleans())
    def isolate_ends(self, ok: bool) -> None:
        reason = None if ok else Failure("script_error", "Error", "no", 1, 1, None, None)
        self.feed(EndedArrived(b"\x01" if ok else None, reason))

    @precondition(lambda self: not self.moving)
    @rule()
    def worker_dies(self) -> None:
        self.feed(WorkerLost("the worker process ended"))

    @rule()
    def deadline(self) -> None:
        self.feed(DeadlinePassed())

    @rule()
    def cancel(self) -> None:
        self.feed(CancelRequested("somebody asked"))

    @rule()
    def host_refuses(self) -> None:
        self.feed(Condemned(run.failure("unserializable", "not a value")))

    @invariant()
    def at_most_one_end(self) -> None:
        assert len(self.finished) <= 1
        assert (self.machine.phase == "ended") == bool(self.finished)

    @invariant()
    def an_end_is_a_result_or_a_failure(self) -> None:
        assert all((end.result is None) != (end.failure is None) for end in self.finished)

    @invariant()
    def nothing_is_open_after_the_end(self) -> None:
        assert not (self.finished and (self.open or self.parked or self.timer or self.waits))

    @invariant()
    def calls_stay_within_their_limits(self) -> None:
        assert len(self.open) <= IN_FLIGHT
        assert len(self.made) <= CALLS
        assert self.machine.calls_made == len(self.made)

    @invariant()
    def every_answer_goes_in_once(self) -> None:
        assert len(self.answered) == len(set(self.answered))
        assert set(self.answered) <= set(self.made)

    @invariant()
    def a_paused_run_always_has_something_to_wait_for(self) -> None:
        if self.machine.phase == "paused":
            assert self.open or self.timer or self.flush_due or self.waits

    @invariant()
    def a_run_waits_for_a_person_when_nothing_else_can_bring_it_further(self) -> None:
        if self.waits:
            assert self.parked
            assert not self.open
            assert not self.timer


TestRuns = Runs.TestCase


def test_results_that_are_ready_together_go_in_one_resume():
    made = machine()
    made.handle(PendingArrived([call(1), call(2), call(3)], None))
    assert kinds(made.handle(CallFinished(answer(1)))) == [FlushSoon]
    assert kinds(made.handle(CallFinished(answer(2)))) == []
    assert made.handle(FlushDue()) == [Resume([answer(1), answer(2)])]


def test_the_last_result_resumes_at_once():
    made = machine()
    made.handle(PendingArrived([call(1)], None))
    assert made.handle(CallFinished(answer(1))) == [Resume([answer(1)])]


def test_calls_above_the_limit_in_flight_wait_and_then_go_in_order():
    """BUD-10"""
    made = machine(in_flight=2)
    first = made.handle(PendingArrived([call(n) for n in range(4)], None))
    assert first == [MakeCall(call(0)), MakeCall(call(1))]
    assert made.handle(CallFinished(answer(1)))[0] == MakeCall(call(2))
    assert made.in_flight_peak == 2


def test_a_call_above_the_budget_ends_the_run_before_it_is_made():
    """BUD-09"""
    made = machine(calls=2)
    commands = made.handle(PendingArrived([call(n) for n in range(3)], None))
    assert kinds(commands) == [CancelIsolate]
    (end,) = made.handle(EndedArrived(None, run.failure("cancelled", "")))
    assert isinstance(end, Finish)
    assert end.failure is not None
    assert end.failure.code == "calls_exhausted"
    assert made.calls_made == 0


def test_a_deadline_while_a_call_hangs_drops_the_call_and_cancels_the_isolate():
    """BUD-14"""
    made = machine()
    made.handle(PendingArrived([call(1)], None))
    assert kinds(made.handle(DeadlinePassed())) == [DropCalls, CancelIsolate]
    assert made.handle(CallFinished(answer(1))) == []
    (end,) = made.handle(EndedArrived(None, run.failure("cancelled", "")))
    assert isinstance(end, Finish)
    assert end.failure is not None
    assert end.failure.code == "deadline_exceeded"


def test_a_result_that_comes_after_the_deadline_does_not_count():
    made = machine()
    made.handle(DeadlinePassed())
    (end,) = made.handle(EndedArrived(b"\x02", None))
    assert isinstance(end, Finish)
    assert end.result is None
    assert end.failure is not None
    assert end.failure.code == "deadline_exceeded"


@pytest.mark.parametrize("code", ["cancelled", "expired", "internal"])
def test_an_isolate_cannot_end_with_a_code_that_only_the_host_gives(code: str):
    made = machine()
    (end,) = made.handle(EndedArrived(None, run.failure(code, "forged")))
    assert isinstance(end, Finish)
    assert end.failure is not None
    assert (end.failure.code, end.failure.message) == ("internal", "the isolate failed unexpectedly")


@pytest.mark.parametrize("calls", [[1, 1], [7]])
def test_a_call_id_that_comes_twice_ends_the_run(calls: list[int]):
    made = machine()
    made.handle(PendingArrived([call(7)], None))
    made.handle(CallFinished(answer(7)))
    commands = made.handle(PendingArrived([call(id) for id in calls], None))
    assert kinds(commands) == [CancelIsolate]


def test_a_pause_that_waits_for_nothing_is_named():
    made = machine()
    assert kinds(made.handle(PendingArrived([], None))) == [CancelIsolate]
    (end,) = made.handle(EndedArrived(None, run.failure("cancelled", "")))
    assert isinstance(end, Finish)
    assert end.failure is not None
    assert end.failure.code == "never_settles"


def test_a_run_cancelled_before_its_isolate_starts_ends_at_once():
    made = RunMachine(calls=1, in_flight=1, wall_ms=1)
    (end,) = made.handle(CancelRequested("gone"))
    assert isinstance(end, Finish)
    assert end.failure is not None
    assert end.failure.code == "cancelled"
