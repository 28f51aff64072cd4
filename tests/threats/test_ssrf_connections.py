"""The SSRF group of the threat catalogue: redirects, TLS, proxies and cookies lead nowhere else."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.client import Client
from bridge.egress import Grant, parse_named
from bridge.wire.errors import ToolError
from catalog.origin import BadUrl, parse_url, reach_of
from tests.threats.guarded import MIB, guarded
from tests.unit.upstream import (
    Resolver,
    Seen,
    Upstream,
    call,
    redirect,
    toolbox,
    upstream,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/",
        "http://10.0.0.5/",
        "//127.0.0.1/",
        "http:127.0.0.1",
        "\\\\127.0.0.1\\x",
        "file:///etc",
    ],
)
async def test_a_redirect_to_the_inside_is_not_followed(status: int, target: str) -> None:
    """SSRF-20"""
    async with guarded() as (box, server, _):
        server.answers["/r"] = redirect(target, status)
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.get", {"path": "/r"})
        assert caught.value.code == "egress_denied"
        assert len(server.seen) == 1


async def test_a_chain_of_redirects_ends_after_three_and_a_loop_at_once() -> None:
    """SSRF-22"""
    async with guarded() as (box, server, _):
        for one in range(20):
            server.answers[f"/{one}"] = redirect(f"/{one + 1}")
        server.answers["/a"], server.answers["/b"] = redirect("/b"), redirect("/a")

        async def growing(seen: Seen, reader: Any, writer: Any) -> None:
            writer.write(redirect(f"{seen.target}{'&' if '?' in seen.target else '?'}x"))

        server.answers["/self"] = growing
        for path, requests in (("/0", 4), ("/a", 2), ("/self", 4)):
            server.seen.clear()
            with pytest.raises(ToolError) as caught:
                await call(box, "web.org.main.http.get", {"path": path})
            assert (caught.value.code, len(server.seen)) == ("upstream_error", requests)


async def test_the_host_that_was_checked_is_the_host_that_is_dialled() -> None:
    """SSRF-27"""
    for text in ("http://good.test#@127.0.0.1/", "http://good.test?@127.0.0.1/"):
        assert parse_url(text).host.name == "good.test"
    for text in ("http://good.test;127.0.0.1/", "http://good.test@127.0.0.1/", "http://127.0.0.1\\@good.test/"):
        with pytest.raises(BadUrl):
            parse_url(text)


async def test_proxies_certificates_and_key_logs_of_the_environment_are_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SSRF-34 SEC-32"""
    async with upstream() as proxy, upstream() as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.base)
        monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        (tmp_path / "netrc").write_text("default login a password cnry_netrc")
        async with toolbox() as box:
            await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
            answer = await call(box, "web.org.main.http.get", {"path": "/x"})
            assert "authorization" not in answer.value["headers"]
        assert (len(server.seen), proxy.connections) == (1, 0)
        assert not (tmp_path / "keys").exists()


async def test_a_tls_handshake_that_stalls_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRF-42"""
    monkeypatch.setattr("bridge.dial.CONNECT_S", 0.2)
    async with upstream() as server, toolbox() as box:
        origin = f"https://127.0.0.1:{server.port}"
        await box.add_http("web", [origin], allow_private=["127.0.0.1"])
        with pytest.raises(ToolError) as caught, anyio.fail_after(10):
            await call(box, "web.org.main.http.get", {"path": "/"})
        assert caught.value.code == "upstream_unreachable"


def _certificate(folder: Path, *, name: str, expired: bool = False) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now - timedelta(days=1) if expired else now + timedelta(days=10))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}-{expired}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@asynccontextmanager
async def _secure(certificate: Path, names: list[str], one: Upstream | None = None) -> AsyncIterator[int]:
    """A TLS server; the server names that clients ask for are appended to `names`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _, name, __: names.append(str(name))
    one = one or Upstream()
    tasks: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(one.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_tls_checks_the_name_that_was_asked_for_though_an_address_is_dialled(tmp_path: Path) -> None:
    """SSRF-46"""
    good, expired = _certificate(tmp_path, name="good.test"), _certificate(tmp_path, name="good.test", expired=True)
    other = _certificate(tmp_path, name="other.test")
    for certificate, authority, accepted in (
        (good, good, True),
        (good, None, False),
        (expired, expired, False),
        (other, other, False),
    ):
        names: list[str] = []
        async with _secure(certificate, names) as port:
            client = Client(resolver=Resolver(good_test=[["127.0.0.1"]]), ca_file=authority)
            url = parse_url(f"https://good.test:{port}/")
            grant = Grant((reach_of(url),), (parse_named("good.test"),))
            if accepted:
                assert (await client.exchange("GET", url, [], None, grant=grant, limit=MIB)).status == 200
            else:
                with pytest.raises(ToolError, match="certificate") as caught:
                    await client.exchange("GET", url, [], None, grant=grant, limit=MIB)
                assert caught.value.code == "upstream_unreachable"
            await client.close()
        assert names == ["good.test"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_port_or_without_tls_carries_no_credential(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSRF-23"""
    monkeypatch.setenv("WEB_KEY", "cnry_0123456789abcdef")
    certificate, one = _certificate(tmp_path, name="good.test"), Upstream()
    resolver = Resolver(good_test=[["127.0.0.1"]])
    async with upstream() as plain, upstream() as other, _secure(certificate, [], one) as port:
        places = [f"https://good.test:{port}", f"http://good.test:{plain.port}", f"http://good.test:{other.port}"]
        async with toolbox(resolver, ca_file=certificate) as box:
            auth = {"type": "header", "name": "x-key"}
            await box.add_http("web", places, allow_private=["127.0.0.1"], auth=auth, secret="env:WEB_KEY")
            one.answers["/go"] = redirect(places[1] + "/x", status)
            plain.answers["/go"] = redirect(places[2] + "/x", status)
            for place in places[:2]:
                args = {"path": place + "/go", "headers": {"x-mine": "1"}}
                assert (await call(box, "web.org.main.http.get", args)).value["target"] == "/x"
                args |= {"method": "POST", "body": "secret body"}
                with pytest.raises(ToolError) as caught:
                    await call(box, "web.org.main.http.request", args)
                assert caught.value.status == status
        assert [seen.header("x-key") for seen in one.seen] == ["cnry_0123456789abcdef"] * 2
        for seen in (plain.seen[0], *other.seen):
            assert (seen.target, seen.header("x-key"), seen.header("x-mine"), seen.body) == ("/x", None, None, b"")
        assert [len(plain.seen), len(other.seen)] == [3, 1]


async def test_challenges_links_and_alternative_services_are_not_followed() -> None:
    """SSRF-48"""
    async with guarded() as (box, server, _):
        pointing = {
            "www-authenticate": "Negotiate",
            "link": "<http://169.254.169.254/>; rel=next",
            "alt-svc": 'h2="10.0.0.5:443"',
            "refresh": "0; url=http://10.0.0.5/",
        }
        server.reply("/c", {}, headers=pointing)
        await call(box, "web.org.main.http.get", {"path": "/c"})
        for status in (401, 407):
            server.reply("/c", {}, status=status, headers=pointing)
            with pytest.raises(ToolError) as caught:
                await call(box, "web.org.main.http.get", {"path": "/c"})
            assert (caught.value.code, caught.value.status) == ("upstream_error", status)
        assert len(server.seen) == 3
