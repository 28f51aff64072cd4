"""Group PKG of the threat catalogue: registries that fail, say nothing, or say something else."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bridge.wire.errors import PackageUnavailable
from tests.unit.npm_registry import installer, quick, refused, registry
from tests.unit.upstream import response

pytestmark = pytest.mark.anyio


async def test_pkg_22_a_registry_that_fails_is_an_error_and_what_is_kept_still_installs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PKG-22"""
    async with registry() as shelf:
        shelf.publish("demo")
        async with installer(shelf, tmp_path / "kept") as npm:
            known = await npm.lock("demo")
        broken = {
            "busy": response({}, status=429, headers={"retry-after": "1"}),
            "down": response({}, status=503),
            "long wait": response({}, status=503, headers={"retry-after": "3600"}),
            "server error": response({}, status=500),
            "captive portal": response(b"<html>pay</html>", headers={"content-type": "text/html"}),
            "half": b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{",
            "no HTTP": b"hello\r\n\r\n",
            "not an object": response([1]),
            "stream": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: 1\n\n",
        }
        with quick(monkeypatch) as waits:
            for what, answer in broken.items():
                shelf.server.answers = {"*": answer}
                if what in ("half", "no HTTP", "stream"):
                    shelf.server.answers = {"*": closing(answer)}
                error = await refused(shelf, tmp_path / "new", "demo")
                assert error.reason == "unreachable", what
                async with installer(shelf, tmp_path / "kept") as npm:
                    assert await npm.lock("demo", "1.0.0") == known
                    assert await npm.lock("demo", "latest") == known, what
        assert waits[:2] == [1.0, 1.0]


def closing(answer: bytes) -> Any:
    async def say(_seen: Any, _reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    return say


async def test_pkg_22_a_registry_that_says_nothing_ends_at_the_deadline(tmp_path: Path) -> None:
    """PKG-22"""
    async with registry() as shelf:

        async def silent(_seen: Any, _reader: Any, _writer: Any) -> None:
            await shelf.server.released.wait()

        shelf.server.answers = {"*": silent}
        started = time.monotonic()
        error = await refused(shelf, tmp_path, "demo", timeout_s=0.2)
        assert error.reason == "unreachable"
        assert time.monotonic() - started < 10


async def test_pkg_22_half_an_archive_is_no_archive(tmp_path: Path) -> None:
    """PKG-22"""
    async with registry() as shelf:
        shelf.publish("demo")
        shelf.server.answers["/demo/-/demo-1.0.0.tgz"] = closing(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nabc")
        assert (await refused(shelf, tmp_path, "demo")).reason == "unreachable"


async def test_pkg_23_no_token_of_the_host_is_read_or_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PKG-23"""
    async with registry() as shelf:
        host = shelf.url.removeprefix("http:")
        (tmp_path / ".npmrc").write_text(f"{host}/:_authToken=npm_TOKEN\nalways-auth=true\n")
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password npm_TOKEN\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        for name in ("NPM_TOKEN", "NODE_AUTH_TOKEN", "npm_config__authToken", "NPM_CONFIG__AUTH"):
            monkeypatch.setenv(name, "npm_TOKEN")
        shelf.publish("demo", dependencies={"part": "^1"})
        shelf.publish("part")
        async with installer(shelf, tmp_path / "cache") as npm:
            await npm.lock("demo")
        sent = json.dumps([[seen.target, seen.headers] for seen in shelf.server.seen])
        assert "npm_TOKEN" not in sent
        assert "authorization" not in sent.lower()


async def test_pkg_24_a_hundred_first_requests_are_one_download(tmp_path: Path) -> None:
    """PKG-24"""
    async with registry() as shelf:
        shelf.publish("part")
        shelf.publish("demo", dependencies={"part": "1"})
        async with installer(shelf, tmp_path) as npm:
            locks = await asyncio.gather(*(npm.lock("demo") for _ in range(100)))
        assert len(set(locks)) == 1
        assert shelf.asked("/-/demo-1.0.0.tgz") == 1
        assert shelf.asked("/-/part-1.0.0.tgz") == 1


async def test_pkg_24_who_goes_away_does_not_take_the_install_from_those_who_wait(tmp_path: Path) -> None:
    """PKG-24"""
    async with registry() as shelf:
        data = shelf.publish("demo")
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def slowly(_seen: Any, _reader: Any, writer: asyncio.StreamWriter) -> None:
            reached.set()
            await go_on.wait()
            writer.write(response(data))

        shelf.server.answers["/demo/-/demo-1.0.0.tgz"] = slowly
        async with installer(shelf, tmp_path) as npm:
            first = asyncio.create_task(npm.lock("demo"))
            second = asyncio.create_task(npm.lock("demo"))
            await asyncio.wait_for(reached.wait(), 30)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            go_on.set()
            assert (await asyncio.wait_for(second, 30)).version == "1.0.0"
        assert shelf.asked(".tgz") == 1


async def test_metadata_about_something_else_is_not_believed(tmp_path: Path) -> None:
    async with registry() as shelf:
        shelf.publish("demo")
        shelf.say("demo", shelf.documents["demo"] | {"name": "other"})
        assert (await refused(shelf, tmp_path, "demo")).reason == "integrity"
        shelf.say("demo/1.0.0", shelf.documents["demo"]["versions"]["1.0.0"] | {"version": "2.0.0"})
        assert (await refused(shelf, tmp_path, "demo", "1.0.0")).reason == "integrity"


async def test_metadata_that_is_too_much_or_contradicts_itself_is_refused(tmp_path: Path) -> None:
    async with registry() as shelf:
        shelf.publish("demo")
        facts = shelf.documents["demo"]
        one = facts["versions"]["1.0.0"]
        shelf.say("demo", facts | {"versions": {"1.0.0": one | {"version": "6.6.6"}}})
        assert (await refused(shelf, tmp_path, "demo")).reason == "integrity"
        shelf.say("demo", facts | {"versions": {f"1.0.{n}": {} for n in range(20_001)}})
        assert (await refused(shelf, tmp_path, "demo")).reason == "too_large"
        shelf.say("demo", facts | {"versions": {"1.0.0": one | {"dependencies": {f"a{n}": "*" for n in range(1_001)}}}})
        assert (await refused(shelf, tmp_path, "demo")).reason == "too_large"
        odd: list[Any] = [[], "x", {"1.0.0": "x"}, {"1.0.0": {}}, {"1.0.0": one | {"dist": []}}, {"../x": one}]
        for versions in odd:
            shelf.say("demo", facts | {"versions": versions})
            assert (await refused(shelf, tmp_path, "demo")).reason in ("integrity", "not_found"), versions
        for part in ("dependencies", "peerDependencies", "optionalDependencies", "engines", "bundleDependencies"):
            for value in (None, 5, [], [{}], "x", {"a": 5}, {"..": "1"}):
                shelf.say("demo", facts | {"versions": {"1.0.0": one | {part: value}}})
                async with installer(shelf, tmp_path / part) as npm:
                    expected = PackageUnavailable if isinstance(value, dict) else AssertionError
                    with suppress(expected):
                        await npm.lock("demo")
