"""The one place where the parts meet: store, workers, toolbox and runs, started in order and stopped in reverse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import executor
from bridge.secrets.server import ServerSettings
from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import ConfigError
from catalog import semantic
from catalog.ranking import Ranker
from catalog.vectors import SqliteVectors
from executor import running
from executor.config import Config
from executor.keys import Keyring
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.runs import Runs
from runtime.store.runs import Retention
from runtime.store.store import Store

if TYPE_CHECKING:
    from executor.packages import Packages

ON_DISK: Final = Retention()
IN_MEMORY: Final = Retention(runs=1_000, bytes=64 * 1024**2)
LANGUAGES: Final = ("typescript", "javascript", "python")


class Parts:
    """What an Executor is made of. `close` ends the runs; leaving `assemble` ends everything."""

    def __init__(self, settings: Config, store: Store, dispatcher: Dispatcher, toolbox: Toolbox, runs: Runs) -> None:
        self._settings = settings
        self.store = store
        self.dispatcher = dispatcher
        self.toolbox = toolbox
        self.runs = runs
        self.keys = Keyring(store.keys)
        toolbox.packages = lambda: self.packages

    @cached_property
    def packages(self) -> Packages:
        """What runs npm packages, imported when there is one to run."""
        from executor import packaging

        return packaging.packages(self._settings, self.store, self.dispatcher, self.toolbox)

    async def close(self) -> None:
        """Refuse new runs, cancel what runs, record it, stop the workers, close the store. Safe to call again."""
        await self.runs.close()
        if "packages" in self.__dict__:
            await self.packages.aclose()
        await self.dispatcher.aclose()
        await self.toolbox.aclose()
        await self.store.close()

    def health(self) -> dict[str, Any]:
        store = self.store.health()
        return {
            "status": "degraded" if store["full"] else "ok",
            "version": executor.__version__,
            "isolation": self.dispatcher.level(),
            "runs": self.runs.health() | {"left_at_start": len(self.store.runs.left)},
            "store": store,
            "egress": self.toolbox.egress(),
        }


@asynccontextmanager
async def assemble(home: str | Path | None, config: Config | None, *, take_up: bool = True) -> AsyncIterator[Parts]:
    """Start the parts, give them, stop them. Raises ConfigError, StorageFull; then nothing is left running."""
    directory = _directory(home)
    settings = Config.load(directory) if config is None else config
    store = await Store.open(directory, _retention(settings, IN_MEMORY if directory is None else ON_DISK))
    if directory is not None:
        running.withdraw(directory)
    try:
        async with (
            Toolbox(
                _toolbox(settings, ephemeral_key=directory is None),
                catalog=store.catalog,
                policies=store.policies,
                toolkits=store.toolkits,
                secrets=store.secrets,
                keys=store.secrets,
                ranker=_ranker(settings, directory),
            ) as toolbox,
            Dispatcher(_dispatcher(settings)) as dispatcher,
        ):
            runs = Runs(
                store.runs,
                dispatcher,
                toolbox.proxy,
                settings.budget_policy(),
                languages=LANGUAGES,
                isolation=settings.isolation,
                max_live=settings.max_running + settings.max_queued,
                journal_bytes=settings.journal_bytes,
                approval_s=settings.approval_s,
                max_waiting=settings.max_waiting,
                max_denials=settings.max_denials,
                take_up=take_up,
            )
            parts = Parts(settings, store, dispatcher, toolbox, runs)
            try:
                yield parts
            finally:
                await parts.close()
    finally:
        await store.close()


def _retention(settings: Config, usual: Retention) -> Retention:
    seconds = None if settings.keep_days is None else settings.keep_days * 86_400
    return Retention(settings.keep_runs or usual.runs, settings.keep_bytes or usual.bytes, seconds)


def _directory(home: str | Path | None) -> Path | None:
    return None if home is None else Path(home).expanduser().absolute()


def _ranker(settings: Config, directory: Path | None) -> Ranker | None:
    """The ranker by meaning where it is wanted and installed. Raises ConfigError when it is wanted and is not."""
    if settings.search == "words" or (settings.search == "auto" and not semantic.available()):
        return None
    if not semantic.available():
        raise ConfigError(
            "search by meaning is not installed", hint="Install executor-runtime[semantic], or set search to auto."
        )
    return semantic.SemanticRanker(store=SqliteVectors(directory / "vectors.db") if directory is not None else None)


def _dispatcher(settings: Config) -> DispatcherSettings:
    return DispatcherSettings(
        workers=settings.workers,
        threads=settings.threads,
        max_running=settings.max_running,
        max_queued=settings.max_queued,
        max_fresh=settings.max_fresh,
        isolation=settings.isolation,
        recycle_after_runs=settings.recycle_after_runs,
        grace_ms=settings.grace_ms,
        require=settings.require,
    )


def _toolbox(settings: Config, *, ephemeral_key: bool) -> ToolboxSettings:
    return ToolboxSettings(
        egress_allow=settings.egress_allow,
        allow_private=settings.allow_private,
        tool_timeout_s=settings.tool_timeout_s,
        ca_file=settings.ca_file,
        key_file=settings.key_file,
        ephemeral_key=ephemeral_key,
        vault=_vault(settings),
        onepassword=_onepassword(settings),
        secret_cache_s=settings.secret_cache_s,
        http_references=settings.http_references,
        http_programs=settings.http_programs,
        approver=settings.approver,
    )


def _vault(settings: Config) -> ServerSettings | None:
    if settings.vault_address is None:
        return None
    return ServerSettings(
        settings.vault_address,
        settings.vault_token,
        settings.vault_ca_file,
        settings.secrets_plain_http,
        settings.vault_namespace,
    )


def _onepassword(settings: Config) -> ServerSettings | None:
    if settings.op_address is None:
        return None
    return ServerSettings(settings.op_address, settings.op_token, settings.op_ca_file, settings.secrets_plain_http)
