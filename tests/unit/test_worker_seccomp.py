"""The filter as the kernel would run it, on both machines, by an interpreter of twenty lines."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.engine.prefault import PIDFD_SELF
from runtime.worker import seccomp

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, EPERM, KILL = 0x7FFF0000, 0x00050001, 0x80000000
MACHINES = ["x86_64", "aarch64"]
READ_WRITE, WITH_EXEC = 3, 5


def verdict(machine: str, number: int, *, arch: int | None = None, first: int = 0, third: int = 0) -> int:
    """What the filter says of a call with these arguments."""
    data = struct.pack("<IIQ6Q", number, arch if arch is not None else ARCH[machine], 0, first, 0, third, 0, 0, 0)
    code = list(struct.iter_unpack("<HBBI", seccomp.program(machine)))
    at = accumulator = 0
    while True:
        operation, true, false, k = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, k)
        elif operation == 0x06:
            return k
        else:
            holds = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[operation]
            at += true if holds else false


@pytest.mark.parametrize("machine", MACHINES)
def test_each_call_gets_what_its_table_says(machine: str) -> None:
    column = MACHINES.index(machine)
    for table, expected in ((seccomp.ALLOWED, ALLOW), (seccomp.KILLED, KILL), (seccomp.WITHOUT_EXEC, ALLOW)):
        for name, numbers in table.items():
            if (number := numbers[column]) is not None:
                assert verdict(machine, number) == expected, name


@pytest.mark.parametrize("machine", MACHINES)
def test_memory_may_be_mapped_and_protected_but_never_to_run(machine: str) -> None:
    column = MACHINES.index(machine)
    for numbers in seccomp.WITHOUT_EXEC.values():
        number = numbers[column]
        assert number is not None
        assert verdict(machine, number, third=READ_WRITE) == ALLOW
        assert verdict(machine, number, third=WITH_EXEC) == KILL


@given(st.sampled_from(MACHINES), st.integers(0, 2**64 - 1))
def test_a_process_may_advise_on_its_own_memory_alone(machine: str, process: int) -> None:
    [(number, _)] = seccomp.ON_ITSELF.values()
    assert verdict(machine, number, first=PIDFD_SELF % 2**64) == ALLOW
    # The kernel takes the lower half of the number.
    assert (verdict(machine, number, first=process) == ALLOW) == (process % 2**32 == PIDFD_SELF % 2**32)


@given(st.sampled_from(MACHINES), st.integers(0, 2**32 - 1))
def test_no_call_is_allowed_that_is_not_listed(machine: str, number: int) -> None:
    column = MACHINES.index(machine)
    listed = {row[column] for row in [*seccomp.ALLOWED.values(), *seccomp.WITHOUT_EXEC.values()]}
    assert verdict(machine, number) != ALLOW or number in listed


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_end_the_process(machine: str) -> None:
    assert verdict(machine, 0, arch=0x40000003) == KILL


def test_the_x32_calls_end_the_process() -> None:
    assert verdict("x86_64", 0x40000000) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_opening_a_file_fails_and_is_survived(machine: str) -> None:
    assert verdict(machine, {"x86_64": 257, "aarch64": 56}[machine]) == EPERM


@pytest.mark.parametrize("column", [0, 1], ids=MACHINES)
def test_no_number_stands_in_two_tables(column: int) -> None:
    numbers = [
        row[column]
        for table in (seccomp.ALLOWED, seccomp.KILLED, seccomp.ON_ITSELF, seccomp.WITHOUT_EXEC)
        for row in table.values()
        if row[column] is not None
    ]
    assert len(numbers) == len(set(numbers))
