"""Whether this engine is what the code takes it for; asked once at the start of each worker."""

from __future__ import annotations

import ctypes
from typing import Final

import wasmtime

from runtime.engine import raw, settings
from runtime.engine.fiber import SLICE, FiberInstance
from runtime.engine.instance import Trapped, Unusable

_PAGE: Final = 64 * 1024
_ROUNDS: Final = 5_200_000

PROBE: Final = bytes.fromhex(
    "0061736d0100000001080160037f7f7e017e03020100050401010102071202066d656d6f7279020005737461727400000a350133004108"
    "20013602000340200041016b2100200041004a0d000b20024200530440000b410140001a41014000ad4220862002840b"
)
"""`start(n, v, t)`: stores v at 8, loops n times, traps when t < 0, grows the memory twice by a page (it may have two)
and returns the second answer above t."""


def features(engine: wasmtime.Engine) -> list[str]:
    """What is wrong with the engine's features: each optional one that it accepts."""
    return [f"{name} is on" for name in settings.features_left_on(engine)]


def fibers_work(engine: wasmtime.Engine) -> str | None:
    """Why calls cannot run as fibers through the C API; None when all of it does what it should.

    Tried are layouts, instantiation, limits, arguments, slices, memory, fuel, traps and dropping a call half way.
    """
    if not raw.layouts_hold():
        return "structs of the C API have another layout"
    try:
        pre = wasmtime.Linker(engine).instantiate_pre(wasmtime.Module(engine, PROBE))
        return _calls_work(raw.address(engine), raw.address(pre))
    except (Unusable, Trapped, wasmtime.WasmtimeError, AttributeError) as e:
        return f"{type(e).__name__}: {e}"


def _calls_work(engine: int, pre: int) -> str | None:
    budget = 10 * SLICE

    def instance() -> FiberInstance:
        return FiberInstance(engine, pre, fuel=budget, memory_bytes=2 * _PAGE)

    guest = instance()
    try:
        guest.begin("start", _ROUNDS, 0xFEDCBA98, 7)
        while (result := guest.poll(hold=guest.slices % 2 == 0)) is None:
            pass
        base, size = guest.memory()
        if result != 0xFFFFFFFF_00000007:
            return "arguments, results or the memory limit went wrong"
        if size != 2 * _PAGE or ctypes.c_uint32.from_address(base + 8).value != 0xFEDCBA98:
            return "the memory is not where it should be"
        if not 0 < guest.slices == (budget - guest.fuel()) // SLICE:
            return "fuel and slices do not agree"
    finally:
        guest.close()
    for rounds, last, code in ((1, -1, "unreachable"), (2**31 - 1, 0, "out_of_fuel")):
        guest = instance()
        try:
            guest.begin("start", rounds, 0, last)
            while guest.poll(hold=True) is None:
                pass
            return f"a trap did not come out: {code}"
        except Trapped as e:
            if e.code != code:
                return f"a trap came out as {e.code}, not {code}"
        finally:
            guest.close()
    guest = instance()
    guest.begin("start", 2**31 - 1, 0, 0)
    if guest.poll(hold=True) is not None:
        return "a slice has no end"
    guest.close()
    return None
