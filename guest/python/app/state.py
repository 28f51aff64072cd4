"""What there is once per run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .loop import Loop


class TooLarge(ValueError):
    """Raised when something is over its budget of bytes; it ends nothing by itself."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message)


class CannotWait(RuntimeError):
    """Raised where the host cannot hold a step in the middle: a tool call needs an `await` there."""


class Exhausted(BaseException):
    """Raised when no call is left. The shim has noted it: whatever the script makes of this, the run ends with it."""


loop: Loop
asynchronous = False
"""Whether the script uses async or await: then a call gives a ToolCall, else its value."""
deferred = False
"""Whether the call being made is awaited by the script's own level."""
source = ""
main: Any = None
"""The task that runs the script."""
