"""`python -m examples.petstore [PORT]`: the pet store on loopback, until interrupted."""

from __future__ import annotations

import contextlib
import sys

import anyio
from hypercorn.asyncio import serve
from hypercorn.config import Config

from examples.petstore.server import BASE_PATH, app


async def main(port: int) -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.loglevel = "WARNING"
    try:
        # What is bound here is used, so that the line below is true when it is read.
        sockets = config.create_sockets()
    except OSError as e:
        sys.exit(f"port {port} cannot be used: {e.strerror}; name another one: python -m examples.petstore PORT")
    config.create_sockets = lambda: sockets  # type: ignore[method-assign]
    print(f"pet store on http://127.0.0.1:{port}{BASE_PATH} (api_key: special-key)", flush=True)
    await serve(app(), config)  # type: ignore[arg-type]


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 8400)
