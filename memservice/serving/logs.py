"""Logging of a process: one line an event, to standard error."""

from __future__ import annotations

import logging
import sys

from memservice.settings import Settings

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def set_up_logging(settings: Settings) -> None:
    """Our own loggers at LOG_LEVEL, everybody else's at warning."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("memservice").setLevel(settings.app.log_level.upper())
