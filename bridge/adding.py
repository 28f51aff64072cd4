"""Adding integrations: one `add` for every kind, and a typed face of it for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from bridge.accounts import Auth
from catalog.model import AddReport

Given = str | Path | bytes | Mapping[str, Any]
"""A description: its URL, its path, its text, or its data."""


class Place(TypedDict, total=False):
    """`scope` ("org") and `connection` ("main") are the second and third part of the tools' paths. `replace`: take the
    place of an integration of the same name."""

    scope: str
    connection: str
    replace: bool


class Account(Place, total=False):
    """`secret` refers to the credential and is never its value: `local:NAME` for one that `set_secret` keeps, `env:`,
    `file:`, `keychain:`, `vault:` or `op:`. `auth` says how it is sent (see `bridge.accounts.Auth`), `probe` which tool
    `check_connection` tries it with. `allow_private` names private hosts that the integration may reach."""

    auth: Auth
    secret: str | None
    probe: str | None
    allow_private: Sequence[str]


class PackageAccount(Place, total=False):
    """`auth`, `secret` and `probe` as in `Account`."""

    auth: Auth
    secret: str | None
    probe: str | None


class OpenApiOptions(Account, total=False):
    base_url: str | None
    server: str | None
    server_variables: Mapping[str, str] | None
    idempotent: Sequence[str]


class GraphQLOptions(Account, total=False):
    url: str | None
    any_query: bool
    idempotent: Sequence[str]


class HttpOptions(Account, total=False):
    fetch: bool


class McpOptions(Account, total=False):
    command: Sequence[str] | None
    url: str | None
    cwd: str | None


class Adding(ABC):
    """Whatever integrations are added to."""

    @abstractmethod
    async def add(self, kind: str, name: str, **options: Any) -> AddReport:
        """Add the integration `name` of a kind: `openapi`, `graphql`, `http`, `mcp` or `npm`, with the options of
        `add_<kind>`. Raises what that does, and InvalidRequest for a kind that there is not."""

    async def add_openapi(self, name: str, source: Given, **options: Unpack[OpenApiOptions]) -> AddReport:
        """Add the operations of an OpenAPI document (file, URL, text or dict) as tools of integration `name`.

        `base_url` is where the API is when the document does not say or is wrong; `server` (a URL in the document, or
        its description) and `server_variables` choose among the document's servers for every call; what they leave
        open, a call may choose. `idempotent` are patterns over the names of tools that may be called again when nobody
        knows what became of a call. For the account's `auth`, `secret`, `probe`, `scope`, `connection`, for
        `allow_private` and `replace` see `Account`. Accounts that an integration of that name had are kept.

        Raises ImportFailed (the document, its base URL, or fetching it), InvalidRequest (an argument), and Conflict
        (the name is taken and `replace` is not set); nothing is added then.
        """
        return await self.add("openapi", name, source=source, **options)

    async def add_graphql(self, name: str, source: Given, **options: Unpack[GraphQLOptions]) -> AddReport:
        """Add the root fields of a GraphQL API as tools of integration `name`, `query.<field>` and `mutation.<field>`.

        `source` is its endpoint, which is asked for its schema with the credential given here; or, with the endpoint in
        `url`, the schema (SDL or introspection JSON, as a file, URL, text or dict). With `any_query`, the tool
        `graphql` takes any document, within what the other tools may do. Other options and errors are those of
        `add_openapi`.
        """
        return await self.add("graphql", name, source=source, **options)

    async def add_http(self, name: str, allow: Sequence[str], **options: Unpack[HttpOptions]) -> AddReport:
        """Add a raw HTTP integration that may reach exactly the places in `allow`, each
        `[METHODS ]scheme://host[:port][/prefix]`; with `fetch`, the `fetch` of a script may go there too. Other options
        and errors are those of `add_openapi`."""
        return await self.add("http", name, allow=allow, **options)

    async def add_mcp(self, name: str, **options: Unpack[McpOptions]) -> AddReport:
        """Add the tools of an MCP server: a program and its arguments (`command`, run in `cwd`, by no shell and with
        this process's rights), or one at a `url`. Other options and errors are those of `add_openapi`; a program gets
        of this process's environment what `bridge.mcp.endpoint` names, and takes its secrets as variables:
        `auth={"type": "env", "name": "TOKEN", "secret": "local:token"}`.
        """
        return await self.add("mcp", name, **options)

    async def add_npm(
        self, name: str, package: str, version: str = "latest", **options: Unpack[PackageAccount]
    ) -> AddReport:
        """Add the tools that an npm package exports, with the descriptions and schemas that it gives them.

        `version` is a version, a range or a dist-tag, which is resolved now: the tools stay those of that version until
        the integration is refreshed, within the range, or added again with `replace`. They run in isolates; what they
        fetch goes where an operator granted it. Their environment is what `auth` names, and nothing else:
        `{"type": "env", "name": "KEY", "secret": "local:key"}`, or a list of such. Raises ImportFailed (it cannot be
        installed or loaded, or has no tool), InvalidRequest, and Conflict for a name in use: nothing was added.
        """
        return await self.add("npm", name, package=package, version=version, **options)
