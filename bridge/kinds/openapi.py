"""APIs that an OpenAPI document describes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bridge.adding import Given
from bridge.kinds.documented import Documented
from bridge.kinds.port import Asked
from bridge.repeats import check_patterns
from catalog.model import Connection
from catalog.registry import Installed


class OpenApis(Documented):
    kind: ClassVar[str] = "openapi"

    async def proposed(
        self,
        asked: Asked,
        *,
        source: Given,
        base_url: str | None = None,
        server: str | None = None,
        server_variables: Mapping[str, str] | None = None,
        allow_private: Sequence[str] = (),
        idempotent: Sequence[str] = (),
    ) -> tuple[Installed, Connection]:
        config: dict[str, Any] = {"base_url": base_url, "allow_private": list(allow_private)}
        config |= {"server": server, "server_variables": dict(server_variables or {})}
        config["idempotent"] = check_patterns(idempotent)
        made = Installed(*await self.read(asked.name, config, source), time.time())
        return made, await self.house.account(made, asked, asked.probe)


opened = OpenApis
