"""A plugin for the processes under test: the reasoner and the storing of messages wait at gates
that a test closes and opens.

`MEMSERVICE_TEST_GATES` names a folder. While it contains a file `<gate>.closed`, a process at the
gate writes its pid to `<gate>.waiting` and waits until the first file is removed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from memservice.domain.records import Message
from memservice.hookspecs import hookimpl
from memservice.spi.providers import Context, ReasonerProvider, Settings
from memservice.spi.reasoner import Derived, DeriveRequest, Reasoner
from memservice_extractive.reasoner import ExtractiveReasoner

FOLDER = "MEMSERVICE_TEST_GATES"
FAILS = "MEMSERVICE_TEST_GATE_FAILS"
"""This variable holds a word: from messages that have it nothing can be derived."""
PATIENCE = 60.0

DERIVE, STORE = "derive", "store"


def pass_gate(name: str) -> None:
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    closed, waiting = Path(folder) / f"{name}.closed", Path(folder) / f"{name}.waiting"
    if not closed.exists():
        return
    waiting.write_text(str(os.getpid()), encoding="utf-8")
    deadline = time.monotonic() + PATIENCE
    while closed.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody opened the gate {name}")
        time.sleep(0.01)


class GatedReasoner(ExtractiveReasoner):
    name = "gated"

    def derive(self, request: DeriveRequest) -> Derived:
        pass_gate(DERIVE)
        word = os.environ.get(FAILS)
        if word and any(word in message.content for message in request.messages if message.new):
            raise ValueError("this cannot be derived from")
        return super().derive(request)


def _open(settings: Settings, context: Context) -> Reasoner:
    return GatedReasoner()


@hookimpl
def memservice_reasoners() -> Iterable[ReasonerProvider]:
    yield ReasonerProvider(name="gated", open=_open)


@hookimpl
def memservice_message_storing(message: Message) -> None:
    if "slowly" in message.content:
        pass_gate(STORE)


class Gates:
    """A test's side of the gates."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder

    def close(self, name: str) -> None:
        (self.folder / f"{name}.waiting").unlink(missing_ok=True)
        (self.folder / f"{name}.closed").touch()

    def open(self, name: str) -> None:
        (self.folder / f"{name}.closed").unlink(missing_ok=True)

    def waiting(self, name: str) -> int | None:
        """The pid of the process that waits there."""
        try:
            return int((self.folder / f"{name}.waiting").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
