"""What was known at a time: reads with `as_of` equal what was observed then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memservice.compose import open_runtime
from memservice.domain.errors import InvalidInput, NotFound
from memservice.domain.filters import equals
from memservice.domain.records import LIVE, SHORT, Conclusion, Message, Summary
from memservice.domain.times import wire
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services import (
    cards,
    conclusions,
    corrections,
    dreams,
    history,
    messages,
    moments,
    peers,
    supersession,
    workspaces,
)
from memservice.services.auth.principal import Principal
from memservice.services.chat import chat
from memservice.services.chat.chat import ChatOptions
from memservice.services.conclusions import ConclusionDraft, Shown
from memservice.services.messages import Draft
from memservice.services.paging import Paging
from memservice.services.retrieval import context, representation, superseded_candidates
from memservice.services.retrieval.context import SessionContextOptions
from memservice.services.retrieval.representation import RepresentationOptions
from memservice.services.supersession import Supersession
from memservice.settings import load_settings
from memservice.spi.storage import Transaction
from support.examples import examples
from support.services.services import ME, Clock
from support.stores.stores import store_of

pytestmark = pytest.mark.every_storage("sqlite")

PAIR = {"observer": "ann", "observed": "ann"}
TEXTS = ("likes tea", "likes coffee", "likes rain", "likes long walks")
_numbers = count(1)


@dataclass(frozen=True)
class Observation:
    """What one workspace answers, by uid or text, in the order of the answers."""

    listed: list[str]
    nearest: set[str]
    represented: set[str]
    tail: list[str]


class Memory:
    """A workspace of its own."""

    def __init__(self, rt: Runtime, clock: Clock) -> None:
        self.rt, self.clock = rt, clock
        self.id = f"w{next(_numbers)}"
        workspaces.get_or_create(rt, ME, self.id, None, None)
        peers.get_or_create(rt, ME, self.id, "ann", None, None)
        messages.create(rt, ME, self.id, "s", [Draft("hello", "ann")])

    def conclude(self, text: str) -> Conclusion:
        draft = ConclusionDraft(text, "ann", "ann", "s")
        return conclusions.create(self.rt, ME, self.id, [draft])[0]

    def say(self, text: str, at: datetime | None = None) -> None:
        messages.create(self.rt, ME, self.id, "s", [Draft(text, "ann", created_at=at)])

    def correct(self, uid: str, text: str) -> Conclusion:
        return corrections.correct(self.rt, ME, self.id, uid, text)

    def merge(self, old: str, new: str) -> None:
        """As a dream merges one conclusion into another that exists."""

        def change(tx: Transaction) -> None:
            workspace = workspaces.require(tx, self.id)
            rows = [tx.conclusions.by_uid(workspace.key, uid) for uid in (old, new)]
            assert rows[0] is not None
            assert rows[1] is not None
            step = Supersession(rows[0], rows[1].key, "the same")
            supersession.supersede(self.rt, tx, workspace.key, [step])

        self.rt.storage.write(change)

    def erase(self, conclusion: Conclusion) -> None:
        """As the erasure of its only source does."""

        def change(tx: Transaction) -> None:
            row = tx.conclusions.by_uid(conclusion.workspace_key, conclusion.uid)
            assert row is not None
            dreams.restore_superseded(self.rt, tx, [row])
            tx.rows.delete(Conclusion, equals(key=row.key))

        self.rt.storage.write(change)

    def rows(self, as_of: str | None = None) -> list[Conclusion]:
        shown = Shown(as_of=as_of)
        return list(conclusions.page(self.rt, ME, self.id, None, Paging(1, 100), shown).items)

    def observe(self, as_of: str | None = None) -> Observation:
        query = conclusions.query(self.rt, ME, self.id, "likes", 100, None, PAIR, as_of)
        options = RepresentationOptions(as_of=as_of)
        selection = representation.selection_for_peer(self.rt, ME, self.id, "ann", options)
        tail = context.of_session(
            self.rt, ME, self.id, "s", SessionContextOptions(tokens=20, summary=False, as_of=as_of)
        )
        return Observation(
            [row.uid for row in self.rows(as_of)],
            {row.uid for row in query},
            {row.content for row in selection.conclusions},
            [message.content for message in tail.messages],
        )


@pytest.fixture(scope="module")
def opened(storage_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    folder: Path = tmp_path_factory.mktemp("moments")
    with store_of(storage_name, folder) as uri:
        environ = {"DB_CONNECTION_URI": uri, "DB_SYNCHRONOUS": "normal"}
        loaded = load_settings(environ=environ, cwd=folder)
        rt = open_runtime(loaded, "command", plugins=load_plugins(loaded), clock=Clock())
        rt.storage.migrate()
        yield rt
        rt.close()


@pytest.fixture
def memory(opened: Runtime) -> Memory:
    assert isinstance(opened.clock, Clock)
    return Memory(opened, opened.clock)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("conclude", "correct", "invalidate", "restore", "merge", "delete", "say", "say then")
        ),
        st.integers(0, 7),
        st.integers(0, 3),
    ),
    min_size=3,
    max_size=14,
)


# Superseded and restored, and again: the first time ends at a moment that is read.
@example(steps=[("invalidate", 0, 0), ("restore", 0, 0)] * 2)
@pytest.mark.slow
@given(steps=STEPS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(25))
def test_reads_as_of_a_time_equal_what_was_observed_then(
    opened: Runtime, steps: list[tuple[str, int, int]]
) -> None:
    clock = opened.clock
    assert isinstance(clock, Clock)
    memory = Memory(opened, clock)
    corrected: list[Conclusion] = [memory.conclude(TEXTS[0])]
    deleted: set[str] = set()
    observations = [(clock.now, memory.observe())]
    for step, first, second in steps:
        clock.advance(minutes=1)
        _take(memory, step, first, second, corrected, deleted)
        observations.append((clock.now, memory.observe()))
        clock.advance(minutes=1)
        observations.append((clock.now, observations[-1][1]))
    erased = {row.content for row in corrected if row.uid in deleted}
    for moment, before in observations:
        now = memory.observe(wire(moment))
        assert now.listed == [uid for uid in before.listed if uid not in deleted]
        assert now.nearest == before.nearest - deleted
        assert now.represented - erased == before.represented - erased
        assert now.tail == before.tail


def _take(
    memory: Memory,
    step: str,
    first: int,
    second: int,
    versions: list[Conclusion],
    deleted: set[str],
) -> None:
    live = memory.rows()
    row = live[first % len(live)] if live else None
    if step == "conclude":
        versions.append(memory.conclude(TEXTS[second]))
    elif step == "say":
        memory.say(f"message {first}")
    elif step == "say then":
        memory.say(f"message {first}", memory.clock.now - timedelta(days=30 - second))
    elif step == "restore":
        uid = versions[first % len(versions)].uid
        if uid not in deleted:
            supersession.restore(memory.rt, ME, memory.id, uid)
    elif row is not None:
        _change(memory, step, row, live[second % len(live)], versions, deleted, TEXTS[second])


def _change(
    memory: Memory,
    step: str,
    row: Conclusion,
    other: Conclusion,
    versions: list[Conclusion],
    deleted: set[str],
    text: str,
) -> None:
    if step == "correct" and row.content != text:
        versions.append(memory.correct(row.uid, text))
    elif step == "invalidate":
        corrections.invalidate(memory.rt, ME, memory.id, row.uid)
    elif step == "merge" and other.uid != row.uid:
        memory.merge(row.uid, other.uid)
    elif step == "delete":
        conclusions.delete(memory.rt, ME, memory.id, row.uid)
        deleted.add(row.uid)


def test_a_session_context_has_only_what_was_stored_then(memory: Memory) -> None:
    memory.clock.advance(days=1)
    before = memory.clock.now
    memory.conclude("likes tea")
    cards.put(memory.rt, ME, memory.id, "ann", None, ["Likes tea"])
    memory.clock.advance(days=1)
    memory.say("an old letter", datetime(2020, 1, 1, tzinfo=UTC))
    memory.conclude("likes coffee")

    def read(as_of: datetime | None) -> tuple[list[str], list[str], list[str] | None]:
        text = None if as_of is None else wire(as_of)
        options = SessionContextOptions(peer_target="ann", as_of=text)
        answer = context.of_session(memory.rt, ME, memory.id, "s", options)
        assert answer.selection is not None
        contents = sorted(row.content for row in answer.selection.conclusions)
        return [row.content for row in answer.messages], contents, answer.card

    assert read(before) == (["hello"], ["likes tea"], None)
    assert read(None) == (
        ["hello", "an old letter"],
        ["likes coffee", "likes tea"],
        ["Likes tea"],
    )
    assert read(before - timedelta(microseconds=1))[1] == []
    peer = context.of_peer(
        memory.rt, ME, memory.id, "ann", RepresentationOptions(as_of=wire(before))
    )
    assert [row.content for row in peer.selection.conclusions] == ["likes tea"]
    assert peer.card is None


def test_a_summary_counts_from_the_time_at_which_it_was_written(memory: Memory) -> None:
    with memory.rt.storage.read() as tx:
        workspace = workspaces.require(tx, memory.id)
        (session,) = tx.sessions.by_slugs(workspace.key, ["s"])
        (message,) = tx.messages.run(session.key, 1, 1)
    memory.clock.advance(days=1)
    summary = Summary(
        workspace_key=workspace.key,
        session_key=session.key,
        kind=SHORT,
        content="hello was said",
        message_key=message.key,
        message_uid=message.uid,
        tokens=3,
        reasoner="test",
        created_at=memory.clock.now,
    )
    memory.rt.storage.write(lambda tx: tx.summaries.save(summary))
    for ago, content in ((0, "hello was said"), (1, None)):
        as_of = wire(memory.clock.now - timedelta(seconds=ago))
        options = SessionContextOptions(as_of=as_of)
        answer = context.of_session(memory.rt, ME, memory.id, "s", options)
        assert (answer.summary.content if answer.summary else None) == content


@pytest.mark.parametrize("whole", [False, True], ids=["a peer", "a workspace"])
def test_chat_answers_from_what_was_known_then(memory: Memory, whole: bool) -> None:
    old = memory.conclude("ann lives in Ghent")
    cards.put(memory.rt, ME, memory.id, "ann", None, ["Lives in Bruges"])
    memory.clock.advance(days=1)
    then = memory.clock.now
    memory.clock.advance(days=1)
    new = memory.correct(old.uid, "ann lives in Bruges")
    memory.say("I have lived in Bruges since today")

    def read(as_of: str | None) -> tuple[set[str], set[str]]:
        options = ChatOptions("Where does ann live?", as_of=as_of)
        answer = (
            chat.ask_workspace(memory.rt, ME, memory.id, options)
            if whole
            else chat.ask_peer(memory.rt, ME, memory.id, "ann", options)
        )
        text = answer.content() or ""
        if as_of is not None:
            assert "Bruges" not in text
            assert answer.request.cards == {}
            assert answer.request.asked_at == then
        return (
            {row.uid for row in answer.evidence.conclusions},
            {row.content for row in answer.evidence.messages},
        )

    # The conclusion that was replaced is read too: a message with its text is not quoted as valid.
    assert read(None)[0] == {new.uid, old.uid}
    uids, quoted = read(wire(then))
    assert uids == {old.uid}
    assert not any("Bruges" in text for text in quoted)


def test_chat_in_a_session_shows_the_latest_messages_of_that_time(memory: Memory) -> None:
    then = memory.clock.now
    memory.clock.advance(days=1)
    memory.say("an old letter", datetime(2020, 1, 1, tzinfo=UTC))
    for as_of, recent in ((None, ["hello", "an old letter"]), (wire(then), ["hello"])):
        options = ChatOptions("What was said?", session="s", as_of=as_of)
        answer = chat.ask_peer(memory.rt, ME, memory.id, "ann", options)
        assert [item.content for item in answer.request.recent] == recent


def test_what_an_erased_conclusion_superseded_was_live_all_the_time(memory: Memory) -> None:
    """It is as if the erased one had never been said; a restored one was superseded meanwhile."""
    moments_by_step = []
    old, other = memory.conclude("likes tea"), memory.conclude("likes rain")
    memory.clock.advance(minutes=1)
    middle = memory.conclude("likes green tea")
    memory.merge(old.uid, middle.uid)
    moments_by_step.append(wire(memory.clock.now))
    memory.clock.advance(minutes=1)
    memory.merge(middle.uid, other.uid)
    moments_by_step.append(wire(memory.clock.now))

    memory.erase(middle)
    contents = [{row.content for row in memory.rows(as_of)} for as_of in moments_by_step]
    assert contents == [{"likes tea", "likes rain"}, {"likes rain"}]
    memory.erase(other)
    assert {row.content for row in memory.rows()} == {"likes tea"}
    contents = [{row.content for row in memory.rows(as_of)} for as_of in moments_by_step]
    assert contents == [{"likes tea"}, {"likes tea"}]


def test_a_search_considers_a_limited_number_of_superseded_conclusions(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(superseded_candidates, "MAX_CANDIDATES", 2)
    rows = []
    for text in TEXTS:
        rows.append(memory.conclude(text))
        memory.clock.advance(minutes=1)
    then = wire(memory.clock.now)
    memory.clock.advance(minutes=1)
    for row in rows:
        corrections.invalidate(memory.rt, ME, memory.id, row.uid)
    assert len(memory.observe(then).listed) == 4
    assert memory.observe(then).nearest == {rows[2].uid, rows[3].uid}, "the newest ones"


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 5, 2_000])
@pytest.mark.parametrize("reverse", [False, True])
def test_pages_of_a_time_are_in_order(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, limit: int, reverse: bool
) -> None:
    """Live and superseded conclusions are read apart, up to a limit."""
    monkeypatch.setattr(moments, "MAX_MERGED", limit)
    rows = []
    for n in range(9):
        rows.append(memory.conclude(f"likes number {n}"))
        memory.clock.advance(minutes=n % 2)
    then = wire(memory.clock.now)
    memory.clock.advance(minutes=1)
    for row in rows[::3]:
        corrections.invalidate(memory.rt, ME, memory.id, row.uid)
    memory.conclude("likes later")
    pages = [
        conclusions.page(memory.rt, ME, memory.id, None, Paging(n, 4, reverse), Shown(as_of=then))
        for n in (1, 2, 3, 4)
    ]
    assert [page.total for page in pages] == [9] * 4
    listed = [row.uid for page in pages for row in page.items]
    assert listed == [row.uid for row in (rows if reverse else rows[::-1])]


def test_the_nearest_superseded_conclusion_comes_first(memory: Memory) -> None:
    rows = [memory.conclude(text) for text in TEXTS]
    then = wire(memory.clock.now)
    memory.clock.advance(minutes=1)
    for row in (rows[1], rows[2]):
        corrections.invalidate(memory.rt, ME, memory.id, row.uid)
    hits = conclusions.query(memory.rt, ME, memory.id, "coffee", 1, None, PAIR, then)
    assert [row.uid for row in hits] == [rows[1].uid]
    near = conclusions.query(memory.rt, ME, memory.id, "likes coffee", 9, 0.1, PAIR, then)
    assert rows[1].uid in {row.uid for row in near}


def test_a_key_sees_no_more_with_a_time_than_without(memory: Memory) -> None:
    peers.get_or_create(memory.rt, ME, memory.id, "bob", None, None)
    draft = ConclusionDraft("likes secrets", "bob", "ann")
    (row,) = conclusions.create(memory.rt, ME, memory.id, [draft])
    own = memory.conclude("likes tea")
    then = wire(memory.clock.now)
    memory.clock.advance(minutes=1)
    corrections.invalidate(memory.rt, ME, memory.id, row.uid)
    corrections.invalidate(memory.rt, ME, memory.id, own.uid)
    key = Principal(workspace_id=memory.id, peer_id="ann")
    options = ChatOptions("What does ann like?", as_of=then)
    answer = chat.ask_peer(memory.rt, key, memory.id, "ann", options)
    answer.content()
    assert {item.uid for item in answer.evidence.conclusions} == {own.uid}
    session_key = Principal(workspace_id=memory.id, session_id="s")
    limited = SessionContextOptions(peer_target="ann", as_of=then)
    session_context = context.of_session(memory.rt, session_key, memory.id, "s", limited)
    assert session_context.selection is not None
    assert [item.uid for item in session_context.selection.conclusions] == [own.uid], (
        "stated in the session"
    )


def test_a_supersession_of_unknown_time_is_in_no_answer_about_the_past(memory: Memory) -> None:
    row = memory.conclude("likes tea")
    then = wire(memory.clock.now)
    memory.clock.advance(minutes=1)
    corrections.invalidate(memory.rt, ME, memory.id, row.uid)

    def forget_time(tx: Transaction) -> None:
        tx.rows.change(Conclusion, equals(key=row.key), superseded_at=None)

    memory.rt.storage.write(forget_time)
    assert memory.rows(then) == []


def test_messages_without_a_time_of_storage_count_from_their_own_time(memory: Memory) -> None:
    sent = memory.clock.now + timedelta(hours=1)
    memory.clock.advance(days=1)
    memory.say("from an older release", sent)

    def forget_time(tx: Transaction) -> None:
        workspace = workspaces.require(tx, memory.id)
        condition = equals(workspace_key=workspace.key)
        tx.rows.change(Message, condition, stored_at=None)

    memory.rt.storage.write(forget_time)
    assert memory.observe(wire(sent)).tail == ["hello", "from an older release"]
    assert memory.observe(wire(sent - timedelta(seconds=1))).tail == ["hello"]


class TestMoments:
    NOW = datetime(2026, 1, 1, 9, tzinfo=UTC)

    @pytest.fixture
    def read(self, opened: Runtime) -> Iterator[Callable[[str | None], datetime | None]]:
        assert isinstance(opened.clock, Clock)
        before, opened.clock.now = opened.clock.now, self.NOW
        yield lambda text: moments.parse(opened, text)
        opened.clock.now = before

    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("2025-03-03T12:00:00Z", datetime(2025, 3, 3, 12, tzinfo=UTC)),
            ("2025-03-03T12:00:00+02:00", datetime(2025, 3, 3, 10, tzinfo=UTC)),
            ("2025-03-03 12:00:00.5-0130", datetime(2025, 3, 3, 13, 30, 0, 500_000, tzinfo=UTC)),
            ("2025-03-03", datetime(2025, 3, 3, 23, 59, 59, 999_999, tzinfo=UTC)),
            ("2026-01-01", NOW),
            ("2026-01-01T09:00:00Z", NOW),
        ],
    )
    def test_times_with_a_zone_and_dates_are_read(
        self, read: Callable[[str | None], datetime | None], text: str, moment: datetime
    ) -> None:
        assert read(text) == moment
        assert read(None) is None

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("2025-03-03T12:00:00", "has no zone"),
            ("2025-03-03T12:00", "has no zone"),
            ("2026-01-01T09:00:01Z", "in the future"),
            ("2026-01-02", "in the future"),
            ("9999-12-31", "in the future"),
            ("yesterday", "Write a time"),
            ("2025-02-30", "Write a time"),
            ("0001-01-01T00:00:00+02:00", "Write a time"),
            ("", "Write a time"),
        ],
    )
    def test_other_texts_are_refused_with_the_reason(
        self, read: Callable[[str | None], datetime | None], text: str, message: str
    ) -> None:
        with pytest.raises(InvalidInput) as caught:
            read(text)
        (problem,) = caught.value.problems
        assert problem.loc == ("as_of",)
        assert message in str(problem)


class TestHistory:
    def test_it_is_the_same_for_each_version_and_says_who_made_it(self, memory: Memory) -> None:
        first = memory.conclude("likes tea")
        memory.clock.advance(minutes=1)
        second = memory.correct(first.uid, "likes green tea")
        memory.clock.advance(minutes=1)
        third = memory.correct(second.uid, "likes black tea")
        merged = memory.conclude("likes rooibos")
        memory.clock.advance(minutes=1)
        memory.merge(merged.uid, third.uid)
        rows = [
            history.of_conclusion(memory.rt, ME, memory.id, row.uid)
            for row in (first, second, third, merged)
        ]
        assert rows[1:] == rows[:1] * 3
        versions = {row.uid: row for row in rows[0].versions}
        assert rows[0].complete
        assert [row.uid for row in rows[0].versions] == [
            first.uid,
            second.uid,
            third.uid,
            merged.uid,
        ]
        assert [row.made_by for row in rows[0].versions] == ["caller"] * 4
        assert versions[first.uid].successor == second.uid
        assert versions[first.uid].superseded_at == second.created_at
        assert versions[first.uid].reason == supersession.CORRECTED
        assert (versions[merged.uid].successor, versions[merged.uid].reason) == (
            third.uid,
            "the same",
        )
        assert (versions[third.uid].successor, versions[third.uid].reason) == (None, None)

    def test_it_has_the_spans_in_which_a_version_was_superseded(self, memory: Memory) -> None:
        row = memory.conclude("likes tea")
        spans = []
        for _ in range(2):
            memory.clock.advance(minutes=1)
            corrections.invalidate(memory.rt, ME, memory.id, row.uid, "not any more")
            spans.append((memory.clock.now, memory.clock.now + timedelta(minutes=1)))
            memory.clock.advance(minutes=1)
            supersession.restore(memory.rt, ME, memory.id, row.uid)
        (version,) = history.of_conclusion(memory.rt, ME, memory.id, row.uid).versions
        assert [(item.superseded_at, item.restored_at) for item in version.past_lapses] == spans
        assert (version.state, version.superseded_at, version.reason) == (LIVE, None, None)
        assert version.restored_at == memory.clock.now
        new = memory.correct(row.uid, "likes coffee")
        assert (new.lapses, new.restored_at) == ([], None), "the history of the old one only"

    def test_deleted_versions_are_left_out(self, memory: Memory) -> None:
        first = memory.conclude("likes tea")
        second = memory.correct(first.uid, "likes green tea")
        conclusions.delete(memory.rt, ME, memory.id, second.uid)
        (version,) = history.of_conclusion(memory.rt, ME, memory.id, first.uid).versions
        assert (version.uid, version.successor) == (first.uid, None)
        with pytest.raises(NotFound):
            history.of_conclusion(memory.rt, ME, memory.id, second.uid)

    def test_the_number_of_versions_is_limited(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(history, "MAX_VERSIONS", 2)
        row = memory.conclude("likes tea 0")
        for number in range(1, 4):
            memory.clock.advance(minutes=1)
            row = memory.correct(row.uid, f"likes tea {number}")
        answer = history.of_conclusion(memory.rt, ME, memory.id, row.uid)
        assert [item.content for item in answer.versions] == ["likes tea 2", "likes tea 3"]
        assert not answer.complete


def test_an_invalidated_conclusion_is_superseded_by_nothing(memory: Memory) -> None:
    row = memory.conclude("likes tea")
    memory.clock.advance(minutes=1)
    taken_back = corrections.invalidate(memory.rt, ME, memory.id, row.uid, "a joke\0")
    assert (taken_back.superseded_by, taken_back.superseded_at) == (None, memory.clock.now)
    assert taken_back.internal["superseded"] == "a joke"
    again = corrections.invalidate(memory.rt, ME, memory.id, row.uid, "another reason")
    assert again == taken_back
    assert memory.rows() == []
    with memory.rt.storage.read() as tx:
        collection = tx.conclusions.collection(row.observer_key, row.observed_key)
    assert collection is not None
    assert collection.explicit_count == 0
    supersession.restore(memory.rt, ME, memory.id, row.uid)
    assert [item.uid for item in memory.rows()] == [row.uid]
