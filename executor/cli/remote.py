"""A session with a server over its HTTP API."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx2

from bridge.accounts import references
from bridge.wire.errors import ExecutorError, ImportFailed
from executor.cli.options import UsageError, read_text
from executor.cli.session import Called

_REFERENCES: Final = ("secret", "username_secret")
_SCHEMA_FILES: Final = (".graphql", ".graphqls", ".gql")


class RemoteError(ExecutorError):
    """Raised for an error that the server answered with, and when it cannot be reached."""


class Remote:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, url: str, key: str | None) -> AsyncIterator[Remote]:
        """Raises UsageError for what is no http(s) URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url!r} is not a server's URL", hint="such as http://127.0.0.1:8321")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        # A run takes as long as it takes: the server bounds it. No proxy from the environment gets to see the key.
        timeout = httpx2.Timeout(None, connect=5.0)
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=timeout, trust_env=False) as client:
            yield cls(client)

    async def run(self, code: str, **options: Any) -> dict[str, Any]:
        body = {key: value for key, value in options.items() if value is not None}
        return await self._dict("POST", "/run", {"code": code} | body)

    async def call(self, path: str, args: Mapping[str, Any], *, meta: bool, toolkit: str | None) -> Any:
        body = {"args": dict(args), "meta": meta, "toolkit": toolkit}
        answer = await self._dict("POST", f"/tools/{quote(path, safe='')}/call", body)
        return answer if meta else answer["value"]

    async def call_or_ask(self, path: str, args: Mapping[str, Any], *, meta: bool, toolkit: str | None) -> Called:
        body = {"args": dict(args), "meta": meta, "toolkit": toolkit, "ask": True}
        answer = await self._dict("POST", f"/tools/{quote(path, safe='')}/call", body)
        if "value" not in answer:
            return Called(None, answer)
        return Called(answer if meta else answer["value"], None)

    async def search(self, query: str, **options: Any) -> dict[str, Any]:
        return await self._dict("GET", "/tools", query={"query": query} | options)

    async def describe(self, path: str, *, toolkit: str | None) -> dict[str, Any]:
        return await self._dict("GET", f"/tools/{quote(path, safe='')}", query={"toolkit": toolkit})

    async def list_tools(self, **options: Any) -> dict[str, Any]:
        return await self._dict("GET", "/tools", query=options)

    async def add(self, kind: str, name: str, **options: Any) -> dict[str, Any]:
        given = {key: value for key, value in options.items() if value is not None}
        if "source" in given:
            given["source"] = (_schema if kind == "graphql" else _document)(given["source"])
        body = {"kind": kind, "name": name} | await self._carried(name, given)
        return await self._dict("POST", "/integrations", body)

    async def integrations(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._dict("GET", "/integrations"))["integrations"]
        return found

    async def remove_integration(self, name: str, *, connections: bool) -> dict[str, Any]:
        query = {"connections": "true"} if connections else None
        return await self._gone(f"/integrations/{quote(name, safe='')}", query)

    async def refresh(self, name: str, source: str | Path | None) -> dict[str, Any]:
        body = {} if source is None else {"source": _document(source)}
        return await self._dict("POST", f"/integrations/{quote(name, safe='')}/refresh", body)

    async def awaiting_review(self, name: str) -> dict[str, Any]:
        return await self._dict("GET", f"/integrations/{quote(name, safe='')}/review")

    async def review(self, name: str, accept: Any) -> dict[str, Any]:
        return await self._dict("POST", f"/integrations/{quote(name, safe='')}/review", {"accept": accept})

    async def connect(self, integration: str, **options: Any) -> dict[str, Any]:
        given = {key: value for key, value in options.items() if value is not None}
        return await self._dict(
            "POST", "/connections", {"integration": integration} | await self._carried(integration, given)
        )

    async def connections(self, *, integration: str | None, scope: str | None) -> list[dict[str, Any]]:
        query = {"integration": integration, "scope": scope}
        found: list[dict[str, Any]] = (await self._dict("GET", "/connections", query=query))["connections"]
        return found

    async def connection(self, integration: str, scope: str, connection: str) -> dict[str, Any]:
        return await self._dict("GET", _connection(integration, scope, connection))

    async def check_connection(self, integration: str, scope: str, connection: str) -> dict[str, Any]:
        return await self._dict("POST", _connection(integration, scope, connection) + "/check")

    async def authorize(
        self, integration: str, scope: str, connection: str, *, redirect_uri: str | None, scopes: list[str]
    ) -> dict[str, Any]:
        body = {"redirect_uri": redirect_uri, "scopes": scopes}
        return await self._dict("POST", _connection(integration, scope, connection) + "/authorize", body)

    async def finish_authorization(self, came: dict[str, Any]) -> dict[str, Any]:
        return await self._dict("POST", "/oauth/finish", came)

    async def remove_connection(self, integration: str, scope: str, connection: str) -> dict[str, Any]:
        return await self._gone(_connection(integration, scope, connection))

    async def rotate_key(self, *, forget_old: bool) -> dict[str, Any]:
        return await self._dict("POST", "/master-key/rotate", {"forget_old": forget_old})

    async def set_secret(self, name: str, value: str, *, scope: str) -> None:
        await self._ask("PUT", f"/secrets/{quote(name, safe='')}", {"value": value}, query={"scope": scope})

    async def secrets(self, *, scope: str) -> list[str]:
        found: list[str] = (await self._dict("GET", "/secrets", query={"scope": scope}))["secrets"]
        return found

    async def remove_secret(self, name: str, *, scope: str) -> None:
        await self._ask("DELETE", f"/secrets/{quote(name, safe='')}", query={"scope": scope})

    async def policies(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._dict("GET", "/policies"))["policies"]
        return found

    async def add_policy(self, target: str, pattern: str, effect: str, **options: Any) -> dict[str, Any]:
        return await self._dict("POST", "/policies", {"target": target, "pattern": pattern, "effect": effect} | options)

    async def remove_policy(self, rule_id: str) -> None:
        await self._ask("DELETE", f"/policies/{quote(rule_id, safe='')}")

    async def explain(self, path: str, *, toolkit: str | None) -> dict[str, Any]:
        return await self._dict("POST", "/policies/explain", {"path": path, "toolkit": toolkit})

    async def toolkits(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._dict("GET", "/toolkits"))["toolkits"]
        return found

    async def toolkit(self, name: str) -> dict[str, Any]:
        return await self._dict("GET", f"/toolkits/{quote(name, safe='')}")

    async def create_toolkit(self, name: str, **parts: Any) -> dict[str, Any]:
        return await self._dict("POST", "/toolkits", {"name": name} | _toolkit(parts))

    async def update_toolkit(self, name: str, **parts: Any) -> dict[str, Any]:
        return await self._dict("PUT", f"/toolkits/{quote(name, safe='')}", _toolkit(parts))

    async def remove_toolkit(self, name: str) -> None:
        await self._ask("DELETE", f"/toolkits/{quote(name, safe='')}")

    async def list_runs(self, **options: Any) -> dict[str, Any]:
        return await self._dict("GET", "/runs", query=options)

    async def get_run(self, run_id: str) -> dict[str, Any]:
        return await self._dict("GET", f"/runs/{quote(run_id, safe='')}")

    async def cancel_run(self, run_id: str) -> dict[str, Any]:
        return await self._dict("POST", f"/runs/{quote(run_id, safe='')}/cancel")

    async def watch(self, run_id: str) -> AsyncIterator[dict[str, Any]]:
        path = f"/runs/{quote(run_id, safe='')}/events"
        try:
            async with self._client.stream("GET", path) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise _error_of(answer)
                async for event in _events(answer.aiter_lines()):
                    yield event
        except (httpx2.TransportError, ValueError) as e:
            raise RemoteError(
                f"the server stopped telling of the run: {e or type(e).__name__}",
                code="unreachable",
                hint=f"executor runs show {run_id}",
            ) from None

    async def resume(self, run_id: str, interaction: str, action: str, content: Any) -> dict[str, Any]:
        body = {"interaction": interaction, "action": action} | ({} if content is None else {"content": content})
        return await self._dict("POST", f"/runs/{quote(run_id, safe='')}/resume", body)

    async def replay_run(self, run_id: str) -> dict[str, Any]:
        return await self._dict("POST", f"/runs/{quote(run_id, safe='')}/replay")

    async def _carried(self, integration: str, given: dict[str, Any]) -> dict[str, Any]:
        """The server reads neither our environment nor our files: what a reference names here is sent, kept there
        under the integration's name, and referred to as `local:`. Other kinds are the server's own to resolve."""
        known: dict[str, str] = {}
        for ref in references(given.get("auth"), given.get("secret")):
            if ref not in known and ref.startswith(("env:", "file:")):
                name = f"{integration}-{given['connection']}" + (f"-{len(known) + 1}" if known else "")
                await self.set_secret(name, _value_of(ref), scope=given["scope"])
                known[ref] = f"local:{name}"
        return {key: _renamed(value, known) if key in ("auth", "secret") else value for key, value in given.items()}

    async def _gone(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What is said of what was removed, {} where there is nothing to say."""
        answer = await self._ask("DELETE", path, query=query)
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

    async def _dict(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        answer = await self._ask(method, path, body, query=query)
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise RemoteError("what answers at that URL is not an Executor server")
        return found

    async def _ask(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None
    ) -> httpx2.Response:
        params = {key: value for key, value in (query or {}).items() if value is not None}
        try:
            answer = await self._client.request(method, path, json=body, params=params or None)
        except httpx2.TransportError as e:
            raise RemoteError(
                f"the server at {self._client.base_url} cannot be reached: {e or type(e).__name__}",
                code="unreachable",
                hint="`executor serve` starts one",
            ) from None
        if answer.is_success:
            return answer
        raise _error_of(answer)


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """The events in the lines of a stream (WHATWG HTML §9.2.6). Raises ValueError for data that is no JSON."""
    event: dict[str, Any] = {}
    async for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            event["seq"] = int(value)
        elif name == "event":
            event["type"] = value
        elif name == "data":
            event["data"] = json.loads(value)
        elif not line and "data" in event:
            yield event
            event = {}


def _error_of(answer: httpx2.Response) -> RemoteError:
    try:
        facts = answer.json()["error"]
        error = RemoteError(facts["message"], code=facts["code"], hint=facts.get("hint"), details=facts.get("details"))
    except (ValueError, KeyError, TypeError):
        return RemoteError(f"the server answered with HTTP {answer.status_code}")
    if answer.status_code == 401:
        error.hint = "put a key in EXECUTOR_KEY; `executor key create` on the server's machine makes one"
    return error


def _toolkit(parts: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in parts.items() if value is not None}
    if "rules" in given:
        given["rules"] = [{"pattern": pattern, "effect": effect} for pattern, effect in given["rules"]]
    return given


def _document(source: str | Path) -> Any:
    if isinstance(source, str):
        return source
    if source.suffix.lower() in _SCHEMA_FILES:
        return _schema(source)
    text = read_text(str(source), "the document")
    root = _parsed(text, source)
    if not isinstance(root, dict):
        raise UsageError(f"{str(source)!r} is not an API's description: that is an object in JSON or YAML")
    if "__schema" in (root.get("data") or root):
        return root
    from catalog.kinds.openapi import bundle

    # The server reads no files of ours: those beside the document go along in it.
    return bundle.whole(root, text, url=None, file=source)[0]


def _schema(source: str | Path) -> Any:
    """A GraphQL schema: introspection as data, SDL as its text."""
    if isinstance(source, str):
        return source
    text = read_text(str(source), "the schema")
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parsed(text: str, source: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        from catalog.kinds.openapi import reader

        try:
            return reader.parsed(text)
        except ImportFailed as e:
            raise UsageError(f"{str(source)!r} is neither JSON nor YAML: {e.message}") from None


def _connection(integration: str, scope: str, connection: str) -> str:
    return "/connections/" + "/".join(quote(part, safe="") for part in (integration, scope, connection))


def _renamed(part: Any, known: Mapping[str, str]) -> Any:
    """`part` of an auth with every reference in `known` by its new name."""
    if isinstance(part, list):
        return [_renamed(one, known) for one in part]
    if isinstance(part, dict):
        return {key: _renamed(value, known) if key in _REFERENCES else value for key, value in part.items()}
    return known.get(part, part) if isinstance(part, str) else part


def _value_of(reference: str) -> str:
    kind, _, name = reference.partition(":")
    if kind == "env":
        value = os.environ.get(name)
        if not value:
            raise UsageError(f"the environment variable {name} is not set here")
        return value
    if kind == "file":
        return read_text(name, "the secret file").rstrip("\r\n")
    raise UsageError(f"{reference!r} is not a secret reference", hint="env:NAME, file:PATH or local:NAME")
