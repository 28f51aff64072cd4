"""A closed-loop HTTP load generator in its own process: N keep-alive connections, prebuilt bytes, one selector.

Run as `python -m benchmarks.load HOST PORT KEY CLIENTS SECONDS`; prints one JSON line.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time


class Client:
    """One keep-alive connection that sends the next request when the answer to the last is complete."""

    def __init__(self, host: str, port: int, request: bytes) -> None:
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._buffer = b""
        self._sent_at = 0.0

    def send(self) -> None:
        self._sent_at = time.perf_counter()
        self.socket.sendall(self._request)

    def receive(self) -> tuple[float, bool] | None:
        """Seconds and success of the request once its answer is complete, else None."""
        self._buffer += self.socket.recv(65_536)
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return None
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(body) < length:
            return None
        self._buffer = body[length:]
        good = head.startswith(b"HTTP/1.1 200") and b'"completed"' in body
        return time.perf_counter() - self._sent_at, good


def main(host: str, port: int, key: str, clients: int, seconds: float) -> dict[str, object]:
    """Send `1+1` over `clients` connections for `seconds`; latencies in seconds, counts of good and bad answers."""
    body = json.dumps({"code": "1+1"}).encode()
    authorization = f"authorization: Bearer {key}\r\n" if key else ""
    request = (
        f"POST /run HTTP/1.1\r\nhost: {host}:{port}\r\n{authorization}"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body
    selector = selectors.DefaultSelector()
    for _ in range(clients):
        client = Client(host, port, request)
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.send()
    latencies: list[float] = []
    bad = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for ready, _ in selector.select(1.0):
            answer = ready.data.receive()
            if answer is None:
                continue
            latencies.append(answer[0])
            bad += not answer[1]
            ready.data.send()
    elapsed = time.perf_counter() - start
    for ready in list(selector.get_map().values()):
        ready.data.socket.close()
    selector.close()
    latencies.sort()
    return {
        "per_second": len(latencies) / elapsed,
        "bad": bad,
        "p50_ms": latencies[len(latencies) // 2] * 1e3,
        "p99_ms": latencies[int(len(latencies) * 0.99)] * 1e3,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))))
