"""A real OpenID provider in a process of its own, whose login form is filled in as a person would."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2


@contextmanager
def openid_provider() -> Iterator[str]:
    """Its issuer. Any client and any name is let in; PKCE is ignored."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "-p", str(port)],
        env=os.environ | {"AUTHLIB_INSECURE_TRANSPORT": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    issuer = f"http://localhost:{port}"
    try:
        until = time.monotonic() + 60
        while not _serves(issuer):
            assert process.poll() is None, "the provider ended"
            assert time.monotonic() < until, "the provider does not answer"
            time.sleep(0.05)
        yield issuer
    finally:
        process.terminate()
        process.wait(20)


def _serves(issuer: str) -> bool:
    try:
        return httpx2.get(f"{issuer}/.well-known/openid-configuration", trust_env=False, timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def log_in(page: str, who: str) -> str:
    """Where the provider sends the browser once `who` has filled in the form of `page`."""
    with httpx2.Client(trust_env=False, timeout=20) as browser:
        form = browser.get(page)
        assert form.status_code == 200, form.text
        assert 'name="sub"' in form.text, form.text
        answer = browser.post(page, data={"sub": who})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]
