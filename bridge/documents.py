"""API descriptions from wherever they are: a URL through the egress gate, a file, or the text itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import anyio.from_thread
import anyio.to_thread

from bridge.client import Client
from bridge.egress import Gate, Grant
from bridge.oauth.accounts import OAuth
from bridge.outbound import MAX_REDIRECTS, REDIRECTS, Passage
from bridge.reach import check_reach
from bridge.secrets.providers import Providers
from bridge.wire.errors import ImportFailed, InvalidRequest, ToolError
from catalog.model import Connection, Manifest
from catalog.origin import BadUrl, Url, join_url, parse_url, reach_of

FETCH_S: Final = 60.0
INTROSPECTED: Final = 32 * 1024 * 1024
"""Bytes of an endpoint's answer about itself."""
_ACCEPT: Final = [("accept", "application/json, application/yaml, text/yaml, */*;q=0.5")]


class Endpoint(NamedTuple):
    """A GraphQL endpoint, which is asked for its own description by the account that uses it."""

    url: str
    account: Connection


Source = str | Path | bytes | Mapping[str, Any] | Endpoint


def is_url(source: str) -> bool:
    return source[:8].lower().startswith(("http://", "https://"))


class Documents:
    """Where descriptions of APIs come from, within the egress gate and a limit of bytes."""

    def __init__(self, client: Client, gate: Gate, limit: int, providers: Providers, oauth: OAuth) -> None:
        self._client = client
        self._gate = gate
        self._limit = limit
        self._providers = providers
        self._oauth = oauth

    async def open(
        self, source: Source, allow_private: Sequence[str]
    ) -> tuple[bytes | str | Mapping[str, Any], dict[str, Any]]:
        """The document, and what to remember: `document_url`, where a URL led, and `source`, to read it again from; a
        document that was given itself has none. Raises ImportFailed."""
        if isinstance(source, Endpoint):
            account = [source.account.scope, source.account.name]
            remembered = {"document_url": None, "source": {"endpoint": source.url, "account": account}}
            return await self._introspected(source, allow_private), remembered
        if isinstance(source, str) and is_url(source):
            grant = self._gate.grant((), allow_private)
            document, url = await fetch(source, self._client, self._gate, grant, self._limit)
            return document, {"document_url": url, "source": {"url": source}}
        kept = None
        if isinstance(source, Path) or (isinstance(source, str) and not _is_text(source)):
            # Whoever reads it again may be in another folder.
            kept = {"file": str(await anyio.to_thread.run_sync(Path(source).absolute))}
        return await read(source, self._limit), {"document_url": None, "source": kept}

    def others(self, allow_private: Sequence[str]) -> Callable[[str], bytes]:
        """What fetches the documents that another refers to, for a thread: within their origin, the egress gate, the
        limit of bytes each, and FETCH_S for all of them."""
        grant = self._gate.grant((), allow_private)
        until = anyio.current_time() + FETCH_S

        async def one(text: str) -> bytes:
            left = until - anyio.current_time()
            document, _ = await fetch(text, self._client, self._gate, grant, self._limit, seconds=left, elsewhere=False)
            return document

        return lambda text: anyio.from_thread.run(one, text)

    async def _introspected(self, source: Endpoint, allow_private: Sequence[str]) -> Mapping[str, Any]:
        from catalog.kinds.graphql import introspection
        from catalog.kinds.graphql.integration import endpoint

        async def announce() -> None:
            """It reads, so nothing is recorded first."""

        url = endpoint(source.url)
        grant = self._gate.grant((reach_of(url, prefix=url.path, methods=("POST",)),), allow_private)
        passage = Passage(
            self._client,
            self._gate,
            grant,
            source.account,
            self._providers,
            self._oauth,
            min(self._limit, INTROSPECTED),
            announce,
        )
        passage.deadline = anyio.current_time() + FETCH_S
        try:
            with anyio.fail_after(FETCH_S):
                return await introspection.introspected(url, passage)
        except TimeoutError:
            raise ImportFailed(f"The schema of {url.origin} did not arrive in {FETCH_S:.0f} s.") from None

    async def check_reach(self, manifest: Manifest, allow_private: Sequence[str]) -> None:
        """Refuse a base URL that could never be called. Raises ImportFailed."""
        grant = self._gate.grant(manifest.reach, allow_private)
        await check_reach(manifest, grant, self._gate, self._client)


def recorded(source: Any, name: str) -> str | Path:
    """What `Documents.open` remembered, to open again. Raises InvalidRequest when there is nothing."""
    if isinstance(source, Mapping) and "url" in source:
        return str(source["url"])
    if isinstance(source, Mapping) and "file" in source:
        return Path(str(source["file"]))
    raise InvalidRequest(
        f"{name} was added from a document that was given itself: there is nowhere to read it again.",
        hint="Give the new document, as a file, a URL or data.",
    )


async def fetch(
    text: str,
    client: Client,
    gate: Gate,
    grant: Grant,
    limit: int,
    *,
    seconds: float = FETCH_S,
    elsewhere: bool = True,
) -> tuple[bytes, str]:
    """The document at the URL and the URL that it was found at. Every redirect is checked like the first request, and
    leads to another origin only where it may (`elsewhere`).

    Raises ImportFailed.
    """
    try:
        with anyio.fail_after(seconds):
            return await _fetch(parse_url(text), client, gate, grant, limit, elsewhere)
    except BadUrl as e:
        why, hint = str(e), None
    except ToolError as e:
        why, hint = e.message, e.hint
    except TimeoutError:
        why, hint = f"it did not arrive in {max(0.0, seconds):.0f} s", None
    raise ImportFailed(f"The document at {text[:200]} cannot be fetched: {why.rstrip('.')}.", hint=hint)


async def _fetch(url: Url, client: Client, gate: Gate, grant: Grant, limit: int, elsewhere: bool) -> tuple[bytes, str]:
    origin = url.origin
    for _ in range(MAX_REDIRECTS + 1):
        here = Grant((reach_of(url),), grant.private)
        gate.check("GET", url, here)
        answer = await client.exchange("GET", url, _ACCEPT, None, grant=here, limit=limit)
        location = next((value for name, value in answer.headers if name == "location"), None)
        if answer.status in REDIRECTS and location is not None:
            url = join_url(url, location)
            if url.origin != origin and not elsewhere:
                raise ToolError("egress_denied", "it is redirected to another origin")
            continue
        if answer.status != 200:
            raise ToolError("upstream_error", f"the server answered {answer.status}", status=answer.status)
        if answer.cut is not None:
            raise ToolError("upstream_error", "the server answers with a stream, which is no document")
        return answer.body, str(url)
    raise ToolError("upstream_error", f"it is redirected more than {MAX_REDIRECTS} times")


async def read(source: str | Path | bytes | Mapping[str, Any], limit: int) -> bytes | str | Mapping[str, Any]:
    """What `source` holds: text that begins like a document is taken as one, other text as a path.

    Raises ImportFailed.
    """
    if isinstance(source, str) and _is_text(source):
        return source
    if isinstance(source, (str, Path)):
        return await anyio.to_thread.run_sync(_file, Path(source), limit)
    return source


def _is_text(source: str) -> bool:
    return source.lstrip()[:1] in ("{", "[", "<") or "\n" in source


def _file(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as e:
        raise ImportFailed(f"The file {path.name} cannot be read: {e.strerror or 'not a file'}.") from None
    except ValueError:
        raise ImportFailed("The path of the document is not one.") from None
    if len(data) > limit:
        raise ImportFailed(f"The file {path.name} is larger than {limit} bytes.")
    return data
