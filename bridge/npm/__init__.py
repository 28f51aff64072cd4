"""Installing npm packages: the registry through the egress gate, and what is kept of it on disk."""
