"""One isolate by itself, with the real guest, in both ways of running calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import msgpack
import pytest
import wasmtime

from bridge.wire.errors import FrameError
from bridge.wire.frames import Answer, Limits
from guest import images
from runtime.engine import protocol, settings
from runtime.engine.fiber import SLICE
from runtime.engine.image import IO_BYTES, Image
from runtime.engine.instance import Trapped, Unusable
from runtime.engine.modules import ModuleCache
from runtime.isolate import Isolate
from tests.blackbox.rogue import IO, guest

MODES: list[settings.Mode] = ["fibers", "calls"]
LIMITS = Limits(10**10, 64 << 20, 30_000, 256, 1 << 20, 8 << 20, 1 << 16)


@cache
def image(mode: settings.Mode) -> Image:
    images.build()
    compiled = ModuleCache().compiled(images.load("javascript").wasm, mode)
    return Image.load(settings.engine(mode), compiled, mode)


def rogue(wasm: bytes) -> Image:
    return Image.compile(settings.engine(), wasm)


def isolate(
    mode: settings.Mode = "fibers", *, fuel: int = LIMITS.fuel, memory_bytes: int = LIMITS.memory_bytes
) -> Isolate:
    return Isolate(image(mode), fuel=fuel, memory_bytes=memory_bytes)


def started(source: str, value: bytes = b"\xc0", seed: int = 1) -> bytes:
    return protocol.start_input(source, value, seed, LIMITS)


def on_big_stack(work: Callable[[], Any]) -> Any:
    """Plain calls run on the stack of their thread, which has to be large."""
    result: list[Any] = []
    before = threading.stack_size(settings.THREAD_STACK)
    try:
        thread = threading.Thread(target=lambda: result.append(work()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return result[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_script_gives_its_value(mode: settings.Mode) -> None:
    with isolate(mode) as one:
        output = protocol.read_output(one.run("start", started("input.a + 1", msgpack.packb({"a": 41}))))
    assert output.result == msgpack.packb(42)


@pytest.mark.parametrize("mode", MODES)
def test_a_script_pauses_at_its_calls_and_goes_on_with_their_answers(mode: settings.Mode) -> None:
    with isolate(mode) as one:
        source = "const [a, b] = await Promise.all([tools.a.org.b.c({x: 1}), tools.a.org.b.d({x: 2})]); a + b"
        paused = protocol.read_output(one.run("start", started(source)))
        assert [call.path for call in paused.calls] == ["a.org.b.c", "a.org.b.d"]
        answers = [Answer(call.id, True, msgpack.packb(21)) for call in paused.calls]
        done = protocol.read_output(one.run("resume", protocol.resume_input(answers), 5))
    assert done.result == msgpack.packb(42)


def test_fuel_is_the_same_in_both_modes_and_every_time() -> None:
    def used(mode: settings.Mode) -> list[int]:
        figures = []
        for source in ("1+1", "let s=0; for(let i=0;i<100000;i++) s+=i; s", "await tools.a.org.b.c({})"):
            with isolate(mode) as one:
                one.run("start", started(source))
                figures.append(one.fuel_used)
        return figures

    assert used("fibers") == used("fibers") == used("calls")


def test_a_long_step_comes_back_after_each_slice() -> None:
    with isolate() as one:
        one.begin("start", started("let s=0; for(let i=0;i<200000;i++) s+=i; s"))
        pauses = 0
        while (output := one.advance()) is None:
            pauses += 1
            assert one.fuel_used == pauses * SLICE
        assert pauses == one.fuel_used // SLICE >= 2
        assert protocol.read_output(output).result is not None


def test_a_step_may_be_polled_by_one_thread_after_another() -> None:
    with isolate() as one:
        one.begin("start", started("let s=0; for(let i=0;i<200000;i++) s+=i; s"))
        assert one.advance(hold=True) is None
        outputs: list[bytes] = []

        def go_on() -> None:
            while (output := one.advance(hold=False)) is None:
                pass
            outputs.append(output)

        thread = threading.Thread(target=go_on)
        thread.start()
        thread.join()
        assert protocol.read_output(outputs[0]).result == msgpack.packb(19999900000)


def test_a_step_that_is_dropped_half_way_frees_everything() -> None:
    one = isolate()
    one.begin("start", started("console.log('kept'); emit(1); for(;;) {}"))
    assert one.advance() is None
    logs, emitted = one.unfinished()
    assert [log.text for log in logs] == ["kept"]
    assert emitted == [b"\x01"]
    one.close()
    one.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_trap_ends_an_isolate_which_is_read_but_never_entered_again(mode: settings.Mode) -> None:
    """ESC-34."""

    def trap() -> None:
        with isolate(mode, fuel=30_000_000) as one:
            with pytest.raises(Trapped) as trapped:
                one.run("start", started("console.log('before'); for(;;) {}"))
            assert trapped.value.code == "out_of_fuel"
            assert one.fuel_used == 30_000_000
            assert [log.text for log in one.unfinished()[0]] == ["before"]
            with pytest.raises(RuntimeError):
                one.begin("resume", protocol.resume_input([]))

    on_big_stack(trap)


def test_a_hardware_trap_is_charged_what_the_slices_prove() -> None:
    """The engine reports nothing used when a division by zero ends a loop of any length."""
    loop = "(local $n i32) (loop $l (local.set $n (i32.add (local.get $n) (i32.const 1)))"
    body = f"{loop} (br_if $l (i32.lt_u (local.get $n) (i32.const 5000000)))) (i64.div_s (i64.const 1) (i64.const 0))"
    with Isolate(rogue(guest(body)), fuel=10**9, memory_bytes=1 << 20) as one:
        with pytest.raises(Trapped) as trapped:
            one.run("start", b"")
        assert trapped.value.code == "integer_division_by_zero"
        assert one.fuel_used >= 3 * SLICE


@pytest.mark.parametrize("mode", MODES)
def test_deep_recursion_of_the_guest_harms_no_one(mode: settings.Mode) -> None:
    source = "function f(n) { return f(n + 1) + 1 } try { f(0) } catch (e) { e.name }"

    def recurse() -> bytes | None:
        with isolate(mode) as one:
            return protocol.read_output(one.run("start", started(source))).result

    assert on_big_stack(recurse) == msgpack.packb("RangeError")


@pytest.mark.parametrize("mode", MODES)
def test_recursion_past_the_guests_own_limit_is_a_trap(mode: settings.Mode) -> None:
    recursion = "(func $f (param i64) (result i64) (i64.add (call $f (local.get 0)) (i64.const 1)))"
    wasm = guest("(call $f (i64.const 0))", globals_=recursion)
    built = Image.compile(settings.engine(mode), wasm, mode)

    def recurse() -> str:
        with Isolate(built, fuel=10**10, memory_bytes=1 << 20) as one:
            with pytest.raises(Trapped) as trapped:
                one.run("start", b"")
            return trapped.value.code

    assert on_big_stack(recurse) == "stack_overflow"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [IO_BYTES - 200, IO_BYTES, 10 * IO_BYTES, 5_000_000])
def test_inputs_of_any_size_arrive_whole(mode: settings.Mode, size: int) -> None:
    text = "é" * (size // 2)
    with isolate(mode) as one:
        output = protocol.read_output(one.run("start", started("input.length", msgpack.packb(text))))
        assert output.result == msgpack.packb(size // 2)


def test_large_inputs_are_given_back_after_each_step() -> None:
    answer = Answer(0, True, msgpack.packb("x" * 1_000_000))
    with isolate() as one:
        output = protocol.read_output(one.run("start", started("for(;;) await tools.a.org.b.c({})")))
        sizes = []
        for _ in range(30):
            [call] = output.calls
            output = protocol.read_output(one.run("resume", protocol.resume_input([answer._replace(id=call.id)])))
            sizes.append(one.memory_bytes)
        assert sizes[-1] == sizes[9]


@pytest.mark.parametrize("mode", MODES)
def test_memory_stays_below_its_limit(mode: settings.Mode) -> None:
    limit = 16 << 20
    with isolate(mode, memory_bytes=limit) as one:
        one.run("start", started("const all = []; try { for(;;) all.push(new Uint8Array(1e6)) } catch { all.length }"))
        assert one.memory_bytes <= limit


@pytest.mark.parametrize("mode", MODES)
def test_a_guest_larger_than_the_limit_is_not_instantiated(mode: settings.Mode) -> None:
    with pytest.raises(Unusable):
        isolate(mode, memory_bytes=1 << 16)


def test_what_two_isolates_do_is_seen_by_neither() -> None:
    with isolate() as one, isolate() as other:
        one.run("start", started("globalThis.secret = 'cnry_' + 1; await tools.a.org.b.c({})"))
        seen = protocol.read_output(other.run("start", started("typeof secret")))
    assert seen.result == msgpack.packb("undefined")


@pytest.mark.parametrize("pointer", ["(i32.const 0)", "(i32.const 262143)", "(i32.const -1)", "(i32.const -65536)"])
def test_a_module_whose_input_buffer_is_not_in_its_memory_is_no_guest(pointer: str) -> None:
    with pytest.raises(Unusable, match="io"):
        rogue(guest(io=pointer))
    assert rogue(guest()).io == IO


NO_GUESTS = {
    "imports": '(module (import "a" "b" (func)) (memory (export "memory") 1))',
    "memory": "(module)",
    "call io": '(module (memory (export "memory") 1))',
    "io has another signature": '(module (memory (export "memory") 1) (func (export "io") (param i32)))',
    "call start": """(module (memory (export "memory") 2) (func (export "io") (result i32) (i32.const 1))
        (func (export "alloc") (param i32) (result i32) (i32.const 1)) (func (export "dealloc") (param i32))
        (func (export "tail") (result i32) (i32.const 1)))""",
}


@pytest.mark.parametrize("lack", NO_GUESTS)
def test_a_module_that_lacks_something_is_no_guest(lack: str) -> None:
    with pytest.raises(Unusable, match=lack.split(maxsplit=1)[0]):
        rogue(bytes(wasmtime.wat2wasm(NO_GUESTS[lack])))


def test_a_start_function_gets_no_fuel() -> None:
    wasm = guest(globals_="(func $s (loop $l (br $l))) (start $s)")
    with pytest.raises(Unusable, match="out_of_fuel"):
        rogue(wasm)


def test_an_isolate_whose_output_is_outside_its_memory_has_ended() -> None:
    """ESC-32."""
    body = "(i64.const -1)"
    with Isolate(rogue(guest(body)), fuel=10**6, memory_bytes=1 << 20) as one:
        with pytest.raises(FrameError):
            one.run("start", b"")
        with pytest.raises(RuntimeError):
            one.begin("resume", b"")


def test_memory_is_looked_at_anew_after_it_has_grown() -> None:
    """ESC-31: the output lies in memory that did not exist when the step began."""
    place = 5 << 16
    grow = f"(drop (memory.grow (i32.const 4))) (i32.store8 (i32.const {place}) (i32.const 7))"
    body = f"{grow} (i64.const {place << 32 | 1})"
    with Isolate(rogue(guest(body)), fuel=10**6, memory_bytes=1 << 20) as one:
        assert one.run("start", b"") == b"\x07"


def test_many_isolates_come_and_go_without_a_trace() -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def round_(count: int) -> None:
        for _ in range(count):
            with isolate() as one:
                one.run("start", started("await tools.a.org.b.c({})"))
            with isolate(fuel=20_000_000) as one, pytest.raises(Trapped):
                one.run("start", started("for(;;) {}"))

    round_(50)
    before = resident()
    round_(300)
    assert resident() - before < 2 << 20
