"""Signing in to accounts: begun and ended by whoever has a key, or ended by the browser that opened the page."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.responses import Response

from bridge.oauth import flows
from bridge.oauth.flows import Callback
from bridge.wire.errors import ExecutorError, NotFound
from executor.http import integration_schemas as schemas
from executor.http.answers import json_answer, status_of
from executor.http.operation import Answer, Call, Operation
from executor.http.pages import html_page

if TYPE_CHECKING:
    from executor.executor import Executor

COOKIE: Final = "executor-oauth-"


class OAuth:
    def __init__(self, executor: Executor) -> None:
        self.toolbox = executor.toolbox

    async def authorize(self, call: Call) -> Response:
        body: schemas.AuthorizeRequest = call.body
        begun = await self.toolbox.authorize(
            call.params["integration"],
            scope=call.params["scope"],
            connection=call.params["connection"],
            redirect_uri=body.redirect_uri,
            scopes=body.scopes,
            principal=call.principal,
        )
        return json_answer(begun, headers={"cache-control": "no-store"})

    async def finish(self, call: Call) -> Response:
        body: schemas.FinishRequest = call.body
        came = Callback(**body.model_dump())
        # The code is used up by the first who brings it: the exchange is not given up with the connection.
        return json_answer(await self.toolbox.finish_authorization(came, principal=call.principal))

    async def begin(self, call: Call) -> Response:
        query: schemas.TicketQuery = call.query
        try:
            found, cookie = self.toolbox.oauth.flows.opened(query.ticket)
        except NotFound:
            return html_page(
                "This sign-in is over", ["It was used, it took too long, or it never was. Ask for a new one."], 404
            )
        page = urlsplit(found.url)
        facts = [
            f"Executor asks for access to the account {found.account.label}.",
            f"It goes to {page.scheme}://{page.netloc} for your consent, and your browser comes back to"
            f" {found.redirect_uri}.",
            f"Asked for: {', '.join(found.scopes) or 'what the server gives by itself'}.",
            f"Begun by {found.principal}. Go on only if that was you, or somebody whom you expected to ask.",
        ]
        answer = html_page(f"Connect {found.account.label}", facts, link=(f"Continue to {page.netloc}", found.url))
        answer.headers["set-cookie"] = self._cookie(found.state, cookie, flows.LIFE_S)
        return answer

    async def callback(self, call: Call) -> Response:
        query: schemas.CallbackQuery = call.query
        came = Callback(**query.model_dump())
        browser = _cookies(call.header(b"cookie")).get(self._name(came.state or ""))
        try:
            done = await self.toolbox.finish_authorization(came, principal=None, browser=browser)
        except ExecutorError as e:
            answer = html_page("Not connected", [e.message, e.hint or ""], status_of(e))
        else:
            answer = html_page("Connected", [f"{done['connection']} is signed in. You can close this page."])
        if browser is not None:
            answer.headers["set-cookie"] = self._cookie(came.state or "", "", 0)
        return answer

    async def document(self, call: Call) -> Response:
        """The client metadata document: its URL is the client id at servers that know clients by one."""
        origin = self.toolbox.oauth.flows.origin
        if origin is None or not origin.startswith("https://"):
            raise NotFound("there is nothing at this path")
        back = [origin + flows.CALLBACK, "http://127.0.0.1/callback", "http://[::1]/callback"]
        return json_answer({"client_id": origin + flows.DOCUMENT, "client_uri": origin} | flows.client_metadata(back))

    def _name(self, state: str) -> str:
        """One for each sign-in, so that two in one browser do not end each other. `__Host-` needs https."""
        origin = self.toolbox.oauth.flows.origin or ""
        name = COOKIE + hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return f"__Host-{name}" if origin.startswith("https://") else name

    def _cookie(self, state: str, value: str, seconds: float) -> str:
        name = self._name(state)
        secure = "; Secure" if name.startswith("__Host-") else ""
        # Lax: the browser comes back by a link from another site.
        return f"{name}={value}; Path=/; Max-Age={int(seconds)}; HttpOnly; SameSite=Lax{secure}"

    def operations(self) -> list[Operation]:
        page = Answer("A page for a person.", media_type="text/html")
        return [
            Operation(
                "authorizeConnection",
                "POST",
                "/connections/{integration}/{scope}/{connection}/authorize",
                "Begin to sign in to an account",
                self.authorize,
                {200: Answer("The URL that a person visits.", schemas.AuthorizeAnswer)},
                (404, 409, 502, 503, 504),
                body=schemas.AuthorizeRequest,
                description="With `redirect_uri`, what the browser comes back with is handed to `POST /oauth/finish`.",
            ),
            Operation(
                "finishAuthorization",
                "POST",
                "/oauth/finish",
                "End a sign-in that came back to a loopback address",
                self.finish,
                {200: Answer("The account, and how it stands.", schemas.FinishAnswer)},
                (403, 409, 502, 504),
                body=schemas.FinishRequest,
            ),
            Operation(
                "beginAuthorization",
                "GET",
                flows.BEGIN,
                "The page that a sign-in begins with",
                self.begin,
                {200: page, 404: page},
                query=schemas.TicketQuery,
                public=True,
                needs=(),
            ),
            Operation(
                "authorizationCallback",
                "GET",
                flows.CALLBACK,
                "Where a browser comes back to",
                self.callback,
                {200: page, 400: page, 403: page, 502: page},
                query=schemas.CallbackQuery,
                public=True,
                needs=(),
            ),
            Operation(
                "clientDocument",
                "GET",
                flows.DOCUMENT,
                "What this server is as an OAuth client",
                self.document,
                {200: Answer("Client metadata (RFC 7591).", schemas.ClientDocument)},
                (404,),
                public=True,
                needs=(),
            ),
        ]


def _cookies(header: str | None) -> dict[str, str]:
    pairs = (pair.strip().partition("=") for pair in (header or "")[:16384].split(";"))
    return {name: value for name, _, value in pairs}
