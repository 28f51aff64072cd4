"""An MCP server of the older era on standard streams, written by hand so that it can misbehave.

    python -I -S rogue_mcp.py FOLDER [MODE]

FOLDER keeps what it is told to remember from one start to the next: `list.json` is what it lists, where it is there,
and `log` what it heard. Its tools misbehave by their names; MODE is how the server does as a whole.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

FOLDER = Path(sys.argv[1])
MODE = sys.argv[2] if len(sys.argv) > 2 else ""
ANY = {"type": "object"}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "echo", "inputSchema": TEXT, "annotations": {"readOnlyHint": True}, "description": "Say it again"},
    {"name": "write", "inputSchema": ANY, "annotations": {"readOnlyHint": False, "destructiveHint": False}},
    {"name": "erase", "inputSchema": ANY, "annotations": {"destructiveHint": True}},
    {"name": "mute", "inputSchema": ANY},
    *(
        {"name": name, "inputSchema": ANY, "annotations": {"readOnlyHint": True}}
        for name in ("deep", "die", "environ", "family", "flood", "huge", "noise", "pid", "refuse", "retired", "storm")
    ),
    *(
        {"name": name, "inputSchema": ANY, "annotations": {"readOnlyHint": True}}
        for name in ("blocks", "fails", "link", "never", "nothing", "odd", "picture", "strange_ids", "structured")
    ),
    {
        "name": "liar",
        "inputSchema": ANY,
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "annotations": {"readOnlyHint": True},
    },
]
lock = threading.Lock()


def send(message: object) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(text: str) -> None:
    with lock, (FOLDER / "log").open("a") as log:
        log.write(text + "\n")


def listed() -> list:
    kept = FOLDER / "list.json"
    return json.loads(kept.read_text()) if kept.exists() else TOOLS


def page(id: object, params: dict) -> None:
    if MODE == "endless":
        start = int(params.get("cursor", "0"))
        tools = [{"name": f"t{start}", "inputSchema": ANY}]
        send({"id": id, "result": {"tools": tools, "nextCursor": str(start + 1)}})
    elif MODE == "circle":
        send({"id": id, "result": {"tools": [], "nextCursor": "again"}})
    elif (FOLDER / "no-list").exists():
        send({"id": id, "error": {"code": -32000, "message": "the list is not to be had"}})
    else:
        tools = listed()
        at = int(params.get("cursor", "0"))
        more = {"nextCursor": str(at + 10)} if at + 10 < len(tools) else {}
        send({"id": id, "result": {"tools": tools[at : at + 10], **more}})


def text(id: object, words: str, **more: object) -> None:
    send({"id": id, "result": {"content": [{"type": "text", "text": words}], **more}})


def call(id: object, name: str, args: dict) -> None:
    if name == "echo":
        text(id, args["text"])
    elif name == "pid":
        text(id, str(os.getpid()))
    elif name == "environ":
        text(id, json.dumps(dict(os.environ)))
    elif name == "nothing":
        send({"id": id, "result": {"content": []}})
    elif name == "blocks":
        send({"id": id, "result": {"content": [{"type": "text", "text": '{"a": 1}'}, {"type": "text", "text": "b"}]}})
    elif name == "structured":
        send({"id": id, "result": {"content": [], "structuredContent": {"n": [1, None, {"deep": True}]}}})
    elif name == "picture":
        send({"id": id, "result": {"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}})
    elif name == "link":
        link = {"type": "resource_link", "uri": "file:///etc/passwd", "name": "passwd", "mimeType": "text/plain"}
        page = {"type": "resource", "resource": {"uri": "ui://x", "mimeType": "text/html", "text": "<script>"}}
        send({"id": id, "result": {"content": [link, page]}})
    elif name == "fails":
        text(id, "the disk\u202e is full", isError=True)
    elif name == "refuse":
        send({"id": id, "error": {"code": -32050, "message": "not today", "data": {"until": "monday"}}})
    elif name == "liar":
        send({"id": id, "result": {"content": [], "structuredContent": {"n": "many"}}})
    elif name == "odd":
        send({"id": id, "result": {"content": "no list"}})
    elif name == "noise":
        sys.stdout.write("debug: here I am\n\n{not json\n" + "x" * 100_000 + "\n\x00\xff\n")
        text(id, "after the noise")
    elif name == "deep":
        nested = "[" * 50_000 + "]" * 50_000
        sys.stdout.write('{"jsonrpc": "2.0", "id": ' + str(id) + ', "result": {"structuredContent": ' + nested + "}}\n")
        sys.stdout.flush()
    elif name == "flood":
        while True:
            sys.stdout.write("x" * 100_000 + "\n")
    elif name == "strange_ids":
        for wrong in (None, True, 10**30, "nobody", -1, [id]):
            send({"id": wrong, "result": {"content": [{"type": "text", "text": "for somebody else"}]}})
        text(id, "mine")
        text(id, "twice")
    elif name == "huge":
        with lock:
            for _ in range(100):
                sys.stdout.write("x" * 1024 * 1024)
            sys.stdout.write("\n")
    elif name == "die":
        os._exit(3)
    elif name == "storm":
        for _ in range(5000):
            send({"method": "notifications/tools/list_changed"})
        text(id, "all said")
    elif name == "family":
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True)
        text(id, f"{os.getpid()} {child.pid}")
    elif name in ("never", "mute"):
        note(f"called {name}")
    elif any(tool["name"] == name for tool in listed()):
        text(id, f"did {name}")
    else:
        send({"id": id, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})


def handle(message: dict) -> None:
    method, params, id = message.get("method"), message.get("params") or {}, message.get("id")
    if method != "tools/call":
        note(f"{method} {json.dumps(params)}")
    if method == "initialize":
        abilities = {"tools": {"listChanged": True}}
        info = {"name": "rogue", "version": "1"}
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": abilities, "serverInfo": info}})
    elif method == "tools/list":
        page(id, params)
    elif method == "tools/call":
        if params["name"] == "retired":
            (FOLDER / "list.json").write_text(json.dumps([tool for tool in listed() if tool["name"] != "retired"]))
            send({"id": id, "error": {"code": -32602, "message": "Unknown tool: retired"}})
        else:
            call(id, params["name"], params.get("arguments") or {})
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "Method not found"}})


def watch() -> None:
    """Tell the client when the list is another."""
    kept = FOLDER / "list.json"
    before = kept.stat().st_mtime_ns if kept.exists() else 0
    while True:
        time.sleep(0.02)
        now = kept.stat().st_mtime_ns if kept.exists() else 0
        if now != before:
            before = now
            send({"method": "notifications/tools/list_changed"})


if MODE == "silent":
    sys.stdin.read()
if MODE == "broken":
    sys.stderr.write("the key is missing\n")
    sys.exit(1)
if MODE == "shouting":
    sys.stdout.write("Welcome!\n")
if MODE == "watching":
    threading.Thread(target=watch, daemon=True).start()
note(f"started {os.getpid()}")
for line in sys.stdin:
    heard = json.loads(line)
    if MODE == "old" and heard.get("method") == "server/discover":
        sys.exit(1)
    handle(heard)
note("ended")
