"""The SEC group of the threat catalogue: a secret leaves only for where it belongs, and comes back masked."""

from __future__ import annotations

import base64
import html
import json
import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bridge.calls import CallContext
from bridge.scrub import MASK, Scrubber
from bridge.secrets import masterkey
from bridge.secrets.local import LocalSecrets
from bridge.secrets.ports import MemorySecrets, Secret
from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import ConfigError, InvalidRequest, ToolError
from tests.unit.upstream import (
    Journal,
    Seen,
    Upstream,
    call,
    document,
    operation,
    parameter,
    redirect,
    response,
    toolbox,
    upstream,
)

pytestmark = pytest.mark.anyio

CANARY = "cnry_0123456789abcdef0123456789abcdef"


def spellings(secret: str) -> dict[str, str]:
    raw = secret.encode()
    return {
        "raw": secret,
        "hex": raw.hex(),
        "HEX": raw.hex().upper(),
        "base64": base64.b64encode(raw).decode(),
        "base64+1": base64.b64encode(b"x" + raw + b"yz").decode(),
        "base64+2": base64.b64encode(b"xy" + raw + b"z").decode(),
        "base64url": base64.urlsafe_b64encode(b"?>" + raw).decode(),
        "base32": base64.b32encode(raw).decode(),
        "base32+3": base64.b32encode(b"xyz" + raw + b"!").decode().lower(),
        "url": quote(secret, safe=""),
        "url, in part": "".join(f"%{byte:02x}" if byte % 3 else chr(byte) for byte in raw),
        "url, twice": "".join(f"%25{byte:02X}" for byte in raw),
        "json": json.dumps(secret)[1:-1],
        "unicode": "".join(f"\\u{ord(one):04x}" for one in secret),
        "html": html.escape(secret),
    }


async def connected(box: Toolbox, server: Upstream, auth: Any = "bearer", **paths: Any) -> None:
    """The API of `server` behind a connection whose secret is the canary."""
    await box.set_secret("token", CANARY)
    described = document(paths or {"/x": {"get": operation()}}, server.base)
    await box.add_openapi("api", described, auth=auth, secret="local:token", allow_private=["127.0.0.1"], replace=True)


async def test_what_describes_a_tool_holds_no_secret() -> None:
    """SEC-03 SEC-25"""
    async with upstream() as server, toolbox() as box:
        await connected(box, server)
        await box.add_policy("api", "*", "require_approval")
        with pytest.raises(ToolError) as caught:
            await call(box, "api.org.main.op")
        shown = [
            box.describe("api.org.main.op", schemas=True),
            box.search("op"),
            box.list_tools(),
            box.integrations(),
            box.explain("api.org.main.op"),
            box.egress(),
            caught.value.as_dict(),
            await box.secret_names(),
        ]
        assert CANARY not in json.dumps(shown)


@pytest.mark.parametrize("form", list(spellings(CANARY).items()), ids=lambda pair: pair[0])
@pytest.mark.parametrize("status", [200, 401, 500])
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/octet-stream"])
async def test_an_answer_that_repeats_the_secret_is_masked(form: tuple[str, str], status: int, kind: str) -> None:
    """SEC-04"""
    text = form[1]
    async with upstream() as server, toolbox() as box:
        await connected(box, server)
        body = json.dumps({"message": f"bad: {text}", text: [text]}) if kind == "application/json" else f"got {text}!"
        headers = {"content-type": kind, "x-echo": CANARY}
        server.answers["/x"] = response(body.encode(), status=status, headers=headers)
        try:
            outcome = await call(box, "api.org.main.op", meta=True)
            shown = repr((outcome.value, outcome.http)).encode() + outcome.encoded
        except ToolError as e:
            shown = repr((e.as_dict(), e.args, str(e))).encode()
        assert server.seen[0].header("authorization") == f"Bearer {CANARY}"
        assert MASK.encode() in shown
        assert not any(spelling.encode() in shown for spelling in spellings(CANARY).values())


async def test_a_secret_across_pieces_of_an_answer_is_masked() -> None:
    """SEC-23"""

    async def pieces(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")
        for one in ["x" * 65_530, *CANARY]:
            writer.write(f"{len(one):x}\r\n{one}\r\n".encode())
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with upstream() as server, toolbox() as box:
        await connected(box, server)
        server.answers["/x"] = pieces
        assert (await call(box, "api.org.main.op")).value == "x" * 65_530 + MASK


@pytest.mark.parametrize(
    "auth",
    [
        "bearer",
        {"type": "basic", "username": "ann"},
        {"type": "header", "name": "X-Api-Key"},
        {"type": "query", "name": "api_key"},
        {"type": "cookie", "name": "sid"},
    ],
    ids=str,
)
async def test_no_credential_follows_a_redirect_to_another_origin(auth: Any) -> None:
    """SEC-07 SEC-08: another host, another port and another scheme are other origins."""
    async with upstream() as server, upstream() as other, toolbox() as box:
        await box.set_secret("token", CANARY)
        await box.add_http(
            "api",
            [server.base, other.base, f"http://localhost:{server.port}"],
            auth=auth,
            secret="local:token",
            allow_private=["127.0.0.1", "localhost", "::1"],
        )
        for target in (other.base + "/y", f"http://localhost:{server.port}/y"):
            server.answers["/go"] = redirect(target)
            server.seen.clear()
            other.seen.clear()
            await call(box, "api.org.main.http.get", {"path": server.base + "/go", "headers": {"x-mine": "1"}})
            first, last = server.seen[0], (other.seen or server.seen)[-1]
            assert any(
                spelling in repr(first) for spelling in (CANARY, base64.b64encode(f"ann:{CANARY}".encode()).decode())
            )
            assert last.target == "/y"
            assert {name for name, _ in last.headers} == {"host", "user-agent", "accept-encoding", "accept"}


async def test_a_credential_that_was_lost_on_the_way_does_not_come_back() -> None:
    """SEC-07"""
    async with upstream() as server, upstream() as other, toolbox() as box:
        await box.set_secret("token", CANARY)
        await box.add_http(
            "api", [server.base, other.base], auth="bearer", secret="local:token", allow_private=["127.0.0.1"]
        )
        server.answers["/go"] = redirect(other.base + "/back")
        other.answers["/back"] = redirect(server.base + "/end")
        await call(box, "api.org.main.http.get", {"path": server.base + "/go"})
        assert [one.header("authorization") is None for one in server.seen + other.seen] == [False, True, True]


@pytest.mark.parametrize(
    ("value", "segment"),
    [
        ("../admin", "..%2Fadmin"),
        ("..%2fadmin", "..%252fadmin"),
        ("%2e%2e/admin", "%252e%252e%2Fadmin"),
        ("%252e%252e/admin", "%25252e%25252e%2Fadmin"),
        ("..;/admin", "..%3B%2Fadmin"),
        ("./.", ".%2F."),
        ("a/b", "a%2Fb"),
        ("a?x=1", "a%3Fx%3D1"),
        ("a#x", "a%23x"),
        ("\\..\\admin", "%5C..%5Cadmin"),
        ("//evil.test/", "%2F%2Fevil.test%2F"),
        ("@evil.test", "%40evil.test"),
        ("．．／", "%EF%BC%8E%EF%BC%8E%EF%BC%8F"),
        ("x" * 10_240, "x" * 10_240),
        (".", None),
        ("..", None),
        ("", None),
        ("a\0", None),
        ("a\r\nX: 1", None),
    ],
)
async def test_a_path_value_is_one_segment_or_refused(value: str, segment: str | None) -> None:
    """SEC-10"""
    async with upstream() as server, toolbox() as box:
        await connected(box, server, **{"/users/{id}": {"get": operation(parameter("id", "path"))}})
        if segment is None:
            with pytest.raises(ToolError) as caught:
                await call(box, "api.org.main.op", {"id": value})
            assert caught.value.code == "invalid_arguments"
            assert server.seen == []
        else:
            await call(box, "api.org.main.op", {"id": value})
            assert [one.target for one in server.seen] == [f"/users/{segment}"]


@pytest.mark.parametrize(
    ("style", "value", "query"),
    [
        (None, "a&admin=true", "q=a%26admin%3Dtrue"),
        (None, "a#", "q=a%23"),
        (None, "a;b", "q=a%3Bb"),
        ("deepObject", {"a&b": "c=d&e"}, "q%5Ba%26b%5D=c%3Dd%26e"),
        ("pipeDelimited", ["a&b=1", "c|d"], "q=a%26b%3D1%7Cc%7Cd"),
        ("form", {"k&x=1": "v"}, "k%26x%3D1=v"),
    ],
)
async def test_a_query_value_adds_no_parameter(style: str | None, value: Any, query: str) -> None:
    """SEC-11"""
    async with upstream() as server, toolbox() as box:
        extra = {"style": style} if style else {}
        await connected(box, server, **{"/x": {"get": operation(parameter("q", schema={}, **extra))}})
        await call(box, "api.org.main.op", {"q": value})
        assert server.seen[0].target == "/x?" + query


async def test_a_header_or_cookie_value_adds_nothing_and_a_credential_is_never_the_callers() -> None:
    """SEC-12"""
    async with upstream() as server, toolbox() as box:
        described = operation(
            parameter("X-Note", "header"),
            parameter("Authorization", "header"),
            parameter("lang", "cookie"),
            parameter("X-Key", "header"),
        )
        await connected(box, server, {"type": "header", "name": "X-Key"}, **{"/x": {"get": described}})
        for bad in ("a\r\nX-Evil: 1", "a\nb", "a\0"):
            with pytest.raises(ToolError) as caught:
                await call(box, "api.org.main.op", {"X-Note": bad})
            assert caught.value.code == "invalid_arguments"
        with pytest.raises(ToolError, match="Authorization"):
            await call(box, "api.org.main.op", {"Authorization": "Bearer mine"})
        await call(box, "api.org.main.op", {"lang": "en; admin=1", "X-Key": "mine"})
        (seen,) = server.seen
        assert seen.header("cookie") == "lang=en%3B%20admin%3D1"
        assert [value for name, value in seen.headers if name.lower() == "x-key"] == [CANARY]


async def test_a_caller_learns_neither_names_nor_presence_of_secrets() -> None:
    """SEC-16"""
    messages = set()
    for ref in ("local:no_such", "env:EXECUTOR_NO_SUCH", "file:/no/such/file"):
        async with upstream() as server, toolbox() as box:
            described = document({"/x": {"get": operation()}}, server.base)
            await box.add_openapi("api", described, auth="bearer", secret=ref, allow_private=["127.0.0.1"])
            with pytest.raises(ToolError) as caught:
                await call(box, "api.org.main.op")
            assert caught.value.code == "connection_missing"
            messages.add(str(caught.value.as_dict()))
            assert server.seen == []
    assert len(messages) == 1
    assert "no_such" not in messages.pop().lower()


async def test_an_unforeseen_failure_says_a_number_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-17"""
    async with upstream() as server, toolbox() as box:
        await connected(box, server)

        def explode(*args: Any) -> Any:
            raise ValueError(f"{CANARY} at /srv/app/secret.py")

        monkeypatch.setattr("catalog.kinds.reading.value_of", explode)
        with pytest.raises(ToolError) as caught:
            await call(box, "api.org.main.op")
        assert caught.value.code == "internal"
        assert CANARY not in repr(caught.value.as_dict())
        assert "/srv" not in repr(caught.value.as_dict())
        assert caught.value.__cause__ is None
        assert len(caught.value.details["correlation_id"]) == 16


async def test_at_rest_there_is_only_ciphertext_and_the_key_is_elsewhere(tmp_path: Path) -> None:
    """SEC-20"""
    store = MemorySecrets()
    key = tmp_path / "config" / "master.key"
    local = LocalSecrets(store, store, key)
    await local.set("org", "token", CANARY)
    row = await store.secret("org", "token")
    assert row is not None
    assert not any(spelling.encode() in row.sealed for spelling in spellings(CANARY).values())
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    again = LocalSecrets(store, store, key)
    await again.verify()
    assert (await again.resolve("org", "token")).reveal() == CANARY


async def test_a_row_moved_to_another_name_scope_or_version_does_not_open(tmp_path: Path) -> None:
    """SEC-20"""
    store = MemorySecrets()
    local = LocalSecrets(store, store, tmp_path / "master.key")
    await local.set("org", "token", CANARY)
    row = await store.secret("org", "token")
    assert row is not None
    for moved in (row._replace(name="other"), row._replace(scope="user"), row._replace(version=2)):
        await store.put_secret(moved)
        with pytest.raises(Exception, match="damaged"):
            await local.resolve(moved.scope, moved.name)


@pytest.mark.parametrize("fault", ["wrong", "missing", "empty", "short", "readable", "symlink", "directory"])
async def test_a_key_that_does_not_fit_stops_the_start_and_is_never_replaced(tmp_path: Path, fault: str) -> None:
    """SEC-22"""
    store, path = MemorySecrets(), tmp_path / "master.key"
    await LocalSecrets(store, store, path).set("org", "token", CANARY)
    kept = path.read_bytes()
    path.unlink()
    if fault == "wrong":
        masterkey.create(path)
    elif fault in ("empty", "short"):
        path.touch(mode=0o600)
        path.write_bytes(b"" if fault == "empty" else b"abcd")
    elif fault == "readable":
        path.write_bytes(kept)
        path.chmod(0o644)
    elif fault == "symlink":
        (tmp_path / "real").write_bytes(kept)
        (tmp_path / "real").chmod(0o600)
        path.symlink_to(tmp_path / "real")
    elif fault == "directory":
        path.mkdir()
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ConfigError):
        async with Toolbox(ToolboxSettings(key_file=path), secrets=store, keys=store):
            pass
    assert (path.read_bytes() if path.is_file() else None) == before
    if fault == "missing":
        assert not path.exists()


async def test_the_key_file_may_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """SEC-22"""
    monkeypatch.setenv("EXECUTOR_KEY_FILE", str(tmp_path / "k"))
    assert masterkey.default_path() == tmp_path / "k"
    monkeypatch.delenv("EXECUTOR_KEY_FILE")
    monkeypatch.setenv("EXECUTOR_CONFIG_DIR", str(tmp_path / "c"))
    assert masterkey.default_path() == tmp_path / "c" / "master.key"


@pytest.mark.parametrize("value", ["", "a", "1234567", "\n", "x" * 70_000])
async def test_a_secret_too_short_to_mask_is_refused(value: str) -> None:
    """SEC-27"""
    async with toolbox() as box:
        with pytest.raises(InvalidRequest, match="characters"):
            await box.set_secret("token", value)
        assert await box.secret_names() == []


def test_masking_is_exact_whatever_the_secret_holds() -> None:
    """SEC-27"""
    secrets = [".*.*.*.*", "((((((((", "a\\b\\c\\d\\", "päßwörter", 'q"u"o"t"e', "<html>&amp", "x" * 4096]
    for secret in secrets:
        scrubber = Scrubber([secret])
        assert scrubber.text(f"[{secret}]") == f"[{MASK}]"
        assert scrubber.text("nothing of that kind") == "nothing of that kind"
        assert scrubber.value({"k": [secret, 1, None, {secret: secret.encode()}]}) == {
            "k": [MASK, 1, None, {MASK: MASK.encode()}]
        }
    assert not Scrubber(["", "a", "1234567"])


def test_two_hundred_secrets_are_found_in_one_reading() -> None:
    """SEC-27"""
    secrets = [f"secret-{one:04d}-{one * 7919 % 10007:05d}" for one in range(200)]
    scrubber = Scrubber(secrets)
    text = "-".join(f"lorem {one} {secret} ipsum" for one, secret in enumerate(secrets))
    masked = scrubber.text(text)
    assert masked.count(MASK) == 200
    assert not any(secret in masked for secret in secrets)
    assert scrubber.text("secret-0001-0000") == "secret-0001-0000"


async def test_a_secret_is_one_version_in_a_call_and_gone_for_the_next_when_it_is_deleted() -> None:
    """SEC-28"""
    async with upstream() as server, toolbox() as box:
        await connected(box, server)
        await call(box, "api.org.main.op")
        await box.set_secret("token", CANARY + "-rotated")
        await call(box, "api.org.main.op")
        assert [one.header("authorization") for one in server.seen] == [
            f"Bearer {CANARY}",
            f"Bearer {CANARY}-rotated",
        ]
        assert await box.delete_secret("token")
        with pytest.raises(ToolError) as caught:
            await call(box, "api.org.main.op")
        assert caught.value.code == "connection_missing"
        assert len(server.seen) == 2


async def test_nothing_of_the_caller_or_this_host_goes_upstream() -> None:
    """SEC-30 SEC-31"""
    async with upstream() as server, toolbox() as box:
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        ctx = CallContext(run_id="run_cnry", principal="principal_cnry", door="http")
        await call(box, "web.org.main.http.request", {"method": "POST", "path": "/x", "body": {"a": 1}}, ctx=ctx)
        (seen,) = server.seen
        assert {name for name, _ in seen.headers} == {
            "host",
            "user-agent",
            "accept-encoding",
            "accept",
            "content-type",
            "content-length",
        }
        assert seen.header("user-agent") == "executor"
        assert not any(word in repr(seen) for word in ("cnry", os.uname().nodename + "."))


async def test_the_journal_holds_no_argument_value_or_secret() -> None:
    """SEC-24"""
    journal = Journal()
    async with upstream() as server, toolbox() as box:
        await connected(box, server, **{"/x": {"get": operation(parameter("q"))}})
        await call(box, "api.org.main.op", {"q": "argument_cnry"}, journal=journal)
        assert "cnry" not in repr(journal.records)


def test_a_secret_does_not_show_itself() -> None:
    """SEC-17"""
    secret = Secret(CANARY)
    assert CANARY not in f"{secret!r} {secret!s} {[secret]}"
    with pytest.raises(TypeError):
        secret.__reduce__()
