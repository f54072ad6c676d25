"""Totals of filtered pages: remembered by each process, and right whatever happens to the
messages."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memservice.domain import records as r
from memservice.domain.filters import TRUE, equals, parse_filters, resources
from memservice.pipeline.deletion import batches
from memservice.services import cloning, few_matches, matching_totals, messages, store_compatibility
from memservice.services.erasure import message_rows, peers, positions
from memservice.services.erasure import messages as message_erasure
from memservice.services.messages import Draft
from memservice.services.paging import Paging
from memservice.spi import repositories
from memservice.spi.storage import Transaction
from memservice.worker import runner
from support.erasure.kills import AfterOneStep
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`
from support.stores.stores import store_of

OpenPipeline = Callable[..., Pipeline]
FILTERS: tuple[dict[str, Any], ...] = (
    {"metadata": {"kind": "odd"}},
    {"metadata": {"n": {"gte": 5}}},
    {"peer_id": "ann"},
    {"token_count": {"gt": 5}},
    {"NOT": [{"metadata": {"n": 1}}]},
    {"NOT": [{"metadata": {"n": True}}]},
)


def say(pipeline: Pipeline, *numbers: int, author: str = "ann", session: str = "s") -> list[str]:
    """The ids of new messages with these numbers."""
    drafts = [
        Draft(f"number {n} says eve", author, metadata={"n": n, "kind": ("even", "odd")[n % 2]})
        for n in numbers
    ]
    rows = messages.create(pipeline.rt, PRINCIPAL, WORKSPACE, session, drafts)
    return [row.uid for row in rows]


def total(pipeline: Pipeline, filters: dict[str, Any], size: int = 1, session: str = "s") -> int:
    page = messages.page(pipeline.rt, PRINCIPAL, WORKSPACE, session, filters, Paging(1, size))
    return page.total


def exact(
    pipeline: Pipeline, filters: dict[str, Any] | None, paging: Paging
) -> tuple[list[str], int]:
    """The ids of the messages of a page, and the total, as the storage finds them."""
    condition = parse_filters(filters, resources.MESSAGE, workspace_id=WORKSPACE)
    with pipeline.rt.storage.read() as tx:
        (session,) = tx.rows.page(r.Session, equals(slug="s"))
        if filters is None:  # while gaps are closed, these are positions and not matches
            page = messages.page_of(tx, session, condition, paging)
            return [row.uid for row in page.items], page.total
        rows, total = tx.messages.page_and_total(
            session.key, condition, paging.reverse, paging.size, paging.offset
        )
    return [row.uid for row in rows], total


def few(pipeline: Pipeline, *, number: int = 1, size: int = 50, reverse: bool = False) -> list[int]:
    """The numbers of the messages with a large one."""
    paging = Paging(number, size, reverse)
    filters = {"metadata": {"n": {"gte": 7}}}
    page = messages.page(pipeline.rt, PRINCIPAL, WORKSPACE, "s", filters, paging)
    assert number > 1 or page.total == len(page.items)
    return [message.metadata["n"] for message in page.items]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What pages of messages were read of: of all, of added ones, or of listed positions."""
    kinds: list[str] = []
    plain = repositories.Messages.page

    def reading(self: Any, session_key: int, condition: Any, *arguments: Any, **more: Any) -> Any:
        text = str(condition)
        listed, added = "OneOf(field='seq'" in text, "Compare(field='seq'" in text
        kinds.append("listed" if listed else "added" if added else "all")
        return plain(self, session_key, condition, *arguments, **more)

    monkeypatch.setattr(repositories.Messages, "page", reading)
    return kinds


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of messages that were counted."""
    numbers: list[int] = []

    def observe(kind: type[repositories.Messages]) -> None:
        plain = kind.counted

        def counting(self: Any, *arguments: Any) -> Any:
            result = plain(self, *arguments)
            assert result is not None
            numbers.append(result.total)
            return result

        monkeypatch.setattr(kind, "counted", counting)

    from memservice_sql.repositories import SqlMessages

    observe(repositories.Messages)
    observe(SqlMessages)
    return numbers


@pytest.mark.every_storage("sqlite")
class TestWhatIsCounted:
    def test_only_the_first_page_counts_and_later_ones_what_was_added(
        self, pipeline: Pipeline, counted: list[int]
    ) -> None:
        say(pipeline, *range(10))
        odd = FILTERS[0]
        assert [total(pipeline, odd), total(pipeline, odd)] == [5, 5]
        assert counted == [5]
        say(pipeline, 11, 12, 13)
        assert [total(pipeline, odd), total(pipeline, odd)] == [7, 7]
        assert counted == [5, 2]

    def test_a_page_that_is_not_full_needs_no_count(
        self, pipeline: Pipeline, counted: list[int]
    ) -> None:
        say(pipeline, *range(10))
        assert total(pipeline, FILTERS[0], size=6) == 5
        assert total(pipeline, {"metadata": {"n": 77}}) == 0
        late = messages.page(pipeline.rt, PRINCIPAL, WORKSPACE, "s", FILTERS[0], Paging(2, 3))
        assert (late.total, len(late.items)) == (5, 2)
        assert counted == []
        pipeline.rt.matches.few.clear()
        beyond = messages.page(pipeline.rt, PRINCIPAL, WORKSPACE, "s", FILTERS[0], Paging(9, 3))
        assert (beyond.total, len(beyond.items)) == (5, 0)
        assert counted == [5]

    def test_few_matches_are_found_once_and_then_only_among_added_messages(
        self, pipeline: Pipeline, pages: list[str]
    ) -> None:
        say(pipeline, *range(10))
        for reverse in (False, True, False):
            assert few(pipeline, reverse=reverse) == sorted([7, 8, 9], reverse=reverse)
        assert pages == ["all", "listed", "listed"]
        pages.clear()
        say(pipeline, 1, 9)
        assert few(pipeline) == few(pipeline) == [7, 8, 9, 9]
        assert pages == ["added", "listed", "listed"]
        assert few(pipeline, number=2, size=3) == [9]
        assert few(pipeline, number=3, size=3) == []

    def test_few_matches_of_which_one_changes(self, pipeline: Pipeline, pages: list[str]) -> None:
        uids = say(pipeline, *range(10))
        assert few(pipeline) == [7, 8, 9]
        messages.update(pipeline.rt, PRINCIPAL, WORKSPACE, "s", uids[8], {"n": 1})
        messages.update(pipeline.rt, PRINCIPAL, WORKSPACE, "s", uids[0], {"n": 8})
        assert few(pipeline) == few(pipeline) == [8, 7, 9]
        assert pages == ["all", "all", "listed"]

    def test_few_matches_that_become_many(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(few_matches, "MAX_MATCHES", 3)
        say(pipeline, *range(10))
        assert few(pipeline) == [7, 8, 9]
        say(pipeline, 8, 8)
        assert few(pipeline) == few(pipeline) == [7, 8, 9, 8, 8]
        assert [each.through for each in pipeline.rt.matches.few.values()] == [10]

    def test_a_message_that_is_added_while_few_matches_are_found(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After the session's row was read: it is not found again among added ones."""
        say(pipeline, 7, 8)
        page_of_few = few_matches.page_of_few

        def slowly(*arguments: Any) -> Any:
            monkeypatch.setattr(few_matches, "page_of_few", page_of_few)
            say(pipeline, 9)
            return page_of_few(*arguments)

        monkeypatch.setattr(few_matches, "page_of_few", slowly)
        assert few(pipeline) in ([7, 8], [7, 8, 9])
        assert total(pipeline, {"metadata": {"n": {"gte": 7}}}) == 3
        assert few(pipeline) == [7, 8, 9]

    def test_a_change_while_remembered_matches_are_read(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, *_ = say(pipeline, 7, 8, 9)
        few(pipeline)
        stands = matching_totals.stands

        def slowly(*arguments: Any) -> bool:
            monkeypatch.setattr(few_matches, "stands", stands)
            messages.update(pipeline.rt, PRINCIPAL, WORKSPACE, "s", first, {"n": 0})
            return stands(*arguments)

        monkeypatch.setattr(few_matches, "stands", slowly)
        snapshot = pipeline.rt.storage.name == "memory"
        assert few(pipeline) == ([7, 8, 9] if snapshot else [8, 9])
        assert few(pipeline) == [8, 9]

    def test_each_filter_has_its_own_total(self, pipeline: Pipeline) -> None:
        """Also those whose conditions are equal in Python: of 1 and of true."""
        say(pipeline, *range(10))
        for _ in range(2):
            assert [total(pipeline, filters) for filters in FILTERS] == [5, 5, 10, 0, 9, 10]

    def test_all_are_counted_again_after_a_while(
        self, pipeline: Pipeline, counted: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        say(pipeline, *range(10))
        total(pipeline, FILTERS[0])
        began = time.monotonic()
        # What is added meanwhile does not put that off.
        for seconds in (matching_totals.SECONDS - 60, matching_totals.SECONDS):
            later = SimpleNamespace(monotonic=lambda now=began + seconds: now)
            monkeypatch.setattr(matching_totals, "time", later)
            say(pipeline, 11)
            total(pipeline, FILTERS[0])
        assert counted == [5, 1, 7]

    def test_the_number_of_remembered_totals_is_limited(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(matching_totals, "MAX_TOTALS", 3)
        say(pipeline, *range(10))
        for n in range(5):
            assert total(pipeline, {"metadata": {"n": {"gte": n}}}) == 10 - n
        assert len(pipeline.rt.matches.totals) == 2

    def test_a_message_that_changes_before_added_ones_are_counted(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its change commits after the session's row was read."""
        first, *_ = say(pipeline, 1, 2, 3, 5)
        assert total(pipeline, FILTERS[0]) == 3
        say(pipeline, 7)
        with_added = matching_totals._with_added

        def slowly(*arguments: Any) -> Any:
            messages.update(pipeline.rt, PRINCIPAL, WORKSPACE, "s", first, {"kind": "even"})
            monkeypatch.setattr(matching_totals, "_with_added", with_added)
            return with_added(*arguments)

        monkeypatch.setattr(matching_totals, "_with_added", slowly)
        snapshot = pipeline.rt.storage.name == "memory"
        # The storage in memory reads all in the state at the beginning.
        assert total(pipeline, FILTERS[0]) == (4 if snapshot else 3)
        assert total(pipeline, FILTERS[0]) == 3

    def test_tokens_that_are_counted_again(self, pipeline: Pipeline) -> None:
        say(pipeline, *range(10))
        pipeline.rt.storage.write(lambda tx: tx.rows.change(r.Message, TRUE, tokens=99))
        long: dict[str, Any] = {"token_count": {"gt": 50}}
        assert total(pipeline, long) == 10
        store_compatibility.recount(pipeline.rt)
        assert total(pipeline, long) == 0
        assert total(pipeline, {"token_count": {"lt": 50}}) == 10

    def test_a_session_that_is_still_being_copied(self, pipeline: Pipeline) -> None:
        """Its row has the number of all messages before they are stored."""
        say(pipeline, *range(10))
        with pipeline.rt.storage.read() as tx:
            (session,) = tx.rows.page(r.Session, equals(slug="s"))
            hidden = type(session)(
                uid="h",
                workspace_key=session.workspace_key,
                slug="h",
                state=r.DELETING,
                message_count=10,
                created_at=session.created_at,
            )
        hidden = pipeline.rt.storage.write(lambda tx: tx.sessions.save(hidden))
        total(pipeline, FILTERS[0], session="h")
        assert pipeline.rt.matches.few == {}
        condition = parse_filters(FILTERS[0], resources.MESSAGE, workspace_id=WORKSPACE)
        with pipeline.rt.storage.read_committed() as tx:
            number = matching_totals.matching_total(pipeline.rt, tx, hidden, FILTERS[0], condition)
        assert (number, pipeline.rt.matches.totals) == (0, {})
        copy = cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
        assert total(pipeline, FILTERS[0], session=copy.slug) == 5


def _change(tx: Transaction, uid: str) -> None:
    (message,) = tx.rows.page(r.Message, equals(uid=uid))
    tx.messages.revise(message.session_key)
    tx.rows.change(r.Message, equals(uid=uid), metadata={"kind": "odd"})
    raise RuntimeError("the transaction is rolled back")


def _roll_back(pipeline: Pipeline, uid: str) -> None:
    with pytest.raises(RuntimeError, match="rolled back"):
        pipeline.rt.storage.write(lambda tx: _change(tx, uid))


class History:
    """Random changes of one session by two processes."""

    def __init__(self, pipelines: list[Pipeline], dice: random.Random) -> None:
        self.pipelines = pipelines
        self.dice = dice
        self.number = 0

    def step(self) -> str:
        pipeline = self.dice.choice(self.pipelines)
        with pipeline.rt.storage.read() as tx:
            (session,) = tx.rows.page(r.Session, equals(slug="s"))
            uids = [message.uid for message in tx.messages.page(session.key, limit=1_000)]
        action = self.dice.choices(
            ("say", "update", "delete", "erase", "recount", "roll back", "nothing"),
            (6, 4, 4, 1, 1, 1, 2),
        )[0]
        if action == "say" or not uids:
            self.number += 1
            numbers = [self.dice.randrange(10) for _ in range(self.dice.choice((1, 2, 7)))]
            say(pipeline, *numbers, author=self.dice.choice(("ann", "bob", "eve")))
        elif action == "update":
            metadata = {"n": self.dice.randrange(10), "kind": self.dice.choice(("odd", "even"))}
            messages.update(
                pipeline.rt, PRINCIPAL, WORKSPACE, "s", self.dice.choice(uids), metadata
            )
        elif action == "delete":
            message_erasure.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "s", self.dice.choice(uids))
        elif action == "erase":
            with pipeline.rt.storage.read() as tx:
                present = [peer.slug for peer in tx.rows.page(r.Peer, equals(kind=r.PEER))]
            if present:
                choice = self.dice.choice(("keep", "redact"))
                peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, self.dice.choice(present), choice)
        elif action == "recount":
            store_compatibility.recount(pipeline.rt)
        elif action == "roll back":
            _roll_back(pipeline, self.dice.choice(uids))
        return action

    def work(self) -> None:
        """One step of one task, or nothing."""
        pipeline = self.pipelines[0]
        ready = pipeline.ready()
        if ready:
            runner.run(pipeline.rt, self.dice.choice(ready), AfterOneStep())

    def is_erasing(self) -> bool:
        with self.pipelines[0].rt.storage.read() as tx:
            return bool(tx.workspaces.locate(WORKSPACE).is_erasing)


@pytest.fixture
def two(
    shared_storage_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Pipeline]]:
    """Two processes on one store, with small steps of background work."""
    from services.pipeline.conftest import opening_pipelines

    for module, name, size in (
        (batches, "FIRST_SIZE", 2),
        (batches, "MIN_SIZE", 2),
        (positions, "BATCH_SIZE", 3),
        (message_rows, "BATCH_SIZE", 3),
    ):
        monkeypatch.setattr(module, name, size)
    with (
        store_of(shared_storage_name, tmp_path) as uri,
        opening_pipelines(uri, tmp_path) as open_store,
    ):
        yield [open_store(), open_store()]


@pytest.mark.slow
@pytest.mark.every_storage("sqlite")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.heavy)])
def test_totals_are_exact_after_any_history(two: list[Pipeline], seed: int) -> None:
    dice = random.Random(f"totals {seed}")
    history = History(two, dice)
    say(two[0], *range(12), author="ann")
    compared = remembered = 0
    for _ in range(40):
        done = [history.step()]
        if dice.random() < 0.5:
            history.work()
        while history.is_erasing() and dice.random() < 0.9:
            history.work()
        if history.is_erasing():
            continue  # such pages are counted anew, without the messages of the erased peer
        for pipeline in two:
            assert_positions_are_those_stored(pipeline, dice)
            for filters in (None, None, *dice.sample(FILTERS, 3)):
                paging = Paging(
                    dice.choice((1, 1, 2)), dice.choice((1, 3, 100)), dice.random() < 0.3
                )
                page = messages.page(pipeline.rt, PRINCIPAL, WORKSPACE, "s", filters, paging)
                expected = exact(pipeline, filters, paging)
                result = [message.uid for message in page.items], page.total
                assert result == expected, (done, filters, paging)
                compared += 1
        with_page = [any(each.items for each in one.rt.matches.pages.values()) for one in two]
        remembered = max(remembered, sum(with_page))
    assert compared > 50
    assert all(pipeline.rt.matches.totals for pipeline in two)
    assert all(pipeline.rt.matches.few for pipeline in two)
    assert remembered == 2


def assert_positions_are_those_stored(pipeline: Pipeline, dice: random.Random) -> None:
    """Those in memory, twice: a process may read them at the first time."""
    for _ in range(2):
        with pipeline.rt.storage.read() as tx:
            (session,) = tx.rows.page(r.Session, equals(slug="s"))
            stored = {message.key: message for message in tx.messages.page(session.key, limit=999)}
            keys = dice.sample(sorted(stored), min(len(stored), 3))
            near = {stored[key].seq + step for key in keys for step in (-1, 0, 1)}
            assert {
                (each.key, each.seq, each.author_key, each.tokens)
                for each in tx.messages.around(keys, 1, times=False)
            } == {
                (each.key, each.seq, each.author_key, each.tokens)
                for each in stored.values()
                if each.seq in near
            }
