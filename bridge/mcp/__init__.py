"""Sessions with MCP servers: programs that are started and stopped, and servers behind the egress gate."""
