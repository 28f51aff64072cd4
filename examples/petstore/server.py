"""A small, stateful pet store that answers the public Petstore document and refuses whatever does not match it.

Every request is validated against `openapi.json`: unknown paths and query parameters, missing or mistyped parameters,
bodies that break their schema, and calls without the credential that the document asks for.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

DOCUMENT_PATH = Path(__file__).with_name("openapi.json")
BASE_PATH = "/v2"
_DOCUMENT_URI = "urn:petstore"
_METHODS = ("get", "post", "put", "delete")


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Document:
    """The OpenAPI document, as far as a server needs it: find the operation, check the request."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        # Schemas are checked one at a time, so their references must name the document they point into.
        absolute = json.loads(json.dumps(document).replace('"$ref": "#/', f'"$ref": "{_DOCUMENT_URI}#/'))
        self._registry: Registry[Any] = Registry().with_resource(_DOCUMENT_URI, Resource(absolute, DRAFT202012))
        self._operations = [
            (re.compile("^" + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path) + "$"), method, operation)
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if method in _METHODS
        ]
        # Literal paths first, so that /pet/findByStatus is not read as /pet/{petId}.
        self._operations.sort(key=lambda entry: "(?P" in entry[0].pattern)

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            target: Any = self._document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def _check(self, schema: dict[str, Any], value: Any, where: str) -> None:
        reference = {"$ref": schema["$ref"].replace("#", f"{_DOCUMENT_URI}#")} if "$ref" in schema else schema
        for error in Draft202012Validator(reference, registry=self._registry).iter_errors(value):
            raise Refused(400, f"{where}: {error.message}")

    async def operation(self, request: Request) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """The operation that the request means, its checked parameters and its checked body."""
        path = request.url.path.removeprefix(BASE_PATH)
        known = False
        for pattern, method, operation in self._operations:
            match = pattern.match(path)
            if match is None:
                continue
            known = True
            if method != request.method.lower():
                continue
            self._authorize(operation, request)
            arguments = self._parameters(operation, match.groupdict(), request)
            return operation, arguments, await self._body(operation, request)
        raise Refused(405 if known else 404, "no such operation")

    def _authorize(self, operation: dict[str, Any], request: Request) -> None:
        if not operation.get("security"):
            return
        presented = (request.headers.get("api_key"), request.headers.get("authorization"))
        if not {"special-key", "Bearer special-key"} & set(presented):
            raise Refused(401, "this operation needs the api_key of the store")

    def _parameters(self, operation: dict[str, Any], path: dict[str, str], request: Request) -> dict[str, Any]:
        declared = [self.resolve(p) for p in operation.get("parameters", [])]
        for name in request.query_params:
            if not any(p["in"] == "query" and p["name"] == name for p in declared):
                raise Refused(400, f"unknown query parameter {name!r}")
        arguments: dict[str, Any] = {}
        for parameter in declared:
            name, where, schema = parameter["name"], parameter["in"], parameter["schema"]
            raw: Any
            if where == "path":
                raw = path.get(name)
            elif where == "header":
                raw = request.headers.get(name)
            elif schema.get("type") == "array":
                raw = request.query_params.getlist(name) or None
            else:
                raw = request.query_params.get(name)
            if raw is None:
                if parameter.get("required"):
                    raise Refused(400, f"missing {where} parameter {name!r}")
                continue
            if schema.get("type") == "integer" and isinstance(raw, str) and re.fullmatch(r"-?\d+", raw):
                raw = int(raw)
            self._check(schema, raw, f"{where} parameter {name!r}")
            arguments[name] = raw
        return arguments

    async def _body(self, operation: dict[str, Any], request: Request) -> Any:
        if "requestBody" not in operation:
            return None
        content = self.resolve(operation["requestBody"])["content"]
        if "application/json" not in content:
            return None
        try:
            body = json.loads(await request.body())
        except ValueError:
            raise Refused(400, "the body is not JSON") from None
        self._check(content["application/json"]["schema"], body, "body")
        return body


class Store:
    """The pets, the orders, and what each operation does with them."""

    def __init__(self) -> None:
        names = [
            "Biscuit",
            "Nori",
            "Pixel",
            "Mochi",
            "Turing",
            "Ada",
            "Pebble",
            "Fig",
            "Juno",
            "Socks",
            "Rune",
            "Clover",
        ]
        kinds = ["dog", "cat", "rabbit", "parrot"]
        states = ["available", "available", "pending", "sold"]
        self.pets: dict[int, dict[str, Any]] = {
            number: {
                "id": number,
                "name": name,
                "category": {"id": number % 4 + 1, "name": kinds[number % 4]},
                "photoUrls": [f"https://pets.example/{number}.jpg"],
                "tags": [{"id": number % 3, "name": ["calm", "young", "curious"][number % 3]}],
                "status": states[number * 7 % 4],
            }
            for number, name in enumerate(names, start=1)
        }
        self.orders: dict[int, dict[str, Any]] = {}

    def find(self, statuses: list[str]) -> list[dict[str, Any]]:
        return [pet for pet in self.pets.values() if pet["status"] in statuses]

    def pet(self, number: int) -> dict[str, Any]:
        if number not in self.pets:
            raise Refused(404, "Pet not found")
        return self.pets[number]

    def place(self, order: dict[str, Any]) -> dict[str, Any]:
        self.pet(order.get("petId", 0))
        number = len(self.orders) + 1
        self.orders[number] = {**order, "id": number, "status": "placed", "complete": False}
        return self.orders[number]

    def order(self, number: int) -> dict[str, Any]:
        if number not in self.orders:
            raise Refused(404, "Order not found")
        return self.orders[number]


def app() -> Starlette:
    document = Document(json.loads(DOCUMENT_PATH.read_text()))
    store = Store()

    async def serve(request: Request) -> Response:
        try:
            operation, arguments, body = await document.operation(request)
            return JSONResponse(_answer(store, operation["operationId"], arguments, body))
        except Refused as refusal:
            return JSONResponse({"code": refusal.status, "message": str(refusal)}, status_code=refusal.status)

    async def description(_: Request) -> Response:
        return JSONResponse(json.loads(DOCUMENT_PATH.read_text()))

    return Starlette(
        routes=[
            Route("/openapi.json", description),
            Route(BASE_PATH + "/{path:path}", serve, methods=["GET", "POST", "PUT", "DELETE"]),
        ]
    )


def _answer(store: Store, operation: str, arguments: dict[str, Any], body: Any) -> Any:
    match operation:
        case "findPetsByStatus":
            return store.find(arguments["status"])
        case "findPetsByTags":
            wanted = set(arguments["tags"])
            return [pet for pet in store.pets.values() if wanted & {tag["name"] for tag in pet["tags"]}]
        case "getPetById":
            return store.pet(arguments["petId"])
        case "getInventory":
            return Counter(pet["status"] for pet in store.pets.values())
        case "placeOrder":
            return store.place(body)
        case "getOrderById":
            return store.order(arguments["orderId"])
        case "deletePet":
            return store.pets.pop(store.pet(arguments["petId"])["id"])
        case _:
            raise Refused(501, f"this store does not do {operation}")
