"""URLs and hosts in one canonical form, the same object for the check and for the dial.

Anything that two parsers could read differently is refused, never repaired: user information, backslashes, control
characters, unusual spellings of IPv4 addresses, IPv6 zones, host names that are not strict IDNA 2008.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

import idna

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LOCAL: Final = "stdio"
"""The scheme of a place that no request goes to: a program on this machine, by its name and a digest of its command."""
PACKAGE: Final = "npm"
"""The scheme of another such place: a package that runs in isolates, by its name. What it fetches is decided apart."""

_LABEL: Final = re.compile(r"\A[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_NUMERIC: Final = re.compile(r"\A(0x[0-9a-f]*|[0-9]+)\Z")
_DOTTED: Final = re.compile(r"\A(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}\Z")
_PORT: Final = re.compile(r"\A[1-9][0-9]{0,4}\Z")
_SPLIT: Final = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?\Z", re.DOTALL)
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f\\\ud800-\udfff]")
_PATH_SAFE: Final = "/:@!$&'()*+,;=-._~%"
_QUERY_SAFE: Final = _PATH_SAFE + "?[]"


class BadUrl(ValueError):
    """Raised when a URL or host is not in the form that is dialled; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host name (lower case A-labels, no trailing dot) or an IP literal."""

    name: str
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None = None

    @property
    def authority(self) -> str:
        """The host as it stands in a URL and a Host header."""
        return f"[{self.name}]" if isinstance(self.address, ipaddress.IPv6Address) else self.name


def parse_host(text: str) -> Host:
    """The canonical host of `text`, with IPv6 literals in brackets. Raises BadUrl."""
    if not text:
        raise BadUrl("the URL has no host")
    if _FORBIDDEN.search(text) or any(mark in text for mark in "@%/?#|^<>"):
        raise BadUrl("the host holds a character that no host may hold")
    if text.startswith("["):
        return _ipv6(text)
    name = text.lower() if text.isascii() else _a_labels(text)
    if name.endswith("."):
        raise BadUrl("the host ends in a dot")
    labels = name.split(".")
    if _NUMERIC.match(labels[-1]):
        # WHATWG URL 3.5, "ends in a number": such a host is an IPv4 address or nothing.
        if not _DOTTED.match(name):
            raise BadUrl(f"{name[:80]} is not a plainly written IPv4 address")
        return Host(name, ipaddress.IPv4Address(name))
    if len(name) > 253 or not all(_LABEL.match(label) for label in labels):
        raise BadUrl(f"{name[:80]} is not a host name")
    if any(label.startswith("xn--") for label in labels):
        _round_trip(name)
    return Host(name)


def _ipv6(text: str) -> Host:
    try:
        address = ipaddress.IPv6Address(text[1:-1] if text.endswith("]") else "")
    except ValueError:
        raise BadUrl("the host is not an IPv6 address") from None
    return Host(address.compressed, address)


def _a_labels(text: str) -> str:
    try:
        return idna.encode(text, strict=True, uts46=False).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise BadUrl("the host is not a valid international domain name") from None


def _round_trip(name: str) -> None:
    try:
        same = idna.encode(idna.decode(name)).decode("ascii") == name
    except (idna.IDNAError, UnicodeError):
        same = False
    if not same:
        raise BadUrl("the host holds a malformed xn-- label")


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute http(s) URL. `target` is the raw path and query as they go on the wire, ASCII only."""

    scheme: str
    host: Host
    port: int
    target: str

    @property
    def origin(self) -> str:
        port = "" if DEFAULT_PORTS.get(self.scheme, 0) == self.port else f":{self.port}"
        return f"{self.scheme}://{self.host.authority}{port}"

    @property
    def netloc(self) -> str:
        """The Host header's value."""
        return self.origin.partition("://")[2]

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    def at(self, target: str) -> Url:
        """The same origin at another raw target."""
        return Url(self.scheme, self.host, self.port, target)

    def __str__(self) -> str:
        return self.origin + self.target


def parse_url(text: str) -> Url:
    """An absolute http or https URL. A fragment is dropped. Raises BadUrl."""
    if _FORBIDDEN.search(text):
        raise BadUrl("the URL holds a space, a backslash, a control character or half a character")
    match = _SPLIT.match(text)
    if match is None:
        raise BadUrl("not an absolute URL such as https://api.example.com/v1")
    scheme, authority, path, query, _ = match.groups()
    scheme = scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise BadUrl(f"the scheme {scheme} is not http or https")
    if "@" in authority:
        raise BadUrl("the URL holds user information before the host")
    host, port = _authority(authority)
    return Url(scheme, host, port or DEFAULT_PORTS[scheme], _target(path, query or ""))


def _authority(authority: str) -> tuple[Host, int | None]:
    name, colon, digits = authority.rpartition(":")
    if not colon or digits.endswith("]"):
        return parse_host(authority), None
    if ":" in name and not name.startswith("["):
        raise BadUrl("the host holds a colon; an IPv6 address stands in brackets")
    if not _PORT.match(digits) or int(digits) > 65535:
        raise BadUrl("the port is not a number from 1 to 65535")
    return parse_host(name), int(digits)


def _target(path: str, query: str) -> str:
    raw = quote(path or "/", safe=_PATH_SAFE)
    if query in ("", "?"):
        return raw
    return raw + "?" + quote(query[1:], safe=_QUERY_SAFE)


def join_url(base: Url, reference: str) -> Url:
    """`reference` resolved against `base` (RFC 3986 5.2), dot segments removed. Raises BadUrl."""
    if _FORBIDDEN.search(reference):
        raise BadUrl("the URL holds a space, a backslash, a control character or half a character")
    reference = reference.partition("#")[0]
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", reference):
        url = parse_url(reference)
        return url.at(_without_dots(url.path) + ("?" + url.query if url.query else ""))
    if reference.startswith("//"):
        return join_url(base, f"{base.scheme}:{reference}")
    path, mark, query = reference.partition("?")
    if not path:
        return base.at(_target(base.path, mark + query if mark else "?" + base.query))
    if not path.startswith("/"):
        path = base.path.rpartition("/")[0] + "/" + path
    return base.at(_target(_without_dots(path), mark + query))


def _without_dots(path: str) -> str:
    """RFC 3986 5.2.4: remove dot segments."""
    kept: list[str] = []
    parts = path.split("/")[1:]
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "..":
            if kept:
                kept.pop()
            if last:
                kept.append("")
        elif part == ".":
            if last:
                kept.append("")
        else:
            kept.append(part)
    return "/" + "/".join(kept)


def hides_dots(path: str) -> bool:
    """Whether some server could find dot segments in `path`: behind a parameter, or by decoding once or more."""
    for _ in range(4):
        segments = re.split(r"[/\\]", path)
        if any(segment.partition(";")[0] in (".", "..") for segment in segments):
            return True
        decoded = unquote(path)
        if decoded == path:
            return False
        path = decoded
    return True


@dataclass(frozen=True, slots=True)
class Reach:
    """One place where requests may go. `host` may be `*.suffix`; `methods` None means all of them."""

    scheme: str
    host: str
    port: int
    prefix: str = "/"
    methods: tuple[str, ...] | None = None

    def covers(self, method: str, url: Url) -> bool:
        return (
            self.scheme == url.scheme
            and self.port == url.port
            and self.covers_host(url.host)
            and self._covers_path(url.path)
            and (self.methods is None or method in self.methods)
        )

    def covers_host(self, host: Host) -> bool:
        if self.host.startswith("*."):
            return host.address is None and host.name.endswith(self.host[1:])
        return host.name == self.host

    def _covers_path(self, path: str) -> bool:
        prefix = self.prefix.rstrip("/")
        return path == prefix or path.startswith(prefix + "/")

    def __str__(self) -> str:
        authority = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if DEFAULT_PORTS.get(self.scheme, 0) == self.port else f":{self.port}"
        methods = ",".join(self.methods) + " " if self.methods else ""
        return f"{methods}{self.scheme}://{authority}{port}{self.prefix if self.prefix != '/' else ''}"


def reach_of(url: Url, *, prefix: str = "/", methods: tuple[str, ...] | None = None) -> Reach:
    return Reach(url.scheme, url.host.name, url.port, prefix, methods)


def parse_reach(text: str) -> Reach:
    """An allowlist entry: `[METHOD[,METHOD] ][scheme://]host[:port][/prefix]`, `https` unless it says otherwise.

    The host may be `*.suffix` with a suffix of two labels or more. Raises BadUrl for anything else, so that a
    mistaken pattern is never a wider one.
    """
    words, methods = text.split(), None
    if len(words) == 2:
        methods = tuple(words[0].upper().split(","))
        if not all(re.match(r"\A[A-Z]{1,20}\Z", method) for method in methods):
            raise BadUrl("the methods of an allowed origin look like GET,POST")
    if len(words) not in (1, 2):
        raise BadUrl("an allowed origin looks like https://api.example.com/v1 or GET https://api.example.com")
    pattern = words[-1] if "://" in words[-1] else "https://" + words[-1]
    scheme, _, rest = pattern.partition("://")
    wildcard = rest.startswith("*.")
    url = parse_url(f"{scheme}://{rest[2:]}" if wildcard else pattern)
    if url.query or "#" in pattern:
        raise BadUrl("an allowed origin has no query and no fragment")
    if wildcard and (url.host.address is not None or url.host.name.count(".") < 1):
        raise BadUrl("a wildcard needs a suffix of two labels or more, such as *.example.com")
    if url.path != _without_dots(url.path):
        raise BadUrl("an allowed path has no dot segments")
    host = "*." + url.host.name if wildcard else url.host.name
    return Reach(url.scheme, host, url.port, url.path, methods)
