"""Credentials in a request: each in its place alone, over whatever the caller had put there, or nowhere."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from bridge.placement import Credential, place
from bridge.secrets.ports import Secret
from bridge.wire.errors import ToolError
from catalog.model import Placement
from catalog.origin import parse_url

URL = parse_url("https://a.test/x?b=1&&c=2")


def credential(
    carrier: Any, field: str = "", value: str = "s3cret", *, username: str = "", prefix: str = ""
) -> Credential:
    return Credential(Placement("", carrier, field, "env:TOKEN", prefix), Secret(value), Secret(username))


def placed(*credentials: Credential, url: Any = URL, headers: Any = ()) -> tuple[str, list[tuple[str, str]]]:
    where, out = place(url, headers, credentials, "shop.org.main")
    return where.target, out


def test_a_header_replaces_the_callers_and_has_its_prefix() -> None:
    target, headers = placed(
        credential("header", "X-Key", prefix="Token "), headers=[("x-key", "mine"), ("x-other", "kept")]
    )
    assert headers == [("x-other", "kept"), ("x-key", "Token s3cret")]
    assert target == URL.target


def test_a_parameter_replaces_the_callers_however_it_is_spelt() -> None:
    url = URL.at("/x?k%65y=1&b=1&key=2&&c")
    assert placed(credential("query", "key", "a&b=ü"), url=url) == ("/x?b=1&c&key=a%26b%3D%C3%BC", [])
    assert placed(credential("query", "key"), url=URL.at("/x")) == ("/x?key=s3cret", [])


def test_a_cookie_replaces_the_callers_and_leaves_the_others() -> None:
    headers = [("cookie", "a=1; sid=mine ;"), ("accept", "*/*"), ("cookie", "b=2")]
    assert placed(credential("cookie", "sid"), headers=headers)[1] == [
        ("accept", "*/*"),
        ("cookie", "a=1; b=2; sid=s3cret"),
    ]


def test_a_variable_of_the_environment_is_in_no_request() -> None:
    assert placed(credential("env", "TOKEN", "any\nthing")) == (URL.target, [])


@pytest.mark.parametrize(
    ("username", "value", "pair"),
    [("me", "s3cret", "me:s3cret"), ("", "me:s3cret", "me:s3cret"), ("ü", "a: ~", "ü:a: ~"), ("", "", "")],
)
def test_basic_is_the_pair_in_one_header(username: str, value: str, pair: str) -> None:
    _, headers = placed(credential("basic", value=value, username=username), headers=[("authorization", "mine")])
    assert headers == [("authorization", "Basic " + base64.b64encode(pair.encode()).decode())]


def test_each_of_several_has_its_place() -> None:
    several = (credential("header", "X-A", "1"), credential("query", "q", "2"), credential("header", "X-B", "3"))
    assert placed(*several, url=URL.at("/x")) == ("/x?q=2", [("x-a", "1"), ("x-b", "3")])


@pytest.mark.parametrize(
    "one",
    [
        *(credential("header", "X-Key", value) for value in ("a\r\nx: y", "a\n", "\x7f", "é", "a ", " a", "\0")),
        *(credential("cookie", "sid", value) for value in ("a;b", "a,b", 'a"', "a b", "a\\", "", "\x7f", "a\n", "é")),
        *(credential("basic", value=value, username="me") for value in ("a\n", "a\x1f", "\x7f", "\0")),
        credential("basic", username="a:b"),
        credential("basic", username="a\r"),
        credential("header", "X-Key", prefix="Bearer\n"),
    ],
    ids=lambda one: f"{one.placement.carrier} {one.placement.prefix}{one.username.reveal()}{one.value.reveal()!r}",
)
def test_a_secret_that_its_place_cannot_hold_is_refused_and_not_shown(one: Credential) -> None:
    """SEC-12: no line break ends a header early."""
    with pytest.raises(ToolError) as caught:
        placed(one)
    assert caught.value.code == "connection_missing"
    assert "shop.org.main" in str(caught.value)
    assert one.value.reveal() == "" or repr(one.value.reveal())[1:-1] not in str(caught.value)
