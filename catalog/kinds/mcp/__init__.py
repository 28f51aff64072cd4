"""MCP servers as integrations: what they list becomes tools, what they answer becomes values."""
