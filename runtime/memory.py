"""The memory of the host process."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Give what is free back to the system, where the C library can. The images are read and sent to each worker that
    starts, tens of MiB that glibc would keep for a use that does not come."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
