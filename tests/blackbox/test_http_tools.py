"""Integrations, tools, secrets and policies over HTTP, against a real API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.petstore import server as petstore
from tests.blackbox.server import Server, serving
from tests.blackbox.upstream import petstore_running

DOCUMENT = json.loads(Path(petstore.DOCUMENT_PATH).read_text())
SECRET = "special-key"


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with petstore_running() as url:
        yield url


@pytest.fixture(scope="module")
def server(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the pet store added."""
    with serving(tmp_path_factory.mktemp("tools")) as running:
        assert running.ask("PUT", "/secrets/shop", {"value": SECRET}).status == 204
        added = running.ask("POST", "/integrations", _request("pets", shop))
        assert added.status == 201, added.body
        yield running


def _request(name: str, url: str) -> dict[str, object]:
    return {
        "kind": "openapi",
        "name": name,
        "source": DOCUMENT,
        "base_url": url,
        "secret": "local:shop",
        "auth": {"type": "header", "name": "api_key"},
        "allow_private": ["127.0.0.1"],
    }


def test_an_added_api_is_tools(server: Server) -> None:
    listed = server.ask("GET", "/tools?limit=3").json
    assert len(listed["items"]) == 3
    assert listed["total"] >= 15
    assert listed["items"][0]["path"].startswith("pets.org.main.")
    found = server.ask("GET", "/tools?query=find+pets+by+status").json
    assert "findPetsByStatus" in found["items"][0]["path"]


def test_every_tool_is_listed_once_page_by_page(server: Server) -> None:
    paths: list[str] = []
    cursor = ""
    while True:
        page = server.ask("GET", f"/tools?limit=4{cursor}").json
        paths += [item["path"] for item in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert len(paths) == len(set(paths)) == page["total"]


def test_a_tool_is_described_and_called(server: Server) -> None:
    path = server.ask("GET", "/tools?query=find+pets+by+status").json["items"][0]["path"]
    described = server.ask("GET", f"/tools/{path}")
    assert described.status == 200
    assert "status" in described.body.decode()
    called = server.ask("POST", f"/tools/{path}/call", {"args": {"status": ["available"]}})
    assert called.status == 200, called.body
    assert isinstance(called.json["value"], list)
    with_meta = server.ask("POST", f"/tools/{path}/call", {"args": {"status": ["available"]}, "meta": True}).json
    assert with_meta["http"]["status"] == 200


def test_a_script_and_the_door_get_the_same_value(server: Server) -> None:
    path = server.ask("GET", "/tools?query=find+pets+by+status").json["items"][0]["path"]
    args = {"status": ["available"]}
    by_script = server.run(f"await tools[{path!r}](input)", input=args)
    assert by_script["status"] == "completed", by_script
    assert by_script["result"] == server.ask("POST", f"/tools/{path}/call", {"args": args}).json["value"]
    assert [call["path"] for call in by_script["calls"]] == [path]


def test_a_call_that_fails_says_which_way(server: Server) -> None:
    missing = server.ask("POST", "/tools/pets.org.main.nope/call", {"args": {}})
    assert (missing.status, missing.code) == (404, "tool_not_found")
    path = server.ask("GET", "/tools?query=find+pet+by+id").json["items"][0]["path"]
    wrong = server.ask("POST", f"/tools/{path}/call", {"args": {"petId": "x"}})
    assert (wrong.status, wrong.code) == (400, "invalid_arguments")


def test_a_write_needs_approval_until_a_rule_says_otherwise(server: Server) -> None:
    path = server.ask("GET", "/tools?query=place+an+order").json["items"][0]["path"]
    order = {"args": {"body": {"petId": 1, "quantity": 1}}}
    refused = server.ask("POST", f"/tools/{path}/call", order)
    assert (refused.status, refused.code) == (403, "approval_required")
    name = path.removeprefix("pets.org.main.")
    rule = server.ask("POST", "/policies", {"target": "pets", "pattern": name, "effect": "approve"})
    assert rule.status == 201
    assert server.ask("POST", "/policies/explain", {"path": path}).json["effect"] == "approve"
    assert server.ask("POST", f"/tools/{path}/call", order).status in (200, 400, 502)
    assert rule.json["id"] in [each["id"] for each in server.ask("GET", "/policies").json["policies"]]
    assert server.ask("DELETE", f"/policies/{rule.json['id']}").status == 204
    assert server.ask("POST", "/policies/explain", {"path": path}).json["effect"] == "require_approval"


def test_a_blocked_tool_is_not_there(server: Server) -> None:
    path = server.ask("GET", "/tools?query=find+pet+by+id").json["items"][0]["path"]
    rule = server.ask("POST", "/policies", {"target": "pets", "pattern": path[14:], "effect": "block"}).json
    try:
        assert server.ask("GET", f"/tools/{path}").status == 404
        assert path not in json.dumps(server.ask("GET", "/tools?limit=500").json)
    finally:
        server.ask("DELETE", f"/policies/{rule['id']}")
    assert server.ask("GET", f"/tools/{path}").status == 200


def test_a_secret_is_named_and_never_told(server: Server) -> None:
    assert server.ask("PUT", "/secrets/other", {"value": "cnry_0123456789abcdef"}).status == 204
    assert {"other", "shop"} <= set(server.ask("GET", "/secrets").json["secrets"])
    for path in ("/secrets", "/integrations", "/integrations/pets", "/health", "/metrics", "/tools"):
        body = server.ask("GET", path).body
        assert b"cnry_" not in body
        assert SECRET.encode() not in body
    assert server.ask("GET", "/secrets/other").status == 405
    assert server.ask("DELETE", "/secrets/other").status == 204
    assert server.ask("DELETE", "/secrets/other").status == 404


@pytest.mark.parametrize(
    ("reference", "status", "code"),
    [
        ("env:PATH", 403, "forbidden"),
        ("file:/etc/passwd", 403, "forbidden"),
        ("the-value-itself", 400, "invalid_request"),
    ],
)
def test_a_key_cannot_reach_into_the_servers_environment(
    server: Server, shop: str, reference: str, status: int, code: str
) -> None:
    request = _request("leak", shop) | {"secret": reference}
    reply = server.ask("POST", "/integrations", request)
    assert (reply.status, reply.code) == (status, code)
    assert "leak" not in json.dumps(server.ask("GET", "/integrations").json)


@pytest.mark.parametrize("source", ["/etc/passwd", "file:///etc/passwd", "openapi.json", ""])
def test_a_document_is_a_url_or_itself_never_a_file_of_the_server(server: Server, source: str) -> None:
    reply = server.ask("POST", "/integrations", {"kind": "openapi", "name": "x", "source": source})
    assert reply.status == 400


def test_a_document_that_is_none_adds_nothing(server: Server) -> None:
    reply = server.ask("POST", "/integrations", {"kind": "openapi", "name": "broken", "source": {"openapi": "3.0.0"}})
    assert reply.status == 422
    assert reply.code == "import_failed"
    assert "broken" not in json.dumps(server.ask("GET", "/integrations").json)


def test_a_name_is_taken_once_and_free_again_when_removed(server: Server, shop: str) -> None:
    assert server.ask("POST", "/integrations", _request("twice", shop)).status == 201
    assert server.ask("POST", "/integrations", _request("twice", shop)).status == 409
    assert server.ask("GET", "/integrations/twice").json["kind"] == "openapi"
    assert server.ask("DELETE", "/integrations/twice").status == 204
    assert server.ask("GET", "/integrations/twice").status == 404
    assert server.ask("GET", "/tools?integration=twice").json["items"] == []


def test_a_private_address_is_refused_unless_it_is_named(server: Server, shop: str) -> None:
    request = _request("private", shop) | {"allow_private": []}
    added = server.ask("POST", "/integrations", request)
    if added.status == 201:
        path = next(each for each in added.json["tools"] if "findPetsByStatus" in each)
        reply = server.ask("POST", f"/tools/{path}/call", {"args": {"status": ["available"]}})
        assert (reply.status, reply.code) == (403, "egress_denied")
        server.ask("DELETE", "/integrations/private")
    else:
        assert added.status in (403, 422)


def test_plain_http_reaches_only_what_was_allowed(server: Server, shop: str) -> None:
    added = server.ask(
        "POST", "/integrations", {"kind": "http", "name": "raw", "allow": [shop], "allow_private": ["127.0.0.1"]}
    )
    assert added.status == 201, added.body
    assert added.json["tools"]
    server.ask("DELETE", "/integrations/raw")
    nothing = server.ask("POST", "/integrations", {"kind": "http", "name": "raw", "allow": []})
    assert nothing.status == 400
