"""Frames: cut from a stream, read with distrust."""

import contextlib
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import distrust, frames
from bridge.wire.errors import FrameError

USAGE = frames.Usage(fuel=10, memory_bytes=65_536, cpu_us=7, log_bytes=0)
PENDING = frames.Pending(
    frames.VERSION, frames.PENDING, 4, [frames.Call(1, "a.org.b.c", b"\x80", False)], [], [b"\x01"], None, USAGE
)
ENDED = frames.Ended(frames.VERSION, frames.ENDED, 4, b"\x02", None, [frames.Log("info", "hello")], [], USAGE, False)
FAILED = ENDED._replace(
    result=None, failure=frames.Failure("script_error", "TypeError", "no", 1, 2, "at script:1:2", None)
)
READY = frames.Ready(frames.VERSION, frames.READY, 0, 123, ["process", "seccomp"])


def body(frame: Any) -> bytes:
    return frames.pack(frame)[4:]


@pytest.mark.parametrize("frame", [PENDING, ENDED, FAILED, READY], ids=["pending", "ended", "failed", "ready"])
def test_a_frame_a_worker_may_send_is_read_as_it_was_written(frame: Any) -> None:
    assert distrust.read(body(frame)) == frame


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.integers(1, 9))
def test_frames_are_cut_right_however_the_stream_is_split(bodies: list[bytes], chunk: int) -> None:
    """MSG-21."""
    stream = b"".join(frames.LENGTH.pack(len(each)) + each for each in bodies)
    splitter = frames.Splitter()
    seen = [got for at in range(0, len(stream), chunk) for got in splitter.feed(stream[at : at + chunk])]
    assert seen == bodies


@pytest.mark.parametrize("size", [0, frames.MAX_FRAME + 1, 2**32 - 1])
def test_a_length_out_of_bounds_ends_the_stream(size: int) -> None:
    with pytest.raises(FrameError):
        frames.Splitter().feed(frames.LENGTH.pack(size))


@pytest.mark.parametrize(
    ("threat", "frame"),
    [
        ("MSG-22 version", PENDING._replace(version=2)),
        ("MSG-22 type", PENDING._replace(type=99)),
        ("MSG-22 host's own type", PENDING._replace(type=frames.START)),
        ("MSG-18 bool for int", PENDING._replace(run=True)),
        ("MSG-18 string for int", PENDING._replace(run="4")),
        ("MSG-18 negative", PENDING._replace(run=-1)),
        ("MSG-18 float", PENDING._replace(wake_us=1.5)),
        ("MSG-18 null call path", PENDING._replace(calls=[(1, None, b"", False)])),
        ("MSG-18 str for bytes", PENDING._replace(calls=[(1, "a", "b", False)])),
        ("MSG-18 map for array", PENDING._replace(calls={})),
        ("MSG-18 extra field in a call", PENDING._replace(calls=[(1, "a", b"", False, 1)])),
        ("code the host does not know", FAILED._replace(failure=("owned", None, "m", None, None, None, None))),
        ("result and failure", FAILED._replace(result=b"\x01")),
        ("neither", ENDED._replace(result=None)),
        ("path over 1 KiB", PENDING._replace(calls=[(1, "a" * 1025, b"", False)])),
    ],
)
def test_a_frame_of_the_wrong_shape_is_refused(threat: str, frame: Any) -> None:
    with pytest.raises(FrameError):
        distrust.read(body(frame))


@pytest.mark.parametrize("extra", [(), (1,)], ids=["a field short", "a field more"])
def test_a_frame_has_exactly_its_fields(extra: tuple[Any, ...]) -> None:
    """MSG-18."""
    fields = (*PENDING, *extra) if extra else tuple(PENDING)[:-1]
    with pytest.raises(FrameError):
        distrust.read(msgpack.packb(fields))


@given(st.binary(max_size=120))
def test_any_bytes_are_a_frame_or_a_frame_error(data: bytes) -> None:
    try:
        distrust.read(data)
    except FrameError:
        return
    pytest.fail("random bytes were taken for a frame")


@given(st.data())
def test_a_frame_with_one_changed_byte_never_escapes_as_another_exception(data: st.DataObject) -> None:
    raw = bytearray(body(data.draw(st.sampled_from([PENDING, ENDED, FAILED, READY]))))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FrameError):
        distrust.read(bytes(raw))


def test_the_worker_refuses_what_is_not_a_frame() -> None:
    for bad in (b"", b"\x01", b"\x92\x01\x02", b"\x93\x02\x01\x00", b"\xc1"):
        with pytest.raises(FrameError):
            frames.unpack(bad)


def test_a_frame_of_exactly_the_limit_is_sent_and_cut() -> None:
    head = len(msgpack.packb([b"x" * (1 << 20)])) - (1 << 20)
    exact = frames.pack([b"x" * (frames.MAX_FRAME - head)])
    assert len(exact) == frames.MAX_FRAME + 4
    assert [len(one) for one in frames.Splitter().feed(exact)] == [frames.MAX_FRAME]
    with pytest.raises(FrameError):
        frames.pack([b"x" * (frames.MAX_FRAME - head + 1)])


def test_the_least_that_the_worker_reads_has_three_fields() -> None:
    assert frames.unpack(msgpack.packb([frames.VERSION, 1, 2])) == [frames.VERSION, 1, 2]
    for wrong in ([frames.VERSION, 1], [frames.VERSION + 1, 1, 2], {"a": 1}, b"x", None):
        with pytest.raises(FrameError):
            frames.unpack(msgpack.packb(wrong))


@pytest.mark.parametrize("limit", [1, 10])
def test_a_splitter_keeps_its_own_limit(limit: int) -> None:
    fits = frames.LENGTH.pack(limit) + b"x" * limit
    assert frames.Splitter(limit).feed(fits + fits) == [b"x" * limit] * 2
    assert frames.Splitter(limit).feed(fits) == [b"x" * limit]
    for chunks in ([frames.LENGTH.pack(limit + 1) + b"x" * (limit + 1)], [fits + frames.LENGTH.pack(limit + 1)]):
        with pytest.raises(FrameError):
            [frames.Splitter(limit).feed(chunk) for chunk in chunks]


@pytest.mark.parametrize("kind", [{}, {"a": 1}, [], None, True, 1.0, 19.0, "16", b"16", 15, 20, -1, 2**40])
def test_a_frame_of_no_kind_is_refused(kind: Any) -> None:
    """MSG-22"""
    for rest in ([4], [{}], [4, None, None, [], [], [], None, False]):
        with pytest.raises(FrameError):
            distrust.read(msgpack.packb([frames.VERSION, kind, *rest]))
