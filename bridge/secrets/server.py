"""A server that keeps secrets, as an operator configured it: one origin, one token, reading only.

Guests cannot reach it: it has a client of its own, which no integration is given, and whose only grant is that origin.
Nothing is followed, so that the token stays where it belongs.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import anyio

from bridge.client import Client
from bridge.egress import Grant, Named
from bridge.secrets.ports import Secret, SecretMissing, SecretUnavailable
from bridge.wire.errors import ConfigError, ToolError
from catalog.origin import BadUrl, Url, parse_url, reach_of

TIMEOUT_S: Final = 5.0
MAX_BYTES: Final = 1024 * 1024

ReadToken = Callable[[], Awaitable[Secret]]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`token` is an `env:` or `file:` reference, read at each request. `plain_http` allows http:// to more than this
    machine; `namespace` is Vault's."""

    address: str
    token: str
    ca_file: Path | None = None
    plain_http: bool = False
    namespace: str | None = None


class SecretServer:
    """`what` names it in errors. Raises ConfigError for an address that cannot be used. Close it when done."""

    def __init__(self, what: str, settings: ServerSettings, read_token: ReadToken) -> None:
        self.what = what
        self._base = _address(what, settings)
        host, port = self._base.host, self._base.port
        network = None if host.address is None else _single(host.address)
        self._grant = Grant((reach_of(self._base),), (Named(self._base.origin, host.name, network, port),))
        self._client = Client(ca_file=settings.ca_file, connections_per_host=4)
        self._read_token = read_token

    async def get(
        self, path: Sequence[str], query: Mapping[str, str], headers: Callable[[str], Mapping[str, str]]
    ) -> tuple[int, Any]:
        """Status and JSON (None when it is none) of one GET; `headers` makes the headers of the token.

        Raises SecretUnavailable when there is no answer, SecretMissing for a redirect and for a token that is not set.
        """
        token = (await self._read_token()).reveal()
        fields = [("accept", "application/json"), *headers(token).items()]
        if not all(value.isascii() and value.isprintable() for _, value in fields):
            raise SecretMissing(f"the token for {self.what} holds characters that a header cannot hold")
        url = self._base.at(_target(self._base.path, path, query))
        try:
            with anyio.fail_after(TIMEOUT_S):
                answer = await self._client.exchange("GET", url, fields, None, grant=self._grant, limit=MAX_BYTES)
        except TimeoutError:
            raise SecretUnavailable(f"{self.what} did not answer in {TIMEOUT_S:.0f} s") from None
        except ToolError as e:
            raise SecretUnavailable(f"{self.what} cannot be asked: {e.message}") from None
        if 300 <= answer.status < 400:
            raise SecretMissing(f"{self.what} redirects, which is not followed: name the server that answers itself")
        try:
            return answer.status, json.loads(answer.body)
        except (ValueError, RecursionError):
            return answer.status, None

    async def close(self) -> None:
        await self._client.close()


def _address(what: str, settings: ServerSettings) -> Url:
    try:
        url = parse_url(settings.address)
        if url.query:
            raise BadUrl("it has a query")
    except BadUrl as e:
        raise ConfigError(f"The address of {what} cannot be used: {e}.") from None
    here = url.host.name == "localhost" or (url.host.address is not None and url.host.address.is_loopback)
    if url.scheme != "https" and not here and not settings.plain_http:
        raise ConfigError(
            f"The address of {what} is not https, so that its token and every secret would cross the network in clear.",
            hint="Use https, or set secrets_plain_http where the network itself is trusted.",
        )
    return url


def _single(address: Any) -> Any:
    import ipaddress

    return ipaddress.ip_network(address)


def _target(base: str, path: Sequence[str], query: Mapping[str, str]) -> str:
    target = base.rstrip("/") + "".join("/" + quote(segment, safe="") for segment in path)
    pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items())
    return f"{target}?{pairs}" if pairs else target
