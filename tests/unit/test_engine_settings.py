"""The engine is configured as written, and finds out when it is not the one that the code was written for."""

from __future__ import annotations

import pytest
import wasmtime

from runtime.engine import raw, selftest, settings
from runtime.engine.fiber import SLICE

MODES: list[settings.Mode] = ["fibers", "calls"]

NEEDS = {
    "gc": ("wasm_gc", "wasm_function_references"),
    "function references": ("wasm_function_references",),
    "threads": ("wasm_threads",),
    "atomics": ("wasm_threads",),
    "simd": ("wasm_simd",),
    "relaxed simd": ("wasm_simd", "wasm_relaxed_simd"),
    "memory64": ("wasm_memory64",),
    "multi memory": ("wasm_multi_memory",),
    "exceptions": ("wasm_exceptions",),
    "tail calls": ("wasm_tail_call",),
    "custom page sizes": ("wasm_custom_page_sizes",),
    "stack switching": ("wasm_stack_switching", "wasm_function_references", "wasm_exceptions"),
    "wide arithmetic": ("wasm_wide_arithmetic",),
}


@pytest.mark.parametrize("mode", MODES)
def test_no_optional_feature_is_left_on(mode: settings.Mode) -> None:
    assert settings.features_left_on(settings.engine(mode)) == []


@pytest.mark.parametrize("feature", settings.REFUSED)
def test_a_feature_that_is_on_is_noticed(feature: str) -> None:
    config = wasmtime.Config()
    for name in NEEDS[feature]:
        setattr(config, name, True)
    assert feature in settings.features_left_on(wasmtime.Engine(config))


@pytest.mark.parametrize("mode", MODES)
def test_fuel_is_always_counted(mode: settings.Mode) -> None:
    engine = settings.engine(mode)
    store = wasmtime.Store(engine)
    module = wasmtime.Module(engine, '(module (func (export "f")))')
    call = wasmtime.Instance(store, module, []).exports(store)["f"]
    assert isinstance(call, wasmtime.Func)
    store.set_epoch_deadline(10) if mode == "calls" else None
    with pytest.raises(wasmtime.Trap) as trapped:
        call(store)
    assert trapped.value.trap_code is wasmtime.TrapCode.OUT_OF_FUEL


def test_every_setting_is_described_for_the_cache() -> None:
    described = settings.described("fibers")
    assert set(described["off"]) == set(settings.OFF)
    assert set(described["on"]) == set(settings.ON)
    assert described["max_wasm_stack"] == settings.WASM_STACK < described["async_stack_size"]
    assert described != settings.described("calls")


def test_the_c_api_is_as_the_code_knows_it() -> None:
    assert selftest.fibers_work(settings.engine()) is None
    assert selftest.features(settings.engine()) == []
    assert selftest.features(wasmtime.Engine()) != []


WRONG = {
    "another layout": ("layouts_hold", lambda: False),
    "a memory of another size": ("memory_size", lambda context, memory: 65_536),
    "fuel that does not fall": ("get_fuel", lambda context, to: None),
    "another trap": ("take_trap", lambda pointer: "unreachable"),
    "an export that is not found": ("export_get", lambda *arguments: False),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_c_api_with_a_fault_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, stand_in = WRONG[fault]
    monkeypatch.setattr(raw, name, stand_in)
    assert selftest.fibers_work(settings.engine()) is not None


def test_slices_that_never_end_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "yield_interval", lambda context, fuel: None)
    assert selftest.fibers_work(settings.engine()) == "fuel and slices do not agree"
    assert SLICE > 1_000_000
