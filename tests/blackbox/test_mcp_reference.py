"""The reference servers of the protocol, from npm and PyPI, added as integrations and driven by scripts."""

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from executor import Config, Executor, ToolError
from tests import packages

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parents[1] / "upstreams"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def node(server: str, *arguments: str) -> list[str]:
    home = packages.installed(HERE, "mcp-servers") / "node_modules" / "@modelcontextprotocol"
    return [str(packages.tool("node")[0]), str(home / f"server-{server}" / "dist" / "index.js"), *arguments]


def python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


@pytest.fixture(scope="module")
async def ex():
    async with Executor.open(config=Config(workers=1, search="words", tool_timeout_s=120)) as executor:
        yield executor


async def done(ex: Executor, source: str, **options: object) -> object:
    """The result of a script; the approvals that it waits for are given."""
    run = await ex.run(source, budgets={"wall_ms": 300_000}, **options)  # type: ignore[arg-type]
    while run.status == "waiting":
        run = await ex.resume(run.run_id, run.interactions[0]["id"], "approve")
    assert run.status == "completed", run.error
    return run.result


async def test_everything(ex: Executor):
    report = await ex.add_mcp("everything", command=node("everything"))
    assert report.diagnostics == []
    source = """
    const t = tools.everything.org.main
    const [echo, sum, image, weather, links, resource] = await Promise.all([
      t.echo({message: "hello"}), t["get-sum"]({a: 2, b: 3}), t["get-tiny-image"](),
      t["get-structured-content"]({location: "Chicago"}), t["get-resource-links"]({count: 2}),
      t["get-resource-reference"]({resourceType: "Text", resourceId: 1}),
    ])
    const picture = image.find(part => part.type === "image")
    ;({echo, sum, image: [picture.mimeType, picture.data.length > 500], weather,
       links: links.map(each => each.type ?? "text"), resource: resource.map(each => each.type ?? "text")})
    """
    assert await done(ex, source) == {
        "echo": "Echo: hello",
        "sum": "The sum of 2 and 3 is 5.",
        "image": ["image/png", True],
        "weather": {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82},
        "links": ["text", "resource_link", "resource_link"],
        "resource": ["text", "resource", "text"],
    }
    environment = str(await ex.call("everything.org.main.get-env", {}))
    assert "VIRTUAL_ENV" not in environment
    assert "EXECUTOR" not in environment


async def test_filesystem(ex: Executor, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree")
    await ex.add_mcp("files", command=node("filesystem", str(tmp_path)))
    source = """
    const f = tools.files.org.main
    const read = await f.read_text_file({path: input + "/notes.txt", tail: 1})
    await f.write_file({path: input + "/new.txt", content: read.content + "!"})
    const [list, refused] = await Promise.all([
      f.list_directory({path: input}), f.read_text_file({path: "/etc/hostname"}).catch(e => e.code),
    ])
    ;[read, list.content.split("\\n").sort(), refused]
    """
    read, listed, refused = await done(ex, source, input=str(tmp_path))  # type: ignore[misc]
    assert read == {"content": "three"}
    assert listed == ["[FILE] new.txt", "[FILE] notes.txt"]
    assert refused == "upstream_error"
    assert (tmp_path / "new.txt").read_text() == "three!"
    with pytest.raises(ToolError) as caught:
        await ex.call("files.org.main.write_file", {"path": f"{tmp_path}/x", "content": "x"})
    assert caught.value.code == "approval_required"


async def test_memory(ex: Executor, tmp_path: Path):
    auth = {"type": "env", "name": "MEMORY_FILE_PATH", "value": str(tmp_path / "memory.jsonl")}
    await ex.add_mcp("memory", command=node("memory"), auth=auth)
    source = """
    const m = tools.memory.org.main
    await m.create_entities({entities: [
      {name: "Ada", entityType: "person", observations: ["writes programs"]},
      {name: "engine", entityType: "machine", observations: []},
    ]})
    await m.create_relations({relations: [{from: "Ada", to: "engine", relationType: "programs"}]})
    const graph = await m.read_graph()
    const found = await m.search_nodes({query: "programs"})
    ;[graph.entities.length, graph.relations, found.entities.map(each => each.name)]
    """
    assert await done(ex, source) == [2, [{"from": "Ada", "to": "engine", "relationType": "programs"}], ["Ada"]]
    assert "Ada" in (tmp_path / "memory.jsonl").read_text()


async def test_sequential_thinking(ex: Executor):
    await ex.add_mcp("thinking", command=node("sequential-thinking"))
    source = """
    const think = tools.thinking.org.main.sequentialthinking
    for (const n of [1, 2, 3])
      var last = await think({thought: `step ${n}`, thoughtNumber: n, totalThoughts: 3, nextThoughtNeeded: n < 3})
    last
    """
    last = await done(ex, source)
    assert isinstance(last, dict)
    assert (last["thoughtNumber"], last["nextThoughtNeeded"], last["thoughtHistoryLength"]) == (3, False, 3)


async def test_time(ex: Executor):
    await ex.add_mcp("time", command=python("mcp_server_time", "--local-timezone=UTC"))
    source = """
    now = await tools.time.org.main.get_current_time(timezone="Asia/Tokyo")
    there = await tools.time.org.main.convert_time(
        source_timezone="UTC", time="12:00", target_timezone="Asia/Kathmandu")
    [now["timezone"], there["time_difference"]]
    """
    assert await done(ex, source, language="python") == ["Asia/Tokyo", "+5.75h"]
    with pytest.raises(ToolError) as caught:
        await ex.call("time.org.main.get_current_time", {"timezone": "Nowhere/Here"})
    assert caught.value.code == "upstream_error"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for command in ("init -q -b main", "config user.email a@example.com", "config user.name A"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True, timeout=20)
    (tmp_path / "a.txt").write_text("first\n")
    return tmp_path


async def test_git(ex: Executor, repository: Path):
    await ex.add_mcp("git", command=python("mcp_server_git"))
    source = """
    const g = tools.git.org.main, at = {repo_path: input}
    await g.git_add({...at, files: ["a.txt"]})
    const made = await g.git_commit({...at, message: "Begin"})
    const [log, status] = await Promise.all([g.git_log({...at, max_count: 1}), g.git_status(at)])
    ;[made, JSON.stringify(log), status]
    """
    made, log, status = await done(ex, source, input=str(repository))  # type: ignore[misc]
    assert "committed" in made
    assert "Begin" in log
    assert "nothing to commit" in status


@pytest.fixture
def page() -> Iterator[str]:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path != "/robots.txt"
            body = b"<html><body><h1>Hello</h1><p>A page to read.</p></body></html>" if found else b""
            self.send_response(200 if found else 404)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join(10)


async def test_fetch(ex: Executor, page: str):
    await ex.add_mcp("fetch", command=python("mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips"))
    text = await done(ex, "await tools.fetch.org.main.fetch({url: input, raw: true})", input=page)
    assert "A page to read." in str(text)
