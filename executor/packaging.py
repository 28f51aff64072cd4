"""The parts that install and run npm packages, put together."""

from __future__ import annotations

import structlog

from bridge.npm.installer import Installer
from bridge.npm.settings import NpmSettings
from bridge.toolbox import Toolbox
from catalog.kinds.npm.limits import Limits
from executor import npm_client
from executor.config import Config
from executor.packages import Packages
from guest import images
from runtime.direct import Direct
from runtime.dispatcher import Dispatcher
from runtime.packages import Packages as Runner
from runtime.store.store import Store

_log = structlog.get_logger("executor.packages")


def packages(settings: Config, store: Store, dispatcher: Dispatcher, toolbox: Toolbox) -> Packages:
    folder = settings.npm_cache or images.cache_dir() / "packages"
    limits = Limits(
        packed=settings.npm_packed_bytes,
        unpacked=settings.npm_unpacked_bytes,
        files=settings.npm_files,
        packages=settings.npm_packages,
    )

    async def opened() -> Installer:
        url = settings.npm_registry or await npm_client.registry(folder, images.cache_dir() / "tools")
        return toolbox.installer(
            NpmSettings(
                registry=url,
                folder=folder,
                allow=settings.npm_allow,
                deny=settings.npm_deny,
                min_age_s=settings.npm_min_age_days * 86_400,
                sha1=settings.npm_sha1,
                timeout_s=settings.npm_timeout_s,
                cache_bytes=settings.npm_cache_bytes,
                limits=limits,
            ),
            lambda step: _log.info("package", step=step),
        )

    runner = Runner(dispatcher, toolbox.proxy, lambda: Direct(store.runs))
    budgets = settings.budget_policy().resolve(
        {"wall_ms": settings.package_wall_ms, "fuel": settings.package_fuel}, "node"
    )
    return Packages(opened, runner, budgets)
