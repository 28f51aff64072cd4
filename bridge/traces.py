"""What the log says of an exception: its traceback as text, made here.

An exception object in a log line is drawn by whatever the embedding program has configured. structlog's own default,
where rich is installed, draws every local variable of every frame, and here those are keys and credentials.
"""

from __future__ import annotations

import traceback
from typing import Final

from bridge.scrub import Scrubber

LONGEST: Final = 20_000
"""Characters of a traceback that are kept, from its end: the message of an exception has no bound."""


def traced(error: BaseException, scrubber: Scrubber | None = None) -> str:
    """The traceback of `error` and of its causes, without local variables, `scrubber`'s secrets masked."""
    text = "".join(traceback.format_exception(error)).rstrip()
    return (text if scrubber is None else scrubber.text(text))[-LONGEST:]
