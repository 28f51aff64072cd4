"""OpenAPI 2.0, 3.0 and 3.1 documents as an integration."""

from catalog.kinds.openapi.integration import OpenApi

__all__ = ["OpenApi"]
