"""fetch, Headers, Request and Response inside the isolate: what leaves as a call, and what comes of its answer."""

from __future__ import annotations

from typing import Any

import pytest
from guest_host import Isolate, value

ANSWER = {
    "status": 200,
    "reason": "OK",
    "headers": [["content-type", "application/json"], ["x-n", "1"], ["x-n", "2"]],
    "url": "https://api.test/v1/x",
    "redirected": False,
    "body": b'\xef\xbb\xbf{"a": [1, 2]}',
}


def asked(source: str) -> dict[str, Any]:
    """The arguments of the one call that leaves."""
    step = Isolate().start(source)
    assert step.status == "pending", step
    [(_, path, args, meta)] = step.calls
    assert (path, meta) == ("$fetch", False)
    return args  # type: ignore[no-any-return]


def answered(source: str, **more: Any) -> Any:
    isolate = Isolate()
    assert isolate.start(source).status == "pending"
    step = isolate.resume({1: ANSWER | more})
    assert step.status == "done", step
    return step.payload


def test_a_fetch_is_a_call_of_the_hosts() -> None:
    assert asked("await fetch('HTTPS://API.test/a b?q=ä#part')") == {
        "url": "https://api.test/a%20b?q=%C3%A4",
        "method": "GET",
        "headers": {},
        "body": None,
        "follow": True,
    }


@pytest.mark.parametrize(
    ("body", "sent", "media"),
    [
        ("'hé'", "hé".encode(), "text/plain;charset=UTF-8"),
        ("JSON.stringify({ a: 1 })", b'{"a":1}', "text/plain;charset=UTF-8"),
        ("new URLSearchParams({ a: 'b c' })", b"a=b+c", "application/x-www-form-urlencoded;charset=UTF-8"),
        ("new Uint8Array([1, 2, 3]).subarray(1)", b"\x02\x03", None),
        ("new Uint8Array([1, 2]).buffer", b"\x01\x02", None),
        ("new DataView(new ArrayBuffer(2))", b"\0\0", None),
        ("''", b"", "text/plain;charset=UTF-8"),
    ],
)
def test_a_body_leaves_as_its_bytes_with_the_type_that_it_has(body: str, sent: bytes, media: str | None) -> None:
    args = asked(f"await fetch('https://a.test', {{ method: 'post', body: {body} }})")
    assert (args["method"], args["body"], args["headers"].get("content-type")) == ("POST", sent, media)
    args = asked(
        f"await fetch('https://a.test', {{ method: 'PUT', body: {body}, headers: [['Content-Type', 'x/y']] }})"
    )
    assert args["headers"] == {"content-type": "x/y"}


def test_a_request_is_sent_as_it_was_made_and_options_come_before_it() -> None:
    request = "new Request('https://a.test/x', { method: 'PUT', body: 'one', headers: { A: '1' }, redirect: 'manual' })"
    args = asked(f"await fetch({request})")
    assert (args["method"], args["body"], args["headers"]["a"], args["follow"]) == ("PUT", b"one", "1", False)
    args = asked(f"await fetch({request}, {{ method: 'DELETE', headers: {{ B: '2' }} }})")
    assert (args["method"], args["body"], args["headers"]) == ("DELETE", b"one", {"b": "2"})
    args = asked(f"const r = {request}; const c = r.clone(); await r.text(); await fetch(c)")
    assert args["body"] == b"one"


def test_an_answer_is_a_response() -> None:
    source = """
    const r = await fetch(new URL("https://api.test/v1/x"));
    [r instanceof Response, r.ok, r.status, r.statusText, r.url, r.redirected, r.type, r.headers.get("X-N"), r.bodyUsed,
     await r.clone().json(), await r.text(), r.bodyUsed]
    """
    assert answered(source) == [
        *(True, True, 200, "OK", "https://api.test/v1/x", False, "basic", "1, 2", False),
        *({"a": [1, 2]}, '{"a": [1, 2]}', True),
    ]


def test_the_bytes_of_an_answer_are_those_that_came() -> None:
    assert answered("(await fetch('https://a.test').then(r => r.bytes()))", body=b"\0\xff") == b"\0\xff"
    assert answered("(await fetch('https://a.test').then(r => r.arrayBuffer()))", body=b"\0\xff") == b"\0\xff"
    assert answered("(await fetch('https://a.test').then(r => r.text()))", body=b"\xff") == "\ufffd"


@pytest.mark.parametrize("status", [204, 304, 404, 500])
def test_an_answer_of_any_status_is_a_response(status: int) -> None:
    got = answered("const r = await fetch('https://a.test'); [r.ok, r.status, await r.text()]", status=status, body=b"")
    assert got == [status == 204, status, ""]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("const r = new Response('x'); await r.text(); await r.text()", "read already"),
        ("new Response('x').body", "no streams"),
        ("await new Response('{').json()", ""),
        ("await fetch('nonsense')", "Invalid URL"),
        ("await fetch('https://u:p@a.test/')", "user name"),
        ("await fetch('https://a.test', { body: 'x' })", "GET has no body"),
        ("await fetch('https://a.test', { method: 'POST', body: { a: 1 } })", "JSON.stringify"),
        ("await fetch('https://a.test', { method: 'TRACE' })", "method"),
        ("await fetch('https://a.test', { method: 'A B' })", "method"),
        ("await fetch('https://a.test', { headers: { 'a b': '1' } })", "not a header name"),
        ("await fetch('https://a.test', { headers: { a: 'x\\r\\nb: c' } })", "no header may hold"),
        ("await fetch('https://a.test', { signal: {} })", "AbortSignal"),
        ("await fetch('https://a.test', { redirect: 'perhaps' })", "redirect"),
        ("new Response('x', { status: 204 })", "no body"),
        ("new Response('x', { status: 99 })", "200 to 599"),
        ("Response.json(undefined)", "not JSON"),
    ],
)
def test_what_is_no_request_or_response_is_refused_in_the_isolate(source: str, message: str) -> None:
    said = value(f"try {{ {source} }} catch (e) {{ [e.name, e.message] }}")
    assert said[0] in ("TypeError", "RangeError", "SyntaxError")
    assert message in said[1]


def test_a_refusal_of_the_host_is_a_type_error_at_the_place_of_the_fetch_with_the_tool_error_as_its_cause() -> None:
    error = {"code": "egress_denied", "message": "fetch is not granted.", "hint": "An operator can grant it."}
    isolate = Isolate()
    isolate.start("""
    try { await fetch('https://a.test') } catch (e) {
      [e.name, e instanceof TypeError, e.message, e.cause instanceof ToolError, e.cause.code]
    }""")
    step = isolate.resume(errors={1: error})
    assert step.payload == ["TypeError", True, "fetch is not granted. An operator can grant it.", True, "egress_denied"]
    isolate = Isolate()
    isolate.start("\n  await fetch('https://a.test')")
    code, name, _, line, column = isolate.resume(errors={1: error}).payload[:5]
    assert (code, name, line, column) == ("script_error", "TypeError", 2, 9)


def test_an_abort_rejects_with_its_reason_and_the_answer_comes_to_nothing() -> None:
    isolate = Isolate()
    step = isolate.start("""
    const c = new AbortController();
    const p = fetch("https://a.test", { signal: c.signal });
    setTimeout(() => c.abort(new Error("enough")), 5);
    const first = await p.catch((e) => e.message);
    const second = await fetch("https://a.test", { signal: c.signal }).catch((e) => e.message);
    const third = await fetch("https://a.test", { signal: AbortSignal.abort() }).catch((e) => e.name);
    console.log(first, second, third);
    """)
    assert len(step.calls) == 1
    step = isolate.resume(now_us=5000)
    assert [text for _, text in step.logs] == ["enough enough AbortError"]
    # What has left is waited for, as with any call; its answer is nobody's.
    assert isolate.resume({1: ANSWER}).status == "done"


def test_headers_are_a_list_without_case_in_the_order_of_their_names() -> None:
    source = """
    const h = new Headers([["B", "2"], ["a", " 1\\t"], ["b", "3"]]);
    h.append("C", "x"); h.set("c", "y"); h.delete("nope");
    [[...h], [...h.keys()], [...h.values()], h.get("B"), h.has("x"), h.get("x"), h.getSetCookie(), h,
     new Headers(h).get("a"), [...new Headers({ __proto__: { z: 1 }, q: 1 })]]
    """
    pairs = [["a", "1"], ["b", "2, 3"], ["c", "y"]]
    assert value(source) == [
        *(pairs, ["a", "b", "c"], ["1", "2, 3", "y"], "2, 3", False, None, []),
        *(dict(pairs), "1", [["q", "1"]]),
    ]


def test_the_classes_are_made_on_first_use_and_can_be_replaced_like_any_global() -> None:
    assert value("class Response {} const Headers = 1; [typeof Response, Headers, typeof Request]") == [
        "function", 1, "function"]  # fmt: skip
    assert value("globalThis.Headers = 5; [Headers, delete globalThis.Headers, typeof Headers]") == [
        5,
        True,
        "undefined",
    ]
    assert value("globalThis.fetch = () => 1; fetch()") == 1
    assert value("[fetch.name, Headers === globalThis.Headers, Object.keys(globalThis)]") == ["fetch", True, ["input"]]


def test_a_script_that_breaks_the_builtins_still_gets_its_own_fetch() -> None:
    """ESC-02: nothing of the boot code is reached through what a script can change."""
    source = """
    const keys = Reflect.ownKeys;
    for (const C of [Map, Uint8Array, URL, URLSearchParams, TextDecoder, Promise])
      for (const key of keys(C.prototype)) try { C.prototype[key] = () => { throw new Error("seen") } } catch {}
    fetch("https://a.test", { method: "POST", body: "x", headers: { a: "b" } }).then; 1
    """
    step = Isolate().start(source)
    assert [call[1] for call in step.calls] == ["$fetch"]


def test_a_script_without_fetch_pays_nothing_for_it() -> None:
    def fuel(source: str) -> int:
        isolate = Isolate()
        isolate.start(source)
        return isolate.used()

    assert fuel("typeof Headers") > fuel("typeof Event") * 3
    assert fuel("1 + 1") < fuel("typeof Headers") / 3
