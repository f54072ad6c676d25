"""The numbers of queue status at each stage of the work."""

from __future__ import annotations

from collections.abc import Callable

from memservice.services import sessions
from memservice.services.sessions import MemberConfig, SessionFields
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


def test_counts_follow_a_task_from_pending_to_done(pipeline: Pipeline) -> None:
    assert pipeline.counts() == (0, 0, 0, 0)
    pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a boat."), ("bob", "I sing."))
    assert pipeline.counts() == (3, 0, 0, 3)
    during: list[tuple[int, int, int, int]] = []
    pipeline.reasoner.act = lambda request: during.append(pipeline.counts())
    pipeline.work()
    assert during == [(3, 0, 2, 1), (3, 2, 1, 0)]
    assert pipeline.counts() == (3, 3, 0, 0)


def test_counts_of_sessions_are_keyed_by_uid(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    pipeline.say("t", ("alice", "I own a boat."), ("bob", "I sing."))
    uids = {
        name: sessions.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, name)[0].uid
        for name in ("s", "t")
    }
    counts = pipeline.status().sessions
    assert counts is not None
    assert {
        uid: (part.session_id, part.total, part.completed, part.pending)
        for uid, part in counts.items()
    } == {
        uids["s"]: (uids["s"], 1, 1, 0),
        uids["t"]: (uids["t"], 2, 0, 2),
    }
    assert pipeline.counts(session_id="t") == (2, 0, 0, 2)
    assert pipeline.status(session_id="t").sessions is None


def test_observers_and_senders_are_alternatives(pipeline: Pipeline) -> None:
    pipeline.join("s", bob=MemberConfig(observe_others=True))
    pipeline.say("s", ("alice", "I like tea."), ("carol", "I own a boat."), ("bob", "I sing."))
    assert pipeline.counts(sender="alice") == (1, 0, 0, 1)
    assert pipeline.counts(observer="bob") == (3, 0, 0, 3), "of himself, and of the two others"
    assert pipeline.counts(observer="alice") == (1, 0, 0, 1)
    assert pipeline.counts(observer="alice", sender="carol") == (2, 0, 0, 2)
    assert (
        pipeline.counts(observer="nobody") == pipeline.counts(session_id="nowhere") == (0, 0, 0, 0)
    )
    assert pipeline.counts(observer="", sender="", session_id="") == (3, 0, 0, 3)


def test_tasks_that_back_off_are_pending_and_failed_ones_completed(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_pipeline(WORKER_MAX_ATTEMPTS="2")

    def fail(request: object) -> None:
        raise RuntimeError("no")

    pipeline.reasoner.act = fail
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert pipeline.counts() == (1, 0, 0, 1)
    pipeline.clock.advance(minutes=2)
    pipeline.work()
    assert pipeline.counts() == (1, 1, 0, 0)


def test_an_expired_lease_does_not_count_as_work_in_progress(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    pipeline.rt.storage.write(lambda tx: tx.tasks.claim(unit, "somebody", pipeline.clock(), 60))
    assert pipeline.counts() == (1, 0, 1, 0)
    pipeline.clock.advance(seconds=61)
    assert pipeline.counts() == (1, 0, 0, 1)


def test_summaries_count_and_internal_tasks_do_not(pipeline: Pipeline) -> None:
    sessions.get_or_create(
        pipeline.rt,
        PRINCIPAL,
        WORKSPACE,
        "s",
        SessionFields(configuration={"reasoning": {"enabled": False}}),
    )
    pipeline.say("s", *[("alice", f"m{n}") for n in range(20)])
    sessions.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, "s", SessionFields(scopes=["team"]))
    assert len(pipeline.tasks("scope_backfill")) == 1
    assert pipeline.counts() == (1, 0, 0, 1)
    pipeline.work()
    assert pipeline.counts() == (1, 1, 0, 0)
