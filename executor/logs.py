"""What the host process says about itself, on standard error: lines for people, or one JSON object each.

No formatter here shows local variables: they hold keys and secrets.
"""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, ProcessorReturnValue, WrappedLogger


def configure_unless_configured() -> None:
    """Keep the library's lines off standard output, structlog's own default, where nobody has set up logging."""
    if not structlog.is_configured():
        configure(for_good=False)


def configure_for_command(*, for_good: bool = True) -> None:
    """Set up logging for a command, which has words of its own: what takes long, as `· step`, and what goes wrong."""
    configure(for_good=for_good)
    *before, plain = structlog.get_config()["processors"]

    def told(logger: WrappedLogger, method: str, event: EventDict) -> ProcessorReturnValue:
        if event["level"] != "info":
            return str(plain(logger, method, event))
        if "step" not in event:
            raise structlog.DropEvent
        return f"· {event['step']}"

    structlog.configure(processors=[*before, told])


def configure(*, as_json: bool = False, for_good: bool = True) -> None:
    """Set up logging for this process; with `for_good`, as far as this package goes, once and for all."""
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]
    if as_json:
        last: list[Processor] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        last = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # Standard error as it is when a line is written: an embedding program may replace it.
        logger_factory=lambda *names: structlog.WriteLogger(sys.stderr),
        cache_logger_on_first_use=for_good,
    )
