"""What reads or writes hostile text, each as a function of bytes that must not fail: for a fuzzer and for hypothesis.

A refusal must be typed; what is taken must read the same once it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

from bridge.wire import codec, distrust
from bridge.wire.errors import FrameError, InvalidRequest, ToolError, Unserializable
from catalog.kinds.openapi.request import Operation, Parameter, build
from catalog.origin import BadUrl, join_url, parse_url
from executor.http import strictjson

BEGINNINGS: Final = ("http://", "https://", "http://a.test/", "http://a.test:80", "http://[::", "http://a.test/?", "")
STYLES: Final = tuple((style, explode) for style in ("simple", "label", "matrix") for explode in (False, True))
_BASE: Final = parse_url("https://a.test/base")


def frames(data: bytes) -> None:
    with suppress(FrameError):
        distrust.read(data)
    try:
        value = codec.decode(data)
    except FrameError:
        return
    try:
        again = codec.encode(value)
    except Unserializable:
        # What may be read is nested deeper than what may be written; either has its limit.
        return
    assert codec.encode(codec.decode(again)) == again


def urls(data: bytes) -> None:
    beginning = BEGINNINGS[data[0] % len(BEGINNINGS)] if data else ""
    text = data[1:].decode("utf-8", "surrogateescape")
    with suppress(BadUrl):
        joined = join_url(_BASE, text)
        assert not {"..", "."} & set(joined.path.split("/"))
    try:
        url = parse_url(beginning + text)
    except BadUrl:
        return
    again = parse_url(str(url))
    assert (str(again), again.host, again.port, again.origin) == (str(url), url.host, url.port, url.origin)
    assert url.target.isascii()
    assert url.target.isprintable()
    assert " " not in url.target


def json(data: bytes) -> None:
    with suppress(InvalidRequest):
        codec.encode(strictjson.loads(data))


def paths(data: bytes) -> None:
    """A value in a path stays one segment of it, at its place, and nothing that follows begins in it."""
    style, explode = STYLES[data[0] % len(STYLES)] if data else STYLES[0]
    text = data[2:].decode("utf-8", "surrogateescape")
    parts = text.split("|")
    shapes: tuple[Any, ...] = (text, parts, dict.fromkeys(parts, text[:20]))
    value = shapes[data[1] % len(shapes)] if len(data) > 1 else text
    parameter = Parameter("v", "v", "path", style, explode)
    operation = Operation("GET", _BASE, "/a/x{v}/{v}/z", (parameter,), None, "*/*", None)
    target = _target(operation, value)
    if target is None:
        return
    segments = target.split("/")
    assert segments[:3] + segments[-1:] == ["", "base", "a", "z"], target
    assert len(segments) == 6
    assert segments[4] not in ("", ".", "..")
    assert not set("?#\\ ") & set(target)
    assert target.isascii()
    assert target.isprintable()
    if isinstance(value, str) and style == "simple":
        assert unquote(segments[4]) == value


def _target(operation: Operation, value: Any) -> str | None:
    """The target of a call; None where the value is refused as an argument."""
    try:
        return build(operation, {"v": value}, None).url.target
    except ToolError as e:
        if e.code != "invalid_arguments":
            raise
        return None


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {"frames": frames, "urls": urls, "json": json, "paths": paths}
