"""node:zlib in an isolate: what it packs everybody can unpack, as small as zlib makes it, at the engine's speed."""

from __future__ import annotations

import asyncio
import base64
import random
import zlib
from typing import Any

import pytest

from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from catalog.kinds.npm.bundle import PackageSource
from runtime.budgets import BudgetPolicy
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.packages import PackageCall, Packages
from runtime.results import RunResult
from tests.unit.npm_trees import esm

pytestmark = pytest.mark.anyio

SOURCE = """
import zlib from "node:zlib";
const said = (work) => { try { return work().toString("base64"); } catch (error) { return error.code; } };
export const pack = { execute: ({ texts, levels }) => texts.map((text) => levels.map((level) => {
  const bytes = Buffer.from(text, "base64");
  const made = ["gzip", "deflate", "deflateRaw"].map((way) => zlib[`${way}Sync`](bytes, { level }));
  const back = [zlib.gunzipSync(made[0]), zlib.inflateSync(made[1]), zlib.inflateRawSync(made[2])];
  if (!back.every((one) => one.equals(bytes))) throw new Error("not what it was");
  return made.map((one) => one.toString("base64"));
})) };
export const unpack = { execute: ({ texts }) => texts.map((text) =>
  said(() => zlib.inflateSync(Buffer.from(text, "base64")))) };
export const wrong = { execute: () => [10, -2, 1.5, "6"].map((level) =>
  said(() => zlib.deflateSync("x", { level }))) };
export const much = { execute: ({ size }) =>
  zlib.gzipSync("The same words again and again. ".repeat(size / 32)).length };
"""


async def ran(*calls: tuple[str, Any]) -> list[RunResult]:
    async with Toolbox() as box, Dispatcher(DispatcherSettings(workers=1)) as dispatcher:
        packages = Packages(dispatcher, box.proxy)
        source = PackageSource.of(esm(SOURCE))
        budgets = BudgetPolicy().resolve({"result_bytes": 8 << 20}, "node")
        work = [packages.run(PackageCall(source, name, params), budgets, CallContext()) for name, params in calls]
        return list(await asyncio.wait_for(asyncio.gather(*work), 120))


def texts() -> list[bytes]:
    """Nothing, little, runs, noise, words, and weights that make the longest codes."""
    draw = random.Random(7)
    steep = bytes(symbol for symbol, count in enumerate(_fibonacci(22)) for _ in range(count))
    words = " ".join(draw.choice(["alpha", "beta", "gamma", "delta", "é"]) for _ in range(9_000)).encode()
    mixed = bytes(min(255, int(draw.expovariate(0.1))) for _ in range(40_000))
    shuffled = bytes(draw.sample(steep, len(steep)))
    return [b"", b"a", b"hello", b"ab" * 9, b"a" * 70_000, draw.randbytes(70_000), words, mixed, steep, shuffled]


def _fibonacci(count: int) -> list[int]:
    found = [1, 1]
    while len(found) < count:
        found.append(found[-1] + found[-2])
    return found


def unpacked(data: bytes, window: int) -> bytes:
    engine = zlib.decompressobj(window)
    found = engine.decompress(data) + engine.flush()
    assert engine.eof
    assert not engine.unused_data
    return found


async def test_what_is_packed_is_whole_and_small_at_every_level() -> None:
    given, levels = texts(), [-1, 0, 1, 6, 9]
    encoded = [base64.b64encode(text).decode() for text in given]
    (packed,) = await ran(("pack", {"texts": encoded, "levels": levels}))
    for text, by_level in zip(given, packed.unwrap(), strict=True):
        for level, forms in zip(levels, by_level, strict=True):
            made = [base64.b64decode(form) for form in forms]
            assert [unpacked(one, window) for one, window in zip(made, (31, 15, -15), strict=True)] == [text] * 3
            theirs = zlib.compress(text, level)
            assert made[1][:2] == theirs[:2]
            assert len(made[1]) <= len(theirs) * 1.05 + 16, (len(text), level)


async def test_what_is_damaged_or_asked_for_wrongly_is_refused_as_node_does() -> None:
    whole = zlib.compress(b"some text to pack")
    damaged = [whole[:-1] + b"x", whole[:-2], b"", b"no", whole]
    encoded = [base64.b64encode(one).decode() for one in damaged]
    unpack, wrong = await ran(("unpack", {"texts": encoded}), ("wrong", {}))
    text = base64.b64encode(b"some text to pack").decode()
    assert unpack.unwrap() == ["Z_DATA_ERROR", "Z_BUF_ERROR", "Z_BUF_ERROR", "Z_DATA_ERROR", text]
    assert wrong.unwrap()[:3] == ["ERR_OUT_OF_RANGE"] * 3


async def test_packing_costs_instructions_in_proportion() -> None:
    """In JavaScript it took more than a thousand for each byte."""
    little, much = await ran(("much", {"size": 32}), ("much", {"size": 1 << 20}))
    assert much.unwrap() < 8_000
    assert (much.usage["fuel"] - little.usage["fuel"]) / (1 << 20) < 200
