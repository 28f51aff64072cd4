"""Every provider of secrets behind one handle: a reference in, a value out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import anyio.to_thread

from bridge.secrets import keychain
from bridge.secrets.cached import CachedSecrets
from bridge.secrets.env import EnvSecrets
from bridge.secrets.file import FileSecrets
from bridge.secrets.keychain import KeychainSecrets
from bridge.secrets.local import LocalSecrets
from bridge.secrets.onepassword import OnePasswordSecrets
from bridge.secrets.ports import MAX_BYTES, Secret, SecretMissing, SecretProvider
from bridge.secrets.references import parse_ref
from bridge.secrets.server import ReadToken, SecretServer, ServerSettings
from bridge.secrets.vault import VaultSecrets
from bridge.wire.errors import ConfigError, InvalidRequest

_TOKENS: Final = ("env", "file")


class Providers:
    """Raises ConfigError for a server of secrets whose settings cannot be used. Close it when done."""

    def __init__(
        self,
        local: LocalSecrets,
        *,
        vault: ServerSettings | None = None,
        onepassword: ServerSettings | None = None,
        cache_s: float = 1.0,
    ) -> None:
        self._servers: list[SecretServer] = []
        self._cached: list[CachedSecrets] = []
        self._cache_s = cache_s
        self._plain: dict[str, SecretProvider] = {"env": EnvSecrets(), "file": FileSecrets()}
        self._all: dict[str, SecretProvider] = {
            "local": local,
            **self._plain,
            "keychain": self._kept(KeychainSecrets()),
            "vault": _Unconfigured("vault_address"),
            "op": _Unconfigured("op_address"),
        }
        if vault is not None:
            self._all["vault"] = self._kept(VaultSecrets(self._server("Vault", vault), vault.namespace))
        if onepassword is not None:
            self._all["op"] = self._kept(OnePasswordSecrets(self._server("1Password Connect", onepassword)))

    async def resolve(self, scope: str, ref: str) -> Secret:
        """The value behind `ref` for a connection of `scope`, the same whoever asks.

        Raises SecretMissing with the reason, of which SecretUnavailable may pass, and ConfigError (the master key).
        """
        try:
            provider, key = parse_ref(ref)
            if provider not in self._all:
                raise SecretMissing(f"there is no provider {provider}")
            return _usable(ref, await self._all[provider].resolve(scope, key))
        except InvalidRequest as e:
            raise SecretMissing(e.message) from None

    def refused(self) -> None:
        """A credential was refused by the other side: whatever is kept of one is asked for anew."""
        for one in self._cached:
            one.forget()

    async def absent(self, references: Collection[str]) -> dict[str, str]:
        """Which of the providers that `references` name cannot give anything as they are, and why."""
        named = {reference.partition(":")[0] for reference in references}
        found = {name: one.reason for name in named if isinstance(one := self._all.get(name), _Unconfigured)}
        # The keychain is looked for on this machine's bus, which takes time.
        reason = await anyio.to_thread.run_sync(keychain.absent) if "keychain" in named else None
        return found if reason is None else found | {"keychain": reason}

    async def close(self) -> None:
        for server in self._servers:
            await server.close()

    def _kept(self, provider: SecretProvider) -> CachedSecrets:
        cached = CachedSecrets(provider, self._cache_s)
        self._cached.append(cached)
        return cached

    def _server(self, what: str, settings: ServerSettings) -> SecretServer:
        server = SecretServer(what, settings, self._token(what, settings.token))
        self._servers.append(server)
        return server

    def _token(self, what: str, ref: str) -> ReadToken:
        provider, _, key = ref.partition(":")
        if provider not in _TOKENS or not key:
            raise ConfigError(f"The token for {what} is given as env:NAME or file:/PATH, never as itself.")

        async def read() -> Secret:
            try:
                return await self._plain[provider].resolve("org", key)
            except SecretMissing as e:
                raise SecretMissing(f"the token for {what} is not there: {e.reason}") from None

        return read


def _usable(ref: str, secret: Secret) -> Secret:
    """The secret, where every place that it may go to can hold it, and masking it costs no more than it may."""
    try:
        size = len(secret.reveal().encode())
    except UnicodeEncodeError:
        # An environment holds any bytes, and a server's JSON may hold half of a character.
        raise SecretMissing(f"{ref} is not UTF-8 text") from None
    if size > MAX_BYTES:
        raise SecretMissing(f"{ref} is larger than {MAX_BYTES} bytes")
    return secret


class _Unconfigured:
    def __init__(self, setting: str) -> None:
        self.reason = f"no server for it is configured ({setting})"

    async def resolve(self, scope: str, key: str) -> Secret:
        raise SecretMissing(self.reason)
