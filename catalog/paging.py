"""From one page of a list to the arguments of the next: Link headers, next URLs, cursors, page numbers, offsets.

Nothing that an answer says is called as it stands. A next URL counts only on the origin, and for raw HTTP on the path,
that the page came from, and only its query is used; the next page is then a call of the same tool like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from bridge.wire.errors import ToolError
from catalog.model import Schema, Tool, ToolValue
from catalog.origin import BadUrl, Url, join_url

Args = dict[str, Any]

_ITEMS: Final = (
    *("items", "data", "results", "value", "values", "records", "entries", "elements", "objects", "rows", "list"),
    *("content", "hits", "resources", "nodes", "edges"),
)
_PLACES: Final = (
    *("", "meta", "pagination", "paging", "paging.cursors", "response_metadata", "page_info", "pageInfo", "cursors"),
    *("cursor", "page", "links", "_links", "data"),
)
_URLS: Final = (
    *("next", "next_url", "nextUrl", "next_page_url", "nextPageUrl", "next_link", "nextLink", "@odata.nextLink"),
    *("odata.nextLink", "next_page", "nextPage", "next_href"),
)
_CURSORS: Final = (
    *("next_cursor", "nextCursor", "next_page_token", "nextPageToken", "next_token", "nextToken", "NextToken"),
    *("continuation_token", "continuationToken", "next_page", "nextPage", "next", "end_cursor", "endCursor", "after"),
    *("cursor", "next_offset", "nextOffset"),
)
_PARAMETERS: Final = (
    *("cursor", "page_token", "next_token", "token", "continuation_token", "starting_after", "after", "start"),
    *("page", "offset"),
)
_MORE: Final = ("has_more", "hasMore", "has_next", "hasNext", "has_next_page", "hasNextPage", "more")
_PAGES: Final = ("total_pages", "totalPages", "page_count", "pageCount", "last_page", "lastPage", "pages")
_PAGE: Final = ("page", "current_page", "currentPage", "page_number", "pageNumber")
_TOTALS: Final = ("total", "total_count", "totalCount", "total_results", "totalResults")
_OFFSETS: Final = ("offset", "skip", "start", "startAt", "from")
_LINK: Final = re.compile(
    r"<([^<>]{0,8192})>((?:\s*;\s*[\w*-]{1,64}\s*=\s*(?:\"[^\"]{0,512}\"|[^\s\",;]{1,512})){0,16})"
)
_REL: Final = re.compile(r"(?i);\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s\",;]+))")


class Page(NamedTuple):
    """What a call for a page asks for: the tool's path, its arguments, and where in the answer the list stands."""

    path: str
    args: Args
    items: str | None


def asked(args: Mapping[str, Any]) -> Page:
    """Raises ToolError(invalid_arguments) for what is no `{path, args?, items?}`."""
    path, given, items = args.get("path"), args.get("args"), args.get("items")
    if not isinstance(path, str) or path.startswith("$"):
        raise ToolError("invalid_arguments", "path: it is the path of a tool.")
    if not isinstance(given, (dict, type(None))):
        raise ToolError("invalid_arguments", "args: a tool takes one object of named arguments.")
    if not isinstance(items, (str, type(None))):
        raise ToolError("invalid_arguments", 'items: it is a path into the answer, such as "data.rows".')
    return Page(path, given or {}, items)


def paged(tool: Tool, page: Page, answer: ToolValue) -> ToolValue:
    """`{items, next}`: the list in an answer, and the arguments of the page behind it, None behind the last.

    Raises ToolError: upstream_error when there is no list, or when the next page is not one that may be asked for.
    """
    items = _listed(answer.value, page.items)
    turn = _Turn(tool, page.args, answer, items)
    following = turn.next()
    if following == page.args:
        raise _lost("the page behind this one is this one again")
    return ToolValue({"items": items, "next": following}, answer.http, answer.url)


def _listed(value: Any, where: str | None) -> list[Any]:
    if where is not None:
        found = value
        for name in where.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, list):
            return found
        raise _lost(f"there is no list at {where[:80]}")
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for node in (value, *(value[name] for name in (*_ITEMS, "_embedded") if isinstance(value.get(name), dict))):
            for name in _ITEMS:
                if isinstance(listed := node.get(name), list):
                    return listed
            lists = [one for one in node.values() if isinstance(one, list)]
            if len(lists) == 1:
                return lists[0]
    raise _lost("the answer holds no list, or several")


class _Turn:
    """How one answer leads to the next page."""

    def __init__(self, tool: Tool, args: Args, answer: ToolValue, items: list[Any]) -> None:
        self._args = args
        self._items = items
        self._http = answer.http or {}
        self._from = answer.url
        schema = tool.input_schema or {}
        self._schemas: dict[str, Schema] = schema.get("properties") or {}
        self._raw = isinstance(tool.binding, dict) and tool.binding.get("raw") is True
        body = answer.value if isinstance(answer.value, dict) else {}
        self._nodes = [node for place in _PLACES if isinstance(node := _at(body, place), dict)]

    def next(self) -> Args | None:
        for url in self._urls():
            return self._at_url(url)
        if any(node.get(name) is False for node in self._nodes for name in _MORE):
            return None
        for names, value in self._cursors():
            following = self._with(names, value)
            if following is not None and following != self._args:
                return following
        if any(node.get(name) is True for node in self._nodes for name in _MORE):
            raise _lost("the answer says that there is more, and not how to ask for it")
        return None

    def _urls(self) -> Iterator[str]:
        for target, parameters in _LINK.findall((self._http.get("headers") or {}).get("link", "")):
            rels = " ".join(first or second for first, second in _REL.findall(parameters)).lower().split()
            if "next" in rels:
                yield target
        for node in self._nodes:
            for name in _URLS:
                value = node.get(name)
                value = value.get("href") or value.get("url") if isinstance(value, dict) else value
                if isinstance(value, str) and re.match(r"(?i)https?://|/|\?", value):
                    yield value
        for node in self._nodes[:1]:
            links = node.get("links")
            for one in links if isinstance(links, list) else ():
                if isinstance(one, dict) and one.get("rel") in ("next", ["next"]) and isinstance(one.get("href"), str):
                    yield one["href"]

    def _at_url(self, text: str) -> Args:
        """The arguments that lead to a next URL, if it stays where the tool is."""
        if self._from is None:
            raise _lost("the answer did not come over HTTP, yet it names a URL")
        try:
            url = join_url(self._from, text)
        except BadUrl as e:
            raise _lost(f"its URL cannot be called: {e}") from None
        if url.origin != self._from.origin:
            raise _lost("its URL is on another origin, which is not followed")
        if self._raw:
            if url.path != self._from.path:
                raise _lost("its URL has another path, which is not followed", f"Call it yourself: {url.path}")
            return {name: value for name, value in self._args.items() if name != "query"} | {"path": url.target}
        return self._declared(url)

    def _declared(self, url: Url) -> Args:
        """The arguments with those in the query of `url` that the tool declares."""
        following = dict(self._args)
        given: dict[str, list[str]] = {}
        for name, value in parse_qsl(url.query, keep_blank_values=True):
            given.setdefault(name, []).append(value)
        for name, values in given.items():
            key = self._declares([name])
            if key is not None:
                several = _types(self._schemas[key]) & {"array"}
                following[key] = values if several else _typed(values[-1], self._schemas[key])
        if following == self._args:
            raise _lost(
                "its URL differs from this one in nothing that the tool takes", f"Its query is {url.query[:200]}"
            )
        return following

    def _cursors(self) -> Iterator[tuple[list[str], Any]]:
        """Names that the argument for the next page may have, and its value; most telling first."""
        for node in self._nodes:
            for name in _CURSORS:
                value = node.get(name)
                if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
                    bare = re.sub(r"(?i)^next_?", "", name)
                    bare = bare or ("page" if isinstance(value, int) else "cursor")
                    yield [name, bare[:1].lower() + bare[1:], *_PARAMETERS], value
        more = any(node.get(name) is True for node in self._nodes for name in _MORE)
        last = self._items[-1] if self._items else None
        if more and isinstance(last, dict) and isinstance(last.get("id"), (str, int)):
            yield ["starting_after", "startingAfter"], last["id"]
        for node in self._nodes:
            page, pages = _number(node, _PAGE), _number(node, _PAGES)
            if page is not None and (page < pages if pages is not None else more):
                yield [*_PAGE, "p"], page + 1
            offset, total = _number(node, _OFFSETS), _number(node, _TOTALS)
            if (
                offset is not None
                and self._items
                and (offset + len(self._items) < total if total is not None else more)
            ):
                yield [*_OFFSETS], offset + len(self._items)

    def _with(self, names: list[str], value: Any) -> Args | None:
        """The arguments with `value` under the first of the names that the tool takes; None when it takes none."""
        if self._raw:
            return self._in_query(names, value)
        key = self._declares(names)
        return None if key is None else self._args | {key: _typed(value, self._schemas[key])}

    def _in_query(self, names: list[str], value: Any) -> Args:
        """For raw HTTP, which declares no parameters: the name that the query has already, else the first bare one."""
        if str(self._args.get("method") or "GET").upper() not in ("GET", "HEAD"):
            raise _lost("raw HTTP pages through GET alone")
        query = dict(self._args.get("query") or {})
        path, _, own = str(self._args.get("path", "")).partition("?")
        for name, one in parse_qsl(own, keep_blank_values=True):
            query.setdefault(name, one)
        name = next((name for name in names if name in query), (names[1:] or names)[0])
        return self._args | {"path": path, "query": query | {name: value}}

    def _declares(self, names: list[str]) -> str | None:
        plain = {_plain(key): key for key in self._schemas}
        return next((plain[_plain(name)] for name in names if _plain(name) in plain), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _at(body: dict[str, Any], place: str) -> Any:
    found: Any = body
    for name in place.split(".") if place else ():
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _number(node: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    found = (node.get(name) for name in names)
    return next((one for one in found if isinstance(one, int) and not isinstance(one, bool)), None)


def _types(schema: Any) -> set[str]:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return {kind} if isinstance(kind, str) else set(kind or ())


def _typed(value: Any, schema: Any) -> Any:
    """A text from a URL as the number that the schema asks for, a number as the text."""
    types = _types(schema)
    if isinstance(value, str) and types & {"integer", "number"} and re.fullmatch(r"-?[0-9]{1,18}", value):
        return int(value)
    return str(value) if types == {"string"} else value


def _lost(why: str, hint: str | None = None) -> ToolError:
    return ToolError(
        "upstream_error",
        f"The next page cannot be asked for: {why}.",
        hint=hint or "Page by hand with tools.call(path, args, {meta: true}), or name the list with {items}.",
        retryable=False,
    )
