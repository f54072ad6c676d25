"""A reasoner whose answers a test sets, and an application that uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from api.conftest import Api
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.plugins import load_plugins
from memservice.settings import load_settings
from memservice.spi.reasoner import AnswerRequest
from support.pipeline.fakes import ScriptedReasoner


class AnsweringReasoner(ScriptedReasoner):
    """Answers as a test sets it, and records the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.answer_requests: list[AnswerRequest] = []
        self.say: Callable[[AnswerRequest], Iterable[str]] = lambda request: ["Yes", ".", ""]

    def answer(self, request: AnswerRequest) -> Iterable[str]:
        self.answer_requests.append(request)
        return iter(self.say(request))

    @property
    def last(self) -> AnswerRequest:
        return self.answer_requests[-1]


@contextmanager
def talking(
    folder: Path, uri: str = "memory://", **settings: str
) -> Iterator[tuple[Api, AnsweringReasoner]]:
    """The application with an `AnsweringReasoner`. The workspace `w` does not exist yet."""
    talker = AnsweringReasoner()
    loaded = load_settings(
        environ={"DB_CONNECTION_URI": uri, "REASONER": talker.name, **settings}, cwd=folder
    )
    runtime = open_runtime(loaded, "api", plugins=load_plugins(loaded, extra=[talker]))
    runtime.storage.migrate()
    try:
        yield Api(create_app(runtime=runtime), runtime, "w"), talker
    finally:
        runtime.close()
