"""The handle of Executor: everything a door can do, one method each. Doors translate; they decide nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bridge.adding import Adding
from bridge.calls import CallContext
from executor import logs
from executor.composition import Parts, assemble
from executor.recorded import Recorded

if TYPE_CHECKING:
    from bridge.integrations import Disconnected, Removed
    from bridge.proxy import Door
    from bridge.refresh import RefreshReport
    from bridge.toolbox import AddReport, Auth, Toolbox
    from catalog.model import SideEffect
    from executor.config import Config
    from executor.keys import Keyring
    from executor.packages import ToolAnswer


class Executor(Recorded, Adding):
    """A running Executor: workers, catalog, tool proxy and store behind one handle. Made by `Executor.open`."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, home: str | Path | None = None, *, config: Config | None = None, take_up: bool = True
    ) -> AsyncIterator[Executor]:
        """Open the home directory `home` (made when missing; None keeps everything in memory) and start the workers.

        `config` defaults to `Config.load(home)`: `<home>/config.toml`, then `EXECUTOR_*` of the environment. Runs that
        an earlier process left in the middle are taken up again, with the first run that is started or waited for, or a
        second after the start, so that tools made of Python functions can be there by then; not at all where `take_up`
        is false. Leaving the block cancels the runs that somebody waits for here, leaves the others for the next start,
        and stops the workers. Raises ConfigError when the home cannot be used: another process has it open, it was
        written by a newer version, or its store is damaged.
        """
        logs.configure_unless_configured()
        async with assemble(home, config, take_up=take_up) as parts:
            yield cls(parts)

    async def close(self) -> None:
        """End what runs as leaving the `open` block does. Called by leaving the `open` block; safe to call again."""
        await self._parts.close()

    # Tools

    def tool(
        self,
        path: str,
        fn: Callable[[dict[str, Any]], Any],
        *,
        title: str = "",
        description: str = "",
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        side_effect: SideEffect = "unknown",
        idempotent: bool = False,
    ) -> None:
        """Make the Python function `fn` (plain or async, called with the arguments as a dict) a tool at `path`.

        `path` is `<integration>.<scope>.<connection>.<tool>`. A plain function runs in a thread. The tool lives as
        long as this handle. A tool that exists at `path` is replaced. `idempotent`: a call whose outcome nobody knows,
        because the host died, is made again. Raises InvalidRequest for a path or schema that
        is not one, Conflict when the integration is of another kind.
        """
        self._parts.toolbox.add_code_tool(
            path,
            fn,
            title=title,
            description=description,
            input_schema=input_schema,
            output_schema=output_schema,
            side_effect=side_effect,
            idempotent=idempotent,
        )

    async def execute_tool(
        self,
        package: str,
        name: str,
        *,
        version: str = "latest",
        params: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        principal: str = "sdk",
        door: Door = "sdk",
    ) -> ToolAnswer:
        """Run the export `name` of an npm package as a tool, in an isolate of its own.

        `version` is a version, a range or a dist-tag; the package is installed when it is first asked for. `params` are
        what the tool's `execute` gets, `env` what the package finds in `process.env` in this call and no other. Its
        `fetch` goes where an operator granted it. A package or a tool that fails is an answer, with one of the codes of
        the TPMJS protocol. Raises InvalidRequest for parameters that cannot be given, and Overloaded.
        """
        from executor.packages import ToolAsked

        asked = ToolAsked(package, name, version, params or {}, env or {})
        return await self._parts.packages.execute(asked, principal=principal, door=door)

    @property
    def package_wall_ms(self) -> int:
        """How long the tool of a package may take, in milliseconds."""
        return self._parts.packages.wall_ms

    async def add(self, kind: str, name: str, **options: Any) -> AddReport:
        return await self._parts.toolbox.add(kind, name, **options)

    async def refresh(self, name: str, source: str | Path | bytes | dict[str, Any] | None = None) -> RefreshReport:
        """Read the description of an integration again, from where it came or from `source`, and put it in force.

        The report names the operations that are `added`, `removed` and `changed`. New ones, and those that changed
        their side effect or where they go, await `review`: they cannot be called until then. Raises NotFound,
        ImportFailed, InvalidRequest (it was added from a document that was given itself): everything is as it was.
        """
        return await self._parts.toolbox.refresh(name, source)

    def awaiting_review(self, name: str) -> dict[str, Any]:
        """What awaits review: `{name, tools: [{tool, why, side_effect, destination, granted}], held}`. Raises
        NotFound."""
        return self._parts.toolbox.awaiting_review(name)

    async def review(self, name: str, accept: Sequence[str] | Literal["all"]) -> dict[str, Any]:
        """Let in what awaits review: `"all"`, or names and paths of tools, and places that are held back. The answer
        is what still awaits it, with `accepted`. Raises NotFound for what does not await it: then nothing is let in."""
        return await self._parts.toolbox.review(name, accept)

    async def remove(self, name: str, *, connections: bool = False) -> Removed:
        """Remove an integration and the rules that target it; `rules` is their number. Its connections are kept for
        when it is added again, unless `connections`: `unrevoked` then says, by account, why tokens that it was signed
        in with may still be good. Raises NotFound."""
        return await self._parts.toolbox.remove(name, connections=connections)

    async def connect(
        self,
        integration: str,
        *,
        scope: str = "org",
        connection: str = "main",
        auth: Auth = None,
        secret: str | None = None,
        probe: str | None = None,
        replace: bool = False,
    ) -> AddReport:
        """Connect one more account to an integration: its tools are at `<integration>.<scope>.<connection>.…`. Options
        are those of `add_openapi`. Raises NotFound, Conflict (it exists and `replace` is not set), InvalidRequest.
        """
        return await self._parts.toolbox.connect(
            integration, scope=scope, connection=connection, auth=auth, secret=secret, probe=probe, replace=replace
        )

    def on_catalog_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever there may be other tools or other decisions about them, until what is given back is
        called. It must not wait."""
        return self._parts.toolbox.changed.listen(listener)

    async def disconnect(self, integration: str, *, scope: str = "org", connection: str = "main") -> Disconnected:
        """Remove an account and the rules that target it; `rules` is their number, and `unrevoked` says why tokens that
        it was signed in with may still be good (None: they are not). Raises NotFound."""
        return await self._parts.toolbox.disconnect(integration, scope=scope, connection=connection)

    async def authorize(
        self,
        integration: str,
        *,
        scope: str = "org",
        connection: str = "main",
        redirect_uri: str | None = None,
        scopes: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Begin to sign in to an account that was connected with `auth` of type `oauth2`: `{url, redirect_uri,
        expires_in, state?}`. A person visits `url`.

        `redirect_uri` is where you listen, on a loopback address; the URL that the browser comes there with is for
        `finish_authorization`. Without one the browser comes back to the server that serves this executor. `scopes` are
        asked for beside those of the account. Raises NotFound, InvalidRequest, ToolError, Overloaded.
        """
        return await self._parts.toolbox.authorize(
            integration, scope=scope, connection=connection, redirect_uri=redirect_uri, scopes=scopes
        )

    async def finish_authorization(self, url: str) -> dict[str, Any]:
        """End a sign-in with the URL that the browser came back with: `{connection, oauth}`. It is over whatever
        happens. Raises InvalidRequest, Forbidden, Conflict, ToolError."""
        from bridge.oauth.flows import Callback

        return await self._parts.toolbox.finish_authorization(Callback.of_url(url), principal="sdk")

    def connections(self, *, integration: str | None = None, scope: str | None = None) -> list[dict[str, Any]]:
        """The accounts: `{path, integration, scope, name, secrets, placements, probe, tools}`. Nothing here is a
        secret's value."""
        return self._parts.toolbox.connections.all(integration, scope)

    async def check_connection(
        self, integration: str, *, scope: str = "org", connection: str = "main", door: Door = "sdk"
    ) -> dict[str, Any]:
        """Try an account with one call that only reads: `{connection, status, probe, http_status?, message?, hint?}`.

        `status` is `ok`, `connection_missing`, `credential_rejected`, `unreachable` or `failed`. Raises NotFound,
        InvalidRequest when there is no tool to try it with, ToolError when a policy does not let it be called.
        """
        ctx = CallContext(principal=door, door=door)
        return await self._parts.toolbox.check_connection(integration, scope=scope, connection=connection, ctx=ctx)

    async def set_secret(self, name: str, value: str, *, scope: str = "org") -> None:
        """Seal `value` as `local:NAME`. Nothing gives it back. Raises InvalidRequest, ConfigError (the master key)."""
        await self._parts.toolbox.set_secret(name, value, scope=scope)

    async def secrets(self, *, scope: str = "org") -> list[str]:
        """The names of the secrets that are kept."""
        return await self._parts.toolbox.secret_names(scope=scope)

    async def delete_secret(self, name: str, *, scope: str = "org") -> bool:
        """Whether there was one."""
        return await self._parts.toolbox.delete_secret(name, scope=scope)

    async def rotate_key(self, *, forget_old: bool = False) -> dict[str, Any]:
        """Seal every secret of this home under a new master key: `{"secrets": n, "damaged": [names]}`. The old key
        stays in the key file, for other homes and for backups, unless `forget_old`. Raises ConfigError, StorageFull."""
        return await self._parts.toolbox.local.rotate(forget=forget_old)

    @property
    def toolbox(self) -> Toolbox:
        """The catalog and the bridge, for the doors that administer them: connections, secrets, policies."""
        return self._parts.toolbox

    # The house

    @property
    def keys(self) -> Keyring:
        """The bearer keys of this home."""
        return self._parts.keys

    def health(self) -> dict[str, Any]:
        """`{"status", "version", "isolation": {...}, "store": {...}, "runs": {...}}`, from memory: it never blocks."""
        return self._parts.health()
