"""The pet store of the examples, on a thread of this process, as an upstream for servers under test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from examples.petstore import server as petstore
from executor.http.server import Server


@contextmanager
def petstore_running() -> Iterator[str]:
    """Its base URL."""
    loop = asyncio.new_event_loop()
    server = Server(petstore.app(), host="127.0.0.1", port=0, max_body=2**20)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        yield f"http://127.0.0.1:{server.port}{petstore.BASE_PATH}"
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
