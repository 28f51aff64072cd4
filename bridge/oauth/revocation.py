"""Tokens of an account that is let go of, revoked at the server that gave them (RFC 7009), as far as it lets us.

The account is gone whatever comes of it: who disconnects does not wait long, and hears where tokens may still be good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import anyio
import structlog

from bridge.egress import Named
from bridge.oauth import discovery
from bridge.oauth import tokens as kept
from bridge.oauth.servers import ServerRefused, Servers, endpoint
from bridge.oauth.tokens import Tokens
from bridge.wire.errors import ExecutorError
from catalog.model import Connection

if TYPE_CHECKING:
    from bridge.oauth.renewal import Renewal

REVOKE_S: Final = 15.0
"""For all of it."""

_log = structlog.get_logger("executor.oauth")


async def revoke(
    account: Connection, tokens: Tokens, servers: Servers, renewal: Renewal, private: Sequence[Named]
) -> str | None:
    """None once the server has taken the tokens back; "" where it publishes no way to; else why it did not."""
    client = account.oauth
    assert client is not None
    given = [("refresh_token", tokens.refresh), ("access_token", tokens.access)]
    why: str | None = f"no answer within {REVOKE_S:.0f} s"
    with anyio.move_on_after(REVOKE_S):
        try:
            url = client.revocation_url
            if not url and client.issuer:
                url = (await discovery.of_issuer(servers, client.issuer, private)).revocation_url
            if not url:
                return ""
            known = kept.credentials(client, tokens, await renewal.client_secret(account))
            place = endpoint(url, private, "revocation endpoint")
            # The refresh token first: taking it back also ends the access tokens that came of it (RFC 7009 §2.1).
            for hint, token in given:
                if token:
                    await servers.revoke(place, known, token, hint, private)
            why = None
        except ServerRefused as e:
            why = e.sentence
        except ExecutorError as e:
            why = e.message.rstrip(".")
    if why is not None:
        _log.warning("tokens_not_revoked", connection=account.label, reason=why)
    return why
