"""Guests and workers that do not keep to the protocol, written by hand."""

from __future__ import annotations

import sys
from typing import Any

import msgpack
import wasmtime

from bridge.wire import frames
from runtime.engine import settings
from runtime.engine.compiled import Compiled
from runtime.engine.modules import ModuleCache

IO = 65_536
OUT = 131_072
ROOM = OUT + 32_768
PAGES = 4
SIZE = PAGES * 65_536

DONE = msgpack.packb([0, b"\x02", [], [], [], None])
PENDING = msgpack.packb([1, None, [[1, "a.org.b.c", b"\x80", False]], [], [], None])


def failed(code: Any, **fields: Any) -> bytes:
    """Output of a guest that failed with `code`."""
    facts = {"name": None, "message": "m", "line": None, "column": None, "stack": None, "path": None} | fields
    packed: bytes = msgpack.packb([2, [code, *facts.values()], [], [], [], None])
    return packed


def answer(pointer: int, size: int) -> str:
    """The body of a step that returns this pointer and length."""
    return f"(i64.const {(pointer << 32 | size) % 2**64})"


def guest(
    start: str | bytes = DONE,
    resume: str | bytes = DONE,
    *,
    io: str = f"(i32.const {IO})",
    alloc: str = f"(i32.const {ROOM})",
    dealloc: str = "",
    tail: bytes = b"",
    globals_: str = "",
    pages: int = PAGES,
) -> bytes:
    """A guest whose steps return these bytes, or have these bodies. `tail` lies where the tail struct is expected."""
    data = ""
    bodies = []
    at = OUT
    for step in (start, resume):
        if isinstance(step, bytes):
            data += f'(data (i32.const {at}) "{as_text(step)}")'
            bodies.append(answer(at, len(step)))
            at += len(step)
        else:
            bodies.append(step)
    step_type = "(param $ptr i32) (param $len i32) (param $now i64) (result i64)"
    text = f"""(module
      (memory (export "memory") {pages})
      {globals_}
      {data}
      (data (i32.const 16) "{as_text(tail)}")
      (func (export "io") (result i32) {io})
      (func (export "tail") (result i32) (i32.const 16))
      (func (export "alloc") (param $n i32) (result i32) {alloc})
      (func (export "dealloc") (param $p i32) {dealloc})
      (func (export "start") {step_type} {bodies[0]})
      (func (export "resume") {step_type} {bodies[1]}))"""
    return bytes(wasmtime.wat2wasm(text))


class CompiledHere(ModuleCache):
    """Compiles in this process and keeps nothing: these guests are tiny, and known."""

    def compiled(self, wasm: bytes, mode: settings.Mode = "fibers") -> bytes:
        return Compiled(bytes(wasmtime.Module(settings.engine(mode), wasm).serialize())).packed()


def as_text(data: bytes) -> str:
    """`data` as the inside of a string in WebAssembly text."""
    return "".join(f"\\{byte:02x}" for byte in data)


_FAKE_WORKER = """
import os, socket, struct, sys
sys.path += {path!r}
import msgpack
link = socket.socket(fileno=int(sys.argv[-1]))
stream = link.makefile("rb")
def receive():
    head = stream.read(4)
    return msgpack.unpackb(stream.read(struct.unpack(">I", head)[0])) if len(head) == 4 else None
def send(frame):
    raw(msgpack.packb(frame))
def raw(body):
    link.sendall(struct.pack(">I", len(body)) + body)
def wait():
    while receive() is not None:
        pass
receive()
{script}
wait()
"""


def worker(script: str) -> list[str]:
    """The command of a process that reads its boot frame, then runs `script`, which may `send` a frame, send `raw`
    bytes with a length in front, use the `link`, and `receive` what the host says next."""
    path = [entry for entry in sys.path if entry]
    return [sys.executable, "-c", _FAKE_WORKER.format(path=path, script=script)]


READY = f'send([{frames.VERSION}, {frames.READY}, 0, os.getpid(), ["process", "seccomp"]])\n'
