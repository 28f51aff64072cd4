"""What a script's `fetch` may reach: the places of HTTP integrations that were added for it, and nothing else."""

from __future__ import annotations

from typing import Any, NamedTuple

from bridge.wire.errors import ToolError
from catalog.kinds.http import GET, READING, REQUEST
from catalog.origin import BadUrl, Url, hides_dots, join_url, parse_url
from catalog.registry import Installed, Registry


class Granted(NamedTuple):
    """The call that a `fetch` is: the tool at `path` with `args`. `follow` False: a redirect is the answer."""

    path: str
    args: dict[str, Any]
    follow: bool


def granted(registry: Registry, asked: dict[str, Any]) -> Granted:
    """The call for `{url, method?, headers?, body?, follow?}`, by method, origin and the longest path prefix.

    Raises ToolError: invalid_arguments for what is no request, egress_denied when nothing was granted for it or it is
    not plain which account it means.
    """
    method, url = str(asked.get("method") or "GET").upper(), _url(asked.get("url"))
    installed = _nearest(registry, method, url)
    if len(installed.connections) != 1:
        raise _denied(
            f"{installed.name} reaches {url.origin} with {len(installed.connections)} accounts, and fetch names none.",
            f"Call the one that you mean: tools.{installed.name}.<scope>.<connection>.{REQUEST}({{ path: … }}).",
        )
    (account,) = installed.connections.values()
    tool = GET if method in READING else REQUEST
    args = {name: asked[name] for name in ("headers", "body") if asked.get(name) is not None}
    return Granted(
        f"{account.label}.{tool}", args | {"path": str(url), "method": method}, asked.get("follow") is not False
    )


def _url(text: Any) -> Url:
    try:
        parsed = parse_url(text if isinstance(text, str) else "")
        url = join_url(parsed, parsed.target)
    except BadUrl as e:
        raise ToolError("invalid_arguments", f"url: {e}.") from None
    if hides_dots(url.path):
        raise ToolError("invalid_arguments", "url: its path holds encoded dot segments or separators.")
    return url


def _nearest(registry: Registry, method: str, url: Url) -> Installed:
    found: list[tuple[tuple[int, bool], Installed]] = []
    for installed in registry.integrations():
        if installed.kind == "http" and installed.config.get("fetch") is True:
            near = [
                (len(one.prefix), not one.host.startswith("*."))
                for one in installed.manifest.reach
                if one.covers(method, url)
            ]
            if near:
                found.append((max(near), installed))
    best = max((rank for rank, _ in found), default=None)
    chosen = [installed for rank, installed in found if rank == best]
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        names = " and ".join(installed.name for installed in chosen)
        raise _denied(f"{url.origin} is granted by {names}, and fetch names none.", "Call the tool that you mean.")
    raise _denied(
        f"fetch is not granted for {method} {url.origin}{url.path[:200]}.",
        f"An operator can grant it: executor add http NAME --allow {url.origin} --fetch",
    )


def _denied(message: str, hint: str) -> ToolError:
    return ToolError("egress_denied", message, hint=hint)
