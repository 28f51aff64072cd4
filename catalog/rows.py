"""Integrations and connections as rows of the store, and back."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, fields, replace
from importlib import import_module
from typing import Any, Final, cast

from pydantic_core import from_json

from catalog.model import Connection, Diagnostic, Integration, Manifest, Placement, ToolSpec
from catalog.oauth import OAuthClient
from catalog.origin import Reach
from catalog.registry import Installed
from catalog.review import Review
from catalog.store import ConnectionRow, IntegrationRow

KINDS: Final = {
    "openapi": ("catalog.kinds.openapi.integration", "OpenApi"),
    "graphql": ("catalog.kinds.graphql.integration", "GraphQL"),
    "http": ("catalog.kinds.http", "Http"),
    "mcp": ("catalog.kinds.mcp.integration", "Mcp"),
    "npm": ("catalog.kinds.npm.integration", "Npm"),
}
"""Where the kinds are that are stored; each is imported when there is one. Tools made of Python callables live as long
as their process."""
_SPEC: Final = tuple(field.name for field in fields(ToolSpec))


def integration(kind: str, name: str) -> Integration:
    """An integration of a kind that is stored. Raises KeyError for one that there is not."""
    module, noun = KINDS[kind]
    made: Integration = getattr(import_module(module), noun)(name)
    return made


def row_of(installed: Installed) -> IntegrationRow:
    config = json.dumps(dict(installed.config), ensure_ascii=False)
    packed = _packed(installed.manifest)
    return IntegrationRow(
        installed.name, installed.kind, config, packed, installed.created_at, installed.review.as_json()
    )


def _packed(manifest: Manifest) -> bytes:
    """The manifest as compressed JSON, a piece at a time: all of its text would be several times its size."""
    facts = _facts(manifest)
    packer = zlib.compressobj(3)
    out = bytearray()

    def write(text: str) -> None:
        out.extend(packer.compress(text.encode("utf-8", "surrogatepass")))

    write(_json(facts)[:-1] + ',"definitions":{')
    for index, (name, schema) in enumerate(manifest.definitions.items()):
        write(f"{',' if index else ''}{_json(name)}:{_json(schema)}")
    write('},"tools":[')
    for index, spec in enumerate(manifest.tools):
        write(f"{',' if index else ''}{_json({field: getattr(spec, field) for field in _SPEC})}")
    write("]}")
    return bytes(out + packer.flush())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _facts(manifest: Manifest) -> dict[str, Any]:
    return {
        "title": manifest.title,
        "description": manifest.description,
        "diagnostics": manifest.diagnostics,
        "reach": [asdict(one) for one in manifest.reach],
        "offered": [asdict(one) for one in manifest.offered],
        "schemes": manifest.schemes,
        "security": manifest.security,
        "kept": manifest.kept,
    }


def installed_of(row: IntegrationRow, connections: list[ConnectionRow]) -> Installed:
    """Raises ValueError, KeyError or TypeError when the row is not one that this version can read."""
    try:
        packed = zlib.decompress(row.manifest)
    except zlib.error as e:
        raise ValueError("the manifest is damaged") from e
    data = _read(packed)
    manifest = Manifest(
        tools=tuple(ToolSpec(**spec) for spec in data["tools"]),
        title=data["title"],
        description=data["description"],
        diagnostics=tuple(Diagnostic(*one) for one in data["diagnostics"]),
        definitions=data["definitions"],
        reach=tuple(_reach(one) for one in data["reach"]),
        offered=tuple(_reach(one) for one in data.get("offered", ())),
        schemes=data["schemes"],
        security=data["security"],
        kept=data.get("kept", ""),
    )
    made = integration(row.kind, row.name)
    if (restore := getattr(made, "restore", None)) is not None:
        restore(manifest)
    installed = Installed(made, json.loads(row.config), manifest, row.created_at)
    installed.review = Review.from_json(row.review)
    for one in connections:
        account = connection_of(one)
        known = account if account.reach is not None else replace(account, reach=manifest.places)
        installed.connections[one.scope, one.name] = known
    return installed


def _read(packed: bytes) -> dict[str, Any]:
    try:
        return cast(dict[str, Any], from_json(packed))
    except ValueError:
        # Lone surrogates and deep nesting are for the slower reader.
        return cast(dict[str, Any], json.loads(packed.decode("utf-8", "surrogatepass")))


def _reach(data: dict[str, Any]) -> Reach:
    methods = data["methods"]
    return Reach(**(data | {"methods": tuple(methods) if methods is not None else None}))


def row_of_connection(connection: Connection, created_at: float) -> ConnectionRow:
    placements = [asdict(placement) for placement in connection.placements]
    reach = None if connection.reach is None else [asdict(one) for one in connection.reach]
    facts: dict[str, Any] = {"placements": placements, "probe": connection.probe, "reach": reach}
    if connection.oauth is not None:
        facts["oauth"] = connection.oauth.as_dict()
    if connection.without:
        facts["without"] = connection.without
    config = json.dumps(facts)
    return ConnectionRow(connection.integration, connection.scope, connection.name, config, created_at)


def connection_of(row: ConnectionRow) -> Connection:
    config = json.loads(row.config)
    placements = tuple(Placement(**one) for one in config["placements"])
    oauth = config.get("oauth")
    return Connection(
        row.integration,
        row.scope,
        row.name,
        placements,
        config.get("probe", ""),
        _places(config.get("reach")),
        None if oauth is None else OAuthClient.from_dict(oauth),
        tuple(config.get("without", ())),
    )


def _places(data: list[dict[str, Any]] | None) -> tuple[Reach, ...] | None:
    return None if data is None else tuple(_reach(one) for one in data)
