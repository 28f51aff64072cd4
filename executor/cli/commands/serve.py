"""`executor serve`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from executor.cli.options import Flag, Port, UsageError, home_directory

if TYPE_CHECKING:
    from executor.executor import Executor


async def serve(
    *,
    host: str = "127.0.0.1",
    port: Port = 8321,
    home: Annotated[Path | None, Parameter(env_var="EXECUTOR_HOME")] = None,
    no_auth: Flag = False,
    allow_weak_isolation: Flag = False,
    allowed_host: Annotated[list[str] | None, Parameter(negative="")] = None,
    allowed_origin: Annotated[list[str] | None, Parameter(negative="")] = None,
    json: Flag = False,
) -> None:
    """Serve the HTTP API until it is told to stop.

    Parameters
    ----------
    host
        The address to listen on. Any but a loopback address needs keys.
    port
        The port; 0 takes a free one and says which.
    home
        The home directory.
    no_auth
        Answer without a key. Only on a loopback address.
    allow_weak_isolation
        Start even where this machine lacks walls around the workers.
    allowed_host
        A name that clients may use in the Host header, beside the loopback names. May be repeated.
    allowed_origin
        An origin whose pages may call, such as https://console.example.com. May be repeated.
    json
        Log as JSON, one object a line, on standard error.
    """
    from bridge.wire.errors import ConfigError
    from executor import logs
    from executor.cli import output
    from executor.config import Config
    from executor.executor import Executor
    from executor.http import serving

    directory = home_directory(home).absolute()
    logs.configure(as_json=json)
    config = Config.load(directory)
    try:
        settings = serving.ServeSettings(
            host,
            port,
            not no_auth,
            tuple(allowed_host or ()),
            tuple(allowed_origin or ()),
            directory,
            config.public_url,
            config.api_key.get_secret_value() if config.api_key is not None else None,
        )
    except ConfigError as e:
        raise UsageError(e.message, hint=e.hint) from None
    if allow_weak_isolation:
        config = config.with_weak_isolation()
    async with Executor.open(directory, config=config) as executor:
        banner = _JsonBanner(executor) if json else _Banner(executor, directory, no_auth)
        await serving.serve(executor, settings, banner.show)
    if not json:
        output.say("stopped", "quiet")


class _Banner:
    def __init__(self, executor: Executor, home: Path, no_auth: bool) -> None:
        self.executor = executor
        self.home = home
        self.no_auth = no_auth

    async def show(self, url: str) -> None:
        from rich.text import Text

        import executor as product
        from executor.cli.output import notes

        health = self.executor.health()
        isolation = health["isolation"]
        layers = " · ".join(isolation.get("layers") or [])
        strong = isolation.get("level") == "full"
        live = [key for key in await self.executor.keys.list() if key.revoked_at is None]
        notes.print()
        notes.print(Text.assemble("  ", ("executor", "strong"), (f" {product.__version__}", "quiet")))
        notes.print()
        self._row("address", url, "name")
        self._row("home", str(self.home))
        self._row("isolation", str(isolation.get("level")), "good" if strong else "odd", f"  {layers}")
        self._row("tools", str(self.executor.toolbox.list_tools(limit=1)["total"]))
        if self.no_auth:
            self._row("keys", "none asked for: every program on this machine may call", "odd")
        elif live:
            self._row("keys", f"{len(live)} live")
        else:
            self._row("keys", "none yet", "odd", "  executor key create makes one, also while this runs")
        notes.print()
        notes.print(Text.assemble("  ", ("ready", "good"), f" on {url}", ("   ctrl-c stops", "quiet")), soft_wrap=True)
        notes.print()

    def _row(self, name: str, value: str, style: str = "", after: str = "") -> None:
        from rich.text import Text

        from executor.cli.output import notes

        notes.print(Text.assemble("  ", (f"{name:<11}", "quiet"), (value, style), (after, "quiet")), soft_wrap=True)


class _JsonBanner:
    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    async def show(self, url: str) -> None:
        import structlog

        health = self.executor.health()
        structlog.get_logger("executor").info("ready", url=url, isolation=health["isolation"].get("level"))
