"""Reading, stripping and running a text over the engine's public interface, as a worker does it with its own."""

from __future__ import annotations

from typing import Any

import wasmtime
from guest_host import FUEL, Isolate, Step, Trapped, big_stack, engine, module

from bridge.wire import codec
from bridge.wire.frames import Failure
from runtime.worker.source import Reading

MEMORY = 256 << 20


def strip(text: str, *, fuel: int = FUEL, memory: int = MEMORY) -> Any:
    """What the TypeScript image answers: `[True, code, columns]` or `[False, [message, line, column, named]]`.

    Raises Trapped when it does not come to an answer.
    """
    data = text.encode("utf-8", "surrogatepass")
    store = wasmtime.Store(engine())
    store.set_limits(memory, 10_000, 1, 1, 1)
    store.set_fuel(fuel)
    exports: Any = wasmtime.Instance(store, module("typescript"), []).exports(store)
    try:
        at = exports["alloc"](store, len(data) + 1) & 0xFFFF_FFFF
        exports["memory"].write(store, data, at)
        packed = big_stack().submit(exports["strip"], store, at, len(data)).result() & 0xFFFF_FFFF_FFFF_FFFF
    except wasmtime.Trap as trap:
        raise Trapped(str(trap)) from None
    start, size = packed >> 32, packed & 0xFFFF_FFFF
    return codec.decode(bytes(exports["memory"].read(store, start, start + size)))


def stripped(text: str) -> str:
    """The code without its types."""
    answer = strip(text)
    assert answer[0] is True, answer
    code = answer[1]
    assert isinstance(code, str)
    return code


def start(text: str, language: str = "typescript", input: Any = None) -> Step | Failure:
    """The first step of the program in `text`, or its failure, positions as in `text`."""
    reading = Reading(text, language)
    attempt = reading.first()
    while attempt is not None:
        if attempt.kind == "strip":
            attempt = reading.stripped(strip(attempt.text))
            continue
        step = Isolate().start(attempt.text, input)
        if step.status != "failed":
            return step
        failure = Failure(*step.payload)
        if failure.code != "syntax_error":
            return reading.located(failure)
        attempt = reading.refused(failure)
    return reading.failure()


def value(text: str, language: str = "typescript", input: Any = None) -> Any:
    """The result of a program that completes in one step."""
    step = start(text, language, input)
    assert isinstance(step, Step), step
    assert step.status == "done", step
    return step.payload


def failure(text: str, language: str = "typescript") -> Failure:
    """How a program fails in its first step."""
    found = start(text, language)
    assert isinstance(found, Failure), found
    return found
