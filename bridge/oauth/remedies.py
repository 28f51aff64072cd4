"""What helps where a server refused an access token: the command to type, in words that a shell takes as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bridge.oauth.discovery import needed
from bridge.oauth.renewal import sign_in
from catalog.model import Connection

MAX_SCOPES: Final = 20
_PLAIN: Final = re.compile(r"\A[A-Za-z0-9_.:/~+-]{1,120}\Z")
"""Scopes that a command may show: what a server says is not to be pasted into a shell unread."""


def remedy(account: Connection, status: int, headers: Sequence[tuple[str, str]]) -> str:
    """A hint for a refusal, "" where there is nothing to say that every refusal has not."""
    client = account.oauth
    if client is None or status not in (401, 403):
        return ""
    scopes = needed(headers)
    if scopes is not None:
        shown = [one for one in scopes if _PLAIN.match(one)][:MAX_SCOPES]
        wanted = f" ({' '.join(shown)})" if shown else ""
        if client.flow == "client_credentials":
            return f"The client needs more scopes{wanted}: executor connect {account.integration} --replace …"
        return f"It needs more scopes{wanted}. Sign in again with them: {sign_in(account, shown)}"
    if status == 401 and client.flow == "authorization_code":
        return f"Connect again: {sign_in(account)}"
    return ""
