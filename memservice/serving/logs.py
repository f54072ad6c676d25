"""Logging of a process: one line an event, to standard error, as text or as JSON.

A line that was written for a request, or for the work that one made necessary, has that request's
id.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from textwrap import indent
from typing import Any

from memservice.domain.values import printable
from memservice.settings import Settings
from memservice.telemetry.context import request_id

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def set_up_logging(settings: Settings) -> None:
    """Our own loggers at LOG_LEVEL, everybody else's at warning."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_mark)
    handler.setFormatter(JsonLines() if settings.app.log_format == "json" else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("memservice").setLevel(settings.app.log_level.upper())


def _mark(record: logging.LogRecord) -> bool:
    """Note which request a line was written for, in the thread that writes it."""
    if not hasattr(record, "request_id"):
        record.request_id = request_id()
    return True


class TextLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__(FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the standard library's name
        # What others wrote may be in it; an end of line would begin a line of their own making.
        line = printable(super().formatMessage(record)).replace("\n", "\\n")
        known = getattr(record, "request_id", None)
        # The line of the request itself has it among its fields.
        return line if known is None or hasattr(record, "request") else f"{line} request_id={known}"

    def formatException(self, ei: Any) -> str:  # noqa: N802  # as above
        """Indented: no line of it can pass for one of the log's own."""
        return indent(printable(super().formatException(ei)), "  ", lambda line: True)


class JsonLines(logging.Formatter):
    """One JSON object a line: `time`, `level`, `logger`, `message`; `request_id` and `error` where
    there are any, and for the line of a request its `method`, `path`, `status` and `ms`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "request", {})
        known = getattr(record, "request_id", None)
        if known is not None:
            line["request_id"] = known
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
