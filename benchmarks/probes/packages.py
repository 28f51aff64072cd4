"""A tool of an npm package over `/execute-tool`, beside Node started for the same tool, each with all of it at hand."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.client
import io
import json
import os
import statistics
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, spread
from benchmarks.server import serving
from guest import images
from guest.npm import node

PROBE = "packages"
NAME, VERSION = "bench-tool", "1.0.0"
TOOL = """
const words = (text) => text.split(/\\s+/).filter(Boolean);
const longest = (all) => all.sort((a, b) => b.length - a.length)[0];
export const count = {
  description: "Counts words",
  execute: async ({ text }) => ({ words: words(text).length, longest: longest(words(text)) }),
};
""" + "".join(f"export const unused{n} = (value) => [value, {n}, {json.dumps('x' * 60)}];\n" for n in range(2_000))
PARAMS = {"text": "a tool that counts the words of a text"}
FILES = {
    "package.json": json.dumps({"name": NAME, "version": VERSION, "type": "module", "exports": "./index.js"}),
    "index.js": TOOL,
}


def run(scale: float) -> list[Figure]:
    calls = int(200 * max(scale, 0.1))
    with _registry() as url, tempfile.TemporaryDirectory() as folder:
        kept = {name: os.environ.get(name) for name in ("EXECUTOR_NPM_REGISTRY", "EXECUTOR_NPM_CACHE")}
        os.environ |= {"EXECUTOR_NPM_REGISTRY": url, "EXECUTOR_NPM_CACHE": f"{folder}/packages"}
        try:
            with serving() as (host, port, key):
                cold, warm = _ours(host, port, key, calls)
        finally:
            for name, value in kept.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
        spawned = _theirs(Path(folder), max(5, calls // 20))
    return [
        Figure(PROBE, "POST /execute-tool, a package at hand", statistics.median(warm), "ms", 10.0, extra=spread(warm)),
        Figure(PROBE, "POST /execute-tool, the first call", cold, "ms"),
        Figure(PROBE, "node started for the same tool", statistics.median(spawned), "ms", extra=spread(spawned)),
    ]


def _ours(host: str, port: int, key: str, calls: int) -> tuple[float, list[float]]:
    connection = http.client.HTTPConnection(host, port, timeout=120)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    body = json.dumps({"packageName": NAME, "version": VERSION, "name": "count", "params": PARAMS})

    def call() -> None:
        connection.request("POST", "/execute-tool", body, headers)
        answer = json.loads(connection.getresponse().read())
        assert answer["output"] == {"words": 9, "longest": "counts"}, answer

    try:
        return _timed(call), [_timed(call) for _ in range(calls)]
    finally:
        connection.close()


def _theirs(folder: Path, calls: int) -> list[float]:
    package = folder / "node_modules" / NAME
    package.mkdir(parents=True)
    for name, text in FILES.items():
        (package / name).write_text(text)
    script = (
        f"import {{ count }} from {NAME!r};\nconsole.log(JSON.stringify(await count.execute({json.dumps(PARAMS)})));"
    )
    (folder / "call.mjs").write_text(script)
    program = [str(part) for part in node(images.cache_dir())]

    def call() -> None:
        subprocess.run([*program, "call.mjs"], cwd=folder, check=True, capture_output=True, timeout=60)

    return [_timed(call) for _ in range(calls + 1)][1:]


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


@contextmanager
def _registry() -> Iterator[str]:
    """A registry on loopback that has the one package."""
    archive = _archive()
    digest = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            dist = {"tarball": f"{url}/{NAME}.tgz", "integrity": digest}
            facts: dict[str, Any] = {"name": NAME, "version": VERSION, "dist": dist}
            data = archive if self.path.endswith(".tgz") else json.dumps(facts).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield url
        finally:
            server.shutdown()


def _archive() -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, text in FILES.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(raw.getvalue(), mtime=0)
