"""From a canonical host to a connected stream: resolve once, check every address, dial exactly what was checked."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.tls import TLSStream

from bridge.egress import Address, Grant, is_public, own_address, private_address
from bridge.own import Own
from bridge.wire.errors import ConfigError, ToolError
from catalog.origin import Host, Url

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""Host name and port to IP addresses as text. Raises OSError when there are none."""

RESOLVE_S: Final = 5.0
CONNECT_S: Final = 10.0
MAX_ADDRESSES: Final = 4
"""Addresses of one host that are tried; every address of the answer is checked."""

_CA_FILES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
)


async def system_resolver(name: str, port: int) -> list[str]:
    """What the operating system says, each address once."""
    found = await anyio.getaddrinfo(name, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def tls_context(ca_file: Path | None = None) -> ssl.SSLContext:
    """Verification against the system's authorities, or `ca_file`. `SSL_CERT_FILE` and `SSLKEYLOGFILE` are ignored.

    Raises ConfigError when `ca_file` cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError):
            raise ConfigError("The file of certificate authorities cannot be read as PEM.") from None
        return context
    paths = ssl.get_default_verify_paths()
    files = (paths.openssl_cafile, *_CA_FILES)
    file = next((name for name in files if os.path.isfile(name)), None)
    folder = paths.openssl_capath if os.path.isdir(paths.openssl_capath) else None
    if file or folder:
        context.load_verify_locations(file, folder)
    if sys.platform in ("win32", "darwin"):
        context.load_default_certs()
    return context


async def resolve(host: Host, port: int, grant: Grant, resolver: Resolver, own: Own) -> list[Address]:
    """The addresses of `host`, in the resolver's order. One that may not be reached spoils them all.

    Raises ToolError: upstream_unreachable when there is no usable answer, egress_denied when one is not allowed.
    """
    if host.address is not None:
        found: list[Address] = [host.address]
    else:
        found = await _ask(host, port, resolver)
    for address in found:
        _check(host, port, address, grant, own)
    return found


def _check(host: Host, port: int, address: Address, grant: Grant, own: Own) -> None:
    """Raises ToolError(egress_denied) for an address that may not be dialled.

    A public address of this machine is as private as any of its others; this server is reached by nobody for whom the
    operator did not name it with its port, for a script that reaches it may start scripts.
    """
    if own.serves(address, port):
        if not grant.names(host, port, address, by_port=True):
            raise own_address(host, port, server=True)
    elif not grant.allows(host, port, address):
        raise private_address(host)
    elif is_public(address) and own.has(address) and not grant.names(host, port, address):
        raise own_address(host, port, server=False)


async def _ask(host: Host, port: int, resolver: Resolver) -> list[Address]:
    try:
        with anyio.fail_after(RESOLVE_S):
            answers = await resolver(host.name, port)
        found = [ipaddress.ip_address(answer.partition("%")[0]) for answer in answers]
    except (OSError, ValueError):  # TimeoutError is an OSError
        found = []
    if not found:
        raise ToolError("upstream_unreachable", f"The host name {host.name} could not be resolved.")
    return found


async def dial(url: Url, grant: Grant, resolver: Resolver, own: Own, context: ssl.SSLContext) -> ByteStream:
    """A stream to the origin of `url`, with TLS where its scheme says so.

    Raises ToolError: upstream_unreachable or upstream_timeout when no address answers or the certificate is not
    accepted, egress_denied when an address may not be reached.
    """
    addresses = await resolve(url.host, url.port, grant, resolver, own)
    stream = await _connect(url, addresses[:MAX_ADDRESSES])
    if url.scheme == "http":
        return stream
    return await _secured(url, stream, context)


async def _connect(url: Url, addresses: list[Address]) -> ByteStream:
    timed_out = False
    for address in addresses:
        try:
            with anyio.fail_after(CONNECT_S):
                stream = await anyio.connect_tcp(str(address), url.port)
        except TimeoutError:
            timed_out = True
        except OSError:
            continue
        else:
            if _peer(stream) != address:
                await stream.aclose()
                raise private_address(url.host)
            return stream
    if timed_out:
        raise ToolError("upstream_timeout", f"{url.origin} did not accept a connection in {CONNECT_S:.0f} s.")
    raise ToolError("upstream_unreachable", f"{url.origin} does not accept connections.")


def _peer(stream: ByteStream) -> Address | None:
    remote: Any = stream.extra(SocketAttribute.remote_address, None)  # noqa: S610 - not Django
    return ipaddress.ip_address(str(remote[0]).partition("%")[0]) if remote else None


async def _secured(url: Url, stream: ByteStream, context: ssl.SSLContext) -> ByteStream:
    secured: ByteStream | None = None
    try:
        with anyio.fail_after(CONNECT_S):
            secured = await TLSStream.wrap(
                stream, hostname=url.host.name, ssl_context=context, server_side=False, standard_compatible=False
            )
            return secured
    except ssl.SSLCertVerificationError as e:
        why = f"its certificate is not accepted ({e.verify_message})"
    except ssl.SSLError:
        why = "it does not speak TLS 1.2 or later"
    except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
        why = "the TLS handshake did not complete"
    finally:
        if secured is None:
            await anyio.aclose_forcefully(stream)
    raise ToolError("upstream_unreachable", f"{url.origin} cannot be trusted: {why}.", retryable=False)
