"""What an instance of a guest can do, whichever way its calls run."""

from __future__ import annotations

from typing import Protocol


class Trapped(Exception):
    """Raised when a guest call ended in a trap. The instance must never be entered again, only read and closed."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code


class Unusable(Exception):
    """Raised when a module cannot be loaded or instantiated as a guest; the message says why."""


class Instance(Protocol):
    """One instance in a store of its own. For one thread at a time; which one may change between polls."""

    slices: int
    """Yields of the present or last call; each stands for `fiber.SLICE` units of fuel."""

    waiting: int | None
    """Set when the last poll gave None because the guest waits in the middle of a step: what it said, as a result."""

    def answer(self, message: bytes) -> None:
        """What a guest that waits gets at the next poll: the time as 8 bytes, then the answers."""

    def begin(self, export: str, *arguments: int, results: int = 1) -> None:
        """Prepare a call; nothing runs before the first poll."""

    def poll(self, *, hold: bool) -> int | None:
        """Run on; the call's result as an unsigned 64-bit number once it has returned, else None.

        `hold` keeps the GIL meanwhile. Raises Trapped.
        """

    def within(self, seconds: float) -> None:
        """Say how long the next call may take, for an instance that cannot be stopped between slices."""

    def abandon(self) -> None:
        """Unwind a call that has not returned. The memory stays readable; nothing may be called any more."""

    def memory(self) -> tuple[int, int]:
        """Address and size in bytes of the linear memory now; either may change while guest code runs."""

    def grow(self, pages: int) -> None:
        """Let the linear memory grow by so many pages of 64 KiB. Raises Unusable when its limit does not allow it."""

    def fuel(self) -> int:
        """Units of fuel left. Not exact after a trap."""

    def close(self) -> None:
        """Free everything, once; later calls do nothing."""
