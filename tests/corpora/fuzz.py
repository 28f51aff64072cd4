"""Coverage-guided fuzzing of what reads hostile bytes: `python -m tests.corpora.fuzz TARGET SECONDS [FOLDER]`.

TARGET is one of `frames` (what a worker may send), `urls` (the one reader of URLs), `json` (request bodies). It needs
`pip install atheris`, no dependency: there are wheels for some versions of Python only. FOLDER keeps inputs that
reached something new. A refusal must be typed; what is taken must read the same once it is written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

import atheris

with atheris.instrument_imports(include=["bridge", "catalog", "executor.http"]):
    from bridge.wire import codec, distrust
    from bridge.wire.errors import FrameError, InvalidRequest, Unserializable
    from catalog.origin import BadUrl, parse_url
    from executor.http import strictjson


BEGINNINGS = ("http://", "https://", "http://a.test/", "http://a.test:80", "http://[::", "http://a.test/?", "")


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
    text = beginning + data[1:].decode("utf-8", "surrogateescape")
    try:
        url = parse_url(text)
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


TARGETS: dict[str, Callable[[bytes], None]] = {"frames": frames, "urls": urls, "json": json}

if __name__ == "__main__":
    target, seconds, *folder = sys.argv[1:]
    options = [sys.argv[0], f"-max_total_time={int(seconds)}", "-max_len=4096", "-rss_limit_mb=1024", *folder]
    atheris.Setup(options, TARGETS[target])
    atheris.Fuzz()
