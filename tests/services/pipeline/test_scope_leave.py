"""Taking sessions out of a scope, and putting them in again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import DELETED, LIVE, SUPERSEDED, Conclusion
from memservice.pipeline.handler import Handler, Prepared
from memservice.pipeline.registry import HANDLERS
from memservice.pipeline.scopes import backfill as scope_backfill
from memservice.pipeline.scopes import removal as scope_removal
from memservice.services import conclusions, scopes
from memservice.services.conclusions import ConclusionDraft, ensure_collection
from memservice.services.indexing import index_conclusions
from memservice.services.tasks import kinds, outbox
from memservice.spi.storage import Transaction
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]
SCOPE = "scope.team"


@pytest.fixture(autouse=True)
def dreamless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dreams are enqueued but not dreamt here."""

    class Sleepless(Handler):
        kind = kinds.DREAM

        def prepare(self, rt: object, tasks: object) -> Any:
            return Prepared(lambda tx: {})

    monkeypatch.setitem(HANDLERS, kinds.DREAM, Sleepless())


def take_in(pipeline: Pipeline, session: str = "s") -> None:
    scopes.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, "team", None)
    scopes.add_sessions(pipeline.rt, PRINCIPAL, WORKSPACE, "team", [session])


def take_out(pipeline: Pipeline, session: str = "s") -> None:
    scopes.remove_session(pipeline.rt, PRINCIPAL, WORKSPACE, "team", session)


def states(pipeline: Pipeline, observer: str = SCOPE, **values: Any) -> dict[str, str]:
    """States of all conclusions of an observer, by content."""
    with pipeline.rt.storage.read() as tx:
        return {
            row.content: row.state
            for row in tx.rows.page(Conclusion, equals(observer=observer, **values))
        }


def derived(pipeline: Pipeline, content: str, *sources: str, **values: Any) -> Conclusion:
    """Store what the scope concluded of alice, from conclusions with these contents."""

    def store(tx: Transaction) -> Conclusion:
        rows = tx.rows.page(Conclusion, equals(observer=SCOPE, observed="alice"))
        rests_on = [row.uid for row in rows if row.content in sources]
        assert len(rests_on) == len(sources)
        session_key, session = rows[0].session_key, rows[0].session
        pair = tx.peers.by_keys([rows[0].observer_key, rows[0].observed_key])
        collection = ensure_collection(
            pipeline.rt, tx, pair[rows[0].observer_key], pair[rows[0].observed_key]
        )
        row = Conclusion(
            uid=new_uid(),
            workspace_key=collection.workspace_key,
            collection_key=collection.key,
            observer_key=collection.observer_key,
            observed_key=collection.observed_key,
            session_key=session_key,
            observer=SCOPE,
            observed="alice",
            session=session,
            content=content,
            fingerprint=fingerprint(content),
            level="deductive",
            source_ids=rests_on,
            said_at=pipeline.clock(),
            created_at=pipeline.clock(),
        )
        (stored,) = tx.conclusions.put([replace(row, **values)])
        tx.tasks.add(index_conclusions(pipeline.rt, tx, collection.workspace_key, [stored]))
        return stored

    return pipeline.rt.storage.write(store)


def scope_of_two_sessions(pipeline: Pipeline) -> None:
    """The scope has conclusions from two sessions, and inferred ones."""
    pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a boat."))
    pipeline.say("kept", ("alice", "I sing."))
    pipeline.work()
    take_in(pipeline)
    take_in(pipeline, "kept")
    pipeline.work()
    derived(pipeline, "likes warm drinks", "I like tea.")
    derived(pipeline, "likes cups", "likes warm drinks", "I sing.")
    derived(pipeline, "is musical", "I sing.")


@pytest.mark.slow
def test_conclusions_from_the_session_are_deleted_with_their_dependents(pipeline: Pipeline) -> None:
    scope_of_two_sessions(pipeline)
    pipeline.clock.advance(seconds=5)
    take_out(pipeline)
    pipeline.work()
    assert states(pipeline) == {
        "I like tea.": DELETED,
        "I own a boat.": DELETED,
        "I sing.": LIVE,
        "likes warm drinks": DELETED,
        "likes cups": DELETED,
        "is musical": LIVE,
    }
    assert pipeline.counted(SCOPE, "alice") == 1
    assert pipeline.texts("alice") == ["I like tea.", "I own a boat.", "I sing."], (
        "what alice holds herself stays"
    )
    with pipeline.rt.storage.read() as tx:
        deleted = tx.rows.page(Conclusion, equals(observer=SCOPE, state=DELETED))
    assert {row.deleted_at for row in deleted} == {pipeline.clock()}
    pair = {"observer": SCOPE, "observed": "alice"}
    hits = conclusions.query(
        pipeline.rt, PRINCIPAL, WORKSPACE, "tea boat warm drinks", 10, filters=pair
    )
    assert {row.content for row in hits} <= {"I sing.", "is musical"}, "nor is it found any more"
    (task,) = pipeline.tasks(kinds.SCOPE_REMOVAL)
    assert task.outcome == {"explicit": 2, "derived": 2}


@pytest.mark.slow
def test_superseded_conclusions_and_their_dependents_are_deleted_too(
    pipeline: Pipeline,
) -> None:
    scope_of_two_sessions(pipeline)
    heir = derived(pipeline, "drinks a lot of tea", "likes warm drinks")

    def supersede(tx: Any) -> None:
        tx.rows.change(
            Conclusion,
            equals(content="likes warm drinks"),
            state=SUPERSEDED,
            superseded_by=heir.key,
        )

    pipeline.rt.storage.write(supersede)
    take_out(pipeline)
    pipeline.work()
    assert states(pipeline)["drinks a lot of tea"] == DELETED
    assert states(pipeline)["likes warm drinks"] == DELETED


@pytest.mark.slow
def test_superseded_statements_of_the_session_are_deleted_with_dependents(
    pipeline: Pipeline,
) -> None:
    scope_of_two_sessions(pipeline)

    def supersede(tx: Any) -> None:
        heir = tx.rows.get(Conclusion, equals(observer=SCOPE, content="I own a boat."))
        tx.rows.change(
            Conclusion,
            equals(observer=SCOPE, content="I like tea."),
            state=SUPERSEDED,
            superseded_by=heir.key,
        )

    pipeline.rt.storage.write(supersede)
    take_out(pipeline)
    pipeline.work()
    assert {
        states(pipeline)[content]
        for content in ("I like tea.", "I own a boat.", "likes warm drinks", "likes cups")
    } == {DELETED}
    assert states(pipeline)["is musical"] == LIVE


@pytest.mark.slow
def test_the_card_is_rebuilt_and_remaining_conclusions_are_consolidated(pipeline: Pipeline) -> None:
    scope_of_two_sessions(pipeline)
    before = len(pipeline.tasks(kinds.DREAM))
    take_out(pipeline)
    pipeline.work()
    payloads = [task.payload for task in pipeline.tasks(kinds.DREAM)][before:]
    assert [(payload["type"], payload["rebuild"], payload["trigger"]) for payload in payloads] == [
        ("card_refresh", True, "scope_removal"),
        ("omni", False, "scope_removal"),
    ]


def test_copying_schedules_a_dream_about_each_speaker(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."), ("bob", "I sing."))
    pipeline.work()
    take_in(pipeline)
    pipeline.work()
    dreams = pipeline.tasks(kinds.DREAM)
    assert [(task.payload["type"], task.payload["trigger"]) for task in dreams] == [
        ("omni", "scope_backfill")
    ] * 2
    assert len({task.observed_key for task in dreams}) == 2
    pipeline.say("empty", ("carol", "\n"))
    take_in(pipeline, "empty")
    pipeline.work()
    assert len(pipeline.tasks(kinds.DREAM)) == 2, "where nothing was copied nothing is dreamt"


@pytest.mark.slow
def test_a_session_that_returns_is_copied_again_into_the_same_rows(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    take_in(pipeline)
    pipeline.work()
    (first,) = pipeline.conclusions(SCOPE, "alice")
    take_out(pipeline)
    pipeline.work()
    assert pipeline.conclusions(SCOPE, "alice") == []
    take_in(pipeline)
    pipeline.work()
    (again,) = pipeline.conclusions(SCOPE, "alice")
    assert again == first
    assert pipeline.counted(SCOPE, "alice") == 1
    pair = {"observer": SCOPE, "observed": "alice"}
    assert [
        row.key for row in conclusions.query(pipeline.rt, PRINCIPAL, WORKSPACE, "tea", filters=pair)
    ] == [first.key]


def test_superseded_copies_are_not_copied_again(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    take_in(pipeline)
    pipeline.work()

    def supersede(tx: Any) -> None:
        tx.rows.change(Conclusion, equals(observer=SCOPE), state=SUPERSEDED)
        (scope,) = tx.peers.by_slugs(1, [SCOPE]).values()
        tx.tasks.add([outbox.scope_backfill(pipeline.rt, scope, tx.sessions.by_slug(1, "s"))])

    pipeline.rt.storage.write(supersede)
    pipeline.work()
    assert states(pipeline) == {"I like tea.": SUPERSEDED}


@pytest.mark.parametrize("inside", [True, False])
def test_the_last_of_quick_changes_counts(pipeline: Pipeline, inside: bool) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    take_in(pipeline)
    pipeline.work()
    for _ in range(2):
        take_out(pipeline)
        take_in(pipeline)
    if not inside:
        take_out(pipeline)
    pipeline.work()
    assert pipeline.texts(SCOPE, "alice") == (["I like tea."] if inside else [])
    assert ("s" in scopes.status(pipeline.rt, PRINCIPAL, WORKSPACE, "team")) is inside


def test_a_session_that_left_before_its_copying_is_not_copied(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    take_in(pipeline)
    take_out(pipeline)
    pipeline.work()
    assert states(pipeline) == {}
    assert scopes.status(pipeline.rt, PRINCIPAL, WORKSPACE, "team") == {}


@pytest.mark.slow
def test_copying_and_removal_continue_in_steps(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_backfill, "BATCH_SIZE", 4)
    monkeypatch.setattr(scope_removal, "BATCH_SIZE", 4)
    pipeline.say(
        "s", *((peer, f"I have {n} of {peer}.") for n in range(11) for peer in ("alice", "bob"))
    )
    pipeline.work()
    take_in(pipeline)
    pipeline.work()
    assert len(pipeline.texts(SCOPE, "alice")) == len(pipeline.texts(SCOPE, "bob")) == 11
    assert scopes.status(pipeline.rt, PRINCIPAL, WORKSPACE, "team")["s"].docs_copied == 22
    assert pipeline.counted(SCOPE, "alice") == 11
    take_out(pipeline)
    pipeline.work()
    assert set(states(pipeline).values()) == {DELETED}
    assert (pipeline.counted(SCOPE, "alice"), pipeline.counted(SCOPE, "bob")) == (0, 0)
    assert pipeline.tasks(kinds.SCOPE_REMOVAL)[0].outcome["explicit"] == 22


def test_a_permanently_failed_backfill_is_reported_and_can_be_retried(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = open_pipeline(WORKER_MAX_ATTEMPTS="2")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()

    def broken(*_: object) -> NoReturn:
        raise ValueError("no")

    with monkeypatch.context() as patched:
        patched.setattr(scope_backfill, "_copy", broken)
        take_in(pipeline)
        pipeline.work()
        assert scopes.status(pipeline.rt, PRINCIPAL, WORKSPACE, "team")["s"].state == "pending"
        pipeline.clock.advance(minutes=10)
        pipeline.work()
        assert scopes.status(pipeline.rt, PRINCIPAL, WORKSPACE, "team")["s"].state == "failed"
        scopes.add_sessions(pipeline.rt, PRINCIPAL, WORKSPACE, "team", ["s"])
    assert scopes.status(pipeline.rt, PRINCIPAL, WORKSPACE, "team")["s"].state == "pending"
    pipeline.work()
    entry = scopes.status(pipeline.rt, PRINCIPAL, WORKSPACE, "team")["s"]
    assert (entry.state, entry.docs_copied) == ("completed", 1)


def test_a_failed_removal_can_be_retried(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = open_pipeline(WORKER_MAX_ATTEMPTS="1")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    take_in(pipeline)
    pipeline.work()

    def broken(*_: object) -> NoReturn:
        raise ValueError("no")

    with monkeypatch.context() as patched:
        patched.setattr(scope_removal, "_dependents", broken)
        take_out(pipeline)
        pipeline.work()
    assert pipeline.texts(SCOPE, "alice") == ["I like tea."]
    take_out(pipeline)
    pipeline.work()
    assert pipeline.texts(SCOPE, "alice") == []
    take_out(pipeline)
    assert len(pipeline.tasks(kinds.SCOPE_REMOVAL)) == 2, "then there is nothing left to do"


def test_callers_conclusions_are_copied_but_not_those_of_other_observers(
    pipeline: Pipeline,
) -> None:
    pipeline.say("s", ("alice", "\n"), ("bob", "\n"))
    drafts = [
        ConclusionDraft("alice on alice", "alice", "alice", "s"),
        ConclusionDraft("bob on alice", "bob", "alice", "s"),
        ConclusionDraft("no session", "alice", "alice"),
    ]
    conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, drafts)
    take_in(pipeline)
    pipeline.work()
    assert states(pipeline) == {"alice on alice": LIVE}


@pytest.mark.slow
def test_vectors_are_copied_and_removed_in_an_outside_index(open_pipeline: OpenPipeline) -> None:
    embedder, outside = LengthEmbedder(), ExternalIndex()
    pipeline = open_pipeline(embedder, outside, EMBEDDER="lengths", VECTOR_STORE_TYPE="outside")
    pipeline.say("s", ("alice", "I like tea."), ("bob", "I own a boat."))
    pipeline.work()
    calls = len(embedder.calls)
    assert len(outside.rows) == 2
    take_in(pipeline)
    pipeline.work()
    assert len(outside.rows) == 4
    assert len(embedder.calls) == calls, "a text that has a vector is not embedded again"
    (source,), (copy,) = pipeline.conclusions("alice"), pipeline.conclusions(SCOPE, "alice")
    by_row = {key: row for (_, key), row in outside.rows.items()}
    assert list(by_row[copy.key].vector) == list(by_row[source.key].vector)
    assert (by_row[copy.key].observer, by_row[copy.key].uid) == (copy.observer_key, copy.uid)
    take_out(pipeline)
    pipeline.work()
    assert {key for _, key in outside.rows} == {
        source.key,
        *(row.key for row in pipeline.conclusions("bob")),
    }
