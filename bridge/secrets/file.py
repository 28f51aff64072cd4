"""`file:/PATH`: the content of a file, such as the ones that container platforms mount."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import anyio.to_thread

from bridge.secrets.ports import MAX_BYTES, Secret, SecretMissing
from bridge.secrets.references import file_key
from bridge.wire.errors import InvalidRequest


class FileSecrets:
    async def resolve(self, scope: str, key: str) -> Secret:
        """The file is read at each use, without one trailing line break.

        It and its folders must be such that nobody else could have written it; a link must stay in the folder that it
        is in, as those of mounted volumes do. Raises SecretMissing.
        """
        return Secret(await anyio.to_thread.run_sync(_read, key))


def _read(path: str) -> str:
    try:
        file_key(path)
        descriptor = os.open(_real(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            _check(path, os.fstat(descriptor))
            data = os.read(descriptor, MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except InvalidRequest as e:
        raise SecretMissing(e.message) from None
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


def _real(path: str) -> str:
    """Where `path` really is. Raises SecretMissing where a link or somebody else decides that."""
    folder = os.path.realpath(os.path.dirname(path), strict=True)
    real = os.path.realpath(path, strict=True)
    if os.path.commonpath([folder, real]) != folder:
        raise SecretMissing(f"{path} is a link out of its folder")
    for parent in Path(real).parents:
        mode = parent.stat().st_mode
        if mode & (stat.S_IWOTH | stat.S_IWGRP) and not mode & stat.S_ISVTX:
            raise SecretMissing(f"{'anyone' if mode & stat.S_IWOTH else 'its group'} may write to {parent}")
    return real


def _check(path: str, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise SecretMissing(f"{path} is not a regular file")
    if facts.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        raise SecretMissing(f"{path} may be written by others (chmod go-w)")
    if facts.st_uid not in (os.geteuid(), 0):
        raise SecretMissing(f"{path} belongs to another user")
