"""What the suite drives through its scenarios about OAuth: the server at the last argument is added as an integration,
signed in to by a person who always agrees, and called. Where it wants more scopes, the person is asked for them once.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from typing import Any

import httpx2

from bridge.calls import CallContext
from bridge.oauth import flows
from bridge.oauth.flows import Callback
from bridge.toolbox import Toolbox
from bridge.wire.errors import ExecutorError, ToolError

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
ORIGIN = "https://conformance-test.local"
REDIRECT = "http://127.0.0.1:8400/callback"
PRIVATE = ["127.0.0.1", "localhost", "::1"]
_MORE = re.compile(r"--oauth-scopes '([^']+)'")


async def sign_in(box: Toolbox, scopes: list[str]) -> dict[str, Any]:
    begun = await box.authorize("suite", redirect_uri=REDIRECT, scopes=scopes)
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(begun["url"])
    return await box.finish_authorization(Callback.of_url(answer.headers["location"]), principal="sdk")


async def call(box: Toolbox, path: str) -> None:
    print(path, (await box.proxy.call(CallContext(), path, {})).value, file=sys.stderr)


async def main(url: str) -> None:
    async with Toolbox() as box:
        auth: dict[str, Any] = {"type": "oauth2"}
        if "client_id" in CONTEXT:
            await box.set_secret("client", CONTEXT["client_secret"])
            auth |= {"client_id": CONTEXT["client_id"], "secret": "local:client"}
        # The suite knows the document of a client by one URL.
        box.oauth.flows.origin, flows.DOCUMENT = ORIGIN, "/client-metadata.json"  # type: ignore[misc]
        await box.add_mcp("suite", url=url, auth=auth, allow_private=PRIVATE)
        await box.add_policy("suite", "*", "approve")
        done = await sign_in(box, [])
        if "problem" in done:
            more = _MORE.search(done["problem"])
            done = await sign_in(box, more[1].split() if more is not None else [])
        print(done, file=sys.stderr)
        for path in done.get("tools", ()):
            try:
                await call(box, path)
            except ToolError as e:
                more = _MORE.search(e.hint or "")
                print(e.as_dict(), file=sys.stderr)
                if e.code != "credential_rejected":
                    raise
                await sign_in(box, more[1].split() if more is not None else [])
                await call(box, path)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[-1]))
    except ExecutorError as e:
        print(e.as_dict(), file=sys.stderr)
        sys.exit(1)
