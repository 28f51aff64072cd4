"""Credentials into a request: after every check, over whatever the caller put in their place, in one place each."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_plus

from bridge.secrets.ports import Secret
from bridge.wire.errors import ToolError
from catalog.model import Placement
from catalog.origin import Url

Headers = list[tuple[str, str]]

_HEADER: Final = re.compile(r"\A[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?\Z")
_COOKIE: Final = re.compile(r"\A[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+\Z")


class Credential(NamedTuple):
    """A placement with what goes into it. `username` is for basic, empty where `value` is the whole pair."""

    placement: Placement
    value: Secret
    username: Secret


def place(
    url: Url, headers: Sequence[tuple[str, str]], credentials: Sequence[Credential], label: str
) -> tuple[Url, Headers]:
    """The request with its credentials. `label` names the connection in an error.

    Raises ToolError(connection_missing) for a secret that has no form in its place, such as one with a line break.
    """
    out = list(headers)
    for credential in credentials:
        placement = credential.placement
        value = placement.prefix + credential.value.reveal()
        if placement.carrier == "env":
            continue
        if placement.carrier == "basic":
            out = _header(out, "authorization", _basic(credential, label))
        elif placement.carrier == "header":
            _fit(_HEADER, value, label)
            out = _header(out, placement.field.lower(), value)
        elif placement.carrier == "query":
            url = _query(url, placement.field, value)
        else:
            _fit(_COOKIE, value, label)
            out = _cookie(out, placement.field, value)
    return url, out


def _fit(pattern: re.Pattern[str], value: str, label: str) -> None:
    if not pattern.match(value):
        raise ToolError(
            "connection_missing",
            f"The secret of {label} holds characters that its place in the request cannot hold.",
            hint="Set the secret again: a header or cookie takes printable ASCII without line breaks.",
        )


def _basic(credential: Credential, label: str) -> str:
    """RFC 7617: user name and password joined by a colon, UTF-8. Without a user name the secret is the whole pair."""
    username, password = credential.username.reveal(), credential.value.reveal()
    pair = f"{username}:{password}" if username else password
    if ":" in username or any(ord(character) < 32 or ord(character) == 127 for character in pair):
        _fit(_COOKIE, "", label)
    return "Basic " + base64.b64encode(pair.encode()).decode("ascii")


def _header(headers: Headers, name: str, value: str) -> Headers:
    return [(key, kept) for key, kept in headers if key != name] + [(name, value)]


def _query(url: Url, name: str, value: str) -> Url:
    kept = [pair for pair in url.query.split("&") if pair and unquote_plus(pair.partition("=")[0]) != name]
    return url.at(url.path + "?" + "&".join([*kept, f"{quote(name, safe='')}={quote(value, safe='')}"]))


def _cookie(headers: Headers, name: str, value: str) -> Headers:
    pairs = [pair.strip() for key, kept in headers if key == "cookie" for pair in kept.split(";") if pair.strip()]
    pairs = [pair for pair in pairs if pair.partition("=")[0].strip() != name]
    return _header(headers, "cookie", "; ".join([*pairs, f"{name}={value}"]))
