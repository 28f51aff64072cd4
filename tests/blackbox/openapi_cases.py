"""Cases of requests and answers as data: a document with an operation, what a caller says, and what must reach the
server, or come back.

A case is an object of these fields. `document`, with `{{BASE}}` and `{{HOST}}` for the server's address, imported from
`document_url`; `operation` {method, path}; `arguments` by the names of the parameters, the body under `body`, a file as
`{"$file": {filename, content_type, base64}}`; `arguments_by_location` where a name is used twice; `credential` by the
name of its scheme; `media_type`, `server` and `server_variables` as the caller's choice. `expect` says the `request`
(each of `alternatives` and `tolerated` laid over it is as good) and the `value` or `error` that comes of
`response_given`, or `refuse`: the caller gets an argument error and nothing is sent. `refuse_allowed`: that is as good.
"""

from __future__ import annotations

import base64
import email.parser
import email.policy
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

from bridge.toolbox import Toolbox
from bridge.wire.errors import ToolError
from catalog.model import Tool
from tests.unit.upstream import Seen, Upstream, call, toolbox, upstream

_UNRESERVED = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
REFUSALS = ("invalid_arguments", "connection_missing")

Case = dict[str, Any]


async def failure(case: Case) -> str | None:
    """What is wrong with what happens in `case`, or None."""
    async with upstream() as server, toolbox() as box:
        case = json.loads(
            json.dumps(case)
            .replace("{{BASE}}", server.base)
            .replace("{{HOST}}", server.base.partition("://")[2])
            .replace("{{PORT}}", str(server.port))
        )
        expect = case["expect"]
        for path, answer in ({"*": expect["response_given"]} if "response_given" in expect else {}).items():
            server.answers[path] = _response(answer)
        for path, answer in expect.get("redirect", {}).items():
            server.answers[path] = _response(answer)
        try:
            outcome = await _outcome(case, server, box)
        except ToolError as e:
            if e.code not in (*REFUSALS, "upstream_error"):
                return f"{e.code}: {e.message}"
            outcome = {"refused": e.message} if e.code in REFUSALS else {"error": e}
        return _judged(case, server.seen, outcome)


async def _outcome(case: Case, server: Upstream, box: Toolbox) -> dict[str, Any]:
    url = case.get("document_url", server.base + "/openapi.json")
    described = url.removeprefix(server.base)
    server.answers[described] = _response({"status": 200, "body": json.dumps(case["document"])})
    schemes = {name: _secret(name, value) for name, value in case.get("credential", {}).items()}
    auth: Any = {"type": "schemes", "schemes": schemes} if schemes else None
    await box.add_openapi("api", url, auth=auth, allow_private=["127.0.0.1"])
    del server.answers[described]
    server.seen.clear()
    tool = find(box, case["operation"])
    outcome = await call(box, tool.path, arguments(tool, case), meta=True)
    return {"value": outcome.value, "headers": (outcome.http or {}).get("headers", {})}


def _secret(scheme: str, value: Any) -> str:
    """A reference to the credential, which stands in the environment for as long as the case lasts."""
    name = "EXECUTOR_CASE_" + re.sub(r"[^A-Z0-9]", "_", scheme.upper())
    os.environ[name] = f"{value['username']}:{value['password']}" if isinstance(value, dict) else value
    return f"env:{name}"


def find(box: Toolbox, operation: Mapping[str, str]) -> Tool:
    source = f"{operation['method']} {operation['path']}"
    items = box.list_tools(limit=500)["items"]
    found = [each["path"] for each in items if box.describe(each["path"], schemas=True)["source"] == source]
    assert len(found) == 1, f"{source} is not one of {items}"
    return box._discovery.find(found[0])


def arguments(tool: Tool, case: Case) -> dict[str, Any]:
    """The tool's arguments, by the names that it gives to parameters that are called alike."""
    properties = (tool.input_schema or {}).get("properties", {})
    args = {name: _given(value) for name, value in case.get("arguments", {}).items()}
    by_place = dict(case.get("arguments_by_location") or {})
    if "body" in by_place:
        args["body"] = _given(by_place.pop("body"))
    for place, values in by_place.items():
        for name, value in values.items():
            key = f"{name}_{place}" if f"{name}_{place}" in properties else name
            args[key] = _given(value)
    choices = {"media_type": "content_type", "server": "server", "server_variables": "server_variables"}
    return args | {key: case[name] for name, key in choices.items() if case.get(name) is not None}


def _given(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"$file"}:
        facts = value["$file"]
        return {"content": base64.b64decode(facts["base64"])} | {key: facts[key] for key in facts if key != "base64"}
    if isinstance(value, dict):
        return {key: _given(one) for key, one in value.items()}
    return [_given(one) for one in value] if isinstance(value, list) else value


def _response(given: Mapping[str, Any]) -> bytes:
    body = base64.b64decode(given["body_base64"]) if "body_base64" in given else given.get("body", "").encode()
    fields = dict(given.get("headers", {}))
    if given["status"] != 204:
        fields["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {given['status']} Said\r\n{lines}\r\n".encode() + body


def _judged(case: Case, seen: list[Seen], outcome: dict[str, Any]) -> str | None:
    expect = case["expect"]
    request = expect.get("request")
    base = request or {"method": case["operation"]["method"], "body": {"none": True}}
    forms = [*([request] if request else []), *({**base, **one} for one in expect.get("alternatives", ()))]
    if not seen:
        refusable = "refuse" in expect or "refuse_allowed" in expect
        return None if "refused" in outcome and refusable else f"nothing was sent: {outcome}"
    if not forms:
        return f"sent {seen[0].target}"
    forms += [{**base, **one} for one in expect.get("tolerated", ())]
    wrong = [_difference(form, seen[0]) for form in forms]
    if None not in wrong:
        return wrong[0]
    if len(seen) > 1 and "redirect" not in expect:
        return "several requests"
    return _misanswered(expect, outcome)


def _misanswered(expect: dict[str, Any], outcome: dict[str, Any]) -> str | None:
    wanted = [*([expect["value"]] if "value" in expect else []), *expect.get("value_alternatives", ())]
    if "error" in expect:
        error = outcome.get("error")
        said = (error.details or {}).get("body") if error is not None else None
        same = error is not None and error.status == expect["error"]["status"]
        return None if same and same_json(said or None, expect["error"]["body"] or None) else f"answered {outcome}"
    if wanted and not any(same_json(_shown(outcome.get("value")), _wanted(one)) for one in wanted):
        return f"answered {outcome}"
    for name, value in expect.get("response_headers_visible", {}).items():
        if outcome["headers"].get(name.lower()) != value:
            return f"no header {name} in {outcome['headers']}"
    return None


def _shown(value: Any) -> Any:
    return {"bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _wanted(value: Any) -> Any:
    return {"bytes": value["$binary"]["base64"]} if isinstance(value, dict) and "$binary" in value else value


def _difference(want: Mapping[str, Any], seen: Seen) -> str | None:
    if seen.method != want["method"]:
        return f"method {seen.method}"
    if _target(seen.target) != _target(want["target"]):
        return f"target {seen.target}"
    return _headers(want.get("headers", {}), seen) or _body(want.get("body"), seen)


def _target(target: str) -> tuple[str, dict[str, list[str]], bool]:
    """The path exactly; of the query, the order between pairs of one name (RFC 3986, 6.2.2: needless escapes are the
    same as none)."""
    path, _, query = re.sub(r"%([0-9A-Fa-f]{2})", _unescaped, target).partition("?")
    found: dict[str, list[str]] = {}
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        found.setdefault(name, []).append(value)
    return path, found, bool(query)


def _unescaped(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else "%" + match[1].upper()


def _headers(want: Mapping[str, Any], seen: Seen) -> str | None:
    for name, wanted in want.items():
        values = [value for key, value in seen.headers if key.lower() == name.lower()]
        got = ("; " if name.lower() == "cookie" else ",").join(values) if values else None
        if isinstance(wanted, dict) and "any" in wanted:
            fits = got in wanted["any"]
        elif isinstance(wanted, dict):
            fits = got is not None and got.split(";")[0].strip().lower() == wanted["media_type"]
        else:
            fits = got == wanted
        if not fits:
            return f"header {name}: {got!r}"
    return None


def _body(want: Mapping[str, Any] | None, seen: Seen) -> str | None:
    shown = f"body {seen.body[:120]!r}"
    if not want or "none" in want:
        return None if seen.body == b"" else shown
    if "json" in want:
        return None if same_json(json.loads(seen.body), want["json"]) else shown
    if "text" in want or "base64" in want:
        return None if seen.body == _bytes(want) else shown
    if "form" in want:
        pairs = [pair.partition("=")[::2] for pair in seen.body.decode().split("&") if pair]
        got = [(unquote_plus(name), unquote_plus(value)) for name, value in pairs]
        return None if _grouped(got) == _grouped(want["form"]) else shown
    parts = list(_parts(str(seen.header("content-type")), seen.body))
    if len(parts) != len(want["multipart"]):
        return f"{len(parts)} parts in {shown}"
    for wanted in want["multipart"]:
        at = next((at for at, part in enumerate(parts) if part["name"] == wanted["name"]), None)
        if at is None or (fault := _part_fault(wanted, parts.pop(at))):
            return f"part {wanted['name']}: {fault if at is not None else 'missing'}"
    return None


def _bytes(want: Mapping[str, Any]) -> bytes:
    return want["text"].encode() if "text" in want else base64.b64decode(want["base64"])


def _grouped(pairs: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(json.loads(value) if value[:1] in ("{", "[") else value)
    return found


def _part_fault(want: Mapping[str, Any], part: dict[str, Any]) -> str | None:
    data = part["data"]
    fits = same_json(json.loads(data), want["json"]) if "json" in want else data == _bytes(want)
    if not fits or ("filename" in want and part["filename"] != want["filename"]):
        return repr(part)
    media = part["headers"].get("content-type", "").split(";")[0].lower()
    if "content_type" in want and media != want["content_type"]:
        return f"type {media!r}"
    wrong = [name for name, value in want.get("headers", {}).items() if part["headers"].get(name.lower()) != value]
    return f"headers {part['headers']}" if wrong or "x-evil" in part["headers"] else None


def _parts(media: str, body: bytes) -> Iterator[dict[str, Any]]:
    head = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(f"content-type: {media}\r\n\r\n".encode())
    boundary = str(head.get_boundary()).encode()
    for piece in (b"\r\n" + body).split(b"\r\n--" + boundary)[1:]:
        if piece.startswith(b"--"):
            return
        lines, _, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        headers = dict(line.decode().split(": ", 1) for line in lines.split(b"\r\n"))
        headers = {name.lower(): value for name, value in headers.items()}
        fields = dict(re.findall(r'(\w+)="([^"]*)"', headers["content-disposition"]))
        for name, value in fields.items():
            fields[name] = value.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
        yield {"name": fields.get("name"), "filename": fields.get("filename"), "headers": headers, "data": data}


def same_json(one: Any, other: Any) -> bool:
    """Equality in which true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
