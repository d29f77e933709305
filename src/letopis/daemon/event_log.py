"""Structured log of what keeps running: one event a line on standard error."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.stdlib import BoundLogger

__all__ = ["BoundLogger", "configure_logging"]

_LEVELS = {0: logging.WARNING, 1: logging.INFO}


def configure_logging(verbose: int, *, as_json: bool) -> BoundLogger:
    """A logger for this run; -v shows what happens, -vv everything."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS.get(verbose, logging.DEBUG)),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logger: BoundLogger = structlog.get_logger()
    return logger
