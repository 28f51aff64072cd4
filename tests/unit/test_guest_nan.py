"""Every NaN that a script can look at has the same bits, however it came about: the engine's own promise, not the
compiler's, whose canonicalisation is off."""

import pytest
from guest_host import value

MAKERS = [
    "0/0",
    "Infinity - Infinity",
    "Math.sqrt(-1)",
    "-(0/0)",
    "Number('x')",
    "Math.log(-1)",
    "Infinity * 0",
    "new Float64Array(new BigUint64Array([0xfff8000000000123n]).buffer)[0]",
    "new Float32Array(new Uint32Array([0xffc00123]).buffer)[0]",
    "new DataView(new BigUint64Array([0x7ff0000000000001n]).buffer).getFloat64(0, true)",
]


@pytest.mark.parametrize("maker", MAKERS)
def test_a_nan_shows_one_form_in_memory(maker: str) -> None:
    script = f"[...new Uint8Array(new Float64Array([{maker}]).buffer)].join()"
    assert value(script) == "0,0,0,0,0,0,248,127"
