"""`python -m examples.petstore [PORT]`: the pet store on loopback, until interrupted."""

from __future__ import annotations

import sys

import anyio
from hypercorn.asyncio import serve
from hypercorn.config import Config

from examples.petstore.server import BASE_PATH, app


async def main(port: int) -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    print(f"pet store on http://127.0.0.1:{port}{BASE_PATH} (api_key: special-key)", flush=True)
    await serve(app(), config)  # type: ignore[arg-type]


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 8400)
