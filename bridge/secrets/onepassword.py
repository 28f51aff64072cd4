"""`op:VAULT/ITEM/FIELD`: 1Password, by way of a Connect server."""

from __future__ import annotations

import re
from typing import Any, Final

from bridge.secrets.ports import Secret, SecretMissing, SecretUnavailable
from bridge.secrets.references import ItemKey, item_key
from bridge.secrets.server import SecretServer

_ID: Final = re.compile(r"\A[a-z0-9]{26}\Z")


class OnePasswordSecrets:
    def __init__(self, server: SecretServer) -> None:
        self._server = server

    async def resolve(self, scope: str, key: str) -> Secret:
        """Raises SecretMissing, SecretUnavailable."""
        wanted = item_key(key)
        vault = await self._id(["v1", "vaults"], "name", wanted.vault, "vault")
        item = await self._id(["v1", "vaults", vault, "items"], "title", wanted.item, "item")
        found = await self._get(["v1", "vaults", vault, "items", item], {}, f"item {wanted.item}")
        return Secret(_field(found, wanted))

    async def _id(self, path: list[str], attribute: str, name: str, what: str) -> str:
        """The id of the one vault or item of that name."""
        if _ID.match(name):
            return name
        found = await self._get(path, {"filter": f'{attribute} eq "{name}"'}, f"{what} {name}")
        rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
        # The server may compare more loosely than we do.
        ids = {str(row.get("id")) for row in rows if row.get(attribute) == name and _ID.match(str(row.get("id")))}
        if len(ids) != 1:
            many = "more than one" if ids else "no"
            raise SecretMissing(f"1Password has {many} {what} named {name}" + (": use its id" if ids else ""))
        return ids.pop()

    async def _get(self, path: list[str], query: dict[str, str], what: str) -> Any:
        status, body = await self._server.get(path, query, lambda token: {"authorization": f"Bearer {token}"})
        if status == 200:
            return body
        if status == 404:
            raise SecretMissing(f"1Password has no {what}")
        if status in (400, 401, 403):
            raise SecretMissing(f"1Password Connect refuses to give the {what}: its token is not valid or not for it")
        if status == 429 or status >= 500:
            raise SecretUnavailable(f"1Password Connect cannot answer now ({status})")
        raise SecretMissing(f"1Password Connect answers {status}, which is not an answer of its API")


def _field(item: Any, wanted: ItemKey) -> str:
    """The value of the one field of that label or id, in that section where one is named."""
    sections = {
        str(one.get("id"))
        for one in _rows(item, "sections")
        if wanted.section in (one.get("label"), one.get("id")) and one.get("id")
    }
    found = [
        one
        for one in _rows(item, "fields")
        if wanted.field in (one.get("label"), one.get("id")) and (wanted.section is None or _section(one) in sections)
    ]
    values = [one["value"] for one in found if isinstance(one.get("value"), str) and one["value"]]
    if len(values) != 1:
        many = "more than one" if values else "no text in a"
        raise SecretMissing(f"1Password's item {wanted.item} has {many} field {wanted.field}")
    return str(values[0])


def _section(field: dict[str, Any]) -> str:
    section = field.get("section")
    return str(section.get("id")) if isinstance(section, dict) else ""


def _rows(item: Any, name: str) -> list[dict[str, Any]]:
    rows = item.get(name) if isinstance(item, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
