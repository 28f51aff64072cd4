"""`env:NAME`: a variable of this process's environment. Workers never have it."""

from __future__ import annotations

import os

from bridge.secrets.ports import Secret, SecretMissing


class EnvSecrets:
    async def resolve(self, scope: str, key: str) -> Secret:
        """Raises SecretMissing when the variable is unset or empty."""
        value = os.environ.get(key)
        if not value:
            raise SecretMissing(f"the environment variable {key} is not set")
        return Secret(value)
