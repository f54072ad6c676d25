"""What all tests of a process share, and must leave as it was."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
OF_LOGGING = ("logThreads", "logMultiprocessing")
LOGGERS = ("", "memservice", "rq.worker", "rq.job")


def process_state() -> dict[str, Any]:
    """The state by name."""
    return {
        "the working directory": os.getcwd(),
        **{f"the handler of {number.name}": signal.getsignal(number) for number in SIGNALS},
        **{f"logging.{name}": getattr(logging, name) for name in OF_LOGGING},
        **{f"the level of the logger {name!r}": logging.getLogger(name).level for name in LOGGERS},
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs, a phrase each."""
    return [
        f"{name} is {after[name]}, it was {before[name]}"
        for name in before
        if after[name] != before[name]
    ]


@contextmanager
def restored_process() -> Iterator[None]:
    """Signal handlers and logging are afterwards what they were before the block."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    logging_state = {name: getattr(logging, name) for name in OF_LOGGING}
    loggers = {logging.getLogger(name): logging.getLogger(name).level for name in LOGGERS}
    handlers_of_loggers = {logger: list(logger.handlers) for logger in loggers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for name, value in logging_state.items():
            setattr(logging, name, value)
        for logger, level in loggers.items():
            logger.setLevel(level)
            for added in set(logger.handlers).difference(handlers_of_loggers[logger]):
                added.close()  # it may have lines that wait
            logger.handlers[:] = handlers_of_loggers[logger]
