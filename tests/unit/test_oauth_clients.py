"""Which client an account is, and where it signs in."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import build_schema, introspection_from_schema

from bridge.wire.errors import InvalidRequest, ToolError
from tests.unit.authority import (
    CLIENT,
    REDIRECT,
    SECRET,
    Authority,
    aged,
    api,
    auth,
    authority,
    connected,
    signed_in,
    visit,
)
from tests.unit.upstream import Seen, call, document, operation, response, toolbox

pytestmark = pytest.mark.anyio


async def test_the_client_of_a_connection_is_shown_without_its_secret() -> None:
    async with authority() as one, toolbox() as box:
        await connected(box, one)
        await signed_in(box)
        facts = await box.account_facts("api", "org", "main")
        assert facts["oauth"]["client_id"] == CLIENT
        assert facts["secrets"] == ["local:client"]
        assert not any(secret in repr(facts) for secret in one.issued)
        assert auth(one)["client_id"] == CLIENT


@pytest.mark.parametrize("token_auth", ["basic", "post"])
async def test_a_client_proves_itself_as_the_server_wants(token_auth: str) -> None:
    async with authority() as one, toolbox() as box:
        await connected(box, one, token_auth=token_auth)
        await signed_in(box)
        assert ("client_secret" in one.asked[0]) == (token_auth == "post")
        await box.set_secret("client", "wrong-secret-here")
        begun = await box.authorize("api", redirect_uri=REDIRECT)
        with pytest.raises(ToolError) as caught:
            await box.finish_authorization(await visit(begun["url"]), principal="sdk")
        assert caught.value.details == {"error": "invalid_client"}


async def test_a_client_may_register_itself() -> None:
    async with authority() as one, toolbox() as box:
        await connected(box, one, issuer=one.base, authorization_url=None, token_url=None, client_id=None, secret=None)
        await signed_in(box)
        assert (await api(box))["ok"]
        assert one.registered[0]["redirect_uris"] == [REDIRECT]
        await signed_in(box)
        assert len(one.registered) == 1
        await aged(box, 3600)
        assert (await api(box))["ok"]


def described(one: Authority, scheme: dict[str, Any]) -> dict[str, Any]:
    paths = {"/api": {"get": operation()}}
    return document(paths, one.base, components={"securitySchemes": {"login": scheme}}, security=[{"login": []}])


@pytest.mark.parametrize("kind", ["code", "relative", "discovery", "client", "swagger"])
async def test_a_document_says_how_to_sign_in(kind: str) -> None:
    async with authority() as one, toolbox() as box:
        await box.set_secret("client", SECRET)
        flow = {
            "authorizationUrl": one.base + "/authorize",
            "tokenUrl": one.base + "/token",
            "scopes": {"a": "", "b": ""},
        }
        schemes: dict[str, dict[str, Any]] = {
            "code": {"type": "oauth2", "flows": {"implicit": flow, "authorizationCode": flow}},
            "relative": {
                "type": "oauth2",
                "flows": {"authorizationCode": flow | {"authorizationUrl": "/authorize", "tokenUrl": "token"}},
            },
            "discovery": {"type": "openIdConnect", "openIdConnectUrl": one.base + "/.well-known/openid-configuration"},
            "client": {"type": "oauth2", "flows": {"clientCredentials": flow}},
            "swagger": {"type": "oauth2", "flow": "accessCode"} | flow,
        }
        source = described(one, schemes[kind])
        if kind == "swagger":
            source = {"swagger": "2.0", "info": source["info"], "host": one.base[7:], "schemes": ["http"]} | {
                "paths": source["paths"],
                "securityDefinitions": {"login": schemes[kind]},
                "security": [{"login": []}],
            }
        one.server.answers["/.well-known/openid-configuration"] = response(one.metadata())
        part = {"type": "oauth2", "client_id": CLIENT}
        report = await box.add_openapi("api", source, auth=part, secret="local:client", allow_private=["127.0.0.1"])
        assert [each.where for each in report.diagnostics] == ([] if kind == "client" else ["oauth"])
        if kind != "client":
            await signed_in(box)
            assert one.authorized[0].get("scope") == (None if kind == "discovery" else "a b")
        assert (await call(box, "api.org.main.op")).value["ok"]


async def test_many_scopes_are_chosen_by_the_operator() -> None:
    async with authority() as one, toolbox() as box:
        scopes = {f"s{number}": "" for number in range(40)}
        flow = {"authorizationUrl": one.base + "/authorize", "tokenUrl": one.base + "/token", "scopes": scopes}
        source = described(one, {"type": "oauth2", "flows": {"authorizationCode": flow}})
        part = {"type": "oauth2", "client_id": CLIENT}
        with pytest.raises(InvalidRequest, match="40 scopes"):
            await box.add_openapi("api", source, auth=part, allow_private=["127.0.0.1"])
        await box.add_openapi("api", source, auth=part | {"scopes": ["s1"]}, allow_private=["127.0.0.1"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"flow": "implicit"},
        {"flow": "password"},
        {"token_auth": "jwt"},
        {"scopes": ['a"b']},
        {"scopes": "a" * 300},
        {"parameters": {"state": "mine"}},
        {"parameters": {"redirect_uri": "https://evil.test"}},
        {"token_url": "http://login.test/token"},
        {"client_id": None},
        {"client_id": "a\nb"},
        {"secret": "hunter2hunter2"},
        {"scheme": "nowhere"},
        {"unknown": 1},
        {"flow": "client_credentials", "secret": None},
    ],
    ids=str,
)
async def test_a_client_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    async with authority() as one, toolbox() as box:
        with pytest.raises(InvalidRequest) as caught:
            await connected(box, one, **wrong)
        assert "hunter2" not in str(caught.value.as_dict())
        assert box.integrations() == []


async def test_offline_access_is_asked_for_where_it_is_offered() -> None:
    async with authority(extra={"scopes_supported": ["a", "offline_access"]}) as one, toolbox() as box:
        await connected(box, one, issuer=one.base, authorization_url=None, token_url=None)
        await signed_in(box)
        assert one.authorized[0]["scope"] == "a b offline_access"
        await aged(box, 3600)
        assert (await api(box))["ok"]
        assert "scope" not in one.asked[-1]


async def test_a_graphql_endpoint_is_asked_for_its_schema_once_somebody_has_signed_in() -> None:
    schema = build_schema("type Query { hello: String }")

    async def graphql(seen: Seen, reader: Any, writer: Any) -> None:
        if (seen.header("authorization") or "").removeprefix("Bearer ") not in one.tokens:
            writer.write(response({}, status=401))
        elif b"__schema" in seen.body:
            writer.write(response({"data": introspection_from_schema(schema)}))
        else:
            writer.write(response({"data": {"hello": "you"}}))

    async with authority() as one, toolbox() as box:
        one.server.answers["/graphql"] = graphql
        await box.set_secret("client", SECRET)
        report = await box.add_graphql("api", one.base + "/graphql", auth=auth(one), allow_private=["127.0.0.1"])
        assert report.tools == []
        done = await signed_in(box)
        assert done["tools"] == ["api.org.main.query.hello"]
        assert (await call(box, "api.org.main.query.hello")).value == "you"
        assert (await box.refresh("api")).awaiting == []


@pytest.mark.parametrize("place", ["https://169.254.169.254/token", "https://10.0.0.1/token", "https://[::1]:1/token"])
async def test_a_token_endpoint_in_a_private_place_is_not_asked(place: str) -> None:
    """What a server's metadata names goes through the same gate as everything else."""
    async with authority(extra={"token_endpoint": place}) as one, toolbox() as box:
        await connected(box, one, issuer=one.base, authorization_url=None, token_url=None)
        begun = await box.authorize("api", redirect_uri=REDIRECT)
        with pytest.raises(ToolError) as caught:
            await box.finish_authorization(await visit(begun["url"]), principal="sdk")
        assert caught.value.code == "egress_denied"
