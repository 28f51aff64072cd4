# ruff: noqa: E501 (a row of a table is read across)
"""URL and URLSearchParams as the URL Standard has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from guest_host import value

CASES = json.loads((Path(__file__).parents[1] / "data" / "url_cases.json").read_text())
"""Text, base and href (or null for a failure): what two independent implementations agree on."""


def test_many_urls_parse_to_what_the_standard_says() -> None:
    source = "input.map(([url, base]) => (base === null ? URL.parse(url) : URL.parse(url, base))?.href ?? null)"
    # lone surrogates cannot be sent: they are written as escapes and read by the script
    got = value(
        f"const cases = JSON.parse(input); {source.replace('input', 'cases')}", json.dumps([case[:2] for case in CASES])
    )
    wrong = [(case, href) for case, href in zip(CASES, got, strict=True) if case[2] != href]
    assert wrong == []


PARTS = [
    ("https://user:pa%20ss@example.com:8080/a/b?q=1#h",
     ["https://example.com:8080", "https:", "user", "pa%20ss", "example.com:8080", "example.com", "8080", "/a/b", "?q=1", "#h"]),
    ("http://example.com:80", ["http://example.com", "http:", "", "", "example.com", "example.com", "", "/", "", ""]),
    ("file:///C:/x/../y", ["null", "file:", "", "", "", "", "", "/C:/y", "", ""]),
    ("mailto:a@b.c?subject=x", ["null", "mailto:", "", "", "", "", "", "a@b.c", "?subject=x", ""]),
    ("blob:https://a.b/x", ["https://a.b", "blob:", "", "", "", "", "", "https://a.b/x", "", ""]),
    ("http://[2001:DB8::0:1]/", ["http://[2001:db8::1]", "http:", "", "", "[2001:db8::1]", "[2001:db8::1]", "", "/", "", ""]),
    ("http://0x7f.1/", ["http://127.0.0.1", "http:", "", "", "127.0.0.1", "127.0.0.1", "", "/", "", ""]),
    ("http://bücher.example/ü?ü#ü",
     ["http://xn--bcher-kva.example", "http:", "", "", "xn--bcher-kva.example", "xn--bcher-kva.example", "", "/%C3%BC", "?%C3%BC", "#%C3%BC"]),
]  # fmt: skip


@pytest.mark.parametrize(("url", "parts"), PARTS, ids=[url for url, _ in PARTS])
def test_a_url_has_its_parts(url: str, parts: list[str]) -> None:
    names = ["origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]
    assert value("const u = new URL(input.url); input.names.map((n) => u[n])", {"url": url, "names": names}) == parts


SETTERS = [
    ("https://a.b/c", "protocol", "http", "http://a.b/c"),
    ("https://a.b/c", "protocol", "foo", "https://a.b/c"),
    ("foo://a.b/c", "protocol", "http", "foo://a.b/c"),
    ("https://a.b/c", "username", "u:@", "https://u%3A%40@a.b/c"),
    ("https://a.b/c", "password", "p", "https://:p@a.b/c"),
    ("file:///c", "username", "u", "file:///c"),
    ("https://a.b/c", "host", "x.y:81/ignored", "https://x.y:81/c"),
    ("https://a.b:90/c", "host", "x.y", "https://x.y:90/c"),
    ("https://a.b/c", "hostname", "x.y:81", "https://a.b/c"),
    ("https://a.b/c", "hostname", "", "https://a.b/c"),
    ("https://a.b/c", "port", "8080abc", "https://a.b:8080/c"),
    ("https://a.b:90/c", "port", "443", "https://a.b/c"),
    ("https://a.b:90/c", "port", "", "https://a.b/c"),
    ("https://a.b:90/c", "port", "70000", "https://a.b:90/c"),
    ("https://a.b/c?q", "pathname", "/x/../y z?#", "https://a.b/y%20z%3F%23?q"),
    ("mailto:x", "pathname", "/y", "mailto:x"),
    ("https://a.b/c?q#f", "search", "?x=ü#", "https://a.b/c?x=%C3%BC%23#f"),
    ("https://a.b/c?q#f", "search", "", "https://a.b/c#f"),
    ("https://a.b/c", "hash", "#x y", "https://a.b/c#x%20y"),
    ("https://a.b/c#f", "hash", "", "https://a.b/c"),
    ("https://a.b/c", "href", "http://d.e/", "http://d.e/"),
]


@pytest.mark.parametrize(
    ("url", "name", "to", "href"), SETTERS, ids=[f"{url} {name} {to}" for url, name, to, _ in SETTERS]
)
def test_a_setter_changes_its_part_or_nothing(url: str, name: str, to: str, href: str) -> None:
    assert value("const u = new URL(input[0]); u[input[1]] = input[2]; u.href", [url, name, to]) == href


QUERIES: list[tuple[str, Any]] = [
    ("new URLSearchParams('?a=1&b=%20+x&a=&=&c').toString()", "a=1&b=++x&a=&=&c="),
    ("[...new URLSearchParams('a=1&b=2')]", [["a", "1"], ["b", "2"]]),
    ("new URLSearchParams({ a: 1, b: 'ü&=' }).toString()", "a=1&b=%C3%BC%26%3D"),
    ("new URLSearchParams([['a', 1], new Set(['b', 2])]).toString()", "a=1&b=2"),
    ("new URLSearchParams(new Map([['a', 1]])).toString()", "a=1"),
    ("new URLSearchParams(new URLSearchParams('x=1')).get('x')", "1"),
    ("try { new URLSearchParams([['a']]) } catch (e) { e.name }", "TypeError"),
    ("const p = new URLSearchParams('a=1&b=2&a=3'); p.append('c', 4); p.delete('b'); p.set('a', 9); p.set('d', 5); p.toString()", "a=9&c=4&d=5"),
    ("const p = new URLSearchParams('a=1&a=2'); p.delete('a', '1'); [p.getAll('a'), p.has('a', '1'), p.has('a'), p.get('z'), p.size]", [["2"], False, True, None, 1]),
    ("const p = new URLSearchParams('z=1&a=2&z=0'); p.sort(); p.toString()", "a=2&z=1&z=0"),
    ("const p = new URLSearchParams('a=1&b=2'); const r = []; p.forEach((v, k, s) => r.push(k, v, s === p)); [r, [...p.keys()], [...p.values()]]",
     [["a", "1", True, "b", "2", True], ["a", "b"], ["1", "2"]]),
    ("const u = new URL('http://a/?x=1'); u.searchParams.append('y', ' '); u.search", "?x=1&y=+"),
    ("const u = new URL('http://a/?x=1'); const p = u.searchParams; u.search = '?z=2'; [p.get('z'), u.searchParams === p]", ["2", True]),
    ("const u = new URL('http://a/?x=1#h'); u.searchParams.delete('x'); u.href", "http://a/#h"),
    ("Object.prototype.toString.call(new URLSearchParams()) + Object.prototype.toString.call(new URL('a:b'))", "[object URLSearchParams][object URL]"),
    ("JSON.stringify({ u: new URL('http://a') }) + `${new URL('http://a')}`", '{"u":"http://a/"}http://a/'),
    ("URL.canParse('x') || URL.canParse('x', 'http://a') && URL.parse('x') === null", True),
    ("try { new URL('') } catch (e) { [e.name, e.message] }", ["TypeError", "Invalid URL: "]),
    ("try { new URL() } catch (e) { e.name }", "TypeError"),
    ("new URL('//x/y', new URL('https://a')).href", "https://x/y"),
    ("encodeURIComponent('a b&c') + new URLSearchParams({ q: '~!*()\\'' })", "a%20b%26cq=%7E%21*%28%29%27"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), QUERIES, ids=[source[:60] for source, _ in QUERIES])
def test_a_query_is_read_written_and_linked_to_its_url(source: str, expected: Any) -> None:
    assert value(source) == expected
