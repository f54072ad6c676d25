"""A scope that takes a session in holds each of the session's conclusions once, whatever happens at
the same time."""

from __future__ import annotations

import pytest

from memservice.domain.records import ScopeSession
from memservice.services import sessions
from memservice.services.sessions import SessionFields
from memservice.services.tasks import kinds, outbox
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

SCOPE = "scope.team"


def take_in(place: Place, session: str = "s") -> None:
    sessions.get_or_create(place.rt, PRINCIPAL, WORKSPACE, session, SessionFields(scopes=["team"]))


def progress(place: Place) -> ScopeSession:
    with place.rt.storage.read() as tx:
        (found,) = tx.rows.page(ScopeSession)
    return found


def test_a_scope_observes_messages_after_it_joined(place: Place) -> None:
    take_in(place)
    place.say("s", ("alice", "I like tea."), ("bob", "I sing."))
    place.work()
    assert (place.texts(SCOPE, "alice"), place.texts(SCOPE, "bob")) == (
        ["I like tea."],
        ["I sing."],
    )
    assert place.texts(SCOPE) == []
    assert place.tasks(kinds.SCOPE_BACKFILL) == [], "there was nothing to copy"


def test_earlier_conclusions_are_copied(place: Place) -> None:
    place.say("s", ("alice", "I like tea."), ("bob", "I sing."), ("bob", "I sing."))
    place.work()
    place.say("other", ("alice", "I own a boat."))
    place.work()
    take_in(place)
    assert progress(place).state == "pending"
    place.work()
    (copy,), (source,) = (
        place.conclusions(SCOPE, "alice"),
        [c for c in place.conclusions("alice") if c.session == "s"],
    )
    assert (copy.content, copy.message_keys, copy.said_at) == (
        source.content,
        source.message_keys,
        source.said_at,
    )
    assert copy.internal["copied_from"] == source.uid
    assert place.texts(SCOPE, "bob") == ["I sing."]
    assert (progress(place).state, progress(place).docs_copied) == ("completed", 2)
    assert (place.counted(SCOPE, "alice"), place.counted(SCOPE, "bob")) == (1, 1)
    assert len(place.reasoner.requests) == 3, "nothing is derived for it"


def test_copying_again_changes_nothing(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    place.work()
    take_in(place)
    place.work()
    (before,) = place.conclusions(SCOPE, "alice")
    with place.rt.storage.read() as tx:
        session = tx.sessions.by_key(before.session_key or 0)
        scope = tx.peers.by_keys([before.observer_key])[before.observer_key]
    assert session is not None
    again = outbox.scope_backfill(place.rt, scope, session)
    place.rt.storage.write(lambda tx: tx.tasks.add([again]))
    place.work()
    assert place.conclusions(SCOPE, "alice") == [before]
    assert place.counted(SCOPE, "alice") == 1
    assert progress(place).docs_copied == 1


@pytest.mark.parametrize("first", [kinds.REPRESENTATION, kinds.SCOPE_BACKFILL])
def test_pending_messages_reach_a_joining_scope_once(place: Place, first: str) -> None:
    place.say("s", ("alice", "I like tea."))
    take_in(place)
    place.run(place.unit(first))
    place.work()
    assert place.texts(SCOPE, "alice") == ["I like tea."]
    assert place.counted(SCOPE, "alice") == 1
    assert progress(place).state == "completed"


def test_a_scope_that_joins_while_the_reasoner_works_misses_nothing(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))

    def join_meanwhile(request: object) -> None:
        place.reasoner.act = None
        take_in(place)
        place.run(place.unit(kinds.SCOPE_BACKFILL))

    place.reasoner.act = join_meanwhile
    place.work()
    assert place.texts(SCOPE, "alice") == ["I like tea."]
    assert place.counted(SCOPE, "alice") == 1


def test_messages_between_joining_and_copying_are_derived_once(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    place.work()
    take_in(place)
    place.say("s", ("alice", "I own a boat."))
    place.run(place.unit(kinds.REPRESENTATION))
    place.work()
    assert sorted(place.texts(SCOPE, "alice")) == ["I like tea.", "I own a boat."]
    assert place.counted(SCOPE, "alice") == 2
