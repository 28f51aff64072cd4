"""Drives the Python image without a worker: one isolate, its steps answered at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from bridge.wire import codec
from bridge.wire.frames import Answer, Call, Failure, Limits, Log
from guest import images
from runtime.engine import protocol, settings
from runtime.engine.image import Image
from runtime.engine.modules import ModuleCache
from runtime.isolate import Isolate

MEMORY = 128 << 20
NOW_US = 1_760_000_000_000_000
Handler = Callable[[Call], Any]


@cache
def image() -> Image:
    """The image of this tree, built on first use (about two minutes on a machine that has nothing of it yet)."""
    images.build(sets=("python",))
    return Image.load(settings.engine(), ModuleCache().compiled(images.load("python").wasm))


@dataclass
class Refusal(Exception):
    """Raised by a handler to answer a call with a ToolError of these fields."""

    fields: dict[str, Any]


@dataclass
class Outcome:
    """How a script ended, and what it had said."""

    result: Any = None
    failure: Failure | None = None
    calls: list[Call] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    emitted: list[Any] = field(default_factory=list)
    steps: int = 0
    fuel: int = 0
    now_us: int = NOW_US

    @property
    def value(self) -> Any:
        assert self.failure is None, self.failure
        return self.result

    @property
    def failed(self) -> Failure:
        assert self.failure is not None, self.result
        return self.failure

    def paths(self) -> list[str]:
        return [call.path for call in self.calls]

    def text(self, level: str = "log") -> list[str]:
        return [log.text for log in self.logs if log.level == level]


def echo(call: Call) -> Any:
    """The default tool: its value is its arguments."""
    return codec.decode(call.args)


def run(
    source: str,
    value: Any = None,
    *,
    handler: Handler = echo,
    seed: int = 1,
    fuel: int = 2 * 10**10,
    memory: int = MEMORY,
    calls: int = 256,
    args_bytes: int = 1 << 20,
    result_bytes: int = 1 << 20,
    log_bytes: int = 65536,
) -> Outcome:
    """Run a script to its end, each call answered in the next step. Raises what the isolate raises."""
    limits = Limits(fuel, memory, 30_000, calls, args_bytes, result_bytes, log_bytes)
    outcome = Outcome()
    with Isolate(image(), fuel=fuel, memory_bytes=memory) as isolate:
        data = protocol.start_input(source, codec.encode(value), seed, limits)
        said = protocol.read_output(isolate.run("start", data, outcome.now_us))
        while True:
            outcome.steps += 1
            outcome.calls += said.calls
            outcome.logs += said.logs
            outcome.emitted += [codec.decode(item) for item in said.emitted]
            if said.result is not None or said.failure is not None:
                break
            answers = [_answer(call, handler) for call in said.calls]
            outcome.now_us = outcome.now_us + 1000 if answers or said.wake_us is None else said.wake_us
            data = protocol.resume_input(answers)
            said = protocol.read_output(isolate.run("resume", data, outcome.now_us))
        outcome.fuel = isolate.fuel_used
    outcome.failure = said.failure
    outcome.result = codec.decode(said.result) if said.result is not None else None
    return outcome


def _answer(call: Call, handler: Handler) -> Answer:
    try:
        return Answer(call.id, True, codec.encode(handler(call)))
    except Refusal as refusal:
        return Answer(call.id, False, codec.encode(refusal.fields))


def value(source: str, input: Any = None, **options: Any) -> Any:
    """The result of a script that completes."""
    return run(source, input, **options).value
