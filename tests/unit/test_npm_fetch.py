"""What a package fetches: through the gate, within the budgets, in the record of calls; denied by default."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.calls import CallContext, CallRecord
from bridge.toolbox import Toolbox
from catalog.kinds.npm.bundle import PackageSource
from catalog.kinds.npm.tree import PackageTree
from runtime.budgets import BudgetPolicy
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.packages import PackageCall, Packages
from runtime.results import RunResult
from tests.unit.npm_trees import esm
from tests.unit.upstream import Upstream, upstream

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Heard:
    """A journal of calls that keeps what it hears."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []
        self.sent: list[str] = []

    async def sending(self, record: CallRecord) -> None:
        self.sent.append(record.path)

    def finished(self, record: CallRecord) -> None:
        self.records.append(record)


class House:
    """A toolbox that grants fetch to one server, and packages that run in front of it."""

    def __init__(self, server: Upstream, packages: Packages, heard: Heard) -> None:
        self.server, self._packages, self.heard = server, packages, heard

    async def run(self, made: PackageTree, params: Any = None, *, budgets: Any = None) -> RunResult:
        call = PackageCall(PackageSource.of(made), "tool", {"base": self.server.base} | (params or {}))
        return await self._packages.run(call, BudgetPolicy().resolve(budgets, "node"), CallContext())


@pytest.fixture
async def house() -> Any:
    heard = Heard()
    async with upstream() as server, Toolbox() as box, Dispatcher(DispatcherSettings(workers=1)) as dispatcher:
        await box.add_http("web", [f"GET {server.base}/ok"], allow_private=["127.0.0.1"], fetch=True)
        yield House(server, Packages(dispatcher, box.proxy, lambda: heard), heard)


async def test_a_granted_fetch_goes_through_the_gate_and_is_recorded(house: House) -> None:
    house.server.reply("/ok/x", {"hello": "wörld"}, headers={"X-Seen": "yes"})
    made = esm(
        """export const tool = { async execute({ base }) {
          const response = await fetch(base + "/ok/x?q=1#frag", { headers: { "X-Mine": "1" } });
          const copy = response.clone();
          const reader = copy.body.getReader();
          const first = await reader.read();
          return [response.status, response.ok, response.headers.get("x-seen"), await response.json(),
                  first.value instanceof Uint8Array, (await reader.read()).done, response.url.endsWith("/ok/x?q=1")];
        } };"""
    )
    result = await house.run(made)
    assert result.unwrap() == [200, True, "yes", {"hello": "wörld"}, True, True, True]
    (seen,) = house.server.seen
    assert (seen.target, seen.header("x-mine")) == ("/ok/x?q=1", "1")
    assert [(call["path"], call["outcome"]) for call in result.calls] == [("web.org.main.http.get", "done")]
    assert [record.outcome for record in house.heard.records] == ["done"]
    assert result.usage["bridge_calls"] == 1


@pytest.mark.parametrize("target", ["/other", "http://169.254.169.254/latest/meta-data/", "http://localhost:1/ok/x"])
async def test_what_was_not_granted_is_a_rejected_fetch_and_never_sent(house: House, target: str) -> None:
    made = esm(
        """export const tool = { async execute({ base, target }) {
          const url = target.startsWith("/") ? base + target : target;
          const told = (e) => [e instanceof TypeError, e.message, e.cause.code, e.cause.reason];
          return fetch(url).then(() => "sent", told);
        } };"""
    )
    assert (await house.run(made, {"target": target})).unwrap() == [True, "fetch failed", "EACCES", "egress_denied"]
    assert house.server.seen == []


async def test_the_methods_of_a_grant_hold_and_nodes_http_is_no_way_around(house: House) -> None:
    house.server.reply("/ok/x", "plain", headers={"content-type": "text/plain"})
    made = esm(
        """import http from "node:http";
        const get = (url, options) => new Promise((resolve, reject) => {
          const request = http.request(url, options, (response) => {
            const parts = [];
            response.on("data", (part) => parts.push(part));
            response.on("end", () => resolve([response.statusCode, Buffer.concat(parts).toString()]));
          });
          request.on("error", (error) => reject(error));
          request.end(options.method === "POST" ? "body" : undefined);
        });
        export const tool = { execute: async ({ base }) => [
          await get(base + "/ok/x", {}),
          await get(base + "/ok/x", { method: "POST" }).catch((e) => e.code),
          await get(base + "/no", {}).catch((e) => e.code),
        ] };"""
    )
    assert (await house.run(made)).unwrap() == [[200, '"plain"'], "EACCES", "EACCES"]
    assert [seen.method for seen in house.server.seen] == ["GET"]


async def test_fetches_count_against_the_budget_and_an_aborted_one_rejects(house: House) -> None:
    many = esm("export const tool = { async execute({ base }) { for (;;) await fetch(base + '/ok/x') } };")
    result = await house.run(many, budgets={"bridge_calls": 3})
    assert result.error is not None
    assert (result.error["code"], len(house.server.seen)) == ("calls_exhausted", 3)

    async def never(seen: Any, reader: Any, writer: Any) -> None:
        await house.server.released.wait()

    house.server.answers["/ok/slow"] = never
    aborted = esm(
        """export const tool = { execute: async ({ base }) => {
          const controller = new AbortController();
          setTimeout(() => controller.abort(), 1);
          const { signal } = controller;
          return fetch(base + "/ok/slow", { signal }).catch((e) => [e.name, e === signal.reason]);
        } };"""
    )
    assert (await house.run(aborted)).unwrap() == ["AbortError", True]
    slow = esm("export const tool = { execute: ({ base }) => fetch(base + '/ok/slow') };")
    late = await house.run(slow, budgets={"wall_ms": 300})
    assert late.error is not None
    assert late.error["code"] == "deadline_exceeded"
    house.server.released.set()
