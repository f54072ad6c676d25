"""Logging of a process: one line per event, to standard error, as text or as JSON.

A line that was written for a request, or for background work caused by it, has the request's id.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from textwrap import indent
from typing import Any

from memservice.domain.values import printable
from memservice.serving.log_writer import LogWriter
from memservice.settings import Settings
from memservice.telemetry.context import request_id

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def set_up_logging(settings: Settings) -> None:
    """Log memservice's loggers at LOG_LEVEL, all others at warning."""
    # No line shows what these would look up for each. gunicorn's own lines show the process.
    logging.logThreads = logging.logMultiprocessing = False
    handler = LogWriter(sys.stderr)
    handler.addFilter(_add_request_id)
    handler.setFormatter(JsonLines() if settings.app.log_format == "json" else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("memservice").setLevel(settings.app.log_level.upper())


def _add_request_id(record: logging.LogRecord) -> bool:
    """Add the id of the thread's current request to the record."""
    if not hasattr(record, "request_id"):
        record.request_id = request_id()
    return True


class TextLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__(FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the standard library's name
        # The message may contain text of callers, in which a line break would start a forged line.
        line = printable(super().formatMessage(record)).replace("\n", "\\n")
        request = getattr(record, "request_id", None)
        # The access line has the id among its fields.
        return (
            line
            if request is None or hasattr(record, "request")
            else f"{line} request_id={request}"
        )

    def formatException(self, ei: Any) -> str:  # noqa: N802  # as above
        """The traceback, indented so that none of its lines looks like a log line."""
        return indent(printable(super().formatException(ei)), "  ", lambda line: True)


class JsonLines(logging.Formatter):
    """One JSON object per line: `time`, `level`, `logger`, `message`; if present, `request_id` and
    `error`; for the access line also `method`, `path`, `status` and `ms`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "request", {})
        request = getattr(record, "request_id", None)
        if request is not None:
            line["request_id"] = request
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
