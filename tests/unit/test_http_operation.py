"""What a client is told about a body or query that does not fit: fields by name, and words of JSON."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from bridge.wire.errors import InvalidRequest
from executor.http import integration_schemas, schemas
from executor.validation import validated

HTTP = {"kind": "http", "name": "a", "allow": ["https://a.test"]}


@pytest.mark.parametrize(
    ("model", "value", "message"),
    [
        (schemas.CallRequest, {"args": None}, "field 'args' must be an object"),
        (schemas.RunRequest, {}, "field 'code' is missing"),
        (
            schemas.RunRequest,
            {"code": 5, "wait": 1},
            "field 'code' must be a string; field 'wait' must be true or false",
        ),
        (schemas.RunRequest, {"code": "", "labels": {"a": 5}}, "field 'labels.a' must be a string"),
        (schemas.RunRequest, {"code": "", "str[x]": 5}, "unknown field 'str[x]'"),
        (schemas.RunsQuery, {"limit": 501}, "field 'limit' must be at most 500"),
        (integration_schemas.SecretRequest, {"value": "x"}, "field 'value' must have at least 8 characters"),
        (integration_schemas.IntegrationRequest, {}, "field 'kind' is missing"),
        (
            integration_schemas.IntegrationRequest,
            {"kind": "x"},
            "field 'kind' must be one of 'openapi', 'graphql', 'http', 'mcp', 'npm'",
        ),
        (integration_schemas.IntegrationRequest, HTTP | {"allow": []}, "field 'allow' must hold at least 1"),
        (integration_schemas.IntegrationRequest, HTTP | {"allow": 5}, "field 'allow' must be an array"),
        (
            integration_schemas.IntegrationRequest,
            HTTP | {"auth": 5},
            "field 'auth' must be 'bearer', 'basic', 'oauth2' or 'none', or an object, or an array",
        ),
        (
            integration_schemas.IntegrationRequest,
            {"kind": "openapi", "name": "a", "source": 5},
            "field 'source' must be a string, or an object",
        ),
        (
            integration_schemas.ConnectionRequest,
            {"integration": "A"},
            "field 'integration' must match the pattern ^[a-z0-9][a-z0-9_-]{0,62}$",
        ),
    ],
)
def test_a_field_that_does_not_fit_is_told_in_words_of_json(
    model: type[BaseModel], value: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        validated(model, value, "field", strict=True)
    assert caught.value.message == message
