"""OAuth behind one handle: what the toolbox composes, and what a call asks for its token."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from bridge.client import Client
from bridge.egress import Gate, Named
from bridge.secrets.local import LocalSecrets
from bridge.secrets.ports import Secret
from bridge.secrets.providers import Providers
from catalog.model import Connection, Diagnostic
from catalog.registry import Installed

if TYPE_CHECKING:
    from bridge.oauth.flows import Flows
    from bridge.oauth.renewal import Renewal
    from bridge.oauth.servers import Servers
    from bridge.oauth.tokens import Shelf


Parting = Callable[[], Awaitable[str | None]]


class OAuth:
    """Close it when done. Its parts are imported when an account needs them: most sign in nowhere."""

    def __init__(self, client: Client, gate: Gate, local: LocalSecrets, providers: Providers) -> None:
        self._client = client
        self._gate = gate
        self._local = local
        self._providers = providers

    @cached_property
    def servers(self) -> Servers:
        from bridge.oauth.servers import Servers

        return Servers(self._client, self._gate)

    @cached_property
    def shelf(self) -> Shelf:
        from bridge.oauth.tokens import Shelf

        return Shelf(self._local)

    @cached_property
    def _renewal(self) -> Renewal:
        from bridge.oauth.renewal import Renewal

        return Renewal(self.shelf, self.servers, self._providers)

    @cached_property
    def flows(self) -> Flows:
        from bridge.oauth.flows import Flows

        return Flows(self.shelf, self.servers, self._renewal)

    async def token(self, account: Connection, private: Sequence[Named]) -> Secret:
        """See `Renewal.token`."""
        return await self._renewal.token(account, private)

    async def instead(self, account: Connection, private: Sequence[Named], refused: str) -> Secret | None:
        """See `Renewal.instead`."""
        return await self._renewal.instead(account, private, refused)

    def remedy(self, account: Connection, status: int, headers: Sequence[tuple[str, str]]) -> str:
        """See `bridge.oauth.remedies.remedy`."""
        if account.oauth is None:
            return ""
        from bridge.oauth.remedies import remedy

        return remedy(account, status, headers)

    def private(self, installed: Installed) -> tuple[Named, ...]:
        """The private places that an integration's accounts may sign in at: those that it may reach itself."""
        return self._gate.grant((), installed.config.get("allow_private", ())).private

    def apart(self, before: Connection, after: Connection) -> bool:
        """Whether the tokens of the one are none of the other."""
        if before.oauth is None or after.oauth is None:
            return before.oauth is not None
        from bridge.oauth.tokens import bound

        return bound(before) != bound(after)

    async def forget(self, account: Connection) -> None:
        """Forget the account's tokens."""
        if account.oauth is not None:
            await self.shelf.forget(account)

    async def part(self, account: Connection, private: Sequence[Named]) -> Parting:
        """Forget the account's tokens. What is given back revokes them, when it is awaited: see `revocation.revoke`."""
        if account.oauth is None:
            return _nothing
        from bridge.oauth.revocation import revoke

        _, tokens = await self.shelf.read(account)
        await self.shelf.forget(account)
        if tokens is None or not (tokens.access or tokens.refresh):
            return _nothing
        return partial(revoke, account, tokens, self.servers, self._renewal, private)

    async def state(self, account: Connection) -> dict[str, Any] | None:
        """How the account stands: `{signed_in, scopes, obtained_at, expires_at, renewable, failed}`, None without
        OAuth. Nothing of it is a secret."""
        if account.oauth is None:
            return None
        _, tokens = await self.shelf.read(account)
        if tokens is None or not tokens.access:
            return {"signed_in": False}
        client_credentials = account.oauth.flow == "client_credentials"
        facts = {
            "signed_in": bool(tokens.refresh) or client_credentials or tokens.valid(time.time()),
            "scopes": list(tokens.scopes),
            "obtained_at": tokens.obtained_at,
            "expires_at": tokens.expires_at,
            "renewable": bool(tokens.refresh) or client_credentials,
            "failed": tokens.failed or None,
        }
        return {key: value for key, value in facts.items() if value is not None}

    async def diagnostics(self, account: Connection) -> list[Diagnostic]:
        """That nobody has signed in yet, where a person must."""
        if account.oauth is None or account.oauth.flow != "authorization_code":
            return []
        if (await self.state(account) or {}).get("signed_in"):
            return []
        from bridge.oauth.renewal import sign_in

        return [Diagnostic("oauth", f"nobody has signed in to {account.label} yet: {sign_in(account)}")]

    async def close(self) -> None:
        """Wait for renewals that are under way."""
        if "_renewal" in self.__dict__:
            await self._renewal.close()


async def _nothing() -> str | None:
    """There is nothing to take back."""
    return None
