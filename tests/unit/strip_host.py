"""Reading, stripping and running a text over the engine's public interface, as a worker does it with its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from guest_host import FUEL, Isolate, Step

from bridge.wire import codec
from bridge.wire.frames import Failure
from runtime.worker.source import Reading

T = TypeVar("T")
MEMORY = 256 << 20


def strip(text: str, *, fuel: int = FUEL, memory: int = MEMORY) -> Any:
    """What the TypeScript image answers: `[True, code, columns]` or `[False, [message, line, column, named]]`."""
    isolate = Isolate(name="typescript", fuel=fuel, memory=memory)
    data = text.encode("utf-8", "surrogatepass")
    packed = isolate.call("strip", isolate.put(data), len(data)) & 0xFFFF_FFFF_FFFF_FFFF
    return codec.decode(isolate.read(packed >> 32, packed & 0xFFFF_FFFF))


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


def on_big_stack(work: Callable[[], T]) -> T:
    """Run `work` where a guest may use its whole stack."""
    results: list[T | BaseException] = []

    def catch() -> None:
        try:
            results.append(work())
        except BaseException as e:
            results.append(e)

    before = threading.stack_size(64 << 20)
    try:
        thread = threading.Thread(target=catch)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]
