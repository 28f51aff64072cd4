"""Packages in isolates: how they are loaded, which exports are tools, what they find and what they do not."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from bridge.wire.errors import InvalidRequest
from catalog.kinds.npm.bundle import PackageSource
from catalog.kinds.npm.tree import PackageTree
from runtime.budgets import BudgetPolicy
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.packages import PackageCall, Packages
from runtime.results import RunResult
from tests.unit.npm_trees import cjs, esm, package

Execute = Callable[..., RunResult]


@pytest.fixture(scope="module")
def house() -> Any:
    """One dispatcher and one toolbox for all tests of this module, on a loop of their own."""
    runner = asyncio.Runner()

    @asynccontextmanager
    async def opened() -> AsyncIterator[Packages]:
        async with Toolbox() as box, Dispatcher(DispatcherSettings(workers=1)) as dispatcher:
            yield Packages(dispatcher, box.proxy)

    manager = opened()
    packages = runner.run(manager.__aenter__())
    try:
        yield runner, packages
    finally:
        runner.run(manager.__aexit__(None, None, None))
        runner.close()


@pytest.fixture
def execute(house: Any) -> Execute:
    runner, packages = house

    def run(
        made: PackageTree, export: str = "tool", params: Any = None, *, budgets: Any = None, **more: Any
    ) -> RunResult:
        call = PackageCall(PackageSource.of(made), export, {} if params is None else params, **more)
        work: Awaitable[RunResult] = packages.run(call, BudgetPolicy().resolve(budgets, "node"), CallContext())
        result: RunResult = runner.run(asyncio.wait_for(work, 120))
        return result

    return run


def test_an_es_module_uses_a_commonjs_one_and_json(execute: Execute) -> None:
    dep = package(
        "dep",
        {
            "main.js": 'const d = require("./d.json"); exports.add = (a, b) => a + b + d.n; exports.default = 7;',
            "d.json": '{"n": 1}',
        },
        main="main",
    )
    source = """
      import whole, { add } from "dep";
      export const tool = { execute: ({ a, b }) => [add(a, b), whole.default, typeof whole.add] };"""
    assert execute(esm(source, dep), params={"a": 1, "b": 2}).unwrap() == [4, 7, "function"]


def test_a_module_reads_the_texts_that_it_names_beside_it(execute: Execute) -> None:
    dep = package(
        "dep",
        {
            "lib/index.js": """const fs = require("fs"), path = require("path");
              exports.style = fs.readFileSync(path.resolve(__dirname, "../data/style.css"), { encoding: "utf-8" });
              exports.there = [fs.existsSync(path.join(__dirname, "words.txt")), fs.existsSync(__filename + ".txt")];
            """,
            "data/style.css": "p { color: red }",
            "lib/words.txt": "é",
            "lib/index.js.txt": "not named",
        },
        main="lib/index.js",
    )
    source = """
      import { readFileSync } from "node:fs";
      import dep from "dep";
      const text = readFileSync(new URL("./template.html", import.meta.url), "utf8");
      export const tool = { execute: () => [dep.style, dep.there, text] };"""
    made = esm(source, dep, **{"template.html": "<p>hi</p>", "secret.html": "not named"})
    assert execute(made).unwrap() == ["p { color: red }", [True, False], "<p>hi</p>"]


def test_a_commonjs_module_requires_an_es_module(execute: Execute) -> None:
    dep = package(
        "dep", {"index.js": "export default class A {}; export const b = 2;"}, type="module", exports="./index.js"
    )
    source = """
      const { b, default: A } = require("dep");
      exports.tool = { execute: () => [b, A.name, require("dep").__esModule] };"""
    assert execute(cjs(source, dep)).unwrap() == [2, "A", True]


def test_modules_that_import_each_other_see_each_other(execute: Execute) -> None:
    files = {"b.js": 'import { a } from "./index.js"; export const b = () => a() + 1;'}
    source = 'import { b } from "./b.js"; export const a = () => 1; export const tool = { execute: () => b() };'
    assert execute(esm(source, **files)).unwrap() == 2
    files = {"b.js": 'const a = require("./index.js"); exports.b = () => a.one + 1;'}
    source = 'exports.one = 1; const { b } = require("./b.js"); exports.tool = { execute: () => b() };'
    assert execute(cjs(source, **files)).unwrap() == 2


def test_what_is_imported_late_is_loaded_late_and_what_is_missing_only_then_fails(execute: Execute) -> None:
    source = """
      export const tool = { async execute() {
        const { late } = await import("./late.js");
        const missing = await import("not-installed").catch((e) => e.code);
        return [late, missing, globalThis.loadedEarly ?? null];
      } };"""
    files = {"late.js": "globalThis.loadedEarly ??= 'late'; export const late = 1;"}
    assert execute(esm(source, **files)).unwrap() == [1, "ERR_MODULE_NOT_FOUND", "late"]


def test_create_require_and_import_meta_name_files_of_the_tree(execute: Execute) -> None:
    source = """
      import { createRequire } from "node:module";
      const require = createRequire(import.meta.url);
      const { url, dirname } = import.meta;
      export const tool = { execute: () => [require("./d.json").v, url, dirname, require.resolve("dep")] };"""
    found = execute(esm(source, package("dep", {"index.js": ""}), **{"d.json": '{"v": 3}'})).unwrap()
    assert found == [3, "file:///node_modules/tool/index.js", "/node_modules/tool", "/node_modules/dep/index.js"]


def test_top_level_await_is_waited_for(execute: Execute) -> None:
    source = "const n = await Promise.resolve(5); export const tool = { execute: () => n };"
    assert execute(esm(source)).unwrap() == 5


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("export const tool = { execute: () => 1 };", "tool", 1),
        ("export default { execute: () => 2 };", "default", 2),
        ("export default { inner: { execute: () => 3 } };", "inner", 3),
        ("export const tool = () => ({ execute: () => 4 });", "tool", 4),
        ("export const tool = async () => ({ execute: () => 5 });", "tool", 5),
        ("export const tool = Object.assign(() => { throw 1 }, { execute: () => 6 });", "tool", 6),
        ("export const tool = (env) => { if (!env) throw 1; return { execute: () => env.KEY.length } };", "tool", 3),
        ("export const tool = { execute() { return this.n }, n: 7 };", "tool", 7),
        ("export const tool = { async *execute() { yield 1; yield 8; } };", "tool", 8),
        ("export const tool = { execute: () => undefined };", "tool", None),
    ],
)
def test_an_export_is_a_tool_or_makes_one(execute: Execute, source: str, name: str, expected: Any) -> None:
    result = execute(esm(source), name, env={"KEY": "abc"})
    assert result.status == "completed", result.error
    assert result.result == expected


@pytest.mark.parametrize(
    ("source", "name", "reason"),
    [
        ("export const other = 1;", "tool", "not_found"),
        ("export default { execute: () => 1 };", "tool", "not_found"),
        ("export const other = 1;", "toString", "not_found"),
        ("export const other = 1;", "__proto__", "not_found"),
        ("export class tool { execute() {} }", "tool", "invalid"),
        ("export const tool = 5;", "tool", "invalid"),
        ("export const tool = () => ({});", "tool", "invalid"),
        ("export const tool = { get execute() { throw new Error('x') } };", "tool", "invalid"),
        ("export const tool = { execute() { throw new TypeError('no') } };", "tool", "threw"),
        ("export const tool = { execute: async () => { throw null } };", "tool", "threw"),
        ("export const tool = { execute: () => 1n };", "tool", "threw"),
        ("export const tool = { execute: () => { const a = {}; a.a = a; return a } };", "tool", "threw"),
        ("throw new RangeError('at the top')", "tool", "load_failed"),
        ("this is no JavaScript", "tool", "load_failed"),
        ('import { nothing } from "./b.js"; export const tool = 1', "tool", "load_failed"),
        ('import "not-installed";', "tool", "load_failed"),
    ],
)
def test_what_is_wrong_is_said_by_its_reason(execute: Execute, source: str, name: str, reason: str) -> None:
    result = execute(esm(source, **{"b.js": "export const a = 1"}), name)
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error["code"], result.error.get("reason")) == ("script_error", reason)


def test_the_default_export_stands_in_only_where_that_is_asked(execute: Execute) -> None:
    made = esm("export default { execute: () => 1 };")
    assert execute(made, "anything").status == "failed"
    assert execute(made, "anything", fallback=True).unwrap() == 1


def test_a_tool_gets_its_parameters_and_the_options_of_a_call(execute: Execute) -> None:
    source = """export const tool = { execute: (params, { toolCallId, messages, abortSignal }) =>
      [params, typeof toolCallId, messages, abortSignal.aborted, abortSignal instanceof AbortSignal] };"""
    params = {"a": [1, "ü", None, {"b": True}], "__proto__x": 1}
    assert execute(esm(source), params=params).unwrap() == [params, "string", [], False, True]


def test_the_environment_is_there_before_anything_is_loaded_and_nowhere_else(execute: Execute) -> None:
    """PKG-20, PKG-21."""
    made = esm(
        "const key = process.env.KEY; export const tool = { execute: () => [key ?? null, Object.keys(process.env)] };"
    )
    names = {"KEY": "s3cret", "PATH": "/x", "NODE_OPTIONS": "--inspect", "__proto__": "p"}
    assert execute(made, env=names).unwrap() == ["s3cret", list(names)]
    assert execute(made).unwrap() == [None, []]
    with pytest.raises(InvalidRequest):
        execute(made, env={"KEY": 1})
    with pytest.raises(InvalidRequest):
        execute(made, env={"KEY": "x" * (1 << 21)})


@pytest.mark.parametrize(
    "attempt",
    [
        'require("child_process").execSync("id")',
        'require("net").connect(80)',
        'require("node:worker_threads").Worker && new (require("node:worker_threads").Worker)("x")',
        'require("vm").createContext({})',
        'process.binding("fs")',
        'process.dlopen({}, "x.node")',
        'require("http").createServer()',
        'require("dns").lookup("localhost", () => {})',
    ],
)
def test_what_only_a_machine_has_is_unavailable_by_type(execute: Execute, attempt: str) -> None:
    """PKG-12."""
    result = execute(cjs(f"exports.tool = {{ execute() {{ try {{ {attempt} }} catch (e) {{ return e.code }} }} }};"))
    assert result.unwrap() == "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM"


def test_files_urls_addons_and_wasm_are_out_of_reach(execute: Execute) -> None:
    """PKG-12, PKG-13."""
    source = """
      import fs from "fs";
      import { createRequire } from "module";
      const require = createRequire(import.meta.url);
      const code = (work) => { try { return work() } catch (e) { return e.code ?? e.name } };
      export const tool = { async execute() { return [
        code(() => fs.readFileSync("/etc/passwd")), code(() => fs.writeFileSync("/tmp/x", "")),
        fs.existsSync("/etc/passwd"), code(() => require("./a.node")), typeof WebAssembly,
        await import("https://example.com/x.js").catch((e) => e.code),
        await import("data:text/javascript,1").catch((e) => e.code),
        await import("file:///etc/passwd").catch((e) => e.code),
      ] } };"""
    assert execute(esm(source, **{"a.node": "ELF"})).unwrap() == [
        "ENOENT", "EROFS", False, "ERR_DLOPEN_FAILED", "undefined", "ERR_UNSUPPORTED_ESM_URL_SCHEME",
        "ERR_UNSUPPORTED_ESM_URL_SCHEME", "ERR_MODULE_NOT_FOUND",
    ]  # fmt: skip


def test_a_package_has_no_tools_and_no_network_unless_it_was_granted(execute: Execute) -> None:
    """PKG-18, PKG-12."""
    source = """
      const early = await fetch("http://127.0.0.1:1/").catch((e) => [e.name, e.message, e.cause.code]);
      export const tool = { execute: () => [early, typeof tools, typeof emit, typeof input, typeof natives] };"""
    denied = ["TypeError", "fetch failed", "EACCES"]
    result = execute(esm(source))
    assert result.unwrap() == [denied, "undefined", "undefined", "undefined", "undefined"]
    assert [(call["path"], call["code"]) for call in result.calls] == [("$fetch", "egress_denied")]


@pytest.mark.parametrize(
    ("source", "budgets", "code"),
    [
        ("for (;;) {}", {"fuel": 10**8}, "fuel_exhausted"),
        ("for (;;) {}", {"wall_ms": 300}, "deadline_exceeded"),
        ("const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))", {}, "memory_exhausted"),
        ("await new Promise(() => {})", {}, "never_settles"),
        (
            "for (let i = 0; i < 99; i++) fetch('http://x.test/').catch(() => {})",
            {"bridge_calls": 5},
            "calls_exhausted",
        ),
        ("export const tool = { execute() { for (;;) {} } }", {"fuel": 10**8}, "fuel_exhausted"),
        ("export const tool = { execute: () => 'x'.repeat(1 << 20) }", {"result_bytes": 1000}, "result_too_large"),
    ],
)
def test_a_package_is_held_to_its_budgets_while_it_is_loaded_too(
    execute: Execute, source: str, budgets: dict[str, int], code: str
) -> None:
    """PKG-18."""
    result = execute(esm(source), budgets=budgets)
    assert result.error is not None
    assert result.error["code"] == code
    assert "reason" not in result.error


def test_hostile_exports_are_refused_and_the_next_call_is_served(execute: Execute) -> None:
    """PKG-18."""
    hostile = "export default new Proxy({}, { get() { throw new Error('trap') }, has() { throw new Error('trap') } });"
    for name in ("default", "other"):
        result = execute(esm(hostile), name)
        assert result.error is not None
        assert result.error["reason"] in ("invalid", "not_found")
    thenable = "export const then = (resolve) => { throw new Error('then') }; export const tool = { execute: () => 1 };"
    assert execute(esm(thenable)).unwrap() == 1
    forged = (
        "export const tool = { execute() { JSON.stringify = () => '{'; Object.prototype.outcome = 'done'; return 5 } };"
    )
    assert execute(esm(forged)).unwrap() == 5


def test_nodes_library_computes_what_node_computes(execute: Execute) -> None:
    source = """
      const { createHash, createHmac, pbkdf2Sync } = require("crypto");
      const zlib = require("zlib"), path = require("path"), util = require("util"), qs = require("querystring");
      const names = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];
      const digests = names.map((n) => createHash(n).update("ab").update("c").digest("hex").slice(0, 8));
      exports.tool = { execute: async () => ({
        digests,
        hmac: createHmac("sha256", "k").update("v").digest("base64"),
        long: createHmac("sha512", "k".repeat(200)).update("v").digest("hex").slice(0, 12),
        kdf: pbkdf2Sync("p", "s", 1000, 20, "sha1").toString("hex"),
        subtle: Buffer.from(await crypto.subtle.digest("SHA-256", new Uint8Array([1, 2]))).toString("hex").slice(0, 8),
        zip: zlib.gunzipSync(zlib.gzipSync("hello ".repeat(100))).length,
        path: [path.join("/a", "../b", "c"), path.relative("/a/b", "/a/c")],
        names: [path.extname("x.tar.gz"), path.basename("/a/b.c", ".c")],
        format: util.format("%s %d %j", "a", 1.5, { b: 1 }),
        inspect: util.inspect({ a: [1, { b: new Map([["k", 1]]) }], s: "it's" }),
        qs: qs.stringify({ a: [1, "x y"], b: "&" }),
        buffer: [Buffer.from("aGk=", "base64").toString(), Buffer.from("é").toString("hex")],
      }) };"""
    assert execute(cjs(source)).unwrap() == {
        "digests": ["90015098", "a9993e36", "23097d22", "ba7816bf", "cb00753f", "ddaf35a1"],
        "hmac": base64.b64encode(hmac.digest(b"k", b"v", "sha256")).decode(),
        "long": hmac.new(b"k" * 200, b"v", "sha512").hexdigest()[:12],
        "kdf": hashlib.pbkdf2_hmac("sha1", b"p", b"s", 1000, 20).hex(),
        "subtle": "a12871fe",
        "zip": 600,
        "path": ["/b/c", "../c"],
        "names": [".gz", "b"],
        "format": 'a 1.5 {"b":1}',
        "inspect": """{ a: [ 1, { b: [Map] } ], s: "it's" }""",
        "qs": "a=1&a=x%20y&b=%26",
        "buffer": ["hi", "c3a9"],
    }


def test_what_was_compressed_elsewhere_is_read_and_what_is_damaged_is_refused(execute: Execute) -> None:
    text = b"".join(b"%d: the quick brown fox " % (n * n % 97) for n in range(5000)) + bytes(range(256)) * 3
    source = """
      const zlib = require("zlib");
      const code = (work) => { try { return work() } catch (e) { return e.code } };
      const hash = (bytes) => require("crypto").createHash("sha1").update(bytes).digest("hex");
      exports.tool = { async execute({ gzip, deflate, raw, none }) {
        const [a, b, c, d] = [gzip, deflate, raw, none].map((one) => Buffer.from(one, "base64"));
        const through = new Blob([a]).stream().pipeThrough(new DecompressionStream("gzip"));
        const flipped = Buffer.from(a);
        flipped[a.length - 6] ^= 1;
        return {
          same: [
            zlib.gunzipSync(a), zlib.inflateSync(b), zlib.inflateRawSync(c), zlib.unzipSync(a), zlib.inflateSync(d),
            zlib.gunzipSync(Buffer.concat([a, a])).subarray(0, zlib.gunzipSync(a).length),
            Buffer.from(await new Response(through).arrayBuffer()), zlib.gunzipSync(zlib.gzipSync(zlib.gunzipSync(a))),
          ].map(hash),
          bad: [a.subarray(0, a.length - 20), b, flipped].map((one) => code(() => zlib.gunzipSync(one)))
            .concat(code(() => zlib.inflateRawSync(Buffer.from([7, 255, 255])))),
          crc: zlib.crc32("hello"),
        };
      } };"""
    raw = zlib.compressobj(9, zlib.DEFLATED, -15)
    params = {
        "gzip": gzip.compress(text),
        "deflate": zlib.compress(text, 1),
        "raw": raw.compress(text) + raw.flush(),
        "none": zlib.compress(text, 0),
    }
    found = execute(cjs(source), params={k: base64.b64encode(v).decode() for k, v in params.items()}).unwrap()
    assert found["same"] == [hashlib.sha1(text).hexdigest()] * 8
    assert found["bad"] == ["Z_BUF_ERROR", "Z_DATA_ERROR", "Z_DATA_ERROR", "Z_DATA_ERROR"]
    assert found["crc"] == zlib.crc32(b"hello")


def test_streams_events_and_web_apis_work_together(execute: Execute) -> None:
    source = """
      import { Readable, Transform, pipeline } from "stream";
      import { once, EventEmitter } from "events";
      import { promisify } from "util";
      export const tool = { async execute() {
        const upper = new Transform({ transform(c, e, done) { done(null, c.toString().toUpperCase()) } });
        const chunks = [];
        upper.on("data", (c) => chunks.push(c.toString()));
        await promisify(pipeline)(Readable.from(["a", "b"]), upper);
        const emitter = new EventEmitter(); setTimeout(() => emitter.emit("x", 1), 1);
        const form = new FormData();
        form.append("f", new File(["data"], "n.txt", { type: "text/plain" }));
        form.append("k", "v");
        const back = await new Response(form).formData();
        const text = new Blob(["x", "y"]).stream().pipeThrough(new TextDecoderStream());
        const streamed = await new Response(text.pipeThrough(new TextEncoderStream())).text();
        return [chunks, await once(emitter, "x"), back.get("k"), await back.get("f").text(), streamed];
      } };"""
    assert execute(esm(source)).unwrap() == [["A", "B"], [1], "v", "data", "xy"]


def test_what_is_written_to_the_console_is_log_and_never_the_result(execute: Execute) -> None:
    source = r"""
      console.log("a %s", "b", { c: 1 });
      export const tool = { execute() { process.stdout.write("x\ny\n"); return 1 } };"""
    result = execute(esm(source))
    assert result.unwrap() == 1
    assert [line["text"] for line in result.logs] == ["a b { c: 1 }", "x", "y"]
