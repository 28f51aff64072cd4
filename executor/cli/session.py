"""What a command talks to: an Executor in this process, or a server over HTTP. Commands cannot tell them apart.

Everything that comes back is the JSON data of the HTTP API.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bridge.wire.errors import ConfigError, HomeInUse
from executor import running
from executor.cli.options import Where


class Called(NamedTuple):
    """What a call came to: its value, or the run that waits for a person or failed."""

    value: Any
    run: dict[str, Any] | None


class Session(Protocol):
    """The operations of the API that commands use. Each raises ExecutorError."""

    async def run(self, code: str, **options: Any) -> dict[str, Any]: ...

    async def call(self, path: str, args: Mapping[str, Any], *, meta: bool, toolkit: str | None) -> Any: ...

    async def call_or_ask(self, path: str, args: Mapping[str, Any], *, meta: bool, toolkit: str | None) -> Called: ...

    async def search(self, query: str, **options: Any) -> dict[str, Any]: ...

    async def describe(self, path: str, *, toolkit: str | None) -> dict[str, Any]: ...

    async def list_tools(self, **options: Any) -> dict[str, Any]: ...

    async def add(self, kind: str, name: str, **options: Any) -> dict[str, Any]: ...

    async def integrations(self) -> list[dict[str, Any]]: ...

    async def remove_integration(self, name: str, *, connections: bool) -> dict[str, Any]: ...

    async def refresh(self, name: str, source: str | Path | None) -> dict[str, Any]: ...

    async def awaiting_review(self, name: str) -> dict[str, Any]: ...

    async def review(self, name: str, accept: Any) -> dict[str, Any]: ...

    async def connect(self, integration: str, **options: Any) -> dict[str, Any]: ...

    async def connections(self, *, integration: str | None, scope: str | None) -> list[dict[str, Any]]: ...

    async def connection(self, integration: str, scope: str, connection: str) -> dict[str, Any]: ...

    async def check_connection(self, integration: str, scope: str, connection: str) -> dict[str, Any]: ...

    async def authorize(
        self, integration: str, scope: str, connection: str, *, redirect_uri: str | None, scopes: list[str]
    ) -> dict[str, Any]: ...

    async def finish_authorization(self, came: dict[str, Any]) -> dict[str, Any]: ...

    async def remove_connection(self, integration: str, scope: str, connection: str) -> dict[str, Any]: ...

    async def rotate_key(self, *, forget_old: bool) -> dict[str, Any]: ...

    async def set_secret(self, name: str, value: str, *, scope: str) -> None: ...

    async def secrets(self, *, scope: str) -> list[str]: ...

    async def remove_secret(self, name: str, *, scope: str) -> None: ...

    async def policies(self) -> list[dict[str, Any]]: ...

    async def add_policy(self, target: str, pattern: str, effect: str, **options: Any) -> dict[str, Any]: ...

    async def remove_policy(self, rule_id: str) -> None: ...

    async def explain(self, path: str, *, toolkit: str | None) -> dict[str, Any]: ...

    async def toolkits(self) -> list[dict[str, Any]]: ...

    async def toolkit(self, name: str) -> dict[str, Any]: ...

    async def create_toolkit(self, name: str, **parts: Any) -> dict[str, Any]: ...

    async def update_toolkit(self, name: str, **parts: Any) -> dict[str, Any]: ...

    async def remove_toolkit(self, name: str) -> None: ...

    async def list_runs(self, **options: Any) -> dict[str, Any]: ...

    async def get_run(self, run_id: str) -> dict[str, Any]: ...

    async def cancel_run(self, run_id: str) -> dict[str, Any]: ...

    def watch(self, run_id: str) -> AsyncIterator[dict[str, Any]]:
        """The events of a run, `{"seq", "type", "data"}`, until its result."""
        ...

    async def resume(self, run_id: str, interaction: str, action: str, content: Any) -> dict[str, Any]: ...

    async def replay_run(self, run_id: str) -> dict[str, Any]: ...


@contextlib.asynccontextmanager
async def open_session(where: Where, *, learns: bool = False) -> AsyncIterator[Session]:
    """The session that the options ask for; where a server holds the home, one with that server. `learns`: the command
    adds tools, or runs what may search for them, and ranks them by meaning where that is installed.

    Raises ConfigError when the home cannot be opened.
    """
    async with contextlib.AsyncExitStack() as stack:
        yield await _opened(where, stack, learns)


async def _opened(where: Where, stack: contextlib.AsyncExitStack, learns: bool) -> Session:
    if where.url is not None:
        from executor.cli.remote import Remote

        return await stack.enter_async_context(Remote.open(where.url, where.key))
    from executor.cli.embedded import Embedded

    try:
        return await stack.enter_async_context(Embedded.open(where.directory, learns=learns, verbose=where.verbose))
    except HomeInUse as e:
        server = running.find(where.directory)
        if server is None:
            raise ConfigError(
                e.message, hint="if that is a server, use it: --url http://127.0.0.1:8321, with a key in EXECUTOR_KEY"
            ) from None
    from executor.cli.remote import Remote

    return await stack.enter_async_context(Remote.open(server.url, server.key))
