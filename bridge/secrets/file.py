"""`file:/PATH`: the content of a file, such as the ones that container platforms mount."""

from __future__ import annotations

import os
import stat
from typing import Final

import anyio.to_thread

from bridge.secrets.ports import Secret, SecretMissing

MAX_BYTES: Final = 64 * 1024


class FileSecrets:
    async def resolve(self, scope: str, key: str) -> Secret:
        """The file is read at each use, without one trailing line break. Raises SecretMissing."""
        return Secret(await anyio.to_thread.run_sync(_read, key))


def _read(path: str) -> str:
    if not os.path.isabs(path):
        raise SecretMissing("the path of a file secret is absolute")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or facts.st_mode & stat.S_IWOTH:
                raise SecretMissing(f"{path} is not a regular file, or anyone may write to it")
            data = os.read(descriptor, MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as e:
        raise SecretMissing(f"{path} cannot be read ({e.strerror})") from None
    if len(data) > MAX_BYTES:
        raise SecretMissing(f"{path} is larger than {MAX_BYTES} bytes")
    try:
        value = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise SecretMissing(f"{path} is not UTF-8 text") from None
    if not value:
        raise SecretMissing(f"{path} is empty")
    return value
