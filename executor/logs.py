"""What the host process says about itself, on standard error: lines for people, or one JSON object each.

No formatter here shows local variables: they hold keys and secrets.
"""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import Processor


def configure(*, as_json: bool = False) -> None:
    """Set up logging for this process. Called by programs, never by the library."""
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
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
