"""OAuth 2 as a client: signing in, tokens that are renewed in time, and what servers say of themselves."""
