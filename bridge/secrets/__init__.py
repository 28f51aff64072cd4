"""Secrets of connections, resolved in the host and as late as possible."""
