"""The tools there are, by exact path. Everything is in memory; the store only remembers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Final

from catalog import address
from catalog.model import Connection, Integration, Manifest, Tool, ToolSpec
from catalog.origin import PACKAGE, Reach
from catalog.ranking import Ranker
from catalog.review import Gone, Pending, Review
from catalog.search import SearchIndex
from catalog.signal import Signal

_COMPARED: Final = 200
"""Characters of a path that are compared, which takes time by the product of two lengths."""


@dataclass(slots=True)
class Installed:
    """An integration with what it offers and who is connected to it. `config` is JSON data."""

    integration: Integration
    config: Mapping[str, Any]
    manifest: Manifest
    created_at: float
    connections: dict[tuple[str, str], Connection] = field(default_factory=dict)
    review: Review = field(default_factory=Review)

    @property
    def reach(self) -> tuple[Reach, ...]:
        """Where its requests may go. What a refresh added is held back until somebody has reviewed it."""
        held = self.review.held
        places = self.manifest.places
        return tuple(one for one in places if str(one) not in held) if held else places

    @property
    def name(self) -> str:
        return self.integration.name

    @property
    def kind(self) -> str:
        return self.integration.kind


class Registry:
    """Lookup is by exact string: an unusual spelling of a path is an unknown path."""

    def __init__(self, ranker: Ranker | None = None) -> None:
        self._installed: dict[str, Installed] = {}
        self._tools: dict[str, Tool] = {}
        self._sorted: list[str] | None = None
        self.changed = Signal()
        """Fires when there may be other tools, or other decisions about them."""
        self.index = SearchIndex(ranker)

    def close(self) -> None:
        self.index.close()

    def __len__(self) -> int:
        return len(self._tools)

    def find(self, path: str) -> Tool | None:
        return self._tools.get(path)

    def installed(self, name: str) -> Installed | None:
        return self._installed.get(name)

    def integrations(self) -> list[Installed]:
        return sorted(self._installed.values(), key=lambda installed: installed.name)

    def facts(self) -> list[dict[str, Any]]:
        """Every integration as JSON data, in order of its name."""
        return [
            {
                "name": one.name,
                "kind": one.kind,
                "title": one.manifest.title,
                "tools": sum(1 for _ in self.tools(integration=one.name)),
                "connections": [
                    {"scope": each.scope, "name": each.name, "secrets": each.references}
                    for each in one.connections.values()
                ],
                "origins": [str(reach) for reach in one.reach if reach.scheme != PACKAGE],
                "allow_private": list(one.config.get("allow_private", ())),
                "fetch": one.config.get("fetch") is True,
                "diagnostics": len(one.manifest.diagnostics),
                "awaiting_review": len(one.review.pending) + len(one.review.held),
            }
            for one in self.integrations()
        ]

    def connection(self, tool: Tool) -> Connection:
        return self._installed[tool.integration].connections[tool.scope, tool.connection]

    def install(self, installed: Installed) -> list[Tool]:
        """Add the integration with its connections, in place of one of the same name. Returns its tools.

        They can be called and listed at once; they are found by search when `index.add` has been given them.
        """
        self.remove(installed.name)
        self._installed[installed.name] = installed
        return [tool for connection in installed.connections.values() for tool in self._open(installed, connection)]

    def remove(self, name: str) -> None:
        """Forget the integration and its tools. Forgetting what is not there is no error."""
        installed = self._installed.pop(name, None)
        if installed is not None:
            self._drop(path for path in list(self._tools) if path.startswith(name + "."))

    def connect(self, connection: Connection) -> list[Tool]:
        """Add the connection, in place of one of the same name. Returns the tools under it, not yet indexed."""
        installed = self._installed[connection.integration]
        self.disconnect(connection.integration, connection.scope, connection.name)
        installed.connections[connection.scope, connection.name] = connection
        return self._open(installed, connection)

    def disconnect(self, integration: str, scope: str, name: str) -> None:
        installed = self._installed[integration]
        if installed.connections.pop((scope, name), None) is not None:
            prefix = f"{integration}.{scope}.{name}."
            self._drop(path for path in list(self._tools) if path.startswith(prefix))

    def add_tool(self, integration: str, scope: str, connection: str, spec: ToolSpec) -> Tool:
        """Add one tool, or put it in place of the one at its path."""
        installed = self._installed[integration]
        path = str(address.Address(integration, scope, connection, spec.name))
        if path in self._tools:
            self._drop([path])
        tool = Tool(path, integration, scope, connection, spec, installed.manifest.definitions)
        self._keep([tool])
        self.index.add([tool])
        return tool

    def _open(self, installed: Installed, connection: Connection) -> list[Tool]:
        prefix = f"{connection.integration}.{connection.scope}.{connection.name}."
        definitions, pending = installed.manifest.definitions, installed.review.pending
        tools = [
            Tool(
                prefix + spec.name,
                installed.name,
                connection.scope,
                connection.name,
                spec,
                definitions,
                _reason(pending[spec.name]) if spec.name in pending else "",
            )
            for spec in installed.manifest.tools
            if spec.name not in connection.without
        ]
        self._keep(tools)
        return tools

    def not_offered(self, path: str) -> str | None:
        """The account whose server offers it no tool at `path`, though it is a tool of the integration."""
        where = address.parse(path)
        installed = self._installed.get(where.integration) if where is not None else None
        account = installed.connections.get((where.scope, where.connection)) if installed and where else None
        return account.label if account is not None and where is not None and where.tool in account.without else None

    def removed(self, path: str) -> Gone | None:
        """What is known of a tool that a refresh removed from `path`."""
        where = address.parse(path)
        installed = self._installed.get(where.integration) if where is not None else None
        if where is None or installed is None or (where.scope, where.connection) not in installed.connections:
            return None
        return installed.review.removed.get(where.tool)

    def _keep(self, tools: Iterable[Tool]) -> None:
        for tool in tools:
            self._tools[tool.path] = tool
        self._sorted = None
        self.changed.fire()

    def _drop(self, paths: Iterable[str]) -> None:
        paths = list(paths)
        for path in paths:
            del self._tools[path]
        self.index.remove(paths)
        self._sorted = None
        self.changed.fire()

    def paths(self) -> list[str]:
        if self._sorted is None:
            self._sorted = sorted(self._tools)
        return self._sorted

    def tools(self, *, after: str = "", integration: str | None = None) -> Iterator[Tool]:
        """Every tool in order of its path, from the one behind `after` on."""
        paths = self.paths()
        prefix = f"{integration}." if integration is not None else ""
        at = bisect_left(paths, max(after + "\x00" if after else "", prefix))
        for path in paths[at:]:
            if not path.startswith(prefix):
                return
            yield self._tools[path]

    def suggest(self, path: str, visible: Callable[[Tool], bool], limit: int = 3) -> list[str]:
        """Paths that a caller may have meant by one that does not exist, most alike first."""
        text = path[:_COMPARED]
        near = dict.fromkeys(self.index.candidates(text.rpartition(".")[2], 30) + self.index.candidates(text, 30))
        tools = [tool for candidate in near if (tool := self._tools.get(candidate)) is not None and visible(tool)]
        matcher = SequenceMatcher(b=text.lower(), autojunk=False)
        scored: list[tuple[float, str]] = []
        for tool in tools:
            matcher.set_seq1(tool.path[:_COMPARED].lower())
            scored.append((-matcher.ratio(), tool.path))
        return [candidate for _, candidate in sorted(scored)[:limit]]


def _reason(pending: Pending) -> str:
    if pending.why == ("added",):
        return "a refresh added it"
    return f"a refresh changed its {' and its '.join(one.replace('_', ' ') for one in pending.why)}"
