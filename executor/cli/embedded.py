"""A session with an Executor in this process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from bridge.wire.errors import Conflict, NotFound
from executor import logs
from executor.cli.session import Called
from executor.config import Config
from executor.executor import Executor
from runtime import values
from runtime.results import RunResult


class Embedded:
    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.toolbox = executor.toolbox

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, home: Path, *, learns: bool = False, verbose: bool = False) -> AsyncIterator[Embedded]:
        """One worker is enough for one command, and halves the wait for it. What others left is theirs to take up.

        Without `learns` tools are found by their words, unless the settings want more: to load what ranks them by
        meaning takes longer than most commands do.
        """
        if verbose:
            logs.configure()
        else:
            logs.configure_for_command()
        found = Config.load(home)
        search = "words" if found.search == "auto" and not learns else found.search
        settings = found.model_copy(update={"workers": 1, "search": search})
        async with Executor.open(home, config=settings, take_up=False) as executor:
            yield cls(executor)

    async def run(self, code: str, **options: Any) -> dict[str, Any]:
        given = {key: value for key, value in options.items() if value is not None}
        given["input"] = values.from_json(options.get("input"))
        answer = await self.executor.run(code, principal="cli", **given)
        return answer.as_dict()

    async def call(self, path: str, args: Mapping[str, Any], *, meta: bool, toolkit: str | None) -> Any:
        given = values.from_json(dict(args))
        value = await self.executor.call(path, given, meta=meta, principal="cli", door="cli", toolkit=toolkit)
        return values.to_json(value)

    async def call_or_ask(self, path: str, args: Mapping[str, Any], *, meta: bool, toolkit: str | None) -> Called:
        given = values.from_json(dict(args))
        made = await self.executor.call_or_ask(path, given, meta=meta, principal="cli", door="cli", toolkit=toolkit)
        return Called(None, made.as_dict()) if isinstance(made, RunResult) else Called(values.to_json(made), None)

    async def search(self, query: str, **options: Any) -> dict[str, Any]:
        return await self.executor.search(query, **options)

    async def describe(self, path: str, *, toolkit: str | None) -> dict[str, Any]:
        return self.toolbox.describe(path, toolkit=toolkit)

    async def list_tools(self, **options: Any) -> dict[str, Any]:
        return self.toolbox.list_tools(**options)

    async def add(self, kind: str, name: str, **options: Any) -> dict[str, Any]:
        return (await self.toolbox.add(kind, name, **options)).as_dict()

    async def integrations(self) -> list[dict[str, Any]]:
        return self.toolbox.integrations()

    async def remove_integration(self, name: str, *, connections: bool) -> dict[str, Any]:
        return (await self.toolbox.remove(name, connections=connections)).as_dict()

    async def refresh(self, name: str, source: str | Path | None) -> dict[str, Any]:
        return (await self.toolbox.refresh(name, source)).as_dict()

    async def awaiting_review(self, name: str) -> dict[str, Any]:
        return self.toolbox.awaiting_review(name)

    async def review(self, name: str, accept: Any) -> dict[str, Any]:
        return await self.toolbox.review(name, accept)

    async def connect(self, integration: str, **options: Any) -> dict[str, Any]:
        return (await self.toolbox.connect(integration, **options)).as_dict()

    async def connections(self, *, integration: str | None, scope: str | None) -> list[dict[str, Any]]:
        return self.toolbox.connections.all(integration, scope)

    async def connection(self, integration: str, scope: str, connection: str) -> dict[str, Any]:
        return await self.toolbox.account_facts(integration, scope, connection)

    async def check_connection(self, integration: str, scope: str, connection: str) -> dict[str, Any]:
        return await self.executor.check_connection(integration, scope=scope, connection=connection, door="cli")

    async def authorize(
        self, integration: str, scope: str, connection: str, *, redirect_uri: str | None, scopes: list[str]
    ) -> dict[str, Any]:
        return await self.toolbox.authorize(
            integration, scope=scope, connection=connection, redirect_uri=redirect_uri, scopes=scopes, principal="cli"
        )

    async def finish_authorization(self, came: dict[str, Any]) -> dict[str, Any]:
        from bridge.oauth.flows import Callback

        return await self.toolbox.finish_authorization(Callback(**came), principal="cli")

    async def remove_connection(self, integration: str, scope: str, connection: str) -> dict[str, Any]:
        return (await self.toolbox.disconnect(integration, scope=scope, connection=connection)).as_dict()

    async def rotate_key(self, *, forget_old: bool) -> dict[str, Any]:
        return await self.toolbox.local.rotate(forget=forget_old)

    async def set_secret(self, name: str, value: str, *, scope: str) -> None:
        await self.toolbox.set_secret(name, value, scope=scope)

    async def secrets(self, *, scope: str) -> list[str]:
        return await self.toolbox.secret_names(scope=scope)

    async def remove_secret(self, name: str, *, scope: str) -> None:
        if not await self.toolbox.delete_secret(name, scope=scope):
            raise NotFound(f"there is no secret {name!r}")

    async def policies(self) -> list[dict[str, Any]]:
        return self.toolbox.policies()

    async def add_policy(self, target: str, pattern: str, effect: Any, **options: Any) -> dict[str, Any]:
        return await self.toolbox.add_policy(target, pattern, effect, **options)

    async def remove_policy(self, rule_id: str) -> None:
        await self.toolbox.remove_policy(rule_id)

    async def explain(self, path: str, *, toolkit: str | None) -> dict[str, Any]:
        return self.toolbox.explain(path, toolkit=toolkit)

    async def toolkits(self) -> list[dict[str, Any]]:
        return self.toolbox.toolkits.all()

    async def toolkit(self, name: str) -> dict[str, Any]:
        return self.toolbox.toolkits.show(name)

    async def create_toolkit(self, name: str, **parts: Any) -> dict[str, Any]:
        return await self.toolbox.toolkits.create(name, **parts)

    async def update_toolkit(self, name: str, **parts: Any) -> dict[str, Any]:
        return await self.toolbox.toolkits.update(name, **parts)

    async def remove_toolkit(self, name: str) -> None:
        await self.toolbox.toolkits.remove(name)

    async def list_runs(self, **options: Any) -> dict[str, Any]:
        return (await self.executor.list_runs(**options)).as_dict()

    async def get_run(self, run_id: str) -> dict[str, Any]:
        return (await self.executor.get_run(run_id)).as_dict()

    async def cancel_run(self, run_id: str) -> dict[str, Any]:
        return (await self.executor.cancel_run(run_id)).as_dict()

    async def watch(self, run_id: str) -> AsyncIterator[dict[str, Any]]:
        async for event in self.executor.events(run_id):
            yield event._asdict()

    async def resume(self, run_id: str, interaction: str, action: str, content: Any) -> dict[str, Any]:
        try:
            return (await self.executor.resume(run_id, interaction, action, content, principal="cli")).as_dict()
        except Conflict as e:
            if e.code in ("approval_void", "approval_expired"):
                # The run goes on with that, in this process: it is not left in the middle.
                await self.executor.wait_run(run_id, rest=True)
            raise

    async def replay_run(self, run_id: str) -> dict[str, Any]:
        return (await self.executor.replay_run(run_id)).as_dict()
