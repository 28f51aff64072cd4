# ruff: noqa: E501 (a row of a table is read across)
"""The web's basics inside a script: text, clones, events, abort signals, base64, randomness."""

from __future__ import annotations

from typing import Any

import pytest
from guest_host import Isolate, value
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples

CASES: list[tuple[str, Any]] = [
    # text
    ("new TextEncoder().encode('aé日𝒳\\ud800')", "aé日𝒳\ufffd".encode()),
    ("new TextEncoder().encode()", b""),
    ("new TextEncoder().encoding", "utf-8"),
    ("const d = new Uint8Array(4); const r = new TextEncoder().encodeInto('aé日', d); [r.read, r.written, d]", [2, 3, b"a\xc3\xa9\0"]),
    ("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61]))", "a"),
    ("new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61]))", "\ufeffa"),
    ("new TextDecoder().decode()", ""),
    ("new TextDecoder().decode(new Uint8Array([0x61, 0x62]).buffer)", "ab"),
    ("new TextDecoder().decode(new DataView(new Uint8Array([0x61, 0x62]).buffer, 1))", "b"),
    ("try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff])) } catch (e) { e.name }", "TypeError"),
    ("const d = new TextDecoder(); d.decode(new Uint8Array([0xe6, 0x97]), { stream: true }) + d.decode(new Uint8Array([0xa5]), { stream: true }) + d.decode()", "日"),
    ("const d = new TextDecoder(); d.decode(new Uint8Array([0xf0, 0x9d]), { stream: true }) + d.decode()", "\ufffd"),
    ("const d = new TextDecoder(); [0xef, 0xbb, 0xbf, 0x61].map((b) => d.decode(new Uint8Array([b]), { stream: true })).join('')", "a"),
    ("new TextDecoder('utf-16le').decode(new Uint8Array([0x61, 0, 0x35, 0xd8, 0xb3, 0xdc]))", "a𝒳"),
    ("new TextDecoder('utf-16le').decode(new Uint8Array([0x00, 0xd8, 0x61, 0x00, 0x00, 0xdc]))", "\ufffda\ufffd"),
    ("new TextDecoder('utf-16').decode(new Uint8Array([0x61]))", "\ufffd"),
    ("const d = new TextDecoder('utf-16le'); [0x35, 0xd8, 0xb3, 0xdc].map((b) => d.decode(new Uint8Array([b]), { stream: true })).join('')", "𝒳"),
    ("new TextDecoder('utf-16be').decode(new Uint8Array([0, 0x61]))", "a"),
    ("new TextDecoder(' Latin1 ').decode(new Uint8Array([0x80, 0xe9, 0x41]))", "€éA"),
    ("new TextDecoder('ascii').encoding", "windows-1252"),
    ("try { new TextDecoder('shift-jis') } catch (e) { e.name }", "RangeError"),
    # base64
    ("btoa('hello\\xff')", "aGVsbG//"),
    ("atob(' aGVs bG8= ')", "hello"),
    ("try { btoa('日') } catch (e) { e.name }", "InvalidCharacterError"),
    ("try { atob('a') } catch (e) { [e.name, e instanceof DOMException] }", ["InvalidCharacterError", True]),
    ("Uint8Array.fromBase64('AQI=').toHex()", "0102"),
    # clones
    ("const o = { a: [1, { b: new Date(5) }], m: new Map([[{ k: 1 }, new Set([2])]]) }; const c = structuredClone(o); [c.a[1].b.getTime(), [...c.m.keys()][0].k, [...[...c.m.values()][0]], c.a !== o.a]", [5, 1, [2], True]),
    ("const o = {}; o.o = o; const c = structuredClone(o); c.o === c && c !== o", True),
    ("const s = [1]; const c = structuredClone([s, s]); c[0] === c[1]", True),
    ("const c = structuredClone([1, , 3]); [c.length, 1 in c]", [3, False]),
    ("structuredClone(new Uint16Array([1, 2])) instanceof Uint16Array", True),
    ("const b = new Uint8Array([1, 2, 3]); const c = structuredClone([b, b.buffer]); c[0].buffer === c[1] && c[0].buffer !== b.buffer", True),
    ("structuredClone(/a/gi).flags + structuredClone(Object('s'))", "gis"),
    ("const e = structuredClone(new RangeError('m', { cause: { a: 1 } })); [e instanceof RangeError, e.message, e.cause.a]", [True, "m", 1]),
    ("const e = structuredClone(new DOMException('m', 'AbortError')); [e.name, e.message, e.code, e instanceof DOMException]", ["AbortError", "m", 20, True]),
    ("class P { x = 1 } Object.getPrototypeOf(structuredClone(new P())) === Object.prototype", True),
    ("const b = new ArrayBuffer(4); const c = structuredClone(b, { transfer: [b] }); [b.detached, c.byteLength]", [True, 4]),
    *[(f"try {{ structuredClone({bad}) }} catch (e) {{ [e.name, e.code] }}", ["DataCloneError", 25])
      for bad in ("() => 1", "Symbol('s')", "{ f() {} }", "new WeakMap()", "Promise.resolve()", "tools.a", "new Proxy({}, {})")],
    ("structuredClone(Object.defineProperty({}, '__proto__', { value: 1, enumerable: true })).__proto__", 1),
    # events and signals
    ("const t = new EventTarget(); const r = []; t.addEventListener('x', (e) => r.push(e.type, e.target === t)); t.addEventListener('x', { handleEvent() { r.push('h') } }, { once: true }); t.dispatchEvent(new Event('x')); t.dispatchEvent(new Event('x')); r", ["x", True, "h", "x", True]),
    ("const t = new EventTarget(); const f = () => 1; t.addEventListener('x', f); t.removeEventListener('x', f); t.dispatchEvent(new Event('x', { cancelable: true }))", True),
    ("const t = new EventTarget(); t.addEventListener('x', (e) => e.preventDefault()); t.dispatchEvent(new Event('x', { cancelable: true }))", False),
    ("new CustomEvent('x', { detail: 5 }).detail", 5),
    ("const c = new AbortController(); const r = []; c.signal.addEventListener('abort', () => r.push(1)); c.signal.onabort = () => r.push(0); c.abort('why'); c.abort('again'); [c.signal.aborted, c.signal.reason, r]", [True, "why", [0, 1]]),
    ("const c = new AbortController(); c.abort(); [c.signal.reason.name, c.signal.reason.code]", ["AbortError", 20]),
    ("try { AbortSignal.abort(new Error('x')).throwIfAborted() } catch (e) { e.message }", "x"),
    ("const a = new AbortController(), b = new AbortController(); const s = AbortSignal.any([a.signal, b.signal]); b.abort('b'); s.reason", "b"),
    ("AbortSignal.any([AbortSignal.abort(1)]).aborted", True),
    ("const c = new AbortController(); const t = new EventTarget(); let n = 0; t.addEventListener('x', () => n++, { signal: c.signal }); t.dispatchEvent(new Event('x')); c.abort(); t.dispatchEvent(new Event('x')); n", 1),
    ("try { new AbortSignal() } catch (e) { e.name }", "TypeError"),
    ("Object.getOwnPropertyNames(AbortSignal).concat(Object.getOwnPropertyNames(Event), Object.getOwnPropertyNames(URLSearchParams)).filter((n) => !['length', 'name', 'prototype', 'abort', 'timeout', 'any'].includes(n))", []),
    # randomness
    ("/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())", True),
    ("const a = new Uint16Array(8); crypto.getRandomValues(a) === a && a.some((x) => x)", True),
    ("const a = new Uint8Array(8); crypto.getRandomValues(a.subarray(4)); a.subarray(0, 4).every((x) => x === 0)", True),
    ("try { crypto.getRandomValues(new Float32Array(1)) } catch (e) { e.name }", "TypeMismatchError"),
    ("try { crypto.getRandomValues(new Uint8Array(65537)) } catch (e) { e.name }", "QuotaExceededError"),
    ("typeof crypto.subtle", "undefined"),
    # absent
    ("[typeof SharedArrayBuffer, typeof Atomics, typeof FinalizationRegistry, typeof Worker, typeof process, typeof require, typeof XMLHttpRequest]", ["undefined"] * 7),
    ("const o = { a: 1 }; new WeakRef(o).deref().a", 1),
    ("await new Promise((d) => queueMicrotask(() => d('micro')))", "micro"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), CASES, ids=[source[:60] for source, _ in CASES])
def test_the_webs_basics_behave(source: str, expected: Any) -> None:
    assert value(source) == expected


def test_a_signal_times_out_on_the_virtual_clock() -> None:
    isolate = Isolate()
    step = isolate.start(
        "const s = AbortSignal.timeout(50); await new Promise((d) => s.addEventListener('abort', d)); [s.aborted, s.reason.name]"
    )
    assert step.wake_us == 50_000
    assert isolate.resume(now_us=50_000).payload == [True, "TimeoutError"]


def test_a_listener_that_throws_is_logged_and_stops_nobody() -> None:
    step = Isolate().start(
        "const t = new EventTarget(); t.addEventListener('x', () => { throw new Error('l') }); t.addEventListener('x', () => emit(1)); t.dispatchEvent(new Event('x')); 'ok'"
    )
    assert (step.payload, step.emitted) == ("ok", [1])
    assert step.logs[0][0] == "error"


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.binary(max_size=40) | st.text(max_size=20).map(lambda t: t.encode("utf-8", "surrogatepass")), max_size=4
    )
)
def test_utf8_decodes_as_everywhere_whole_or_in_parts(parts: list[bytes]) -> None:
    source = """
      const whole = new TextDecoder('utf-8', { ignoreBOM: true }), parts = new TextDecoder('utf-8', { ignoreBOM: true });
      const all = new Uint8Array(input.flatMap((p) => [...p]));
      [whole.decode(all), input.map((p) => parts.decode(p, { stream: true })).join('') + parts.decode()]
    """
    expected = b"".join(parts).decode("utf-8", "replace")
    assert value(source, parts) == [expected, expected]


@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=60))
def test_utf8_encodes_as_everywhere(text: str) -> None:
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert value("new TextEncoder().encode(input)", clean) == clean.encode()


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["make", "drop", "grow"]), st.integers(0, 11), st.integers(1, 70_000)), max_size=60
)


@settings(max_examples=examples(40), deadline=None)
@given(OPERATIONS)
def test_no_block_of_memory_ever_overlaps_another(operations: list[tuple[str, int, int]]) -> None:
    """Buffers of every size, made, grown and dropped: each keeps exactly what was written to it."""
    source = """
      const slots = Array(12).fill(null); let wrong = 0;
      const check = (s) => { if (s && !new Uint8Array(s.buffer).every((x, i) => x === (i < s.filled ? s.mark : 0))) wrong++ };
      input.forEach(([what, at, size], n) => {
        const s = slots[at];
        if (what === 'make') { check(s); const b = new ArrayBuffer(size); slots[at] = { buffer: b, mark: 0, filled: 0 }; check(slots[at]); new Uint8Array(b).fill(n + 1); slots[at].mark = n + 1; slots[at].filled = size }
        else if (what === 'drop') { check(s); slots[at] = null }
        else if (s) { const to = s.buffer.transfer(size); slots[at] = { buffer: to, mark: s.mark, filled: Math.min(s.filled, size) }; check(slots[at]) }
      });
      slots.forEach(check); wrong
    """
    assert value(source, [list(op) for op in operations], fuel=10**11) == 0
