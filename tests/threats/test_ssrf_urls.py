"""The SSRF group of the threat catalogue: URLs of every spelling, and documents that refer to others."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bridge.egress import Gate, Grant
from bridge.wire.errors import ImportFailed, ToolError
from tests.threats.guarded import LITERALS, MIB, PUBLIC
from tests.unit.upstream import (
    Resolver,
    call,
    document,
    operation,
    parameter,
    response,
    toolbox,
    upstream,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "ref",
    [
        "http://10.0.0.5/x.yaml#/a",
        "file:///etc/passwd",
        "../../etc/passwd",
        "//evil.test./x",
        "#/components/schemas/Loop",
    ],
)
async def test_a_reference_leads_only_into_its_own_document(ref: str) -> None:
    """SSRF-53"""
    async with upstream() as server, toolbox() as box:
        described = document(
            {"/x": {"get": operation({"$ref": ref}, parameter("q", schema={"$ref": ref}))}},
            server.base,
            components={"schemas": {"Loop": {"$ref": "#/components/schemas/Loop"}}},
        )
        report = await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        assert report.diagnostics
        assert (await call(box, "api.org.main.op", {"q": "1"})).value["target"] == "/x?q=1"
        assert len(server.seen) == 1


async def test_yaml_anchors_cannot_blow_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRF-53"""
    monkeypatch.setattr("catalog.kinds.openapi.reader.MAX_YAML_NODES", 50_000)
    levels = "".join(f"l{one}: &l{one} [{', '.join([f'*l{one - 1}'] * 9)}]\n" for one in range(1, 12))
    async with toolbox() as box:
        with pytest.raises(ImportFailed, match="aliases"):
            await box.add_openapi("api", "openapi: 3.0.0\nl0: &l0 [x, x]\n" + levels)


async def test_a_document_over_its_limit_is_refused() -> None:
    """SSRF-53"""
    async with upstream() as server, toolbox(document_bytes=MIB) as box:
        server.answers["/big"] = response(b"{" + b" " * 2 * MIB + b"}")
        with pytest.raises(ImportFailed, match="larger than"):
            await box.add_openapi("api", server.base + "/big", allow_private=["127.0.0.1"])


async def test_many_thousand_operations_are_imported_in_one_piece() -> None:
    """SSRF-53"""
    async with toolbox(Resolver(api_test=[[PUBLIC]])) as box:
        paths = {f"/p{one}": {"get": operation(operationId=f"o{one}")} for one in range(10_000)}
        report = await box.add_openapi("api", document(paths, "https://api.test"))
        assert len(report.tools) == len(set(report.tools)) == 10_000


def _corpus() -> list[str]:
    """Some thousand URLs of the kinds that parsers disagree about, each part in every combination with one other.

    Hosts that are loopback in disguise, users and ports, slashes and backslashes of every number, characters that some
    drop and others fold, schemes with one slash too few or too many, and lists of allowed names with something behind.
    """
    good, bad = "good.test", "10.0.0.5"
    hosts = [host for hosts in LITERALS.values() for host in hosts]
    hosts += [
        *(
            f"{good}{mark}{bad}"
            for mark in "@#?/\\;,:&%\t\n\r\0 '\"`{}|^~$!*()+=[]<>\u3002\uff0e\uff61\uff0f\uff03\uff20\u2025\u00ad"
        ),
        *(f"{good}{mark}@{bad}" for mark in (":80", "%40", "%00", "%0d%0a", "\\", "#", "?", "&", " ", "%20", "%09")),
        *(
            f"{bad}{mark}{good}"
            for mark in ("#@", "?@", "\\@", "%23@", "%2f@", "%5c@", "/.", ";", "%00.", ":80#@", ".", "%2e")
        ),
        *(f"{good}.{bad}", f"{bad}.{good}", f"{good}:80@{bad}", f"a:b@{good}@{bad}", f"@{bad}", f":@{bad}", f"@@{bad}"),
        *(
            "localhost",
            "LOCALHOST",
            "localhost.",
            "lOcAlHoSt:80",
            "loc\u00adalhost",
            "localhost%00",
            "ip6-localhost",
            "[::1%lo]",
        ),
        *(
            "127.0.0.1.",
            "127.0.0.1:",
            "127.0.0.1:80:80",
            "127.0.0.1%20",
            "127.0.0.1\u200b",
            "127.0.0.1\u0000",
            "0x7f.0.0x1",
        ),
        *(
            "[::127.0.0.1]:80",
            "[0:0:0:0:0:ffff:127.0.0.1]",
            "[::ffff:7f00:0001]",
            "[::1]:x",
            "[::1",
            "::1",
            "[]",
            "",
            ".",
            "..",
        ),
    ]
    forms = [
        *(
            "http://{}/",
            "http://{}",
            "http:{}/",
            "http:/{}/",
            "http:///{}/",
            "http:////{}",
            "http:\\\\{}\\",
            "http:/\\{}",
        ),
        *(
            "//{}/",
            "///{}",
            "\\\\{}\\x",
            "/\\{}",
            "\\/{}",
            "https://{}:80/",
            "HTTP://{}/",
            "ht\ttp://{}/",
            " http://{}/ ",
        ),
        *(
            "http://{}/..//x",
            "http://{}/%2e%2e/x",
            "http://{}?x",
            "http://{}#x",
            "file://{}/x",
            "ftp://{}/",
            "gopher://{}:70/_x",
        ),
        *("javascript://{}/", "data://{}/,x", "ws://{}/", "http+unix://{}/", "http://good.test//{}", "/{}", "{}"),
    ]
    return [form.replace("{}", host) for form in forms for host in hosts]


async def test_no_url_of_any_spelling_is_dialled_at_another_host_than_the_one_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SSRF-60: whatever is dialled is the granted host and port, as the URL that was checked has it."""
    dialled: list[tuple[str, int]] = []
    answered: dict[str, str] = {"good.test": PUBLIC}

    async def connect(host: str, port: int) -> Any:
        dialled.append((host, port))
        raise OSError

    async def resolver(name: str, port: int) -> list[str]:
        return [answered.get(name, "10.0.0.5")]

    monkeypatch.setattr("bridge.dial.anyio.connect_tcp", connect)
    corpus = _corpus()
    assert len(corpus) > 4000
    async with toolbox(resolver) as box:
        await box.add_http("web", ["http://good.test", "https://good.test:80"])
        checked: list[str] = []
        check = Gate.check

        def noting(self: Gate, method: str, url: Any, grant: Grant) -> None:
            check(self, method, url, grant)
            checked.append(url.host.name)

        monkeypatch.setattr(Gate, "check", noting)
        codes: dict[str, int] = {}
        for text in corpus:
            before = len(dialled)
            with pytest.raises(ToolError) as caught:
                await call(box, "web.org.main.http.get", {"path": text})
            codes[caught.value.code] = codes.get(caught.value.code, 0) + 1
            if len(dialled) > before:
                assert (checked[-1], dialled[before:]) == ("good.test", [(PUBLIC, 80)]), text
        assert set(codes) == {"invalid_arguments", "egress_denied", "upstream_unreachable"}
        assert all(codes[code] > 3 for code in codes)


async def test_random_urls_are_dialled_where_they_were_checked_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRF-60: pieces of URLs in any order; the target that is sent is the target that was checked."""
    pieces = [
        *(
            "http://",
            "https://",
            "//",
            "/",
            "\\",
            "@",
            ":",
            "80",
            "#",
            "?",
            "%2f",
            "%2e",
            "..",
            ".",
            "good.test",
            "10.0.0.5",
        ),
        *("[::1]", "127.1", "\u3002", "\t", "\0", "%00", "a", ";", "[", "]", "localhost", "x=y", "&", "%25", "ſ", "ﬀ"),
    ]
    dialled: list[str] = []

    async def connect(host: str, port: int) -> Any:
        dialled.append(host)
        raise OSError

    async def resolver(name: str, port: int) -> list[str]:
        return [PUBLIC if name == "good.test" else "10.0.0.5"]

    monkeypatch.setattr("bridge.dial.anyio.connect_tcp", connect)
    chance = random.Random(60)
    async with toolbox(resolver) as box:
        await box.add_http("web", ["http://good.test/a"])
        for _ in range(3000):
            text = chance.choice(["http://good.test", "http://", "/a/", ""]) + "".join(
                chance.choices(pieces, k=chance.randint(1, 7))
            )
            with pytest.raises(ToolError):
                await call(box, "web.org.main.http.get", {"path": text})
    assert set(dialled) == {PUBLIC}
