"""Pages of messages that a process remembers: when they are read from the storage."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from memservice.services import deletion, matching_totals, messages, remembered_pages
from memservice.services.paging import Paging
from memservice.services.retrieval import context
from memservice.services.retrieval.context import SessionContextOptions
from memservice.spi import repositories
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`

pytestmark = pytest.mark.every_storage("sqlite")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges of positions that were read from the storage."""
    ranges: list[tuple[int, int]] = []
    plain = repositories.Messages.run

    def reading(self: Any, session_key: int, first: int, last: int, *arguments: Any) -> Any:
        ranges.append((first, last))
        return plain(self, session_key, first, last, *arguments)

    monkeypatch.setattr(repositories.Messages, "run", reading)
    return ranges


def page(pipeline: Pipeline, size: int = 2, session: str = "s") -> list[str]:
    listing = messages.page(pipeline.rt, PRINCIPAL, WORKSPACE, session, None, Paging(1, size))
    return [message.content for message in listing.items]


def test_the_third_read_of_a_page_is_from_memory(
    pipeline: Pipeline, reads: list[tuple[int, int]]
) -> None:
    pipeline.say("s", ("ann", "one"), ("bob", "two"), ("ann", "three"))
    assert [page(pipeline) for _ in range(4)] == [["one", "two"]] * 4
    assert reads == [(1, 2), (1, 2)]


def test_a_changed_message_is_read_again(pipeline: Pipeline, reads: list[tuple[int, int]]) -> None:
    (first, *_) = pipeline.say("s", ("ann", "one"), ("bob", "two"), ("ann", "three"))
    for _ in range(3):
        page(pipeline)
    messages.update(pipeline.rt, PRINCIPAL, WORKSPACE, "s", first.uid, {"mood": "glad"})
    reads.clear()
    page(pipeline)
    assert reads == [(1, 2)]


def test_pages_are_read_again_after_a_while(
    pipeline: Pipeline, reads: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.say("s", ("ann", "one"), ("bob", "two"))
    for _ in range(3):
        page(pipeline)
    later = time.monotonic() + matching_totals.SECONDS
    monkeypatch.setattr(remembered_pages, "time", SimpleNamespace(monotonic=lambda: later))
    reads.clear()
    page(pipeline)
    assert reads == [(1, 2)]


def test_long_pages_are_not_remembered(
    pipeline: Pipeline, reads: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered_pages, "MAX_CHARACTERS", 5)
    pipeline.say("s", ("ann", "three"), ("bob", "four"))
    for _ in range(4):
        page(pipeline)
    assert len(reads) == 4


def test_pages_with_much_metadata_are_not_remembered(
    pipeline: Pipeline, reads: list[tuple[int, int]]
) -> None:
    first, second = pipeline.say("s", ("ann", "three"), ("bob", "four"))
    for message, text in ((first, "a" * 30_000), (second, "b" * 30_000)):
        messages.update(pipeline.rt, PRINCIPAL, WORKSPACE, "s", message.uid, {"text": text})
    for _ in range(4):
        page(pipeline)
    assert len(reads) == 4


def test_a_context_of_many_short_messages_is_not_remembered(
    pipeline: Pipeline, reads: list[tuple[int, int]]
) -> None:
    number = remembered_pages.MAX_MESSAGES + 1
    for first in range(0, number, 100):
        pipeline.say("s", *(("ann", "k") for _ in range(first, min(number, first + 100))))
    options = SessionContextOptions(tokens=100_000, summary=False)
    for _ in range(4):
        result = context.of_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s", options)
        assert len(result.messages) == number
    assert len(reads) == 4


def test_the_number_of_remembered_pages_is_limited(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered_pages, "MAX_PAGES", 3)
    pipeline.say("s", *(("ann", f"message {n}") for n in range(9)))
    for size in range(1, 9):
        assert len(page(pipeline, size)) == size
    assert len(pipeline.rt.matches.pages) <= 3


def test_a_session_of_the_same_id_has_its_own_pages(pipeline: Pipeline) -> None:
    for text in ("one", "two"):
        pipeline.say("s", ("ann", text), ("bob", text))
        assert [page(pipeline) for _ in range(3)] == [[text, text]] * 3
        deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
        pipeline.work()
