"""Run a module's start-up once and write a module that begins where it left off.

The linear memory becomes the data segments and the mutable globals their values, so that an isolate starts without
running any start-up code: the engine maps the segments copy-on-write. The pass refuses what it does not understand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import wasmtime

from guest import wasm
from guest.wasm import MalformedModule, Section

PAGE: Final = 65536
MAX_PAGES: Final = 8192
"""Pages of the largest memory that a module may grow to: the ceiling of the budget memory_bytes, 512 MiB."""

_GAP: Final = 4096
"""Zero bytes between two segments that are worth a segment of their own; the engine maps whole host pages anyway."""

_INITIALISE: Final = "_initialize"


Finish = Callable[[bytearray, bytes], None]


def preinitialise(
    module: bytes,
    calls: Sequence[tuple[str, bytes]],
    *,
    drop: Iterable[str] = (),
    imports: Collection[str] = (),
    survey: tuple[str, Finish] | None = None,
) -> bytes:
    """`module` after `_initialize` and `calls`, each an export `(ptr, len) -> i32` that gives 0.

    The exports called, `_initialize` and those named in `drop` are left out of the result. `imports` are the functions
    that the module may import, as `module.name`; the start-up must not call them. `survey` names an export
    `() -> address << 32 | length` that is called when the memory has been taken, and what to do to that memory with the
    bytes it tells: nothing of what the call itself did to memory is in the result. Raises MalformedModule for a module
    outside of what this pass understands, and RuntimeError when a call does not give 0.
    """
    parts = wasm.sections(module)
    _check(parts, imports)
    memory, values = _run(module, calls, _mutable_globals(parts), survey)
    gone = {_INITIALISE, *(name for name, _ in calls), *drop}
    return wasm.write(_rewrite(parts, memory, values, gone))


def _check(parts: list[Section], imports: Collection[str]) -> None:
    kinds = [part.id for part in parts]
    if unknown := set(wasm.imported_functions(_body(parts, wasm.IMPORT))) - set(imports):
        raise MalformedModule(f"the module has imports: {', '.join(sorted(unknown))}")
    if wasm.START in kinds:
        raise MalformedModule("the module has a start function")
    if wasm.DATA_COUNT in kinds:
        raise MalformedModule("the module may use its data segments at run time")
    if len(set(kinds)) != len(kinds):
        raise MalformedModule("the module has a section twice")


def _body(parts: list[Section], kind: int) -> bytes:
    return next((part.body for part in parts if part.id == kind), b"\0")


def _mutable_globals(parts: list[Section]) -> dict[int, str]:
    """Index → export name of each mutable global. All must be exported integers: no other can be read back."""
    names = {e.index: e.name for e in wasm.exports(_body(parts, wasm.EXPORT)) if e.kind == "global"}
    found: dict[int, str] = {}
    for index, item in enumerate(wasm.globals_(_body(parts, wasm.GLOBAL))):
        if not item.mutable:
            continue
        if index not in names or item.type not in (wasm.I32, wasm.I64):
            raise MalformedModule(f"mutable global {index} is not an exported integer")
        found[index] = names[index]
    return found


def _run(
    module: bytes, calls: Sequence[tuple[str, bytes]], mutable: dict[int, str], survey: tuple[str, Finish] | None
) -> tuple[bytearray, dict[int, int]]:
    config = wasmtime.Config()
    config.max_wasm_stack = 2 << 20  # as much as the default fiber stack allows
    store = wasmtime.Store(wasmtime.Engine(config))
    compiled = wasmtime.Module(store.engine, module)
    exports = wasmtime.Instance(store, compiled, [_uncallable(store, i) for i in compiled.imports]).exports(store)
    memory = exports["memory"]
    assert isinstance(memory, wasmtime.Memory)

    def function(name: str) -> Callable[..., int]:
        export = exports[name]
        assert isinstance(export, wasmtime.Func)
        return lambda *arguments: export(store, *arguments)

    if _INITIALISE in exports:
        function(_INITIALISE)()
    for name, payload in calls:
        at = function("alloc")(len(payload))
        memory.write(store, payload, at & 0xFFFFFFFF)
        status = function(name)(at, len(payload))
        if status:
            raise RuntimeError(f"{name} gave {status}: {_problem(exports, store, memory)}")
        memory.write(store, bytes(len(payload)), at & 0xFFFFFFFF)
        function("dealloc")(at)
    values: dict[int, int] = {}
    for index, name in mutable.items():
        item = exports[name]
        assert isinstance(item, wasmtime.Global)
        values[index] = int(item.value(store))
    image = bytearray(memory.read(store, 0, memory.data_len(store)))
    for index, name in mutable.items():
        if name == "__stack_pointer":
            _clear_stack(image, values[index])
    if survey is not None:
        export, finish = survey
        told = function(export)() & 0xFFFF_FFFF_FFFF_FFFF
        if not told:
            raise RuntimeError(f"{export} gave nothing")
        at, size = told >> 32, told & 0xFFFFFFFF
        finish(image, bytes(memory.read(store, at, at + size)))
    return image, values


def _uncallable(store: wasmtime.Store, item: wasmtime.ImportType) -> wasmtime.Func:
    kind = item.type
    if not isinstance(kind, wasmtime.FuncType):
        raise MalformedModule(f"the module imports {item.module}.{item.name}, which is no function")

    def refuse(*arguments: object) -> None:
        raise RuntimeError(f"the start-up called {item.module}.{item.name}")

    return wasmtime.Func(store, kind, refuse)


def _problem(exports: Mapping[str, object], store: wasmtime.Store, memory: wasmtime.Memory) -> str:
    if "problem" not in exports:
        return "no reason given"
    export = exports["problem"]
    assert isinstance(export, wasmtime.Func)
    at = export(store) & 0xFFFFFFFF
    return bytes(memory.read(store, at, at + 1024)).split(b"\0", 1)[0].decode(errors="replace")


def _clear_stack(image: bytearray, top: int) -> None:
    """What the start-up left below the stack pointer is dead; the stack lies at the bottom of the memory."""
    image[:top] = bytes(top)


def _rewrite(parts: list[Section], memory: bytearray, values: dict[int, int], gone: set[str]) -> list[Section]:
    segments = _segments(memory)
    replaced = {
        wasm.MEMORY: _memory_section(_body(parts, wasm.MEMORY), len(memory)),
        wasm.GLOBAL: _global_section(_body(parts, wasm.GLOBAL), values),
        wasm.EXPORT: wasm.write_exports([e for e in wasm.exports(_body(parts, wasm.EXPORT)) if e.name not in gone]),
    }
    out = [Section(p.id, replaced.get(p.id, p.body)) for p in parts if p.id != wasm.DATA]
    data = wasm.unsigned(len(segments)) + b"".join(_data_segment(at, body) for at, body in segments)
    return [*out, Section(wasm.DATA, data)]


def _memory_section(body: bytes, size: int) -> bytes:
    reader = wasm.Reader(body)
    if reader.unsigned() != 1 or reader.byte() not in (0, 1):
        raise MalformedModule("the module has not exactly one 32-bit, unshared memory")
    return b"\x01\x01" + wasm.unsigned(size // PAGE) + wasm.unsigned(MAX_PAGES)


def _global_section(body: bytes, values: dict[int, int]) -> bytes:
    items = wasm.globals_(body)
    for index, value in values.items():
        item = items[index]
        opcode = b"\x41" if item.type == wasm.I32 else b"\x42"
        items[index] = wasm.Global(item.type, True, opcode + wasm.signed(value) + b"\x0b")
    return wasm.write_globals(items)


def _data_segment(at: int, body: bytes) -> bytes:
    signed = at - (1 << 32) if at >= 1 << 31 else at
    return b"\0\x41" + wasm.signed(signed) + b"\x0b" + wasm.unsigned(len(body)) + body


def _segments(memory: bytearray) -> list[tuple[int, bytes]]:
    """The parts of memory that are not zero. Two parts with less than a host page of zeros between them are one."""
    segments: list[tuple[int, bytes]] = []
    start: int | None = None
    for at in range(0, len(memory), _GAP):
        used = memory.count(0, at, at + _GAP) != _GAP
        if used and start is None:
            start = at
        elif not used and start is not None:
            segments.append(_trimmed(memory, start, at))
            start = None
    if start is not None:
        segments.append(_trimmed(memory, start, len(memory)))
    return segments


def _trimmed(memory: bytearray, start: int, end: int) -> tuple[int, bytes]:
    body = bytes(memory[start:end])
    lead = len(body) - len(body.lstrip(b"\0"))
    return start + lead, body[lead:].rstrip(b"\0")
