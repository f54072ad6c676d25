"""A scope that takes a session in holds each of the session's conclusions once, whatever happens at
the same time."""

from __future__ import annotations

import pytest

from memservice.domain.records import ScopeSession
from memservice.services import sessions
from memservice.services.sessions import SessionFields
from memservice.services.tasks import kinds, outbox
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

SCOPE = "scope.team"


def take_in(pipeline: Pipeline, session: str = "s") -> None:
    sessions.get_or_create(
        pipeline.rt, PRINCIPAL, WORKSPACE, session, SessionFields(scopes=["team"])
    )


def progress(pipeline: Pipeline) -> ScopeSession:
    with pipeline.rt.storage.read() as tx:
        (progress_row,) = tx.rows.page(ScopeSession)
    return progress_row


def test_a_scope_observes_messages_after_it_joined(pipeline: Pipeline) -> None:
    take_in(pipeline)
    pipeline.say("s", ("alice", "I like tea."), ("bob", "I sing."))
    pipeline.work()
    assert (pipeline.texts(SCOPE, "alice"), pipeline.texts(SCOPE, "bob")) == (
        ["I like tea."],
        ["I sing."],
    )
    assert pipeline.texts(SCOPE) == []
    assert pipeline.tasks(kinds.SCOPE_BACKFILL) == [], "there was nothing to copy"


def test_earlier_conclusions_are_copied(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."), ("bob", "I sing."), ("bob", "I sing."))
    pipeline.work()
    pipeline.say("other", ("alice", "I own a boat."))
    pipeline.work()
    take_in(pipeline)
    assert progress(pipeline).state == "pending"
    pipeline.work()
    (copy,), (source,) = (
        pipeline.conclusions(SCOPE, "alice"),
        [c for c in pipeline.conclusions("alice") if c.session == "s"],
    )
    assert (copy.content, copy.message_keys, copy.said_at) == (
        source.content,
        source.message_keys,
        source.said_at,
    )
    assert copy.internal["copied_from"] == source.uid
    assert pipeline.texts(SCOPE, "bob") == ["I sing."]
    assert (progress(pipeline).state, progress(pipeline).docs_copied) == ("completed", 2)
    assert (pipeline.counted(SCOPE, "alice"), pipeline.counted(SCOPE, "bob")) == (1, 1)
    assert len(pipeline.reasoner.requests) == 3, "nothing is derived for it"


def test_copying_again_changes_nothing(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    take_in(pipeline)
    pipeline.work()
    (before,) = pipeline.conclusions(SCOPE, "alice")
    with pipeline.rt.storage.read() as tx:
        session = tx.sessions.by_key(before.session_key or 0)
        scope = tx.peers.by_keys([before.observer_key])[before.observer_key]
    assert session is not None
    again = outbox.scope_backfill(pipeline.rt, scope, session)
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([again]))
    pipeline.work()
    assert pipeline.conclusions(SCOPE, "alice") == [before]
    assert pipeline.counted(SCOPE, "alice") == 1
    assert progress(pipeline).docs_copied == 1


@pytest.mark.parametrize("first", [kinds.REPRESENTATION, kinds.SCOPE_BACKFILL])
def test_pending_messages_reach_a_joining_scope_once(pipeline: Pipeline, first: str) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    take_in(pipeline)
    pipeline.run(pipeline.unit(first))
    pipeline.work()
    assert pipeline.texts(SCOPE, "alice") == ["I like tea."]
    assert pipeline.counted(SCOPE, "alice") == 1
    assert progress(pipeline).state == "completed"


def test_a_scope_that_joins_while_the_reasoner_works_misses_nothing(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))

    def join_meanwhile(request: object) -> None:
        pipeline.reasoner.act = None
        take_in(pipeline)
        pipeline.run(pipeline.unit(kinds.SCOPE_BACKFILL))

    pipeline.reasoner.act = join_meanwhile
    pipeline.work()
    assert pipeline.texts(SCOPE, "alice") == ["I like tea."]
    assert pipeline.counted(SCOPE, "alice") == 1


def test_messages_between_joining_and_copying_are_derived_once(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    take_in(pipeline)
    pipeline.say("s", ("alice", "I own a boat."))
    pipeline.run(pipeline.unit(kinds.REPRESENTATION))
    pipeline.work()
    assert sorted(pipeline.texts(SCOPE, "alice")) == ["I like tea.", "I own a boat."]
    assert pipeline.counted(SCOPE, "alice") == 2
