"""What a kind of integration is, what it is asked, and what it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from bridge.accounts import Auth
from bridge.adding import Given
from bridge.wire.errors import InvalidRequest
from catalog.model import Connection, Integration, Manifest
from catalog.registry import Installed

if TYPE_CHECKING:
    from bridge.calls import CallContext
    from bridge.client import Client
    from bridge.connections import Connections
    from bridge.documents import Documents
    from bridge.egress import Gate
    from bridge.oauth.accounts import OAuth
    from bridge.outbound import ToolCaller
    from bridge.secrets.providers import Providers
    from bridge.settings import ToolboxSettings
    from catalog.kinds.npm.tree import Lock
    from catalog.oauth import OAuthClient

UNLISTED: Final = "unlisted"
"""In the configuration of what says only to somebody who has signed in what its tools are, before anybody has."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An integration to add, whatever its kind. `host`: whoever asks is at this machine, and may send the credentials
    of accounts that are kept for the name to new places."""

    name: str
    scope: str = "org"
    connection: str = "main"
    auth: Auth = None
    secret: str | None = None
    probe: str | None = None
    replace: bool = False
    host: bool = True

    @property
    def place(self) -> tuple[str, str]:
        return self.scope, self.connection

    @property
    def tells(self) -> bool:
        """Whether it says how the account authenticates, which takes the place then of one that is there."""
        return (self.auth, self.secret, self.probe) != (None, None, None)


class Found(NamedTuple):
    """What a description makes of an integration: what is kept of how it was asked for, and what it offers."""

    integration: Integration
    config: dict[str, Any]
    manifest: Manifest


class PackageHost(Protocol):
    """Installs and runs npm packages."""

    async def listed(self, package: str, version: str, env: Mapping[str, str]) -> tuple[Lock, list[Any]]:
        """What a package is resolved to, and what it says of its tools when it has `env`. Raises ImportFailed."""
        ...

    async def call(
        self, lock: Lock, export: str, args: Mapping[str, Any], context: CallContext, env: Mapping[str, str]
    ) -> Any:
        """Run one export of it. Raises ToolError."""
        ...


@dataclass(frozen=True, slots=True)
class Means:
    """What the kinds do their work with."""

    settings: ToolboxSettings
    client: Client
    gate: Gate
    providers: Providers
    connections: Connections
    documents: Documents
    oauth: OAuth


class House(Protocol):
    """Where the integrations are, as their kinds see it."""

    means: Means
    packages: Callable[[], PackageHost] | None

    def installed(self, name: str) -> Installed | None: ...

    async def account(self, installed: Installed, asked: Asked, probe: str | None = None) -> Connection:
        """The account as asked for; what it needs to know of an authorization server is asked there. Raises
        InvalidRequest, ImportFailed."""
        ...

    async def kept(self, asked: Asked) -> Connection | None:
        """The account of that place that the name has already, or that is kept for it."""
        ...

    def carried(self, account: Connection, installed: Installed, host: bool) -> Connection:
        """The account with the places of the integration, as far as `host` may send its credentials there."""
        ...

    def may_go_on(self, account: Connection, host: bool) -> bool:
        """Whether whoever asks may send the credentials of an account to new places."""
        ...

    def check_programs(self, *, host: bool) -> None:
        """Raises Forbidden when the caller is not at this machine and may not have programs run on it."""
        ...

    async def offered(self, account: Connection, without: Sequence[str]) -> None:
        """Take note of which tools of its integration an account is not offered."""
        ...

    async def relisted(self, old: Installed, found: Found) -> None:
        """An integration has said by itself that its tools are others now: that goes the way of every refresh."""
        ...


class Kind(ABC):
    """One kind of integration. What it keeps open it closes in `aclose`."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.means = house.means

    @abstractmethod
    async def proposed(self, asked: Asked, *_: Any, **options: Any) -> tuple[Installed, Connection]:
        """The integration as it would be added, and its account. Raises ImportFailed, InvalidRequest, Forbidden."""

    async def read_again(self, old: Installed, source: Given | None) -> Found:
        """What the integration is by now, or by `source`. Raises ImportFailed, InvalidRequest."""
        raise InvalidRequest(f"{old.name} is of kind {old.kind}, which cannot be read again: add it with replace.")

    async def told_to(self, account: Connection, old: Installed) -> Found:
        """What the integration is to one of its accounts. Raises ImportFailed, InvalidRequest."""
        return await self.read_again(old, None)

    def protected(self, config: Mapping[str, Any]) -> str:
        """The URL of a server that names its own authorization server; empty: there is none."""
        return ""

    async def moved(self, account: Connection, old: Installed) -> OAuthClient | None:
        """The client at another authorization server, where the integration's server names another by now."""
        return None

    async def refreshed(self, installed: Installed) -> None:
        """The integration was read again: its other accounts may be offered other tools by now."""
        return

    def caller(self, installed: Installed, account: Connection) -> ToolCaller | None:
        """What calls the tools by one of the accounts, where it is not done by sending requests."""
        return None

    async def let_go(self, integration: str, scope: str | None = None, connection: str | None = None) -> None:
        """End what is kept open for an integration, or for one of its accounts."""
        return

    async def aclose(self) -> None:
        """Safe to call again."""
        return
