"""`executor mcp`"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import signal
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from executor.cli.options import home_directory


async def mcp(
    *,
    home: Annotated[Path | None, Parameter(env_var="EXECUTOR_HOME")] = None,
    toolkit: str | None = None,
    direct: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Serve MCP on standard input and output, for a client that starts it.

    A client's configuration names the command `executor` with the argument `mcp`. The log goes to standard error. It
    ends when its input does. A server that is running already serves MCP at `/mcp`.

    Parameters
    ----------
    home
        The home directory.
    toolkit
        Serve the tools of this toolkit alone.
    direct
        List the tools one by one, in place of those that run scripts.
    """
    from executor import logs
    from executor.config import Config
    from executor.executor import Executor

    logs.configure()
    # Loading makes objects by the hundred thousand, all of which stay: the collector would look at them in vain.
    gc.disable()
    directory = home_directory(home)
    # The protocol's package takes as long to import as the workers take to start.
    loading = asyncio.create_task(asyncio.to_thread(importlib.import_module, "executor.mcp.stdio"))
    stopped = asyncio.Event()
    async with Executor.open(directory, config=Config.load(directory)) as executor:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        door = await loading
        gc.freeze()
        gc.enable()
        serving = asyncio.create_task(door.serve(executor, toolkit=toolkit, direct=direct))
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    if stopped.is_set():
        # A thread waits in a read of standard input, which nothing ends but its end.
        os._exit(0)
    stopping.cancel()
    await serving
