"""Word that something has changed, for whoever wants to look again."""

from __future__ import annotations

from collections.abc import Callable


class Signal:
    """`fire` calls every listener, in the order in which they came. They do not wait and do not raise."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[], None]] = {}

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """From now on, until what is given back is called."""
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    def fire(self) -> None:
        for listener in list(self._listeners.values()):
            listener()
