"""Documents of several files, schemas with names of their own, and what a document says about its tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.wire.errors import ImportFailed
from catalog.kinds.openapi import bundle
from catalog.kinds.openapi.integration import OpenApi
from catalog.model import Manifest, ToolSpec
from tests.unit.upstream import Seen, call, document, operation, parameter, redirect, response, toolbox, upstream

pytestmark = pytest.mark.anyio

BASE = "https://api.test"


def read(folder: Path, name: str = "openapi.yaml") -> Manifest:
    path = folder / name
    return OpenApi("api").resolve_tools({"document": path.read_bytes(), "source": {"file": str(path)}})


def written(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def only(manifest: Manifest) -> ToolSpec:
    (spec,) = manifest.tools
    return spec


def test_a_document_of_many_files_is_read_as_one(tmp_path: Path) -> None:
    paths = {"/pets/{id}": {"$ref": "paths/pet.yaml"}}
    written(
        tmp_path,
        {
            "openapi.yaml": document(paths, BASE),
            "paths/pet.yaml": "get:\n  operationId: op\n  parameters:\n    - $ref: ../shared.json#/Id\n"
            "  responses:\n    '200':\n      description: fine\n      content:\n        application/json:\n"
            "          schema: {$ref: '../schemas/Pet.yml'}\n",
            "shared.json": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}},
            "schemas/Pet.yml": "type: object\nproperties:\n  mother: {$ref: Pet.yml}\n"
            "  kind: {$ref: './kinds.yaml#/a~1b'}\n",
            "schemas/kinds.yaml": "a/b: {type: string, enum: [cat]}\n",
        },
    )
    manifest = read(tmp_path)
    assert manifest.diagnostics == ()
    spec = only(manifest)
    assert spec.input_schema is not None
    assert spec.input_schema["properties"]["id"]["type"] == "integer"
    assert spec.output_schema == {"$ref": "#/$defs/Pet"}
    assert manifest.definitions["Pet"]["properties"]["mother"] == {"$ref": "#/$defs/Pet"}
    kind = manifest.definitions["Pet"]["properties"]["kind"]["$ref"].removeprefix("#/$defs/")
    assert manifest.definitions[kind]["enum"] == ["cat"]


def test_a_file_may_refer_back_to_the_document(tmp_path: Path) -> None:
    shared = {"a": {"$ref": "openapi.yaml#/components/schemas/N"}}
    components = {"schemas": {"N": {"type": "integer"}}}
    described = document({"/x": {"get": operation(parameter("q", schema={"$ref": "b.json#/a"}))}}, BASE)
    written(tmp_path, {"openapi.yaml": described | {"components": components}, "b.json": shared})
    manifest = read(tmp_path)
    assert manifest.diagnostics == ()
    assert {"type": "integer"} in manifest.definitions.values()


@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("../outside.yaml#/S", "not in the folder"),
        ("../../../../../../../../../../../../outside.yaml#/S", "not in the folder"),
        ("/outside.yaml#/S", "not in the folder"),
        ("%2e%2e/outside.yaml#/S", "not in the folder"),
        ("link.yaml#/S", "no such file"),
        ("gone.yaml#/S", "no such file"),
        (".hidden.yaml#/S", "not a JSON or YAML file"),
        ("notes.txt#/S", "not a JSON or YAML file"),
        ("broken.json#/S", "line 1 column 2"),
        ("folder.yaml#/S", "no such file"),
    ],
)
def test_nothing_outside_the_folder_is_read(tmp_path: Path, ref: str, why: str) -> None:
    secret = "S: {type: string, description: the-secret}\n"
    folder = tmp_path / "inside"
    described = document({"/x": {"get": operation(parameter("q", schema={"$ref": ref}))}}, BASE)
    written(
        folder, {"openapi.yaml": described, ".hidden.yaml": secret, "notes.txt": secret, "broken.json": "{", "f": ""}
    )
    written(tmp_path, {"outside.yaml": secret})
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (folder / "folder.yaml").mkdir()
    manifest = read(folder)
    assert "the-secret" not in str(manifest)
    assert why in str(manifest.diagnostics)
    assert only(manifest).name == "op"


def test_files_are_not_read_for_a_document_that_was_given_itself(tmp_path: Path, monkeypatch: Any) -> None:
    written(tmp_path, {"b.yaml": "S: {type: string, description: the-secret}\n"})
    monkeypatch.chdir(tmp_path)
    described = document({"/x": {"get": operation(parameter("q", schema={"$ref": "b.yaml#/S"}))}}, BASE)
    for config in ({}, {"document_url": "https://docs.test/openapi.json"}, {"source": {"url": "https://docs.test/"}}):
        manifest = OpenApi("api").resolve_tools({"document": described} | config)
        assert "the-secret" not in str(manifest)
        assert "leads outside the document" in str(manifest.diagnostics)


async def test_a_set_of_files_is_added_and_refreshed_by_its_path(tmp_path: Path) -> None:
    async with upstream() as server, toolbox() as box:
        described = document({"/x": {"$ref": "x.yaml"}}, server.base)
        written(tmp_path, {"openapi.yaml": described, "x.yaml": {"get": operation(parameter("q"))}})
        await box.add_openapi("api", tmp_path / "openapi.yaml", allow_private=["127.0.0.1"])
        assert (await call(box, "api.org.main.op", {"q": "1"})).value["target"] == "/x?q=1"
        written(tmp_path, {"x.yaml": {"get": operation(parameter("r"))}})
        await box.refresh("api")
        assert (await call(box, "api.org.main.op", {"r": "2"})).value["target"] == "/x?r=2"


def test_the_document_that_was_given_is_left_as_it_is() -> None:
    described = document({"/x": {"get": operation(parameter("q", schema={"$ref": "#a"}))}}, BASE)
    described["components"] = {"schemas": {"A": {"$anchor": "a", "type": "integer"}}}
    before = json.dumps(described)
    manifest = OpenApi("api").resolve_tools({"document": described})
    assert manifest.definitions["A"]["type"] == "integer"
    assert json.dumps(described) == before


def test_a_reference_from_the_root_is_understood_within_a_schema_that_has_an_id() -> None:
    schemas = {"A": {"$id": "https://s.test/a", "$ref": "#/components/schemas/B"}, "B": {"type": "integer"}}
    described = document({"/x": {"get": operation(parameter("q", schema={"$ref": "https://s.test/a"}))}}, BASE)
    manifest = OpenApi("api").resolve_tools({"document": described | {"components": {"schemas": schemas}}})
    assert manifest.diagnostics == ()
    assert manifest.definitions["B"] == {"type": "integer"}


def test_references_in_examples_and_defaults_are_data() -> None:
    schema = {"type": "object", "properties": {"default": {"type": "string"}}, "default": {"$ref": "gone.yaml"}}
    described = document({"/x": {"post": operation(body=schema)}}, BASE, openapi="3.1.0")
    described["components"] = {"schemas": {"A": {"$anchor": "a", "example": {"$ref": "gone.yaml"}}}}
    manifest = OpenApi("api").resolve_tools({"document": described})
    assert manifest.diagnostics == ()
    assert only(manifest).input_schema["properties"]["body"]["default"] == {"$ref": "gone.yaml"}  # type: ignore[index]


def test_a_document_may_name_its_tools_hide_them_and_say_what_they_do() -> None:
    paths = {
        "/a": {"post": operation(**{"x-executor-name": "pets.find", "x-executor-side-effect": "read"})},
        "/b": {"get": operation(operationId="pets.find")},
        "/c": {"get": operation(operationId="c", **{"x-executor-hidden": True})},
        "/d": {"x-executor-hidden": True, "get": operation(operationId="d")},
        "/e": {"get": operation(operationId="e", **{"x-executor-name": "not a name", "x-executor-side-effect": "all"})},
        "/f": {
            "get": operation(operationId="f", **{"x-executor-name": "pets.find", "x-executor-side-effect": "delete"})
        },
    }
    manifest = OpenApi("api").resolve_tools({"document": document(paths, BASE)})
    found = {spec.source: (spec.name, spec.side_effect) for spec in manifest.tools}
    assert found["POST /a"] == ("pets.find", "read")
    assert found["GET /b"][0].startswith("pets.find_")
    assert found["GET /e"] == ("e", "read")
    assert found["GET /f"] == ("f", "delete")
    assert len(found) == 4
    told = [one.message for one in manifest.diagnostics]
    assert "x-executor-name 'not a name' is passed over: it is no name" in told
    assert "x-executor-name 'pets.find' is passed over: another operation has it" in told
    assert any("x-executor-side-effect 'all' is passed over" in one for one in told)


@pytest.mark.parametrize(
    ("chosen", "base"),
    [
        ({}, "https://a.test/v1"),
        ({"server": "https://b.test/{v}"}, "https://b.test/v1"),
        ({"server": "the other one"}, "https://b.test/v1"),
        ({"server_variables": {"v": "v2"}}, "https://a.test/v2"),
        ({"server": "the other one", "server_variables": {"v": "v3"}}, "https://b.test/v3"),
    ],
)
def test_the_operator_chooses_among_the_servers(chosen: dict[str, Any], base: str) -> None:
    variables = {"v": {"default": "v1"}}
    servers = [
        {"url": "https://a.test/{v}", "variables": variables},
        {"url": "https://b.test/{v}", "variables": variables, "description": "the other one"},
    ]
    manifest = OpenApi("api").resolve_tools(
        {"document": document({"/x": {"get": operation()}}, "", servers=servers)} | chosen
    )
    assert only(manifest).binding["base"] == base
    open_ = set(only(manifest).input_schema["properties"])  # type: ignore[index]
    assert open_ == {"server", "server_variables"} - set(chosen)
    assert len(manifest.reach) == (1 if "server" in chosen else 2)


async def test_a_document_from_a_url_is_read_with_those_of_its_origin_that_it_refers_to() -> None:
    async with upstream() as server, toolbox(allow_private=["127.0.0.1"]) as box:
        pet = {"type": "object", "properties": {"mother": {"$ref": "pet.json"}, "kind": {"$ref": "/kinds#/kinds/k"}}}
        body = {"$ref": f"{server.base}/api/schemas/pet.json"}
        server.reply("/api/openapi.json", document({"/x": {"$ref": "paths/x.yaml"}}, server.base))
        server.reply("/api/paths/x.yaml", {"post": operation(body=body)})
        server.reply("/api/schemas/pet.json", pet)
        server.answers["/kinds"] = response(b"kinds: {k: {enum: [cat]}}\nback: {$ref: '/api/schemas/pet.json'}\n")
        report = await box.add_openapi("api", f"{server.base}/api/openapi.json")
        assert (report.tools, report.diagnostics) == (["api.org.main.op"], [])
        assert sorted(one.target for one in server.seen) == [
            "/api/openapi.json",
            "/api/paths/x.yaml",
            "/api/schemas/pet.json",
            "/kinds",
        ]
        told = box.describe("api.org.main.op", schemas=True)
        assert '"cat"' in json.dumps(told["input_schema"])
        server.answers["/api/paths/x.yaml"] = response(
            {"post": operation(body=body), "get": operation(operationId="more")}
        )
        assert [one["tool"] for one in (await box.refresh("api")).added] == ["more"]


@pytest.mark.parametrize("how", ["elsewhere", "redirect", "missing", "garbage", "metadata"])
async def test_what_a_document_refers_to_elsewhere_is_reported_and_not_fetched(how: str) -> None:
    """SSRF-53: no reference, and no redirect of one, leads to another origin."""
    async with upstream() as server, upstream() as other, toolbox(allow_private=["127.0.0.1"]) as box:
        other.reply("/secret", {"type": "string"})
        targets = {"elsewhere": f"{other.base}/secret", "metadata": "http://169.254.169.254/latest"}
        paths = {
            "/x": {"post": operation(body={"$ref": targets.get(how, "part.json")})},
            "/y": {"get": operation(operationId="fine")},
        }
        server.reply("/openapi.json", document(paths, server.base))
        parts = {"redirect": redirect(f"{other.base}/secret"), "garbage": response(b"<html>")}
        server.answers["/part.json"] = parts.get(how, response({}, status=404))
        report = await box.add_openapi("api", f"{server.base}/openapi.json")
        assert "api.org.main.fine" in report.tools
        assert "is not read" in report.diagnostics[0].message
        assert other.seen == []


async def test_a_document_that_refers_to_ever_more_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MAX_FETCHED", 20)
    async with upstream() as server, toolbox(allow_private=["127.0.0.1"]) as box:

        async def endless(seen: Seen, reader: Any, writer: Any) -> None:
            number = int(seen.target.removeprefix("/part"))
            writer.write(response({"properties": {"next": {"$ref": f"/part{number + 1}"}}}))

        server.answers["*"] = endless
        server.reply("/openapi.json", document({"/x": {"post": operation(body={"$ref": "/part1"})}}, server.base))
        with pytest.raises(ImportFailed, match="more than 20 others"):
            await box.add_openapi("api", f"{server.base}/openapi.json")
        assert len(server.seen) == 21
