"""The rest of the MSG group: text that is data and nothing else, and what grows when it is written for a server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bridge.calls import CallContext
from bridge.wire.errors import ExecutorError, ToolError
from catalog.origin import BadUrl, join_url, parse_url
from executor import Config, Executor
from tests.blackbox.command import cli
from tests.unit.upstream import Upstream, call, document, operation, parameter, toolbox, upstream

pytestmark = pytest.mark.anyio

ODD = {
    "a NUL": "a\0b",
    "a change of direction": "a\u202eb",
    "a byte order mark": "\ufeffab",
    "a terminal's escape": "a\x1b[2J\x1b[31mb",
    "a bell and a backspace": "a\x07\x08b",
    "two lines": "a\r\nx-injected: 1\r\n\r\nb",
    "a line separator": "a\u2028b",
    "a C1 control": "a\x9b31mb",
}
odd = pytest.mark.parametrize("text", ODD.values(), ids=list(ODD))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex() -> AsyncIterator[Executor]:
    async with Executor.open(config=Config(workers=1)) as opened:
        opened.tool("t.org.main.echo", lambda args: args["v"], side_effect="read")
        yield opened


@odd
async def test_odd_text_is_data_from_a_script_to_a_tool_and_back(ex: Executor, text: str) -> None:
    """MSG-14"""
    script = "console.log(input); emit(input); const v = await tools.t.org.main.echo({ v: input }); [v, v === input]"
    answer = await ex.run(script, input=text)
    assert answer.unwrap() == [text, True]
    assert answer.emitted == [text]
    assert [line["text"] for line in answer.logs] == [text]
    assert text in json.loads(json.dumps(answer.as_dict()))["emitted"]


@odd
async def test_odd_text_is_no_name(ex: Executor, text: str) -> None:
    """MSG-14: of a tool, an integration, a key, a toolkit, a secret, a label, a language."""
    for path in (text, f"t.org.main.{text}", f"t.org.main.echo{text[1:-1]}", f"{text}.org.main.echo"):
        with pytest.raises(ToolError) as caught:
            await ex.call(path, {"v": 1})
        assert caught.value.code == "tool_not_found"
    with pytest.raises(ExecutorError):
        ex.tool(f"t.org.main.{text}", lambda args: 1)
    with pytest.raises(ExecutorError):
        await ex.toolbox.set_secret(text, "a-secret-value")
    with pytest.raises(ExecutorError):
        await ex.run("1", language=text)


async def api(box: Any, server: Upstream) -> None:
    paths = {
        "/body": {"post": operation(body={"type": "object"}, operationId="body")},
        "/head": {"get": operation(parameter("x-note", "header"), operationId="head")},
        "/cookie": {"get": operation(parameter("note", "cookie"), operationId="cookie")},
        "/path/{p}": {"get": operation(parameter("p", "path"), operationId="path")},
        "/query": {"get": operation(parameter("q"), operationId="query")},
    }
    await box.add_openapi("api", document(paths, server.base), allow_private=["127.0.0.1"])


async def code_of(box: Any, path: str, args: Any) -> str | None:
    try:
        await call(box, path, args)
    except ToolError as e:
        return e.code
    return None


@odd
async def test_odd_text_is_sent_as_data_and_makes_no_header_and_no_host(text: str) -> None:
    """MSG-14"""
    async with upstream() as server, toolbox() as box:
        await api(box, server)
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        echoed = await call(box, "api.org.main.body", {"body": {"v": text}})
        assert json.loads(echoed.value["body"].encode("latin-1"))["v"] == text
        arguments = {"head": {"x-note": text}, "cookie": {"note": text}, "path": {"p": text}, "query": {"q": text}}
        for name, args in arguments.items():
            before = len(server.seen)
            code = await code_of(box, f"api.org.main.{name}", args)
            assert code in ((None,) if name == "query" else (None, "invalid_arguments"))
            assert len(server.seen) == before + (code is None)
            for seen in server.seen[before:]:
                assert seen.header("x-injected") is None
                assert all(one >= " " and one != "\x7f" for _, value in seen.headers for one in value)
                assert seen.target.isascii()
                assert seen.target.isprintable()
                assert " " not in seen.target
        before = len(server.seen)
        for url in (f"http://127.0.0.1{text}:{server.port}/", f"http://{text}@127.0.0.1:{server.port}/"):
            assert await code_of(box, "web.org.main.http.get", {"path": url}) in ("egress_denied", "invalid_arguments")
        assert len(server.seen) == before


def test_odd_text_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    """MSG-14"""
    every = "|".join(ODD.values())
    script = tmp_path / "odd.js"
    script.write_text(f"const s = {json.dumps(every)}; console.log(s); emit(s); throw new Error(s)")
    shown = cli(tmp_path / "home", "run", str(script))
    assert shown.returncode != 0
    assert "x-injected" in shown.stderr
    for one in "\0\u202e\ufeff\x1b\x07\x08\x9b":
        assert one not in shown.stdout + shown.stderr, ascii(one)


GROWS = {
    "control characters, six times": {"v": "\0" * 500_000},
    "nothing, five times": {"v": [None] * 500_000},
    "keys of control characters": {"\x01" * 400_000: 1},
}
FITS = {
    "quotes and backslashes, twice": {"v": '"\\' * 250_000},
    "characters of four bytes": {"v": "😀" * 125_000},
    "what people write": {"v": [{"name": f"n{i}", "at": i, "ok": True} for i in range(20_000)]},
}
LIMIT = 600_000


@pytest.mark.parametrize("body", [*GROWS.values(), *FITS.values()], ids=[*GROWS, *FITS])
async def test_what_grows_when_it_is_written_is_measured_as_it_is_written(body: dict[str, Any]) -> None:
    """MSG-19"""
    ctx = CallContext(args_bytes=LIMIT)
    async with upstream() as server, toolbox() as box:
        await api(box, server)
        server.reply("/body", {"ok": True})
        if body in FITS.values():
            await call(box, "api.org.main.body", {"body": body}, ctx=ctx)
            assert json.loads(server.seen[-1].body) == body
        else:
            with pytest.raises(ToolError) as caught:
                await call(box, "api.org.main.body", {"body": body}, ctx=ctx)
            assert caught.value.code == "too_large"
            assert caught.value.details == {"limit": 2 * LIMIT + 65_536, "size": len(_json(body))}
            assert server.seen == []


def _json(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "text", ["http://a.test/\ud800", "http://a.test/?q=\udfff", "http://a\udc00.test/", "/\udbff", "?\ud800"]
)
def test_half_a_character_is_no_part_of_a_url(text: str) -> None:
    """MSG-13: as JSON may hold it, and UTF-8 may not."""
    with pytest.raises(BadUrl):
        join_url(parse_url("http://a.test/x"), text)
