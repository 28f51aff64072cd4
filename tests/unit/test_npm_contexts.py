"""AsyncLocalStorage: what runs later finds the stores of the moment at which it was asked for, as in Node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from catalog.kinds.npm.bundle import PackageSource
from runtime.budgets import BudgetPolicy
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.packages import PackageCall, Packages
from tests.unit.npm_trees import esm

pytestmark = pytest.mark.anyio

SOURCE = """
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { EventEmitter } from "node:events";
const one = new AsyncLocalStorage(), two = new AsyncLocalStorage();
const seen = () => [one.getStore(), two.getStore()];
const later = (ms) => new Promise((done) => setTimeout(done, ms));
async function work(name, ms) {
  const found = [one.getStore()];
  await later(ms);
  found.push(one.getStore());
  await null;
  found.push(one.getStore());
  await two.run(name + "2", async () => { await later(1); found.push(seen().join()); });
  found.push(seen().join());
  await Promise.all([1, 2].map(async (n) => { await later(n); found.push(one.getStore() + n); }));
  const parts = (async function* () { yield one.getStore(); await later(1); yield one.getStore(); })();
  for await (const part of parts) found.push(part);
  return found;
}
export const tool = { async execute() {
  const out = {};
  out.tasks = await Promise.all(["a", "b", "c"].map((name, i) => one.run(name, work, name, 3 - i)));
  out.outside = seen();
  let open;
  const gate = new Promise((done) => { open = done; });
  const waiting = one.run("waits", () => gate.then(() => one.getStore()));
  one.run("opens", () => open());
  out.settledElsewhere = await waiting;
  out.ways = await one.run("x", () => Promise.all([
    new Promise((done) => queueMicrotask(() => done(one.getStore()))),
    new Promise((done) => process.nextTick(() => done(one.getStore()))),
    new Promise((done) => setImmediate(() => done(one.getStore()))),
    Promise.reject(1).catch(() => one.getStore()),
    Promise.resolve().finally(() => {}).then(() => one.getStore()),
    (async () => { await { then(done) { done(one.getStore()); } }; return one.getStore(); })(),
    new Promise((done) => setTimeout(done, 1, "arg")).then((arg) => arg + one.getStore()),
  ]));
  out.thrown = await one.run("t", async () => { try { await later(1); throw 1; } catch { return one.getStore(); } });
  try { one.run("s", () => { throw new Error("x"); }); } catch {}
  out.afterThrow = one.getStore() ?? null;
  out.exit = one.run("e", () => [one.exit(() => one.getStore() ?? null), one.getStore()]);
  const snapshot = one.run("snap", () => AsyncLocalStorage.snapshot());
  out.snapshot = snapshot((n) => [one.getStore(), n], 5);
  const boundOne = one.run("bind", () => AsyncLocalStorage.bind(() => one.getStore()));
  out.bound = boundOne();
  const resource = one.run("res", () => new AsyncResource("R"));
  out.resource = resource.runInAsyncScope(function (a) { return [one.getStore(), this.k, a]; }, { k: 1 }, 2);
  await (async () => { one.enterWith("entered"); await later(1); out.entered = one.getStore(); })();
  const emitter = new EventEmitter();
  one.run("listens", () => emitter.on("x", () => { out.emitter = one.getStore(); }));
  one.run("emits", () => emitter.emit("x"));
  const times = [];
  await one.run("i", () => new Promise((done) => {
    const id = setInterval(() => {
      times.push(one.getStore());
      if (times.length === 2) done(clearInterval(id));
    }, 1);
  }));
  out.interval = times;
  return out;
} };
"""
IN_NODE: dict[str, Any] = {
    "tasks": [
        ["a", "a", "a", "a,a2", "a,", "a1", "a2", "a", "a"],
        ["b", "b", "b", "b,b2", "b,", "b1", "b2", "b", "b"],
        ["c", "c", "c", "c,c2", "c,", "c1", "c2", "c", "c"],
    ],
    "outside": [None, None],
    "settledElsewhere": "waits",
    "ways": ["x", "x", "x", "x", "x", "x", "argx"],
    "thrown": "t",
    "afterThrow": None,
    "exit": [None, "e"],
    "snapshot": ["snap", 5],
    "bound": "bind",
    "resource": ["res", 1, 2],
    "entered": "entered",
    "emitter": "emits",
    "interval": ["i", "i"],
}
"""What the same code gives in Node 24."""


async def test_concurrent_tasks_keep_their_stores_across_await_timers_and_settling() -> None:
    call = PackageCall(PackageSource.of(esm(SOURCE)), "tool", {})
    async with Toolbox() as box, Dispatcher(DispatcherSettings(workers=1)) as dispatcher:
        packages = Packages(dispatcher, box.proxy)
        budgets = BudgetPolicy().resolve(None, "node")
        first = await asyncio.wait_for(packages.run(call, budgets, CallContext()), 120)
        again = await asyncio.wait_for(packages.run(call, budgets, CallContext()), 120)
    assert first.unwrap() == IN_NODE
    assert again.unwrap() == IN_NODE
