"""Executor as an MCP server: five tools, one guide, the same on standard input and over HTTP."""
