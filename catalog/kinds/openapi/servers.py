"""Where the operations of a document are served, and what a call may choose among."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridge.wire.errors import ImportFailed
from catalog.model import Schema
from catalog.origin import BadUrl, Url, join_url, parse_url

MAX_SERVERS: Final = 20
MAX_ORIGINS: Final = 100
"""Origins that the values of a document's server variables may add up to."""

_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
_PLAIN: Final = re.compile(r"\A[A-Za-z0-9._~:/-]{1,500}\Z")


@dataclass(frozen=True, slots=True)
class Server:
    """`url` is a template; `variables` maps its names to their default and the values that they can have, or None."""

    url: str
    variables: Mapping[str, tuple[str, list[str] | None]]

    def at(self, values: Mapping[str, Any], document: Url | None) -> Url:
        """The base URL with `values` where they are given. Raises BadUrl."""
        text = _VARIABLE.sub(lambda match: self._value(match[1], values), self.url)
        if document is not None:
            return join_url(document, text)
        url = parse_url(text)
        return join_url(url, str(url))

    def _value(self, name: str, values: Mapping[str, Any]) -> str:
        if name not in self.variables and name not in values:
            raise BadUrl(f"its variable {name} has no default")
        default, allowed = self.variables.get(name, ("", None))
        value = str(values.get(name, default))
        if allowed and value not in allowed:
            raise BadUrl(f"{value[:60]!r} is not among the values of its variable {name}")
        if name in values and (not _PLAIN.match(value) or {".", "..", ""} & set(value.split("/"))):
            raise BadUrl(f"{value[:60]!r} is no value for its variable {name}: it would change what the URL is made of")
        return value

    def fixed(self, name: str) -> bool:
        """Whether a call may not choose the variable: any value at all could stand in the name of the host."""
        _, allowed = self.variables[name]
        authority = re.match(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://)?[^/?#]*", self.url)
        return not allowed and (authority is None or f"{{{name}}}" in authority[0])


@dataclass(frozen=True, slots=True)
class Choice:
    """The servers that a call of an operation may choose among, the default first, and how: `key` is the argument that
    names a server by its URL as the document writes it, `variables_key` the one with the values of variables."""

    servers: tuple[Server, ...]
    document: str | None
    values: Mapping[str, str]
    key: str = "server"
    variables_key: str = "server_variables"

    def as_dict(self) -> dict[str, Any]:
        rows = [[one.url, {name: list(facts) for name, facts in one.variables.items()}] for one in self.servers]
        return {
            "servers": rows,
            "document": self.document,
            "values": dict(self.values),
            "keys": [self.key, self.variables_key],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Choice:
        servers = tuple(
            Server(url, {name: (default, allowed) for name, (default, allowed) in variables.items()})
            for url, variables in data["servers"]
        )
        return cls(servers, data["document"], data["values"], *data["keys"])

    def base(self, args: Mapping[str, Any]) -> Url | None:
        """The base that the arguments ask for, None where they do not ask. Raises BadUrl."""
        url, given = args.get(self.key), args.get(self.variables_key)
        if url is None and not given:
            return None
        given = given if isinstance(given, dict) else {}
        server = next((one for one in self.servers if one.url == url), self.servers[0])
        names = set(_VARIABLE.findall(server.url))
        if odd := next((name for name in given if name not in names), None):
            raise BadUrl(f"the server {server.url} has no variable {str(odd)[:60]!r}")
        document = parse_url(self.document) if self.document is not None else None
        return server.at({**self.values, **given}, document)

    def arguments(self) -> dict[str, Schema]:
        """The schemas of the arguments, of which none is required."""
        found: dict[str, Schema] = {}
        if len(self.servers) > 1:
            urls = [one.url for one in self.servers]
            found[self.key] = {"enum": urls, "default": urls[0], "description": "Which server is called."}
        variables: dict[str, Schema] = {}
        for server in self.servers:
            for name, (default, allowed) in server.variables.items():
                if name not in self.values and not server.fixed(name):
                    one = variables.setdefault(name, {"type": "string", "default": default})
                    if allowed:
                        one["enum"] = [*one.get("enum", ()), *(v for v in allowed if v not in one.get("enum", ()))]
        if variables:
            found[self.variables_key] = {"type": "object", "properties": variables, "additionalProperties": False}
        return found

    def origins(self) -> Iterator[Url]:
        """A base at every origin that can be chosen."""
        document = parse_url(self.document) if self.document is not None else None
        for server in self.servers:
            open_ = {name: allowed for name, (_, allowed) in server.variables.items() if allowed}
            free = [name for name in open_ if name not in self.values]
            for values in itertools.islice(itertools.product(*(open_[name] or [] for name in free)), 10 * MAX_ORIGINS):
                try:
                    yield server.at({**self.values, **dict(zip(free, values, strict=True))}, document)
                except BadUrl:
                    continue


class Servers:
    """Bases for operations: the operator's own base URL, else the nearest `servers` list, else the document's URL.

    An explicit `base_url` holds for every operation, so that a document cannot send any of them elsewhere. `server` is
    the operator's choice of one in the document's list, by its URL or its description; `variables` are the values of
    its variables. Raises ImportFailed for a choice that the document does not offer.
    """

    def __init__(
        self,
        declared: Any,
        *,
        base_url: str | None,
        document_url: str | None,
        variables: dict[str, str] | None = None,
        server: str | None = None,
    ) -> None:
        self._fixed = _parsed(base_url, "The base URL") if base_url is not None else None
        self._document = _parsed(document_url, "The document's URL") if document_url is not None else None
        self._variables = {str(name): str(value) for name, value in (variables or {}).items()}
        self._asked = server
        self._default: tuple[Url, Choice | None] | None = None
        self._fault = "the document names no server"
        self._known: dict[int, tuple[Any, tuple[Url, Choice | None] | None]] = {}
        self._offering: set[int] = set()
        self.used: dict[str, Url] = {}
        self.offered: dict[str, Url] = {}
        if self._fixed is None:
            self._default = self._read(declared)
            self._check_asked(declared)

    def base(self, declared: Any, report: Callable[[str, str], None]) -> tuple[Url, Choice | None]:
        """The base of an operation whose own or whose path item's `servers` are `declared`, and what calls may choose.

        Raises ImportFailed when there is none to be had for any operation.
        """
        found: tuple[Url, Choice | None] | None = (self._fixed, None) if self._fixed is not None else None
        if found is None and declared:
            found = self._nearest(declared)
            if found is None:
                report("#", f"its own servers are left out: {self._fault}")
        found = found or self._default
        if found is None:
            raise ImportFailed(
                f"There is no server to call: {self._fault} (#/servers).",
                hint="Give the address of the API with a base URL, such as --base-url https://api.example.com/v1.",
            )
        self._use(*found)
        return found

    def _use(self, base: Url, choice: Choice | None) -> None:
        self.used[base.origin] = base
        if choice is not None and id(choice) not in self._offering:
            self._offering.add(id(choice))
            for url in choice.origins():
                if len(self.offered) < MAX_ORIGINS:
                    self.offered.setdefault(url.origin, url)

    def _nearest(self, declared: Any) -> tuple[Url, Choice | None] | None:
        known = self._known.get(id(declared))
        if known is None:
            known = self._known[id(declared)] = (declared, self._read(declared))
        return known[1]

    def _read(self, declared: Any) -> tuple[Url, Choice | None] | None:
        """The first server that can be used, and the choice among all that can."""
        nodes = [one for one in declared if isinstance(one, dict)] if isinstance(declared, list) else []
        if not nodes:
            return (self._document.at("/"), None) if self._document is not None else None
        usable: list[tuple[Server, Url]] = []
        for node in self._preferred(nodes)[:MAX_SERVERS]:
            server = Server(str(node.get("url")), _variables(node.get("variables")))
            try:
                if not isinstance(node.get("url"), str):
                    raise BadUrl("it has no url")
                usable.append((server, server.at(self._variables, self._document)))
            except BadUrl as e:
                self._fault = f"the server {str(node.get('url'))[:120]!r} cannot be used ({e})"
        if not usable:
            return None
        if self._asked is not None:
            usable = usable[:1]
        document = str(self._document) if self._document is not None else None
        choice = Choice(tuple(server for server, _ in usable), document, self._variables)
        return usable[0][1], choice if choice.arguments() else None

    def _preferred(self, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The server that the operator asked for before the others."""
        return sorted(nodes, key=lambda node: not self._is_asked(node))

    def _is_asked(self, node: dict[str, Any]) -> bool:
        return self._asked is not None and self._asked in (node.get("url"), node.get("description"))

    def _check_asked(self, declared: Any) -> None:
        nodes = [one for one in declared if isinstance(one, dict)] if isinstance(declared, list) else []
        if self._asked is not None and not any(map(self._is_asked, nodes)):
            known = ", ".join(str(node.get("url"))[:120] for node in nodes[:MAX_SERVERS]) or "none"
            raise ImportFailed(
                f"The document has no server {self._asked[:120]!r} (#/servers).", hint=f"It has: {known}."
            )
        names = {name for node in nodes for name in _VARIABLE.findall(str(node.get("url")))}
        if odd := next((name for name in self._variables if name not in names), None):
            raise ImportFailed(
                f"The document's servers have no variable {odd[:80]!r} (#/servers).",
                hint=f"They have: {', '.join(sorted(names)) or 'none'}.",
            )
        if self._variables and self._default is None:
            raise ImportFailed(f"There is no server to call: {self._fault} (#/servers).")


def _variables(node: Any) -> dict[str, tuple[str, list[str] | None]]:
    """Those that have a default: it is what the document calls without being asked."""
    found: dict[str, tuple[str, list[str] | None]] = {}
    for name, facts in node.items() if isinstance(node, dict) else ():
        if isinstance(facts, dict) and facts.get("default") is not None:
            allowed = facts.get("enum")
            values = [str(value) for value in allowed] if isinstance(allowed, list) and allowed else None
            found[str(name)] = (str(facts["default"]), values)
    return found


def _parsed(text: str, what: str) -> Url:
    try:
        url = parse_url(text)
        return join_url(url, str(url))
    except BadUrl as e:
        raise ImportFailed(f"{what} cannot be used: {e}.") from None
