"""Authorization servers over the egress gate: one request to the one URL that is meant, nothing followed, little read.

What a server says of itself is not trusted further than this: its URLs are checked like any, and of its errors only the
code and a cleaned sentence are passed on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote, quote_plus, urlencode

import anyio

from bridge.client import Answer, Client
from bridge.egress import Gate, Grant, Named
from bridge.scrub import Scrubber
from bridge.wire.errors import InvalidRequest, ToolError
from catalog.kinds.payload import message_in
from catalog.oauth import TokenAuth
from catalog.origin import BadUrl, Url, parse_url, reach_of

TIMEOUT_S: Final = 10.0
MAX_BYTES: Final = 256 * 1024
MAX_SAID: Final = 200

_CODE: Final = re.compile(r"\A[A-Za-z0-9_.-]{1,64}\Z")
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class ServerRefused(Exception):
    """Raised when an authorization server says no. `code` is the error of RFC 6749 §5.2 or what stands for one, and
    `passing` says that the same may work later. `sentence` is fit to show."""

    def __init__(self, code: str, sentence: str, *, passing: bool = False, status: int | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.passing = passing
        self.status = status


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who the client is at the token endpoint (RFC 6749 §2.3.1)."""

    id: str
    secret: str = ""
    how: TokenAuth = "none"

    def into(self, fields: dict[str, str], headers: list[tuple[str, str]]) -> None:
        if self.how == "basic" and self.secret:
            import base64

            pair = f"{quote_plus(self.id)}:{quote_plus(self.secret)}".encode()
            headers.append(("authorization", "Basic " + base64.b64encode(pair).decode()))
            return
        fields["client_id"] = self.id
        if self.secret:
            fields["client_secret"] = self.secret


def endpoint(text: Any, private: Iterable[Named], what: str) -> Url:
    """The URL of a server's endpoint, or of its page for people. Raises InvalidRequest for another scheme than https,
    and for http to more than this machine and the private hosts that were named (RFC 9700 §2.6)."""
    try:
        url = parse_url(text if isinstance(text, str) and len(text) <= 2048 else "")
    except BadUrl as e:
        raise InvalidRequest(f"The {what} of the authorization server cannot be used: {e}.") from None
    here = url.host.name == "localhost" or (url.host.address is not None and url.host.address.is_loopback)
    if url.scheme != "https" and not here and not any(one.host == url.host.name for one in private):
        raise InvalidRequest(
            f"The {what} {url.origin} is not https, so that whoever listens would have the tokens.",
            hint="Use https; plain http is for this machine and for private hosts that are named (--allow-private).",
        )
    return url


class Greeting(NamedTuple):
    """A first message to a server, to see whom it lets in."""

    headers: Sequence[tuple[str, str]]
    message: Mapping[str, Any]


class Servers:
    """Makes the requests. Every URL has a grant of its own: that origin, and the private places that were named."""

    def __init__(self, client: Client, gate: Gate) -> None:
        self._client = client
        self._gate = gate

    async def get(self, url: Url, private: Sequence[Named]) -> tuple[int, Any]:
        """Status and JSON object (None when it is none) of a document that a server publishes. Raises ToolError."""
        answer = await self._exchange("GET", url, [("accept", "application/json")], None, private)
        return answer.status, _object(answer)

    async def probe(
        self, url: Url, private: Sequence[Named], greeting: Greeting | None = None
    ) -> tuple[int, list[tuple[str, str]]]:
        """Status and headers of an answer without a credential, to a GET or to the POST of `greeting`. Raises
        ToolError."""
        headers = [("accept", "application/json, text/event-stream")]
        if greeting is None:
            answer = await self._exchange("GET", url, headers, None, private)
        else:
            headers += [("content-type", "application/json"), *greeting.headers]
            answer = await self._exchange("POST", url, headers, json.dumps(greeting.message).encode(), private)
        return answer.status, answer.headers

    async def register(self, url: Url, metadata: Mapping[str, Any], private: Sequence[Named]) -> dict[str, Any]:
        """What a server makes of a client that registers itself (RFC 7591). Raises ServerRefused, ToolError."""
        headers = [("accept", "application/json"), ("content-type", "application/json")]
        answer = await self._exchange("POST", url, headers, json.dumps(metadata).encode(), private)
        found = _object(answer)
        if answer.status not in (200, 201) or found is None:
            raise _refusal(answer, found, ())
        return found

    async def token(
        self, url: Url, credentials: Credentials, fields: Mapping[str, str], private: Sequence[Named]
    ) -> dict[str, Any]:
        """The answer of a token endpoint, which has an access token. Raises ServerRefused, ToolError (egress_denied);
        no answer at all is a refusal that may pass."""
        form = {name: value for name, value in fields.items() if value}
        headers = [("accept", "application/json"), ("content-type", "application/x-www-form-urlencoded")]
        credentials.into(form, headers)
        body = urlencode(form, quote_via=quote).encode()
        secrets = [one for name, one in form.items() if name in _SECRET] + [credentials.secret]
        try:
            answer = await self._exchange("POST", url, headers, body, private)
        except ToolError as e:
            if e.code == "egress_denied":
                raise
            raise ServerRefused(e.code, e.message.rstrip("."), passing=True) from None
        found = _object(answer)
        # Some servers say no with 200.
        if answer.status != 200 or found is None or "error" in found:
            raise _refusal(answer, found, secrets)
        return found

    async def revoke(self, url: Url, credentials: Credentials, token: str, hint: str, private: Sequence[Named]) -> None:
        """Have a server take a token back (RFC 7009 §2.1). Raises ServerRefused, ToolError."""
        form = {"token": token, "token_type_hint": hint}
        headers = [("accept", "application/json"), ("content-type", "application/x-www-form-urlencoded")]
        credentials.into(form, headers)
        answer = await self._exchange("POST", url, headers, urlencode(form, quote_via=quote).encode(), private)
        # One that it does not know is none any more, and is answered with 200 (§2.2).
        if answer.status not in (200, 204):
            raise _refusal(answer, _object(answer), [token, credentials.secret], "a revocation endpoint")

    async def _exchange(
        self, method: str, url: Url, headers: list[tuple[str, str]], body: bytes | None, private: Sequence[Named]
    ) -> Answer:
        grant = Grant((reach_of(url),), tuple(private))
        self._gate.check(method, url, grant)
        try:
            with anyio.fail_after(TIMEOUT_S):
                return await self._client.exchange(method, url, headers, body, grant=grant, limit=MAX_BYTES)
        except TimeoutError:
            raise ToolError("upstream_timeout", f"{url.origin} did not answer in {TIMEOUT_S:.0f} s.") from None


_SECRET: Final = frozenset({"code", "code_verifier", "refresh_token", "client_secret"})


def _object(answer: Answer) -> dict[str, Any] | None:
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refusal(
    answer: Answer, found: dict[str, Any] | None, secrets: Sequence[str], whose: str = "a token endpoint"
) -> ServerRefused:
    status = answer.status
    code = told(found.get("error"), secrets) if found is not None else ""
    if 300 <= status < 400:
        return ServerRefused("redirect", f"it answers {status}, a redirect, which is not followed", status=status)
    if not _CODE.match(code):
        kind = next((value for name, value in answer.headers if name == "content-type"), "")[:60]
        what = f" with {kind}" if found is None and kind.isascii() and kind.isprintable() and kind else ""
        return ServerRefused(
            "upstream_error", f"it answers {status}{what}, which is no answer of {whose}",
            passing=status in _BUSY, status=status,
        )  # fmt: skip
    said = message_in({"error_description": found.get("error_description")}) if found is not None else ""
    return ServerRefused(
        code,
        code + (f": {said}" if (said := told(said, secrets)) else ""),
        passing=status in _BUSY or code in ("temporarily_unavailable", "server_error", "slow_down"),
        status=status,
    )


def told(text: Any, secrets: Iterable[str] = ()) -> str:
    """What a server said, short, on one line, and without the secrets in it."""
    if not isinstance(text, str):
        return ""
    clean = "".join(one if one.isprintable() else " " for one in text[: 4 * MAX_SAID])
    return Scrubber(secrets).text(" ".join(clean.split()))[:MAX_SAID].rstrip(" .")
