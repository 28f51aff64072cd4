"""The access token of an account, on demand: renewed before it expires and when it was refused, by one at a time.

A refresh token may be good for one use, and a server that sees it twice may revoke everything. So whoever renews says
so in the store first (a lease, by compare-and-swap), the answer replaces the old tokens in one write, and the work goes
on when the call that began it is given up. Whoever comes second waits and reads what the first one stored.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import structlog

from bridge.egress import Named
from bridge.oauth import tokens as kept
from bridge.oauth.servers import TIMEOUT_S, ServerRefused, Servers, endpoint
from bridge.oauth.tokens import Lease, Shelf, Tokens
from bridge.secrets.ports import Secret, SecretMissing
from bridge.secrets.providers import Providers
from bridge.traces import traced
from bridge.wire.errors import ConfigError, ExecutorError, StorageError, ToolError
from catalog.model import Connection

PAUSE_S: Final = 0.25
"""Before a server that could not answer is asked once more."""
LEASE_S: Final = 2 * TIMEOUT_S + PAUSE_S + 2.0
WAIT_S: Final = 2 * LEASE_S
CLOSE_S: Final = 5.0
POLL_S: Final = 0.05
AGAIN_S: Final = 30.0
"""A token that was refused is renewed for that reason at most once in this time: a server that refuses the new one too
would have every call renew it."""

_ids: Final = itertools.count(1)
_log = structlog.get_logger("executor.oauth")


class _Outcome(NamedTuple):
    """What a renewal came to: a token, or an error to raise. Returned, so that nobody has to fetch an exception."""

    token: Secret | None
    error: ExecutorError | None = None


class Renewal:
    """Gives access tokens. Close it when done: a renewal that is under way is waited for."""

    def __init__(self, shelf: Shelf, servers: Servers, providers: Providers) -> None:
        self._shelf = shelf
        self._servers = servers
        self._providers = providers
        self._me = f"{os.uname().nodename}:{os.getpid()}:{next(_ids)}"
        self._running: dict[str, asyncio.Task[_Outcome]] = {}
        self._refused_at: dict[str, float] = {}
        self._unsaved: dict[str, tuple[int | None, Tokens]] = {}

    async def token(self, account: Connection, private: Sequence[Named]) -> Secret:
        """A token that is not about to expire.

        Raises ToolError: connection_missing (nobody has signed in, or the client secret is not there),
        credential_rejected (signing in again is needed), upstream_unreachable (later), egress_denied.
        """
        _, tokens = await self._read(account)
        if tokens is not None and tokens.fresh(time.time()):
            return Secret(tokens.access)
        return await self._renewed(account, private, None)

    async def instead(self, account: Connection, private: Sequence[Named], refused: str) -> Secret | None:
        """A token in place of one that was refused; None when the one that there is was renewed for that reason just
        now, so that another would not help. Raises as `token` does."""
        _, tokens = await self._read(account)
        now = time.monotonic()
        if tokens is None or tokens.access == refused:
            if now - self._refused_at.get(account.label, -AGAIN_S) < AGAIN_S:
                return None
            self._refused_at[account.label] = now
        found = await self._renewed(account, private, refused)
        return None if found.reveal() == refused else found

    async def close(self) -> None:
        """Wait a while for what is under way: an answer that is lost may be the last."""
        if self._running:
            await asyncio.wait(list(self._running.values()), timeout=CLOSE_S)
        for task in (left := list(self._running.values())):
            task.cancel()
        if left:
            await asyncio.wait(left)

    async def _renewed(self, account: Connection, private: Sequence[Named], refused: str | None) -> Secret:
        task = self._running.get(account.label)
        if task is None:
            task = asyncio.create_task(self._guarded(account, private, refused))
            self._running[account.label] = task
            task.add_done_callback(lambda _: self._running.pop(account.label, None))
        outcome = await asyncio.shield(task)
        if outcome.error is not None:
            raise _copied(outcome.error)
        assert outcome.token is not None
        return outcome.token

    async def _guarded(self, account: Connection, private: Sequence[Named], refused: str | None) -> _Outcome:
        try:
            return _Outcome(await self._renew(account, private, refused))
        except ExecutorError as e:
            return _Outcome(None, e)
        except Exception as e:
            _log.error("token_renewal_failed", connection=account.label, exception=traced(e))
            return _Outcome(None, ToolError("internal", f"The token of {account.label} could not be renewed."))

    async def _renew(self, account: Connection, private: Sequence[Named], refused: str | None) -> Secret:
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            version, tokens = await self._read(account)
            now = time.time()
            if tokens is not None and tokens.access != refused and tokens.fresh(now):
                return Secret(tokens.access)
            if not self._renewable(account, tokens):
                return self._last(account, tokens, refused)
            if tokens is not None and tokens.lease is not None and _live(tokens.lease, self._me, now):
                if tokens.access != refused and tokens.valid(now):
                    return Secret(tokens.access)
                await asyncio.sleep(POLL_S)
                continue
            claimed = replace(tokens or Tokens(kept.bound(account)), lease=Lease(self._me, now + LEASE_S))
            taken = await self._shelf.swap(account, claimed, version)
            if taken is not None:
                return await self._asked(account, private, claimed, taken, refused)
        raise _later(account, "somebody else has been renewing it for too long")

    def _renewable(self, account: Connection, tokens: Tokens | None) -> bool:
        client = account.oauth
        assert client is not None
        return client.flow == "client_credentials" or (tokens is not None and bool(tokens.refresh))

    def _last(self, account: Connection, tokens: Tokens | None, refused: str | None) -> Secret:
        """The token that there is as long as it lasts. Raises ToolError."""
        if tokens is None:
            raise ToolError(
                "connection_missing",
                f"Nobody has signed in to {account.label} yet.",
                hint=f"Sign in: {sign_in(account)}",
            )
        if tokens.access != refused and tokens.valid(time.time()):
            return Secret(tokens.access)
        raise rejected(account, tokens.failed or ("no_refresh_token" if refused is None else "invalid_token"))

    async def _asked(
        self, account: Connection, private: Sequence[Named], claimed: Tokens, version: int, refused: str | None
    ) -> Secret:
        """Ask the server, and keep what it says in place of what was claimed. Raises ToolError."""
        released = replace(claimed, lease=None)
        try:
            tokens = await self._answer(account, private, claimed)
        except ServerRefused as e:
            _log.warning("token_renewal_refused", connection=account.label, code=e.code, passing=e.passing)
            dead = e.code == "invalid_grant"
            await self._keep(account, replace(released, refresh="", failed=e.code) if dead else released, version)
            if released.access != refused and released.valid(time.time()):
                return Secret(released.access)
            raise _later(account, e.sentence) if e.passing else rejected(account, e.code, e.sentence) from None
        except BaseException:
            await asyncio.shield(self._keep(account, released, version))
            raise
        if not await self._keep(account, tokens, version):
            # The account was connected anew meanwhile: these are not its tokens any more.
            raise _later(account, "it was connected anew meanwhile")
        _log.info("token_renewed", connection=account.label, expires_at=tokens.expires_at)
        return Secret(tokens.access)

    async def _answer(self, account: Connection, private: Sequence[Named], claimed: Tokens) -> Tokens:
        client = account.oauth
        assert client is not None
        url = endpoint(client.token_url, private, "token endpoint")
        known = kept.credentials(client, claimed, await self.client_secret(account))
        if client.flow == "client_credentials":
            fields = {"grant_type": "client_credentials", "scope": " ".join(client.scopes), "resource": client.resource}
            fields |= dict(client.parameters)
        else:
            # Without `scope` it is what was granted (RFC 6749 §6), which may be less than what was asked for.
            fields = {"grant_type": "refresh_token", "refresh_token": claimed.refresh, "resource": client.resource}
        try:
            found = await self._servers.token(url, known, fields, private)
        except ServerRefused as e:
            if not e.passing:
                raise
            await asyncio.sleep(PAUSE_S)
            found = await self._servers.token(url, known, fields, private)
        return kept.answered(found, client.scopes, claimed)

    async def client_secret(self, account: Connection) -> str:
        """The client's secret, "" when it has none. Raises ToolError(connection_missing)."""
        ref = account.oauth.secret if account.oauth is not None else ""
        if not ref:
            return ""
        try:
            return (await self._providers.resolve(account.scope, ref)).reveal()
        except (SecretMissing, ConfigError) as e:
            _log.warning("secret_missing", connection=account.label, reason=str(e))
            raise ToolError(
                "connection_missing",
                f"The client secret of {account.label} is not available.",
                hint=f"An operator can see why: executor connections check {account.label}",
            ) from None

    async def _read(self, account: Connection) -> tuple[int | None, Tokens | None]:
        unsaved = self._unsaved.get(account.label)
        if unsaved is not None:
            await self._keep(account, unsaved[1], unsaved[0])
        held = self._unsaved.get(account.label)
        return held if held is not None else await self._shelf.read(account)

    async def _keep(self, account: Connection, tokens: Tokens, version: int | None) -> bool:
        """Whether `tokens` are kept in place of `version`. Where the store cannot be written they are held in memory
        until it can: the old ones may be used up."""
        try:
            done = await self._shelf.swap(account, tokens, version) is not None
        except StorageError as e:
            _log.error("tokens_unsaved", connection=account.label, reason=e.message)
            self._unsaved[account.label] = (version, tokens)
            return True
        self._unsaved.pop(account.label, None)
        return done


def _live(lease: Lease, me: str, now: float) -> bool:
    """Whether another process renews. One of this machine that is gone renews nothing."""
    if lease.by == me or not now < lease.until <= now + LEASE_S:
        return False
    host, pid, _ = lease.by.rsplit(":", 2)
    if host != os.uname().nodename:
        return True
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        pass
    return True


def sign_in(account: Connection, scopes: Sequence[str] = ()) -> str:
    """The command that signs in to the account."""
    words = ["executor connect", account.integration]
    if account.name != "main":
        words += ["--connection", account.name]
    if account.scope != "org":
        words += ["--scope", account.scope]
    return " ".join([*words, *(["--oauth-scopes", f"'{' '.join(scopes)}'"] if scopes else [])])


def rejected(account: Connection, code: str, sentence: str = "") -> ToolError:
    """The typed end of an account's credential."""
    why = {
        "no_refresh_token": "its token has expired, and the server gave none to renew it with",
        "invalid_token": "its token was refused, and there is none to renew it with",
    }.get(code, f"the authorization server refuses to renew its token ({sentence or code})")
    client = account.oauth
    again = client is not None and client.flow == "authorization_code" and code not in ("invalid_client",)
    return ToolError(
        "credential_rejected",
        f"The credential of {account.label} is of no use any more: {why}.",
        hint=f"Connect again: {sign_in(account)}"
        if again
        else "See that client id, client secret and scopes are right"
        f" and connect anew: executor connect {account.integration} --replace …",
        details={"error": code},
    )


def _later(account: Connection, why: str) -> ToolError:
    return ToolError(
        "upstream_unreachable", f"The token of {account.label} cannot be renewed now: {why}.", retryable=True
    )


def _copied(error: ExecutorError) -> ExecutorError:
    """One for each caller: whoever catches it adds to it."""
    if not isinstance(error, ToolError):
        return error
    return ToolError(
        error.code,  # type: ignore[arg-type]
        error.message,
        retryable=error.retryable,
        hint=error.hint,
        details=dict(error.details) if error.details else None,
        status=error.status,
    )
