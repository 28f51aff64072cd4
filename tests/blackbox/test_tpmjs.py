"""The TPMJS executor protocol, over HTTP: a registry on loopback, a server in front of real isolates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from executor import Executor
from executor.config import Config
from executor.http.app import build_app
from executor.http.server import Server
from executor.http.settings import EdgeSettings
from tests.unit.npm_registry import Shelf, registry

KEY = "a key of the operator's own"
CODES = {
    "PACKAGE_NOT_FOUND",
    "TOOL_NOT_FOUND",
    "TOOL_INVALID",
    "TOOL_EXECUTION_ERROR",
    "EXECUTION_TIMEOUT",
    "INTERNAL_ERROR",
}

TOOLS = """
import { twice } from "part";
const seen = process.env.GREETING ?? "none";
export const echo = { description: "Echo", execute: async (params, options) =>
  ({ params, id: typeof options.toolCallId, messages: options.messages, aborted: options.abortSignal.aborted }) };
export const greet = { execute: async () => ({ loaded: seen, now: process.env.GREETING ?? "none" }) };
export const nothing = { execute: async () => undefined };
export const soft = { execute: async () => ({ success: false, error: "as a value" }) };
export const date = { execute: async () => ({ at: new Date(0), unit: { toJSON: () => "unit" }, twice: twice(4) }) };
export const throws = { execute: async () => { throw new TypeError("not like this"); } };
export const loud = { execute: async () => { console.log("noise"); console.error("more"); return "quiet"; } };
export const forever = { execute: async () => { for (;;) {} } };
export const stuck = { execute: () => new Promise(() => {}) };
export const reach = { execute: async ({ url }) => (await fetch(url)).status };
export function factory() { return { execute: async () => "made" }; }
export const carrying = Object.assign(() => { throw new Error("called"); }, { execute: async () => "carried" });
export class Thing { execute() {} }
export const later = async () => ({ execute: async () => "later" });
export const plain = 7;
export default { execute: async () => "default", inner: { execute: async () => "inner" } };
"""


@asynccontextmanager
async def serving(shelf: Shelf, folder: Path, *, key: str | None = None, **more: Any) -> AsyncIterator[Any]:
    """A client of a server of its own. The isolates may take two seconds."""
    config = Config(
        workers=1, npm_registry=shelf.url, npm_cache=folder, package_wall_ms=more.pop("wall_ms", 60_000), **more
    )
    async with Executor.open(config=config) as executor:
        app = build_app(executor, EdgeSettings(require_key=False, tool_key=key))
        server = Server(app, host="127.0.0.1", port=0, max_body=1 << 26)
        await server.start()
        try:
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=120) as client:
                client.executor = executor  # type: ignore[attr-defined]
                yield client
        finally:
            await server.stop_accepting()
            await app.close()
            await server.close()


def publish(shelf: Shelf) -> None:
    shelf.publish("part", files={"index.js": "exports.twice = (n) => 2 * n"})
    shelf.publish("demo", files={"index.js": TOOLS}, type="module", dependencies={"part": "^1"})
    declared = {"tools": [{"name": "declared", "description": "By another name"}]}
    shelf.publish("named", files={"index.js": TOOLS}, type="module", dependencies={"part": "^1"}, tpmjs=declared)
    shelf.publish("broken", files={"index.js": "throw new Error('at load')"}, type="module")
    shelf.publish("common", files={"index.js": "exports.tool = { execute: (p) => p.n + 1 }; exports.five = 5;"})


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    runner = asyncio.Runner()

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        async with registry() as shelf:
            publish(shelf)
            folder = tmp_path_factory.mktemp("packages")
            async with serving(shelf, folder) as client, serving(shelf, folder, key=KEY, wall_ms=1_500) as guarded:
                yield client, guarded, shelf

    manager = opened()
    client, guarded, shelf = runner.run(manager.__aenter__())
    try:
        yield runner, client, guarded, shelf
    finally:
        runner.run(manager.__aexit__(None, None, None))
        runner.close()


@pytest.fixture
def ask(house: Any) -> Any:
    runner, client, guarded, _ = house

    def asked(method: str, path: str, body: Any = None, *, locked: bool = False, **headers: str) -> Any:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if content is not None:
            fields.setdefault("content-type", "application/json")
        work = (guarded if locked else client).request(method, path, content=content, headers=fields)
        return runner.run(asyncio.wait_for(work, 120))

    return asked


@pytest.fixture
def execute(ask: Any) -> Any:
    def executed(name: str, params: Any = None, *, package: str = "demo", status: int = 200, **more: Any) -> Any:
        body = {"packageName": package, "name": name} | ({} if params is None else {"params": params}) | more
        reply = ask("POST", "/execute-tool", body)
        assert reply.status_code == status, reply.text
        return reply.json()

    return executed


def output(answer: Any) -> Any:
    assert answer["success"] is True, answer
    assert type(answer["executionTimeMs"]) is int
    return answer["output"]


def code(answer: Any) -> str:
    assert answer["success"] is False, answer
    assert type(answer["executionTimeMs"]) is int
    assert answer["error"]["message"]
    return str(answer["error"]["code"])


def test_health_and_info_say_what_the_protocol_asks_for_to_anybody(ask: Any) -> None:
    for prefix in ("", "/api"):
        for locked in (False, True):
            health = ask("GET", f"{prefix}/health", locked=locked, x_tpmjs_protocol_version="1.0")
            assert (health.status_code, health.json()["status"]) == (200, "ok")
            assert health.json()["protocolVersion"] == "1.0"
            assert health.json()["implementationVersion"]
            info = ask("GET", f"{prefix}/info", locked=locked)
            facts = info.json()["capabilities"]
            assert facts["isolation"] in ("none", "process", "container", "vm")
            assert facts["executionModes"] == ["sync"]
            assert facts["maxRequestBodyBytes"] == 10 * 1024 * 1024
            assert facts["maxExecutionTimeMs"] == (1_500 if locked else 60_000)
            assert {"name", "version", "protocolVersion"} <= info.json().keys()


def test_an_answer_of_any_kind_permits_pages_of_any_origin(ask: Any) -> None:
    replies = [
        ask("GET", "/health"),
        ask("GET", "/info"),
        ask("POST", "/execute-tool", b"{"),
        ask("GET", "/execute-tool"),
        ask("POST", "/execute-tool", {"packageName": "demo", "name": "nothing"}, locked=True),
        *(
            ask("OPTIONS", f"{prefix}{path}")
            for prefix in ("", "/api")
            for path in ("/execute-tool", "/info", "/health")
        ),
        ask("OPTIONS", "/execute-tool", origin="https://page.test", access_control_request_method="POST"),
    ]
    for reply in replies:
        assert reply.headers["access-control-allow-origin"] == "*"
        assert reply.headers["access-control-allow-methods"] == "GET, POST, OPTIONS"
        assert "Authorization" in reply.headers["access-control-allow-headers"]
    assert {reply.status_code for reply in replies[5:]} == {200}


def test_a_page_of_another_origin_needs_a_key(ask: Any) -> None:
    body = {"packageName": "demo", "name": "nothing"}
    refused = ask("POST", "/execute-tool", body, origin="https://page.test")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")
    bearer = {"authorization": f"Bearer {KEY}"}
    assert ask("POST", "/execute-tool", body, locked=True, origin="https://page.test", **bearer).status_code == 200


def test_the_operators_key_opens_this_door_and_no_other(ask: Any) -> None:
    body = {"packageName": "demo", "name": "nothing"}
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {KEY}"}, {"authorization": KEY}):
        for path in ("/execute-tool", "/api/execute-tool"):
            reply = ask("POST", path, body, locked=True, **headers)
            assert reply.status_code == 401
            told = {"code": "UNAUTHORIZED", "message": "Invalid or missing API key"}
            assert reply.json() == {"success": False, "error": told}
    bearer = {"authorization": f"Bearer {KEY}"}
    assert ask("POST", "/api/execute-tool", body, locked=True, **bearer).json()["success"] is True
    assert ask("GET", "/health", locked=True, **bearer).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        {},
        {"packageName": "demo"},
        {"name": "echo"},
        {"packageName": "", "name": "echo"},
        {"packageName": 5, "name": "echo"},
        {"packageName": "demo", "name": "echo", "params": []},
        {"packageName": "demo", "name": "echo", "env": {"A": 1}},
        {"packageName": "demo", "name": "echo", "env": ["A"]},
        {"packageName": "demo", "name": "echo", "version": 1},
    ],
)
def test_a_request_that_is_not_one_is_refused_in_the_form_of_the_protocol(ask: Any, body: Any) -> None:
    """PKG-20"""
    reply = ask("POST", "/execute-tool", body)
    assert reply.status_code == 400
    assert reply.json()["success"] is False
    assert reply.json()["error"]["code"] == "INVALID_REQUEST"
    assert reply.json()["error"]["message"]


def test_an_unknown_path_and_an_unknown_method_are_refused_with_a_structure(ask: Any) -> None:
    for path in ("/nope", "/api/nope", "/api/run"):
        reply = ask("GET", path)
        assert reply.status_code == 404
        assert reply.json()["success"] is False
        assert reply.json()["error"].keys() >= {"code", "message"}
    assert ask("GET", "/execute-tool").status_code == 405
    for path in ("/execute-tool", "/api/execute-tool"):
        assert EdgeSettings().limits_of(path)[0] == 10 << 20


def test_a_tool_gets_its_parameters_and_the_second_argument(execute: Any) -> None:
    more = {"importUrl": "https://example.com/x", "unknown": [1]}
    answer = execute("echo", {"a": [1, None, {"é": "😀"}]}, **more)
    assert output(answer) == {
        "params": {"a": [1, None, {"é": "😀"}]},
        "id": "string",
        "messages": [],
        "aborted": False,
    }
    assert output(execute("echo"))["params"] == {}
    assert output(execute("echo", params=None, version=None, env=None))["params"] == {}


def test_what_a_tool_gives_back_is_json(execute: Any) -> None:
    assert output(execute("nothing")) is None
    assert output(execute("soft")) == {"success": False, "error": "as a value"}
    assert output(execute("date")) == {"at": "1970-01-01T00:00:00.000Z", "unit": "unit", "twice": 8}
    assert output(execute("loud")) == "quiet"


def test_env_is_there_before_the_package_is_loaded_and_in_no_other_call(execute: Any) -> None:
    """PKG-20, PKG-21"""
    assert output(execute("greet", env={"GREETING": "one"})) == {"loaded": "one", "now": "one"}
    assert output(execute("greet", env={"GREETING": "two"})) == {"loaded": "two", "now": "two"}
    assert output(execute("greet", env={"NODE_OPTIONS": "--x", "PATH": "/x", "__proto__": "y"})) == {
        "loaded": "none",
        "now": "none",
    }


def test_the_name_of_an_export_leads_to_its_tool_and_a_wrong_one_to_none(execute: Any) -> None:
    assert output(execute("default")) == "default"
    assert output(execute("inner")) == "inner"
    assert output(execute("factory")) == "made"
    assert output(execute("carrying")) == "carried"
    assert output(execute("tool", {"n": 4}, package="common")) == 5
    assert output(execute("declared", package="named")) == "default"
    for name in ("declared", "noSuchTool", "__proto__", "constructor", "toString"):
        assert code(execute(name)) in ("TOOL_NOT_FOUND", "TOOL_INVALID"), name
    assert code(execute("noSuchTool")) == "TOOL_NOT_FOUND"
    assert code(execute("undeclared", package="named")) == "TOOL_NOT_FOUND"
    for name in ("Thing", "plain"):
        assert code(execute(name)) == "TOOL_INVALID", name
    assert code(execute("five", package="common")) == "TOOL_INVALID"


def test_every_failure_of_a_package_or_a_tool_is_an_answer_with_its_code(execute: Any) -> None:
    answer = execute("throws")
    assert (code(answer), answer["error"]["message"]) == ("TOOL_EXECUTION_ERROR", "not like this")
    assert code(execute("x", package="broken")) == "TOOL_EXECUTION_ERROR"
    assert code(execute("stuck")) == "TOOL_EXECUTION_ERROR"
    assert code(execute("x", package="@tpmjs/nonexistent-package-12345")) == "PACKAGE_NOT_FOUND"
    for package in ("../etc", "UPPER", "a b", "http://example.com/x.tgz", "github:a/b", "; rm -rf /"):
        assert code(execute("x", package=package)) == "PACKAGE_NOT_FOUND", package
    for version in ("9.9.9", "nope", "git+https://example.com/x", "1.0.0; id", "file:../x"):
        assert code(execute("echo", version=version)) == "PACKAGE_NOT_FOUND", version
    for version in ("1.0.0", "^1", "latest", "*", ""):
        assert execute("echo", version=version)["success"] is True, version


def test_a_package_may_not_fetch_where_nobody_granted_it(execute: Any) -> None:
    answer = execute("reach", {"url": "http://127.0.0.1:9/"})
    assert code(answer) == "TOOL_EXECUTION_ERROR"


def test_a_tool_that_takes_too_long_is_stopped_and_the_next_call_is_served(ask: Any) -> None:
    """PKG-18"""
    bearer = {"authorization": f"Bearer {KEY}"}
    reply = ask("POST", "/execute-tool", {"packageName": "demo", "name": "forever"}, locked=True, **bearer)
    assert (reply.status_code, code(reply.json())) == (200, "EXECUTION_TIMEOUT")
    again = ask("POST", "/execute-tool", {"packageName": "demo", "name": "soft"}, locked=True, **bearer)
    assert again.json()["success"] is True


def test_the_sdk_gives_the_same_answers(house: Any) -> None:
    runner, client, _, _ = house
    answer = runner.run(client.executor.execute_tool("demo", "date"))
    assert (answer.success, answer.output["twice"], answer.run.status) == (True, 8, "completed")
    failed = runner.run(client.executor.execute_tool("demo", "throws"))
    assert (failed.success, failed.code, failed.message) == (False, "TOOL_EXECUTION_ERROR", "not like this")
