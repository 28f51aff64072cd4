"""Pages made present ahead of a start: which they are, that they are, and that nothing depends on it."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.engine import modules, prefault, protocol, settings, survey
from runtime.engine.compiled import Compiled
from runtime.engine.image import Image
from runtime.engine.instance import Unusable
from runtime.engine.prefault import PAGE, Prefault
from runtime.isolate import Isolate
from tests.blackbox.rogue import answer, failed, guest
from tests.unit.test_engine_isolate import LIMITS, image, started

ONE = 3 * 65_536
"""Where the guests below touch their memory, behind all that they hold."""


def kernel_can() -> bool:
    """Whether this system does what `prefault` asks of it, and tells what `survey` looks at."""
    area = ctypes.create_string_buffer(2 * PAGE)
    return Path("/proc/self/pagemap").exists() and Prefault([0]).apply(-(-ctypes.addressof(area) // PAGE) * PAGE)


def present(isolate: Isolate) -> set[int]:
    """The pages of the memory that a touch would not fault on."""
    base, size = isolate.memory()
    with Path("/proc/self/pagemap").open("rb", buffering=0) as file:
        file.seek(base // PAGE * 8)
        entries = memoryview(file.read(size // PAGE * 8)).cast("Q")
    return {page for page, entry in enumerate(entries) if entry >> 63}


def pages_of(body: str) -> list[int]:
    """What a guest is found to touch whose start does `body`; found as for every image, in a process of its own."""
    wasm = guest(start=f"{body} {answer(131_072, 0)}")
    return list(Compiled.unpacked(modules.compile_apart(wasm)).pages)


def store(page: int) -> str:
    return f"(i32.store (i32.const {ONE + page * PAGE}) (i32.const 1))"


def test_the_pages_that_a_start_writes_to_are_found() -> None:
    first = ONE // PAGE
    found = {first, first + 5} & set(pages_of(store(0) + store(5)))
    assert found == ({first, first + 5} if kernel_can() else set())
    assert first + 5 not in pages_of(store(0))


def test_a_module_that_is_no_guest_or_does_not_run_touches_nothing() -> None:
    assert list(Compiled.unpacked(modules.compile_apart(b"\0asm\1\0\0\0")).pages) == []
    assert pages_of("(unreachable)") == []


def test_the_pages_of_the_javascript_image_are_present_before_its_first_step() -> None:
    pages = set(image("fibers").prefault.pages)
    assert (10 < len(pages) < 60) if kernel_can() else not pages
    with Isolate(image("fibers"), fuel=LIMITS.fuel, memory_bytes=LIMITS.memory_bytes) as isolate:
        if pages:
            assert not present(isolate) & pages
        isolate.begin("start", started("1+1"))
        if pages:
            assert pages <= present(isolate)
        output = isolate.advance()
        assert output is not None
        assert protocol.read_output(output).result == b"\x02"


def test_nothing_depends_on_it_and_a_kernel_that_refuses_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(*arguments: object) -> int:
        asked.append(arguments)
        return -1

    monkeypatch.setattr(prefault, "_call", refuse)
    made = image("fibers")
    monkeypatch.setattr(made, "prefault", Prefault([1, 2, 3]))
    for _ in range(3):
        with Isolate(made, fuel=LIMITS.fuel, memory_bytes=LIMITS.memory_bytes) as isolate:
            assert protocol.read_output(isolate.run("start", started("1+1"))).result == b"\x02"
    assert len(asked) == 1
    assert not made.prefault.apply(0)


def test_only_ranges_of_the_memory_are_named_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    named = []

    def take(call: int, process: int, vector: bytes, count: int, advice: int, flags: int) -> int:
        assert (process, len(vector)) == (prefault.PIDFD_SELF, 16 * count)
        named.extend(memoryview(vector).cast("Q").tolist())
        return 0

    monkeypatch.setattr(prefault, "_call", take)
    base = 0x7F12_3456_7000
    assert Prefault([9, 2, 3, 4, 7]).apply(base)
    assert named == [base + 2 * PAGE, 3 * PAGE, base + 7 * PAGE, PAGE, base + 9 * PAGE, PAGE]
    assert not Prefault([]).apply(base)


@pytest.mark.parametrize("data", [b"", b"\1\0\0", b"\2\0\0\0\1\0\0\0", b"\xff\xff\xff\xffcode"])
def test_a_compiled_module_that_is_cut_off_is_refused(data: bytes) -> None:
    with pytest.raises(Unusable, match="cut off"):
        Compiled.unpacked(data)


def test_code_and_pages_come_back_as_they_were() -> None:
    assert Compiled.unpacked(Compiled(b"code", [1, 70_000]).packed()) == Compiled(b"code", (1, 70_000))


def test_an_image_whose_start_fails_is_surveyed_all_the_same() -> None:
    found = survey.touched(Image.compile(settings.engine(), guest(start=failed("script_error"))))
    assert bool(found) == kernel_can()


LOCKED = """
import ctypes, mmap, os
from runtime.engine.prefault import Prefault
from runtime.worker import lockdown
area = mmap.mmap(-1, 65536)
ahead = Prefault([0, 2, 3])
lockdown.before_threads(os.getppid())
lockdown.after_threads()
os.write(1, b"%d" % ahead.apply(ctypes.addressof(ctypes.c_char.from_buffer(area))))
os._exit(0)
"""


def test_a_locked_worker_can_do_it_where_the_kernel_can() -> None:
    done = subprocess.run([sys.executable, "-c", LOCKED], capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == (b"%d" % kernel_can(), 0), done.stderr[-500:]
