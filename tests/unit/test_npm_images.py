"""Images of loaded packages: a call begins where loading ended, and nothing of one call is in another."""

from __future__ import annotations

import asyncio
import ctypes
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from catalog.kinds.npm.bundle import PackageSource
from catalog.kinds.npm.tree import PackageTree
from guest import images
from runtime.budgets import BudgetPolicy
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.engine import pages, settings
from runtime.engine.image import Image
from runtime.engine.instance import Unusable
from runtime.engine.modules import ModuleCache
from runtime.engine.sealed import Sealed
from runtime.engine.shelf import PLACES, Shelf
from runtime.package_images import Loaded, PackageImages, loaded_of
from runtime.packages import PackageCall, Packages
from runtime.results import RunResult
from tests.unit.npm_trees import esm

Execute = Callable[..., RunResult]
HEAVY = "let n = 0; for (let i = 0; i < 200000; i++) n += i % 7; "


@pytest.fixture(scope="module")
def house() -> Any:
    runner = asyncio.Runner()

    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Toolbox, Dispatcher]]:
        async with Toolbox() as box, Dispatcher(DispatcherSettings(workers=2)) as dispatcher:
            yield box, dispatcher

    manager = opened()
    box, dispatcher = runner.run(manager.__aenter__())
    try:
        yield runner, box, dispatcher
    finally:
        runner.run(manager.__aexit__(None, None, None))
        runner.close()


def sealed(folder: Path) -> Sealed:
    key = folder / "key"
    return Sealed("x", ".pages", b"TESTPAGE", entries=4, most_bytes=1 << 30, folder=folder / "images", key_file=key)


@pytest.fixture
def opened(house: Any, tmp_path: Path) -> Callable[[], Execute]:
    """Gives what another process would have: new memory, the same folder."""
    runner, box, dispatcher = house

    def start() -> Execute:
        packages = Packages(dispatcher, box.proxy, images=PackageImages(sealed(tmp_path)))

        def run(made: PackageTree, params: Any = None, *, times: int = 1, budgets: Any = None, **more: Any) -> Any:
            call = PackageCall(PackageSource.of(made), "tool", {} if params is None else params, **more)
            given = BudgetPolicy().resolve(budgets, "node")

            async def all_at_once() -> list[RunResult]:
                work = [packages.run(call, given, CallContext()) for _ in range(times)]
                return await asyncio.wait_for(asyncio.gather(*work), 120)

            results = runner.run(all_at_once())
            return results if times > 1 else results[0]

        return run

    start.folder = tmp_path  # type: ignore[attr-defined]
    return start


@pytest.fixture
def execute(opened: Callable[[], Execute]) -> Execute:
    return opened()


def test_a_package_is_loaded_once_and_each_call_begins_there(execute: Execute) -> None:
    made = esm(HEAVY + "export const tool = { execute: ({ by }) => n + by };")
    first, second = execute(made, {"by": 1}), execute(made, {"by": 2})
    assert second.unwrap() == first.unwrap() + 1
    assert second.usage["fuel"] * 20 < first.usage["fuel"]


def test_nothing_that_a_call_does_is_there_in_the_next(execute: Execute) -> None:
    """PKG-21."""
    source = """
      let count = 0;
      export const tool = { execute() {
        globalThis.left = (globalThis.left ?? 0) + 1;
        return [++count, globalThis.left];
      } };"""
    made = esm(source)
    assert [execute(made).unwrap() for _ in range(3)] == [[1, 1]] * 3
    assert [result.unwrap() for result in execute(made, times=6)] == [[1, 1]] * 6


def test_an_environment_that_loading_read_is_loaded_with(execute: Execute) -> None:
    """PKG-20."""
    made = esm(
        HEAVY
        + "const key = process.env.KEY ?? 'none'; export const tool = { execute: () => [key, process.env.OTHER] };"
    )
    assert execute(made).unwrap() == ["none", None]
    assert execute(made, env={"KEY": "one"}).unwrap() == ["one", None]
    assert execute(made, env={"KEY": "two", "OTHER": "x"}).unwrap() == ["two", "x"]
    assert execute(made).unwrap() == ["none", None]
    light, heavy = execute(made, env={"OTHER": "x"}), execute(made, env={"KEY": "x"})
    assert light.unwrap() == ["none", "x"]
    assert light.usage["fuel"] * 20 < heavy.usage["fuel"]


def test_a_package_that_reads_the_whole_environment_is_loaded_with_any(execute: Execute) -> None:
    made = esm("const all = { ...process.env }; export const tool = { execute: () => all };")
    assert execute(made).unwrap() == {}
    assert execute(made, env={"A": "1"}).unwrap() == {"A": "1"}


def test_nothing_is_left_of_a_package_that_does_not_load(house: Any, tmp_path: Path) -> None:
    runner, box, dispatcher = house
    packages = Packages(dispatcher, box.proxy, images=PackageImages(sealed(tmp_path)))
    call = PackageCall(PackageSource.of(esm("throw new RangeError('no')")), "tool", {})
    failed = runner.run(packages.run(call, BudgetPolicy().resolve(None, "node"), CallContext()))
    assert failed.error["reason"] == "load_failed"
    assert not packages._loading


def test_a_package_that_needs_its_environment_to_load_gets_it(execute: Execute) -> None:
    made = esm("if (!process.env.KEY) throw new Error('KEY is required'); export const tool = { execute: () => 1 };")
    failed = execute(made)
    assert failed.error is not None
    assert (failed.error["reason"], failed.error["message"]) == ("load_failed", "KEY is required")
    assert execute(made, env={"KEY": "k"}).unwrap() == 1


@pytest.mark.parametrize(
    "impure",
    [
        "const drawn = Math.random();",
        "const drawn = crypto.randomUUID();",
        "import { randomBytes } from 'crypto'; const drawn = randomBytes(8).toString('hex');",
        "const drawn = crypto.getRandomValues(new Uint8Array(8)).join();",
        "let drawn = 0; setTimeout(() => { drawn = Math.random() }, 0); await new Promise((r) => setTimeout(r, 1));",
        "await fetch('http://x.test/').catch(() => {}); const drawn = Math.random();",
    ],
)
def test_no_two_calls_begin_with_what_loading_drew_set_or_fetched(execute: Execute, impure: str) -> None:
    made = esm(impure + " export const tool = { execute: () => drawn };")
    assert len({str(execute(made).unwrap()) for _ in range(3)}) == 3


def test_a_package_that_drew_numbers_while_it_loaded_is_loaded_ahead_for_one_call_each(opened: Any, house: Any) -> None:
    """Each call has a memory of its own, which was loaded for it; the next call finds one that is ready."""
    runner, box, dispatcher = house
    made = esm(HEAVY + "const drawn = crypto.randomUUID(); export const tool = { execute: () => drawn };")
    call = PackageCall(PackageSource.of(made), "tool", {})
    budgets = BudgetPolicy().resolve(None, "node")

    async def calls() -> tuple[list[RunResult], list[RunResult]]:
        packages = Packages(dispatcher, box.proxy, images=PackageImages(sealed(opened.folder)))
        try:
            first = [await packages.run(call, budgets, CallContext()) for _ in range(4)]
            return first, list(await asyncio.gather(*(packages.run(call, budgets, CallContext()) for _ in range(6))))
        finally:
            await packages.aclose()

    first, at_once = runner.run(asyncio.wait_for(calls(), 120))
    assert len({run.unwrap() for run in (*first, *at_once)}) == 10
    # It waits for what is being made for it, and pays for its own part alone.
    assert all(run.usage["fuel"] * 20 < first[0].usage["fuel"] for run in first[1:])


def test_there_is_no_image_of_what_fetched_while_it_loaded_whatever_it_says(
    execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest that lies: what was fetched for one caller is not in memory for the next."""

    def lies(said: dict[str, Any], logs: list[dict[str, Any]]) -> Loaded | None:
        return loaded_of(said | {"pure": True, "random": False}, logs)

    monkeypatch.setattr("runtime.packages.loaded_of", lies)
    made = esm("await fetch('http://x.test/').catch(() => {}); " + HEAVY + "export const tool = { execute: () => n };")
    first, second = execute(made), execute(made)
    assert (first.status, second.status) == ("completed", "completed")
    assert second.calls != []


def test_each_call_draws_numbers_of_its_own(execute: Execute) -> None:
    source = """export const tool = { execute: () =>
      [Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(4)).join()] };"""
    drawn = [execute(esm(source)).unwrap() for _ in range(4)]
    assert all(len({one[at] for one in drawn}) == 4 for at in range(3))


def test_the_clock_of_a_call_is_not_that_of_the_image(execute: Execute) -> None:
    made = esm(
        "const before = Date.now(); export const tool = { execute: () => [before, Date.now(), performance.now()] };"
    )
    first, second = execute(made).unwrap(), execute(made).unwrap()
    assert first[0] == second[0] <= first[1] <= second[1]
    assert second[2] < 5_000


def test_another_process_finds_the_image_on_disk_and_a_changed_one_is_made_anew(
    opened: Callable[[], Execute], tmp_path: Path
) -> None:
    """PKG-17."""
    made = esm(HEAVY + "export const tool = { execute: () => n };")
    first = opened()(made)
    assert opened()(made).usage["fuel"] * 20 < first.usage["fuel"]
    (entry,) = (tmp_path / "images").glob("*.pages")
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 1
    entry.write_bytes(data)
    again = opened()(made)
    assert again.unwrap() == first.unwrap()
    assert again.usage["fuel"] * 2 > first.usage["fuel"]


def test_many_first_calls_load_a_package_once(execute: Execute) -> None:
    """PKG-24."""
    made = esm(HEAVY + "export const tool = { execute: () => n };")
    results = execute(made, times=8)
    assert len({result.unwrap() for result in results}) == 1
    assert sorted(result.usage["fuel"] for result in results)[-2] * 20 < max(result.usage["fuel"] for result in results)


def test_what_loading_logged_is_in_every_answer(execute: Execute) -> None:
    made = esm("console.log('loading'); export const tool = { execute() { console.log('running') } };")
    for _ in range(2):
        assert [line["text"] for line in execute(made).logs] == ["loading", "running"]


def test_loading_and_calling_share_one_budget(execute: Execute) -> None:
    """PKG-18."""
    made = esm(HEAVY + "export const tool = { execute() { for (;;) {} } };")
    result = execute(made, budgets={"fuel": 10**9})
    assert result.error is not None
    assert result.error["code"] == "fuel_exhausted"
    assert result.usage["fuel"] == 10**9
    small = execute(esm("export const tool = { execute: () => 1 };"), budgets={"memory_bytes": 1 << 20})
    assert small.error is not None
    assert small.error["code"] == "memory_exhausted"


@pytest.fixture(scope="module")
def image() -> Image:
    images.build(sets=("node",))
    return Image.load(settings.engine(), ModuleCache().compiled(images.load("node").wasm))


def test_pages_are_laid_only_where_they_fit(image: Image) -> None:
    size = len(image.pristine())
    count = size // 65536
    head = b"EXPAGES1"
    whole = head + struct.pack("<I", count + 2) + struct.pack("<II", size // 4096, 1) + b"x" * 4096
    instance = image.instantiate(fuel=0, memory_bytes=size + 3 * 65536)
    pages.laid(instance, whole)
    assert instance.memory()[1] == size + 2 * 65536
    assert pages.taken(instance, image.pristine()) == whole
    instance.close()
    bad = [
        b"",
        head,
        b"EXPAGES2" + whole[8:],
        whole[:-1],
        whole[:-4097],
        head + struct.pack("<I", 0),
        head + struct.pack("<I", 9000),
        head + struct.pack("<I", 1),
        head + struct.pack("<I", count) + struct.pack("<II", 0xFFFFFFFF, 1) + b"x" * 4096,
        head + struct.pack("<I", count) + struct.pack("<II", 0, 0xFFFFFFFF),
    ]
    for data in bad:
        instance = image.instantiate(fuel=0, memory_bytes=size)
        with pytest.raises(Unusable):
            pages.laid(instance, data)
        instance.close()
    instance = image.instantiate(fuel=0, memory_bytes=size + 65536)
    with pytest.raises(Unusable):
        pages.laid(instance, whole)
    instance.close()


def test_pages_that_are_kept_are_mapped_privately_and_stay_while_they_are_used(image: Image) -> None:
    """What one isolate writes is in no other, and what is dropped is there until the last isolate has let go."""
    size = len(image.pristine())
    whole = b"EXPAGES1" + struct.pack("<I", size // 65536 + 1) + struct.pack("<II", size // 4096, 1) + b"x" * 4096
    shelf = Shelf(image.pristine)
    for _ in range(PLACES + 2):
        shelf.put("a", whole)
        shelf.put("b", b"EXPAGES1" + struct.pack("<I", size // 65536))
        first, second = shelf.take("a"), shelf.take("b")
        assert first is not None
        assert second is not None
        one, other = (image.instantiate(fuel=0, memory_bytes=size + 65536) for _ in range(2))
        shelf.lay(first, one)
        shelf.drop("a")
        shelf.lay(first, other)
        ctypes.memset(one.memory()[0] + size, ord("y"), 1)
        assert ctypes.string_at(other.memory()[0] + size, 4097) == b"x" * 4096 + b"\0"
        assert pages.taken(other, image.pristine()) == whole
        other.close()
        one.close()
        shelf.leave(first)
        shelf.drop("b")
        shelf.leave(second)
    assert shelf.take("a") is None
    with pytest.raises(Unusable):
        shelf.put("c", b"no pages")
