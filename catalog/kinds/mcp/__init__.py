"""MCP servers as integrations: what they list becomes tools, what they answer becomes values."""

from catalog.kinds.mcp.integration import Mcp

__all__ = ["Mcp"]
