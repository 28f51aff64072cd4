"""npm packages: what they are resolved to, what is in their archives, and which of their exports are tools."""
