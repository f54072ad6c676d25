"""A reasoner that obeys commands in messages (`loop`, `sleep 5`, `wait FILE|FILE`, `raise …`). It
is importable by name, so that another process finds it."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import ReasonerProvider
from memservice.spi.reasoner import (
    AnswerRequest,
    Consolidated,
    ConsolidateRequest,
    Derived,
    DeriveRequest,
    Statement,
    Summarized,
    SummarizeRequest,
)

MAX_WAIT_SECONDS = 60.0


class CommandReasoner:
    name = "command"
    capabilities = frozenset({Capability.COMPUTES})

    def derive(self, request: DeriveRequest) -> Derived:
        return Derived(
            [
                Statement(self._obey(message.content), (message.key,))
                for message in request.messages
                if message.new
            ]
        )

    def _obey(self, content: str) -> str:
        what, _, rest = content.partition(" ")
        if what == "loop":
            re.fullmatch("(a+)+b", "a" * 40)  # holds the interpreter's lock for years
        elif what == "sleep":
            time.sleep(float(rest))
        elif what == "wait":
            _announce_and_wait(*map(Path, rest.split("|")))
        elif what == "raise":
            raise ValueError(rest)
        elif what == "end":
            os._exit(3)
        elif what == "print":
            print(rest, flush=True)
            sys.stdout.write(rest)
        elif what == "pid":
            return str(os.getpid())
        elif what == "variable":
            return os.environ.get(rest, "unset")
        return content

    def summarize(self, request: SummarizeRequest) -> Summarized:
        return Summarized(f"{len(request.messages)} messages")

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        return Consolidated(card=[str(request.tools)])

    def answer(self, request: AnswerRequest) -> Iterator[str]:
        return iter([str(os.getpid())])


def _announce_and_wait(started: Path, may_end: Path) -> None:
    """Create a file, and wait for another one."""
    started.touch()
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while not may_end.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{may_end} was not created")
        time.sleep(0.02)


def opens(settings: Any, context: Any) -> CommandReasoner:
    return CommandReasoner()


PROVIDER = ReasonerProvider(name="command", open=opens, capabilities=CommandReasoner.capabilities)


class Plugin:
    @hookimpl
    def memservice_reasoners(self) -> Iterable[ReasonerProvider]:
        yield PROVIDER
