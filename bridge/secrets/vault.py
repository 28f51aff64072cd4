"""`vault:MOUNT/PATH#FIELD`: HashiCorp Vault and OpenBao, key/value engine of version 2, over their HTTP API."""

from __future__ import annotations

from typing import Any

from bridge.secrets.ports import Secret, SecretMissing, SecretUnavailable
from bridge.secrets.references import VaultKey, vault_key
from bridge.secrets.server import SecretServer


class VaultSecrets:
    def __init__(self, server: SecretServer, namespace: str | None = None) -> None:
        self._server = server
        self._namespace = namespace

    async def resolve(self, scope: str, key: str) -> Secret:
        """Raises SecretMissing, SecretUnavailable."""
        wanted = vault_key(key)
        path = ["v1", wanted.mount, "data", *wanted.path]
        query = {} if wanted.version is None else {"version": str(wanted.version)}
        status, body = await self._server.get(path, query, self._headers)
        _check(status, wanted)
        data = _inner(_inner(body, "data"), "data")
        value = data.get(wanted.field)
        if not isinstance(value, str) or not value:
            raise SecretMissing(f"the Vault's secret {_named(wanted)} has no text in the field {wanted.field}")
        return Secret(value)

    def _headers(self, token: str) -> dict[str, str]:
        # X-Vault-Request is what agents and proxies of Vault may ask for against forged requests.
        fields = {"x-vault-token": token, "x-vault-request": "true"}
        return fields if self._namespace is None else fields | {"x-vault-namespace": self._namespace}


def _named(key: VaultKey) -> str:
    version = "" if key.version is None else f" in version {key.version}"
    return f"{key.mount}/{'/'.join(key.path)}{version}"


def _check(status: int, key: VaultKey) -> None:
    """The statuses of Vault's API (developer.hashicorp.com/vault/api-docs#http-status-codes)."""
    if status == 200:
        return
    if status == 404:
        raise SecretMissing(f"the Vault has no secret {_named(key)}, or that version is deleted")
    if status in (400, 401, 403):
        why = "its token is not valid, has expired, or may not read this" if status != 400 else "it calls it malformed"
        raise SecretMissing(f"the Vault refuses to give {_named(key)}: {why}")
    if status == 503:
        raise SecretUnavailable("the Vault is sealed or down for maintenance")
    if status in (412, 429, 472, 473) or status >= 500:
        raise SecretUnavailable(f"the Vault cannot answer now ({status})")
    raise SecretMissing(f"the Vault answers {status}, which is not an answer of its API")


def _inner(body: Any, name: str) -> dict[str, Any]:
    found = body.get(name) if isinstance(body, dict) else None
    if not isinstance(found, dict):
        raise SecretMissing("the Vault's answer is not that of a key/value engine of version 2")
    return found
