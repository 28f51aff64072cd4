"""Landlock with no rules: no file, no TCP port, no abstract socket, no signal to others, as far as it knows them."""

from __future__ import annotations

import ctypes
import struct
import sys
from typing import Final

_CREATE: Final = 444
_RESTRICT: Final = 446
_VERSION: Final = 1

_FILES_OF_ABI: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many access rights to files each ABI knows; each is one bit, from the lowest."""


def _rights(abi: int) -> bytes:
    files = (1 << _FILES_OF_ABI.get(abi, 16)) - 1
    tcp = 0b11 if abi >= 4 else 0
    scopes = 0b11 if abi >= 6 else 0
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    return struct.pack("<QQQ", files, tcp, scopes)[:size]


def restrict(libc: ctypes.CDLL) -> int:
    """Deny all that the kernel's Landlock can deny to this thread and those it starts; needs no_new_privs.

    The ABI in force, 0 where there is none.
    """
    if not sys.platform.startswith("linux"):
        return 0
    abi: int = libc.syscall(_CREATE, None, 0, _VERSION)
    if abi < 1:
        return 0
    rights = _rights(abi)
    buffer = ctypes.create_string_buffer(rights, len(rights))
    ruleset: int = libc.syscall(_CREATE, buffer, ctypes.c_size_t(len(rights)), 0)
    if ruleset < 0:
        return 0
    try:
        return abi if libc.syscall(_RESTRICT, ruleset, 0) == 0 else 0
    finally:
        libc.close(ruleset)
