"""When dreams run: on request, or automatically once there is enough new and the pair is idle."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import Collection, Peer, Task
from memservice.services import conclusions, dreams, sessions, workspaces
from memservice.services.conclusions import ConclusionDraft
from memservice.services.dreams import DreamRequest
from memservice.services.tasks import kinds
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]

SETTINGS = {
    "DREAM_DOCUMENT_THRESHOLD": "3",
    "DREAM_IDLE_TIMEOUT_MINUTES": "60",
    "DREAM_MIN_HOURS_BETWEEN_DREAMS": "8",
}


@pytest.fixture
def pipeline(open_pipeline: OpenPipeline) -> Pipeline:
    return open_pipeline(**SETTINGS)


def tell(pipeline: Pipeline, *contents: str, peer: str = "alice", session: str = "s") -> None:
    pipeline.say(session, *[(peer, content) for content in contents])
    pipeline.work()


def timers(pipeline: Pipeline) -> list[Task]:
    return pipeline.tasks(kinds.DREAM_TIMER, state="pending")


def dreamt(pipeline: Pipeline) -> list[Task]:
    return pipeline.tasks(kinds.DREAM)


def collection(pipeline: Pipeline) -> Collection:
    with pipeline.rt.storage.read() as tx:
        return tx.rows.page(Collection, equals(observer="alice", observed="alice"))[0]


class TestByThemselves:
    def test_after_enough_conclusions_and_an_idle_hour(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.", "Two.")
        assert timers(pipeline) == []
        tell(pipeline, "Three.")
        (timer,) = timers(pipeline)
        assert timer.not_before == pipeline.clock() + timedelta(minutes=60)
        pipeline.clock.advance(minutes=59)
        pipeline.work()
        assert dreamt(pipeline) == []
        pipeline.clock.advance(minutes=1)
        pipeline.work()
        (task,) = dreamt(pipeline)
        assert task.state == "done"
        assert {
            name: task.payload[name] for name in ("type", "trigger", "delay", "new", "rebuild")
        } == {
            "type": "omni",
            "trigger": "document_threshold",
            "delay": "idle_timeout",
            "new": 3,
            "rebuild": False,
        }
        assert (
            collection(pipeline).last_dream_at,
            collection(pipeline).explicit_at_last_dream,
        ) == (
            pipeline.clock(),
            3,
        )
        assert timers(pipeline) == []

    def test_a_further_conclusion_restarts_the_timer(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.", "Two.", "Three.")
        pipeline.clock.advance(minutes=50)
        tell(pipeline, "Four.")
        (timer,) = timers(pipeline)
        assert timer.not_before == pipeline.clock() + timedelta(minutes=60)
        pipeline.clock.advance(minutes=30)
        # What is repeated is no news.
        tell(pipeline, "Four.")
        assert timers(pipeline) == [timer]
        pipeline.clock.advance(minutes=30)
        pipeline.work()
        assert len(dreamt(pipeline)) == 1

    def test_not_within_eight_hours_of_the_last(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.", "Two.", "Three.")
        pipeline.clock.advance(hours=1)
        pipeline.work()
        last = pipeline.clock()
        tell(pipeline, "Four.", "Five.", "Six.")
        (timer,) = timers(pipeline)
        assert timer.not_before == last + timedelta(hours=8)
        pipeline.clock.advance(hours=8)
        pipeline.work()
        assert len(dreamt(pipeline)) == 2

    def test_a_dream_on_request_cancels_the_timer(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.", "Two.", "Three.")
        assert dreams.schedule(
            pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI)
        )
        pipeline.work()
        pipeline.clock.advance(hours=1)
        pipeline.work()
        assert len(dreamt(pipeline)) == 1
        (timer,) = pipeline.tasks(kinds.DREAM_TIMER)
        assert (timer.state, timer.outcome) == ("done", {"skipped": "not enough is new"})

    def test_a_timer_that_fires_too_early_is_set_again(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.", "Two.", "Three.")
        assert dreams.schedule(
            pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI)
        )
        pipeline.work()
        last = pipeline.clock()
        for content in ("Four.", "Five.", "Six."):
            conclusions.create(
                pipeline.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft(content, "alice", "alice")]
            )
        pipeline.clock.advance(hours=1)
        pipeline.work()
        (timer,) = timers(pipeline)
        assert timer.not_before == last + timedelta(hours=8)
        assert len(dreamt(pipeline)) == 1

    def test_timers_do_not_count_in_queue_status(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.", "Two.", "Three.")
        assert len(timers(pipeline)) == 1
        assert pipeline.counts()[3] == 0

    @pytest.mark.every_storage("sqlite")
    def test_a_timer_survives_a_restart(
        self, open_pipeline: OpenPipeline, request: pytest.FixtureRequest
    ) -> None:
        if "memory" in request.node.name:
            pytest.skip("a store in memory does not outlive its process")
        first = open_pipeline(**SETTINGS)
        tell(first, "One.", "Two.", "Three.")
        first.rt.close()
        second = open_pipeline(**SETTINGS)
        second.clock.advance(minutes=60)
        second.work()
        assert [task.state for task in dreamt(second)] == ["done"]

    def test_every_automatic_type_is_scheduled(self, open_pipeline: OpenPipeline) -> None:
        pipeline = open_pipeline(
            **SETTINGS
            | {"DREAM_ENABLED_TYPES": '["omni", "card_refresh"]', "DREAM_IDLE_TIMEOUT_MINUTES": "0"}
        )
        tell(pipeline, "One.", "Two.", "Three.")
        assert [
            (task.payload["type"], task.payload["delay"], task.state) for task in dreamt(pipeline)
        ] == [
            ("omni", "immediate", "done"),
            ("card_refresh", "immediate", "done"),
        ]

    @pytest.mark.parametrize("off", [{"DREAM_ENABLED": "false"}, {"DREAM_ENABLED_TYPES": "[]"}])
    def test_not_if_dreams_are_switched_off(
        self, open_pipeline: OpenPipeline, off: dict[str, str]
    ) -> None:
        pipeline = open_pipeline(**SETTINGS | off)
        tell(pipeline, "One.", "Two.", "Three.")
        assert timers(pipeline) == []

    def test_not_if_the_session_forbids_it(self, pipeline: Pipeline) -> None:
        sessions.update(pipeline.rt, PRINCIPAL, WORKSPACE, "s", None, {"dream": {"enabled": False}})
        tell(pipeline, "One.", "Two.", "Three.")
        assert timers(pipeline) == []
        tell(pipeline, "Four.", session="t")
        assert len(timers(pipeline)) == 1

    def test_the_configuration_is_read_again_when_the_timer_fires(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.", "Two.", "Three.")
        workspaces.update(pipeline.rt, PRINCIPAL, WORKSPACE, None, {"dream": {"enabled": False}})
        pipeline.clock.advance(hours=1)
        pipeline.work()
        assert dreamt(pipeline) == []
        (timer,) = pipeline.tasks(kinds.DREAM_TIMER)
        assert timer.outcome == {"skipped": "dreams are switched off here"}

    def test_conclusions_are_counted_per_observer(self, pipeline: Pipeline) -> None:
        pipeline.join("s", bob=sessions.MemberConfig(observe_others=True))
        tell(pipeline, "One.", "Two.")
        tell(pipeline, "Three.", session="t")
        pipeline.clock.advance(hours=2)
        pipeline.work()
        with pipeline.rt.storage.read() as tx:
            last_dreams = {
                (row.observer, row.observed): row.last_dream_at for row in tx.rows.page(Collection)
            }
        assert last_dreams[("alice", "alice")] is not None
        assert last_dreams[("bob", "alice")] is None


class TestOnRequest:
    def test_the_same_one_is_not_stored_twice(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.")
        ask = DreamRequest("alice", dreams.OMNI)
        assert dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, ask)
        assert not dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, ask)
        assert not dreams.schedule(
            pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI, observed="alice")
        )
        assert dreams.schedule(
            pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.CARD_REFRESH)
        )
        assert len(dreamt(pipeline)) == 2
        pipeline.work()
        assert dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, ask)
        assert len(dreamt(pipeline)) == 3

    def test_a_pending_timer_does_not_delay_it(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.", "Two.", "Three.")
        assert dreams.schedule(
            pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI, session="s")
        )
        assert pipeline.counts()[3] == 1
        pipeline.work()
        (task,) = dreamt(pipeline)
        assert (task.state, task.payload["trigger"]) == ("done", "manual")
        assert pipeline.counts()[3] == 0

    def test_a_pending_refresh_becomes_a_rebuild(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.")
        for rebuild in (False, True):
            dreams.schedule(
                pipeline.rt,
                PRINCIPAL,
                WORKSPACE,
                DreamRequest("alice", dreams.CARD_REFRESH, rebuild=rebuild),
            )
        (task,) = dreamt(pipeline)
        assert task.payload["rebuild"] is True

    def test_a_rebuild_is_queued_behind_a_running_refresh(self, pipeline: Pipeline) -> None:
        """The running one was started without it. A further request joins the queued one."""
        tell(pipeline, "One.")

        def schedule(rebuild: bool) -> bool:
            request = DreamRequest("alice", dreams.CARD_REFRESH, rebuild=rebuild)
            return dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, request)

        assert schedule(rebuild=False)
        unit = dreamt(pipeline)[0].unit
        lease = pipeline.rt.storage.write(
            lambda tx: tx.tasks.claim(unit, "another-process", pipeline.clock(), 60)
        )
        assert lease is not None
        assert not schedule(rebuild=False)
        assert schedule(rebuild=True)
        assert not schedule(rebuild=True)
        assert [task.payload["rebuild"] for task in dreamt(pipeline)] == [False, True]

    def test_a_rebuild_joins_the_dream_queued_behind_a_running_one(
        self, pipeline: Pipeline
    ) -> None:
        tell(pipeline, "One.")
        with pipeline.rt.storage.read() as tx:
            alice = tx.workspaces.locate(WORKSPACE, peer_id="alice").peer
        assert alice is not None

        def enqueue(peer: Peer = alice, **options: Any) -> bool:
            return pipeline.rt.storage.write(
                lambda tx: dreams.enqueue(
                    pipeline.rt, tx, peer, peer, dreams.CARD_REFRESH, **options
                )
            )

        assert enqueue()
        unit = dreamt(pipeline)[0].unit
        pipeline.rt.storage.write(
            lambda tx: tx.tasks.claim(unit, "another-process", pipeline.clock(), 60)
        )
        assert enqueue(trigger=dreams.SCOPE_BACKFILL)
        assert not enqueue(rebuild=True)
        assert [task.payload["rebuild"] for task in dreamt(pipeline)] == [False, True]

    def test_a_scope_that_changed_does_not_lose_its_dream_to_one_that_runs(
        self, pipeline: Pipeline
    ) -> None:
        tell(pipeline, "One.")

        def enqueue(trigger: str) -> bool:
            def change(view: object) -> bool:
                return dreams.enqueue(pipeline.rt, view, alice, alice, dreams.OMNI, trigger=trigger)  # type: ignore[arg-type]

            return pipeline.rt.storage.write(change)

        with pipeline.rt.storage.read() as tx:
            alice = tx.workspaces.locate(WORKSPACE, peer_id="alice").peer
        assert alice is not None
        assert enqueue(dreams.MANUAL)
        unit = dreamt(pipeline)[0].unit
        lease = pipeline.rt.storage.write(
            lambda tx: tx.tasks.claim(unit, "somebody", pipeline.clock(), 60)
        )
        assert lease is not None
        assert not enqueue(dreams.MANUAL)
        assert enqueue(dreams.SCOPE_REMOVAL)
        assert not enqueue(dreams.SCOPE_BACKFILL)
        assert [task.payload["trigger"] for task in dreamt(pipeline)] == ["manual", "scope_removal"]

    def test_of_a_pair_without_conclusions(self, pipeline: Pipeline) -> None:
        tell(pipeline, "One.")
        tell(pipeline, "Other.", peer="bob", session="t")
        assert dreams.schedule(
            pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI, observed="bob")
        )
        pipeline.work()
        (task,) = dreamt(pipeline)
        assert (task.state, task.outcome["known"]) == ("done", 0)
