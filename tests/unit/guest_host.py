"""A small host for the guest image over the engine's public interface: one isolate, its steps, and its memory."""

from __future__ import annotations

import io
import struct
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import msgpack
import wasmtime
from wasmtime import _bindings as raw

from bridge.wire import codec
from guest import images

FUEL = 2 * 10**10
MEMORY = 64 << 20


class Step(NamedTuple):
    """What one step gave; `status` is done, pending or failed."""

    status: str
    payload: Any
    calls: list[list[Any]]
    logs: list[list[str]]
    emitted: list[Any]
    wake_us: int | None

    @property
    def failure(self) -> dict[str, Any]:
        assert self.status == "failed", self
        return dict(zip(("code", "name", "message", "line", "column", "stack", "path"), self.payload, strict=True))


class Trapped(Exception):
    """Raised when a step ended in a trap; `reason` is fuel, stack or another of the engine's words."""


@cache
def engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.consume_fuel = True
    for off in ("threads", "memory64", "multi_memory", "relaxed_simd", "simd", "gc", "exceptions", "tail_call"):
        setattr(config, f"wasm_{off}", False)
    raw.wasmtime_config_async_stack_size_set(config.ptr(), 17 << 20)
    config.max_wasm_stack = 16 << 20
    return wasmtime.Engine(config)


@cache
def module(name: str = "javascript") -> wasmtime.Module:
    images.build()
    return wasmtime.Module(engine(), images.load(name).wasm)


@cache
def big_stack() -> ThreadPoolExecutor:
    """One thread whose stack holds the deepest guest stack that the engine allows; guest code runs on it."""
    before = threading.stack_size(64 << 20)
    try:
        pool = ThreadPoolExecutor(1)
        pool.submit(int).result()
    finally:
        threading.stack_size(before)
    return pool


class Isolate:
    """One isolate."""

    def __init__(self, *, fuel: int = FUEL, memory: int = MEMORY, name: str = "javascript") -> None:
        self.store = wasmtime.Store(engine())
        self.store.set_limits(memory, 10_000, 1, 1, 1)
        self.store.set_fuel(fuel)
        self.fuel = fuel
        self.memory_bytes = memory
        self.exports = wasmtime.Instance(self.store, module(name), []).exports(self.store)
        self.tail_at = self.call("tail")

    def call(self, name: str, *arguments: int) -> int:
        function = self.exports[name]
        assert isinstance(function, wasmtime.Func)
        try:
            return int(big_stack().submit(function, self.store, *arguments).result())
        except wasmtime.Trap as trap:
            raise Trapped(str(trap)) from None

    @property
    def memory(self) -> wasmtime.Memory:
        memory = self.exports["memory"]
        assert isinstance(memory, wasmtime.Memory)
        return memory

    def used(self) -> int:
        return self.fuel - self.store.get_fuel()

    def read(self, at: int, size: int) -> bytes:
        at &= 0xFFFFFFFF
        assert at + size <= self.memory.data_len(self.store)
        return bytes(self.memory.read(self.store, at, at + size))

    def put(self, data: bytes) -> int:
        at = self.call("io" if len(data) <= 65536 else "alloc", *([] if len(data) <= 65536 else [len(data)]))
        assert at
        self.memory.write(self.store, data, at & 0xFFFFFFFF)
        return at

    def tail(self) -> tuple[list[Any], list[Any]]:
        """What was logged and emitted in the step so far, from memory alone; works after a trap."""
        at = self.tail_at & 0xFFFFFFFF
        logs_at, logs_len, logs, emitted_at, emitted_len, emitted = struct.unpack("<6I", self.read(at, 24))
        unpack = (self.read(logs_at, logs_len), logs), (self.read(emitted_at, emitted_len), emitted)
        kept = [list(msgpack.Unpacker(io.BytesIO(data), raw=False)) for data, _ in unpack]
        assert [len(items) for items in kept] == [count for _, count in unpack]
        return kept[0], [codec.decode(item) for item in kept[1]]

    def step(self, name: str, data: bytes, now_us: int) -> Step:
        packed = self.call(name, self.put(data), len(data), now_us) & 0xFFFFFFFFFFFFFFFF
        status, payload, calls, logs, emitted, wake = codec.decode(self.read(packed >> 32, packed & 0xFFFFFFFF))
        return Step(
            ("done", "pending", "failed")[status],
            codec.decode(payload) if status == 0 else payload,
            [[id_, path, codec.decode(args), meta] for id_, path, args, meta in calls],
            logs,
            [codec.decode(item) for item in emitted],
            wake,
        )

    def start(
        self,
        source: str,
        input: Any = None,
        *,
        seed: int = 1,
        now_us: int = 0,
        calls: int = 256,
        args_bytes: int = 1 << 20,
        result_bytes: int = 1 << 20,
        log_bytes: int = 65536,
    ) -> Step:
        limits = [self.memory_bytes, calls, args_bytes, result_bytes, log_bytes]
        body = [source.encode("utf-8", "surrogatepass"), codec.encode(input), seed, limits]
        return self.step("start", msgpack.packb(body), now_us)

    def attempt(self, source: str) -> Step | None:
        """Start a script that may run out of fuel: None when it did. Any other trap is raised."""
        try:
            return self.start(source)
        except Trapped as trap:
            if "all fuel consumed" not in str(trap):
                raise
            return None

    def resume(
        self, answers: Mapping[int, Any] | None = None, *, errors: Mapping[int, Any] | None = None, now_us: int = 0
    ) -> Step:
        rows = [[id_, True, codec.encode(value)] for id_, value in (answers or {}).items()]
        rows += [[id_, False, codec.encode(value)] for id_, value in (errors or {}).items()]
        return self.step("resume", msgpack.packb(rows), now_us)


def run(source: str, input: Any = None, **options: Any) -> Step:
    """Start a script that needs no answers."""
    sizes = {key: options.pop(key) for key in ("fuel", "memory") if key in options}
    return Isolate(**sizes).start(source, input, **options)


def value(source: str, input: Any = None, **options: Any) -> Any:
    """The result of a script that completes in one step."""
    step = run(source, input, **options)
    assert step.status == "done", step
    return step.payload
