"""The numbers of queue status at each stage of the work."""

from __future__ import annotations

from collections.abc import Callable

from memservice.services import sessions
from memservice.services.sessions import MemberConfig, SessionFields
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

Start = Callable[..., Place]


def test_counts_follow_a_task_from_pending_to_done(place: Place) -> None:
    assert place.counts() == (0, 0, 0, 0)
    place.say("s", ("alice", "I like tea."), ("alice", "I own a boat."), ("bob", "I sing."))
    assert place.counts() == (3, 0, 0, 3)
    during: list[tuple[int, int, int, int]] = []
    place.reasoner.act = lambda request: during.append(place.counts())
    place.work()
    assert during == [(3, 0, 2, 1), (3, 2, 1, 0)]
    assert place.counts() == (3, 3, 0, 0)


def test_counts_of_sessions_are_keyed_by_uid(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    place.work()
    place.say("t", ("alice", "I own a boat."), ("bob", "I sing."))
    uids = {
        name: sessions.get_or_create(place.rt, PRINCIPAL, WORKSPACE, name)[0].uid
        for name in ("s", "t")
    }
    found = place.status().sessions
    assert found is not None
    assert {
        uid: (part.session_id, part.total, part.completed, part.pending)
        for uid, part in found.items()
    } == {
        uids["s"]: (uids["s"], 1, 1, 0),
        uids["t"]: (uids["t"], 2, 0, 2),
    }
    assert place.counts(session_id="t") == (2, 0, 0, 2)
    assert place.status(session_id="t").sessions is None


def test_observers_and_senders_are_alternatives(place: Place) -> None:
    place.join("s", bob=MemberConfig(observe_others=True))
    place.say("s", ("alice", "I like tea."), ("carol", "I own a boat."), ("bob", "I sing."))
    assert place.counts(sender="alice") == (1, 0, 0, 1)
    assert place.counts(observer="bob") == (3, 0, 0, 3), "of himself, and of the two others"
    assert place.counts(observer="alice") == (1, 0, 0, 1)
    assert place.counts(observer="alice", sender="carol") == (2, 0, 0, 2)
    assert place.counts(observer="nobody") == place.counts(session_id="nowhere") == (0, 0, 0, 0)
    assert place.counts(observer="", sender="", session_id="") == (3, 0, 0, 3)


def test_tasks_that_back_off_are_pending_and_failed_ones_completed(start: Start) -> None:
    place = start(WORKER_MAX_ATTEMPTS="2")

    def fail(request: object) -> None:
        raise RuntimeError("no")

    place.reasoner.act = fail
    place.say("s", ("alice", "I like tea."))
    place.work()
    assert place.counts() == (1, 0, 0, 1)
    place.clock.advance(minutes=2)
    place.work()
    assert place.counts() == (1, 1, 0, 0)


def test_an_expired_lease_does_not_count_as_work_in_progress(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    place.rt.storage.write(lambda tx: tx.tasks.claim(unit, "somebody", place.clock(), 60))
    assert place.counts() == (1, 0, 1, 0)
    place.clock.advance(seconds=61)
    assert place.counts() == (1, 0, 0, 1)


def test_summaries_count_and_internal_tasks_do_not(place: Place) -> None:
    sessions.get_or_create(
        place.rt,
        PRINCIPAL,
        WORKSPACE,
        "s",
        SessionFields(configuration={"reasoning": {"enabled": False}}),
    )
    place.say("s", *[("alice", f"m{n}") for n in range(20)])
    sessions.get_or_create(place.rt, PRINCIPAL, WORKSPACE, "s", SessionFields(scopes=["team"]))
    assert len(place.tasks("scope_backfill")) == 1
    assert place.counts() == (1, 0, 0, 1)
    place.work()
    assert place.counts() == (1, 1, 0, 0)
