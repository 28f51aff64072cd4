"""The main job, start to end: a real HTTP API becomes tools, and a script uses them from inside an isolate."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from hypercorn.asyncio import serve
from hypercorn.config import Config as HypercornConfig
from rich.syntax import Syntax

from examples.petstore import server as petstore
from executor import Executor
from executor.cli import output
from guest import images
from runtime.engine.modules import ModuleCache

SCRIPTS = {"typescript": Path(__file__).with_name("pets.ts"), "python": Path(__file__).with_name("report.py")}


@asynccontextmanager
async def store() -> AsyncIterator[str]:
    """The pet store on a free loopback port, for as long as the block lasts; yields its base URL."""
    config = HypercornConfig()
    config.bind = ["127.0.0.1:0"]
    config.accesslog = config.errorlog = None
    sockets = config.create_sockets()
    port = sockets.insecure_sockets[0].getsockname()[1]
    config.create_sockets = lambda: sockets  # type: ignore[method-assign]
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: serve(petstore.app(), config, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
        yield f"http://127.0.0.1:{port}{petstore.BASE_PATH}"
        stop.set()


async def main(language: str) -> int:
    console = output.out
    script = SCRIPTS[language]
    if language == "python":
        await anyio.to_thread.run_sync(build_python_image)
    code = await anyio.Path(script).read_text()
    os.environ["PETSTORE_KEY"] = "special-key"
    with tempfile.TemporaryDirectory() as home:
        async with store() as base_url, Executor.open(home) as ex:
            isolation = ex.health()["isolation"]
            console.print(f"\n[bold]1[/]  An API on [name]{base_url}[/], described by a public OpenAPI document")
            report = await ex.add_openapi(
                "petstore",
                petstore.DOCUMENT_PATH,
                base_url=base_url,
                auth={"type": "header", "name": "api_key"},
                secret="env:PETSTORE_KEY",  # noqa: S106 -- a reference, never a value
                allow_private=["127.0.0.1"],
            )
            console.print(f"   became {len(report.tools)} tools. Its key stays in the host; no script ever sees it.")
            console.print(f"\n[bold]2[/]  A script that nobody has to trust ([quiet]{script.name}[/])\n")
            console.print(Syntax(code.rstrip(), language, theme="ansi_dark", background_color="default"))
            console.print(
                f"\n[bold]3[/]  Run in an isolate, in a worker process with [good]{isolation['level']}[/] isolation\n"
            )
            start = time.perf_counter()
            result = await ex.run(code, language=language, labels={"from": "demo"})
            elapsed = (time.perf_counter() - start) * 1000
            output.show_run(result.as_dict(), code)
            console.print(f"\n[quiet]{elapsed:.0f} ms from the door and back.[/]\n")
            while result.status == "waiting":
                asked = result.interactions[0]
                console.print(f"[bold]4[/]  A person is asked about [name]{asked['path']}[/], and says yes\n")
                result = await ex.resume(result.run_id, asked["id"], "approve")
                output.show_run(result.as_dict(), code)
    return 0 if result.status == "completed" else 1


def build_python_image() -> None:
    """Built and compiled once; takes a minute or two."""
    images.build(progress=lambda line: output.say(f"  {line}", "quiet"), sets=("python",))
    ModuleCache().compiled(images.load("python").wasm)


if __name__ == "__main__":
    wanted = sys.argv[1] if len(sys.argv) > 1 else "typescript"
    if wanted not in SCRIPTS:
        sys.exit(f"usage: demo [{' | '.join(SCRIPTS)}]")
    sys.exit(anyio.run(main, wanted))
