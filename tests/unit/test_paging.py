"""From one page to the next: what answers of every common shape lead to, and what is not followed."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.wire.errors import ToolError
from catalog.model import Tool, ToolSpec, ToolValue
from catalog.origin import parse_url
from catalog.paging import Page, asked, paged

FROM = "https://api.test/items?page=1"


def tool(*names: str, raw: bool = False, **typed: str) -> Tool:
    properties = {name: {} for name in names} | {name: {"type": kind} for name, kind in typed.items()}
    spec = ToolSpec(
        "t", input_schema={"type": "object", "properties": properties}, binding={"raw": True} if raw else {}
    )
    return Tool("a.org.main.t", "a", "org", "main", spec, {})


def turn(
    body: Any, of: Tool, args: Any = None, *, link: str | None = None, items: str | None = None, url: str = FROM
) -> Any:
    """`(items, next)` of an answer."""
    http = {"status": 200, "headers": {"link": link} if link else {}}
    found = paged(of, Page(of.path, args or {}, items), ToolValue(body, http, parse_url(url))).value
    return found["items"], found["next"]


@pytest.mark.parametrize(
    ("body", "args", "following"),
    [
        ({"items": [1], "next_cursor": "c"}, {"q": "x"}, {"q": "x", "cursor": "c"}),
        ({"items": [1], "nextCursor": "c"}, {}, {"cursor": "c"}),
        ({"items": [1], "nextPageToken": "c"}, {}, {"page_token": "c"}),
        ({"data": [1], "meta": {"next_cursor": "c"}}, {}, {"cursor": "c"}),
        ({"channels": [1], "response_metadata": {"next_cursor": "c"}}, {}, {"cursor": "c"}),
        ({"data": [1], "paging": {"cursors": {"after": "c"}}}, {}, {"after": "c"}),
        ({"nodes": [1], "pageInfo": {"hasNextPage": True, "endCursor": "c"}}, {}, {"cursor": "c"}),
        ({"data": [{"id": "a"}, {"id": "b"}], "has_more": True}, {}, {"starting_after": "b"}),
        ({"items": [1], "page": 1, "total_pages": 3}, {}, {"page": 2}),
        ({"items": [1], "next_page": 2}, {"page": 1}, {"page": 2}),
        ({"items": [1, 2], "offset": 0, "total": 5}, {}, {"offset": 2}),
        ({"items": [1], "next": "https://api.test/items?page=2&x=9"}, {}, {"page": 2}),
        ({"items": [1], "links": {"next": "/items?page=2"}}, {}, {"page": 2}),
        ({"_embedded": {"pets": [1]}, "_links": {"next": {"href": "?cursor=a%20b"}}}, {}, {"cursor": "a b"}),
        ({"value": [1], "@odata.nextLink": "https://api.test/items?cursor=s"}, {}, {"cursor": "s"}),
        ({"items": [1], "links": [{"rel": "self", "href": "/"}, {"rel": "next", "href": "?page=2"}]}, {}, {"page": 2}),
        # the last page
        ({"items": [1], "next_cursor": None}, {}, None),
        ({"items": [1], "next_cursor": ""}, {}, None),
        ({"items": [1], "next": None}, {}, None),
        ({"items": [1], "has_more": False, "next_cursor": "c"}, {}, None),
        ({"items": [1], "page": 3, "total_pages": 3}, {}, None),
        ({"items": [1], "offset": 4, "total": 5}, {}, None),
        ({"items": [1], "pageInfo": {"hasNextPage": False, "endCursor": "c"}}, {}, None),
        # a cursor that is the one that was asked with
        ({"items": [1], "cursor": "c"}, {"cursor": "c"}, None),
    ],
)  # fmt: skip
def test_an_answer_leads_to_the_arguments_of_the_next_page(body: Any, args: Any, following: Any) -> None:
    of = tool("q", "cursor", "page_token", "after", "starting_after", page="integer", offset="integer")
    assert turn(body, of, args)[1] == following


@pytest.mark.parametrize(
    ("link", "following"),
    [
        ('<https://api.test/items?page=2>; rel="next", <https://api.test/items?page=9>; rel="last"', {"page": 2}),
        ('<https://api.test/items?page=9>; rel=last, </other?page=2>; title="a, b"; rel=next', {"page": 2}),
        ('<https://api.test/items?page=2>; rel="prefetch next"', {"page": 2}),
        ('<https://api.test/items?page=1>; rel="first"', None),
        ("garbage <", None),
        ("", None),
    ],
)
def test_a_link_header_leads_to_the_next_page(link: str, following: Any) -> None:
    assert turn([1, 2], tool(page="integer"), link=link) == ([1, 2], following)


def test_raw_http_goes_to_the_next_url_on_its_own_path_and_keeps_its_headers() -> None:
    of = tool("path", "query", "headers", raw=True)
    args = {"path": "/items", "query": {"page": 1}, "headers": {"x": "y"}}
    link = '<https://api.test/items?page=2&per=5>; rel="next"'
    assert turn([1], of, args, link=link)[1] == {"path": "/items?page=2&per=5", "headers": {"x": "y"}}
    assert turn({"items": [1], "next_cursor": "c"}, of, {"path": "/items?a=b"})[1] == {
        "path": "/items", "query": {"a": "b", "cursor": "c"}}  # fmt: skip
    assert turn({"items": [1], "nextPageToken": "c"}, of, {"path": "/items", "query": {"pageToken": "b"}})[1] == {
        "path": "/items", "query": {"pageToken": "c"}}  # fmt: skip


@pytest.mark.parametrize(
    ("link", "raw", "why"),
    [
        ("<https://evil.test/items?page=2>", False, "another origin"),
        ("<http://api.test/items?page=2>", False, "another origin"),
        ("<https://api.test:444/items?page=2>", True, "another origin"),
        ("<//169.254.169.254/items?page=2>", True, "another origin"),
        ("<https://api.test/admin?page=2>", True, "another path"),
        ("</items/../admin?page=2>", True, "another path"),
        ("<https://api.test@evil.test/items?page=2>", True, "cannot be called"),
        ("<file:///etc/passwd>", True, "cannot be called"),
        ("<https://api.test/items?page=1>", False, "nothing that the tool takes"),
        ("<https://api.test/items?secret_cursor=2>", False, "nothing that the tool takes"),
        ("<https://api.test/items?page=1>", True, "this one again"),
    ],
)
def test_a_next_url_that_leads_elsewhere_or_nowhere_is_not_followed(link: str, raw: bool, why: str) -> None:
    """SSRF-48"""
    of = tool("path", "query", raw=True) if raw else tool(page="integer")
    args = {"path": "/items?page=1"} if raw else {"page": 1}
    with pytest.raises(ToolError, match=why) as caught:
        turn([1], of, args, link=f'{link}; rel="next"')
    assert (caught.value.code, caught.value.retryable) == ("upstream_error", False)


@pytest.mark.parametrize(
    ("body", "where", "items"),
    [
        ([1], None, [1]),
        (None, None, []),
        ({"total": 1, "items": []}, None, []),
        ({"data": {"items": [1]}}, None, [1]),
        ({"pets": [1], "n": 1}, None, [1]),
        ({"a": {"b": [1]}, "c": [2]}, "a.b", [1]),
    ],
)
def test_the_list_in_an_answer_is_found(body: Any, where: str | None, items: list[Any]) -> None:
    assert turn(body, tool(), items=where) == (items, None)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ("text", None),
        ({"a": 1}, None),
        ({"a": [1], "b": [2]}, None),
        ({"a": [1]}, "b"),
        ([1], "a"),
        ({"a": {}}, "a.b.c"),
    ],
)
def test_an_answer_without_a_list_is_an_error_that_says_so(body: Any, where: str | None) -> None:
    with pytest.raises(ToolError, match="list"):
        turn(body, tool(), items=where)


def test_more_that_nobody_says_how_to_ask_for_is_an_error_and_not_an_end() -> None:
    with pytest.raises(ToolError, match="there is more"):
        turn({"items": [1], "has_more": True}, tool("q"))


@pytest.mark.parametrize(
    "args", [{}, {"path": 1}, {"path": "$search"}, {"path": "a", "args": [1]}, {"path": "a", "items": 1}]
)
def test_what_asks_for_no_page_is_refused(args: Any) -> None:
    with pytest.raises(ToolError) as caught:
        asked(args)
    assert caught.value.code == "invalid_arguments"
