"""An npm registry, asked through the egress gate: manifests, and archives from the registry's own origin alone.

No credential is sent and none is looked for: no `.npmrc`, no `.netrc`, no variable of the environment.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import anyio
import anyio.to_thread

from bridge.client import Answer, Client
from bridge.egress import Gate, Grant, Named
from bridge.npm.rules import Rules
from bridge.npm.settings import NpmSettings
from bridge.outbound import BUSY, MAX_REDIRECTS, REDIRECTS
from bridge.wire.errors import ConfigError, PackageUnavailable, ToolError
from catalog.kinds.npm import specs
from catalog.kinds.npm.manifest import Manifest, Packument
from catalog.kinds.npm.specs import Spec
from catalog.origin import BadUrl, Url, hides_dots, join_url, parse_url, reach_of
from catalog.patience import retry_after_ms

MAX_REPEATS: Final = 2
FIRST_WAIT_S: Final = 0.5
MAX_WAIT_S: Final = 15.0
_PARALLEL: Final = 16
_FULL: Final = [("accept", "application/json")]
_SHORT: Final = [("accept", "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8")]
_KEPT: Final = 128
_IN_THREAD: Final = 128 * 1024

pause: Final = anyio.sleep


class Registry:
    """One registry. What it says of a package is believed for `fresh_s` seconds."""

    def __init__(self, client: Client, gate: Gate, settings: NpmSettings, rules: Rules) -> None:
        """Raises ConfigError for a registry that is no http(s) URL."""
        try:
            self.url = parse_url((settings.registry or "").rstrip("/") + "/")
        except BadUrl as e:
            raise ConfigError(f"The npm registry cannot be used: {e}.") from None
        if self.url.query:
            raise ConfigError("The npm registry cannot be used: its URL has a query.")
        self._client = client
        self._gate = gate
        self._settings = settings
        self._rules = rules
        # Whoever sets the registry names its host: it may be a mirror on a private network.
        own = Named(self.url.netloc, self.url.host.name, None, self.url.port)
        private = (
            gate.grant((), [self.url.netloc]).private if self.url.host.address is not None else (own, *gate.private)
        )
        self._grant = Grant((reach_of(self.url, methods=("GET",)),), private)
        self._places = anyio.Semaphore(_PARALLEL)
        self._busy: dict[str, anyio.Event] = {}
        self._packuments: OrderedDict[str, tuple[float, Packument]] = OrderedDict()
        self._manifests: OrderedDict[str, Manifest] = OrderedDict()

    async def manifest(self, spec: Spec) -> Manifest:
        """The version that `spec` leads to. Raises PackageUnavailable."""
        self._rules.check_part(spec.name, None)
        if spec.kind == "version" and not self._settings.min_age_s and not self._fresh(spec.name):
            # One version is asked for by itself: all of them can be a thousand times as long.
            return await self._alone(spec)
        packument = await self._packument(spec.name)
        if packument.picks_at_once(spec):
            return packument.pick(spec)
        return await anyio.to_thread.run_sync(packument.pick, spec)

    async def archive(self, manifest: Manifest) -> bytes:
        """The bytes of a package's archive, not yet checked. Raises PackageUnavailable."""
        url = self._archive_url(manifest)
        answer = await self._get(url, [("accept", "*/*")], manifest.label, self._settings.limits.packed)
        return answer.body

    def _archive_url(self, manifest: Manifest) -> Url:
        text = manifest.dist.get("tarball")
        try:
            url = join_url(self.url, text) if isinstance(text, str) else None
        except BadUrl:
            url = None
        if url is None or url.origin != self.url.origin or hides_dots(url.path):
            raise PackageUnavailable(
                f"The registry has the archive of {manifest.label} at another place than its own.",
                hint="Archives are taken from the origin of the registry alone.",
            )
        return url

    def _fresh(self, name: str) -> bool:
        known = self._packuments.get(name)
        return known is not None and anyio.current_time() - known[0] < self._settings.fresh_s

    async def _packument(self, name: str) -> Packument:
        async with _Turn(self._busy, name):
            if not self._fresh(name):
                headers = _FULL if self._settings.min_age_s else _SHORT
                facts = await self._document(name, _escaped(name), headers)
                made = await _in_thread(len(facts), self._read_packument, name, facts)
                self._packuments[name] = anyio.current_time(), made
                while len(self._packuments) > _KEPT:
                    self._packuments.popitem(last=False)
            return self._packuments[name][1]

    def _read_packument(self, name: str, data: bytes) -> Packument:
        return Packument(name, _parsed(name, data), min_age_s=self._settings.min_age_s, now=time.time())

    async def _alone(self, spec: Spec) -> Manifest:
        async with _Turn(self._busy, str(spec)):
            known = self._manifests.get(str(spec))
            if known is None:
                data = await self._document(str(spec), f"{_escaped(spec.name)}/{spec.text}", _FULL)
                facts = _parsed(str(spec), data)
                known = Manifest.read(spec.name, facts)
                if known.version != spec.text:
                    raise PackageUnavailable(f"The registry answers with {known.label} for {spec}.", reason="integrity")
                self._manifests[str(spec)] = known
                while len(self._manifests) > 4 * _KEPT:
                    self._manifests.popitem(last=False)
            return known

    async def _document(self, label: str, target: str, headers: list[tuple[str, str]]) -> bytes:
        answer = await self._get(self.url.at(self.url.path + target), headers, label, self._settings.limits.metadata)
        return answer.body

    async def _get(self, url: Url, headers: list[tuple[str, str]], label: str, limit: int) -> Answer:
        try:
            async with self._places:
                answer = await self._patient(url, headers, limit)
        except ToolError as e:
            if e.code == "too_large":
                what = f"{label} is larger than the {limit} bytes that it may have."
                raise PackageUnavailable(what, reason="too_large") from None
            if e.code == "egress_denied":
                raise PackageUnavailable(f"The npm registry cannot be asked: {e.message}", hint=e.hint) from None
            why = f"The npm registry could not be asked about {label}: {e.message}"
            raise PackageUnavailable(why, reason="unreachable") from None
        if answer.status in (404, 405, 410):
            raise PackageUnavailable(f"There is no {label} in the registry.", reason="not_found")
        if answer.status != 200 or answer.cut is not None:
            raise PackageUnavailable(
                f"The npm registry answered {answer.status} when it was asked about {label}.", reason="unreachable"
            )
        return answer

    async def _patient(self, url: Url, headers: list[tuple[str, str]], limit: int) -> Answer:
        for repeat in range(MAX_REPEATS + 1):
            answer = await self._followed(url, headers, limit)
            if answer.status not in BUSY or repeat == MAX_REPEATS:
                return answer
            asked = retry_after_ms(answer.headers)
            seconds = FIRST_WAIT_S * 2**repeat if asked is None else asked / 1000
            if seconds > MAX_WAIT_S:
                return answer
            await pause(seconds)
        raise AssertionError("the last answer has been returned")

    async def _followed(self, url: Url, headers: list[tuple[str, str]], limit: int) -> Answer:
        origin = url.origin
        for _ in range(MAX_REDIRECTS + 1):
            self._gate.check("GET", url, self._grant)
            answer = await self._client.exchange("GET", url, headers, None, grant=self._grant, limit=limit)
            location = next((value for name, value in answer.headers if name == "location"), None)
            if answer.status not in REDIRECTS or location is None:
                return answer
            try:
                url = join_url(url, location)
            except BadUrl as e:
                raise ToolError("upstream_error", f"it redirects to what is no URL: {e}") from None
            if url.origin != origin:
                raise ToolError("egress_denied", f"{origin} redirects to another place.")
        raise ToolError("upstream_error", f"{origin} redirects more than {MAX_REDIRECTS} times.")


class _Turn:
    """One at a time for a key; whoever comes later finds what the first has brought."""

    def __init__(self, busy: dict[str, anyio.Event], key: str) -> None:
        self._busy = busy
        self._key = key

    async def __aenter__(self) -> None:
        while (other := self._busy.get(self._key)) is not None:
            await other.wait()
        self._busy[self._key] = anyio.Event()

    async def __aexit__(self, *_: object) -> None:
        self._busy.pop(self._key).set()


def _escaped(name: str) -> str:
    return quote(name, safe="@").replace("%2F", "%2f")  # as npm itself writes it


def _parsed(label: str, data: bytes) -> Mapping[str, Any]:
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise PackageUnavailable(
            f"The npm registry answered something that is no JSON about {label}.", reason="unreachable"
        )
    return facts


async def _in_thread(size: int, work: Any, *args: Any) -> Any:
    return work(*args) if size < _IN_THREAD else await anyio.to_thread.run_sync(work, *args)


def spec_of(name: str, text: str) -> Spec:
    """What a caller asks for. Raises PackageUnavailable."""
    return specs.parse(name, text or "latest", asked=True)
