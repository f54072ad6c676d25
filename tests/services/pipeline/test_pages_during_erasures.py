"""Pages of a session while a peer is being erased: right, and without a count of the whole session
for each of them."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.pipeline.deletion import batches
from memservice.services import messages
from memservice.services.erasure import messages as message_erasure
from memservice.services.erasure import peers, positions
from memservice.services.paging import Paging
from memservice.services.tasks import kinds
from memservice.spi import repositories
from memservice.worker import runner
from support.erasure.free_positions import check_free_positions
from support.erasure.kills import AfterOneStep
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`

pytestmark = pytest.mark.every_storage("postgres")


class Counted:
    """The numbers of messages that were counted since the last look."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def take(self) -> list[int]:
        taken, self.numbers = self.numbers, []
        return taken


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    result = Counted()
    count = repositories.Messages.count

    def counting(self: Any, *arguments: Any) -> int:
        number = count(self, *arguments)
        result.numbers.append(number)
        return number

    monkeypatch.setattr(repositories.Messages, "count", counting)
    return result


def page(pipeline: Pipeline) -> tuple[list[str], int]:
    """The authors on the first page of the session, and its total."""
    listing = messages.page(pipeline.rt, PRINCIPAL, WORKSPACE, "s", None, Paging(1, 50))
    return [message.author for message in listing.items], listing.total


def visible(pipeline: Pipeline, erased: int) -> list[str]:
    """The authors of the messages of every other peer."""
    with pipeline.rt.storage.read() as tx:
        rows = tx.rows.page(r.Message)
    by_position = sorted(rows, key=lambda row: row.seq)
    return [row.author for row in by_position if row.author_key != erased]


def test_only_the_first_page_counts_and_only_erased_messages(
    pipeline: Pipeline, counted: Counted
) -> None:
    pipeline.say("s", *((author, "arrives") for author in "abcacbc"))
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "a")
    assert page(pipeline) == (["b", "c", "c", "b", "c"], 5)
    assert counted.take() == [2]
    assert page(pipeline) == (["b", "c", "c", "b", "c"], 5)
    assert counted.take() == []
    pipeline.say("s", ("b", "goes"), ("c", "goes"))
    assert page(pipeline)[1] == 7
    assert counted.take() == [2]


@pytest.mark.slow
def test_totals_stay_right_while_messages_are_erased_deleted_and_added(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With gaps that tasks close later, step by step."""
    monkeypatch.setattr(batches, "FIRST_SIZE", 2)
    monkeypatch.setattr(batches, "MIN_SIZE", 2)
    monkeypatch.setattr(positions, "BATCH_SIZE", 3)
    pipeline.say("s", *((author, f"{author} arrives") for author in "aababcbacaabcbabcb"))
    with pipeline.rt.storage.read() as tx:
        (erased,) = tx.rows.page(r.Peer, equals(slug="a"))
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "a")
    looks = 0
    for step in range(200):
        ready = pipeline.ready()
        if not ready:
            break
        authors, total = page(pipeline)
        expected = visible(pipeline, erased.key)
        with pipeline.rt.storage.read() as tx:
            is_erasing = tx.rows.get(r.Peer, equals(key=erased.key)) is not None
        if is_erasing:
            looks += 1
            assert (authors, total) == (expected, len(expected))
        if step % 5 == 4:
            pipeline.say("s", ("b", f"b speaks {step}"))
        runner.run(pipeline.rt, ready[0], AfterOneStep())
        check_free_positions(pipeline)
    assert looks > 10


def test_a_deleted_message_is_not_counted(pipeline: Pipeline, counted: Counted) -> None:
    """One before the last that was counted: what was counted is counted again."""
    history = pipeline.say("s", *((author, f"{author} arrives") for author in "abcabc"))
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "a")
    assert page(pipeline) == (["b", "c", "b", "c"], 4)
    message_erasure.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "s", history[1].uid)
    pipeline.say("s", ("b", "b is back"))
    counted.take()
    assert page(pipeline) == (["c", "b", "c", "b"], 4)
    assert counted.take() == [2]  # the messages of the erased peer


def test_a_deleted_message_whose_gap_is_still_open_is_not_counted(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task closes the gap of a long session later: until then, every position stays."""
    monkeypatch.setattr(positions, "BATCH_SIZE", 2)
    history = pipeline.say("s", *((author, f"{author} arrives") for author in "abcabc"))
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "a")
    for number, remaining in ((1, ["c", "b", "c"]), (2, ["b", "c"])):
        page(pipeline)
        message_erasure.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "s", history[number].uid)
        assert len(pipeline.tasks(kinds.REPACK, state=r.PENDING)) == number
        assert page(pipeline) == (remaining, len(remaining))
