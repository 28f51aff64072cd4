"""Where the operations of a document are served."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from bridge.wire.errors import ImportFailed
from catalog.origin import BadUrl, Url, join_url, parse_url

_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")


class Servers:
    """Bases for operations: the operator's own base URL, else the nearest `servers` list, else the document's URL.

    An explicit `base_url` holds for every operation, so that a document cannot send any of them elsewhere.
    """

    def __init__(
        self, declared: Any, *, base_url: str | None, document_url: str | None, variables: dict[str, str] | None = None
    ) -> None:
        self._fixed = _parsed(base_url, "The base URL") if base_url is not None else None
        self._document = _parsed(document_url, "The document's URL") if document_url is not None else None
        self._variables = variables or {}
        self._default: Url | None = None
        self._fault = "the document names no server"
        self.used: dict[str, Url] = {}
        if self._fixed is None:
            self._default = self._first(declared)

    def base(self, declared: Any, report: Callable[[str, str], None]) -> Url:
        """The base of an operation whose own or whose path item's `servers` are `declared`.

        Raises ImportFailed when there is none to be had for any operation.
        """
        found = self._fixed
        if found is None and declared:
            found = self._first(declared)
            if found is None:
                report("#", f"its own servers are left out: {self._fault}")
        found = found or self._default
        if found is None:
            raise ImportFailed(
                f"There is no server to call: {self._fault} (#/servers).",
                hint="Give the address of the API with a base URL, such as --base-url https://api.example.com/v1.",
            )
        self.used[found.origin] = found
        return found

    def _first(self, declared: Any) -> Url | None:
        servers = [one for one in declared if isinstance(one, dict)] if isinstance(declared, list) else []
        if not servers:
            if self._document is None:
                return None
            return self._document.at("/")
        for server in servers:
            try:
                return self._resolved(server)
            except BadUrl as e:
                self._fault = f"the server {str(server.get('url'))[:120]!r} cannot be used ({e})"
        return None

    def _resolved(self, server: dict[str, Any]) -> Url:
        text = server.get("url")
        if not isinstance(text, str):
            raise BadUrl("it has no url")
        variables = server.get("variables")
        text = _VARIABLE.sub(lambda match: self._value(match[1], variables), text)
        if self._document is not None:
            return join_url(self._document, text)
        url = parse_url(text)
        return join_url(url, str(url))

    def _value(self, name: str, variables: Any) -> str:
        declared = variables.get(name) if isinstance(variables, dict) else None
        declared = declared if isinstance(declared, dict) else {}
        value = self._variables.get(name, declared.get("default"))
        allowed = declared.get("enum")
        if value is None:
            raise BadUrl(f"its variable {name} has no default")
        if isinstance(allowed, list) and allowed and value not in allowed:
            raise BadUrl(f"{str(value)[:60]!r} is not among the values of its variable {name}")
        return str(value)


def _parsed(text: str, what: str) -> Url:
    try:
        url = parse_url(text)
        return join_url(url, str(url))
    except BadUrl as e:
        raise ImportFailed(f"{what} cannot be used: {e}.") from None
