"""An OpenAPI document read without a toolbox."""

from __future__ import annotations

from typing import Any

from catalog.kinds.openapi.integration import OpenApi
from catalog.model import Manifest

BASE = "https://api.test"


def imported(source: Any, **config: Any) -> Manifest:
    return OpenApi("api").resolve_tools({"document": source} | config)
