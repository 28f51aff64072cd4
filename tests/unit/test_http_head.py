"""What of a request's head is refused before it is parsed, and how a path is spelled."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.errors import NotFound, RequestRefused
from executor.http.edge import _Request
from executor.http.protocol import HEAD_BYTES, HEADERS, head_refusal

_NAMES = st.from_regex(r"[A-Za-z-]{1,20}", fullmatch=True)
_VALUES = st.from_regex(r"[!-~]([ -~]{0,40}[!-~])?", fullmatch=True)


@given(st.lists(st.tuples(_NAMES, _VALUES), max_size=20), st.binary(max_size=50))
def test_a_sound_head_is_accepted_whatever_follows_it(headers: list[tuple[str, str]], body: bytes) -> None:
    head = "GET / HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
    assert head_refusal(head.encode() + body) is None


@given(st.lists(st.tuples(_NAMES, _VALUES), min_size=1, max_size=5), st.data())
def test_one_bare_line_feed_or_fold_anywhere_in_it_is_refused(
    headers: list[tuple[str, str]], data: st.DataObject
) -> None:
    lines = ["GET / HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    at = data.draw(st.integers(0, len(lines) - 1))
    ends = ["\r\n"] * len(lines)
    ends[at] = data.draw(st.sampled_from(["\n", "\r\n ", "\r\n\t", "\n\r\n"]))
    head = "".join(line + end for line, end in zip(lines, ends, strict=True)) + "\r\n"
    assert head_refusal(head.encode()) == 400 or head.startswith("GET / HTTP/1.1\r\n\r\n")


def test_a_head_that_grows_too_large_is_refused_before_it_ends() -> None:
    """HTTP-12"""
    assert head_refusal(b"GET /" + b"a" * 9000) == 414
    assert head_refusal(b"GET / HTTP/1.1\r\nX: " + b"a" * HEAD_BYTES) == 431
    assert head_refusal(b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * (HEADERS + 1)) == 431
    assert head_refusal(b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * HEADERS + b"\r\n") is None
    assert head_refusal(b"GET / HT") is None


def _check(path: bytes) -> None:
    _Request({"method": "GET", "raw_path": path, "headers": []}, None).check_method_and_path()  # type: ignore[arg-type]


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4))
def test_a_path_that_is_accepted_is_the_only_spelling_of_what_it_names(segments: list[str]) -> None:
    """HTTP-11: an oracle: every segment encoded by the book, unless it hides structure."""
    raw = "/" + "/".join(quote(segment, safe="!$&'()*+,=:@", errors="replace") for segment in segments)
    hidden = any(
        character in "/\\%;" or ord(character) < 0x20 or ord(character) == 0x7F for s in segments for character in s
    )
    try:
        _check(raw.encode())
        accepted = True
    except RequestRefused:
        accepted = False
    assert accepted == (not hidden and not any(segment in (".", "..") for segment in segments))


@pytest.mark.parametrize(
    "path", [b"/%41", b"/a%2Fb", b"/%2e%2e/x", b"/a%", b"/a%4", b"//", b"/a/", b"/a//b", b"/a;b", b"/\xff"]
)
def test_a_second_spelling_is_not_found(path: bytes) -> None:
    """HTTP-11"""
    with pytest.raises(NotFound):
        _check(path)
