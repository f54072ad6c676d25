"""When dreams run: on request, or automatically once there is enough new and the pair is idle."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import Collection, Task
from memservice.services import conclusions, dreams, sessions, workspaces
from memservice.services.conclusions import ConclusionDraft
from memservice.services.dreams import DreamRequest
from memservice.services.tasks import kinds
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

Start = Callable[..., Place]

SETTINGS = {
    "DREAM_DOCUMENT_THRESHOLD": "3",
    "DREAM_IDLE_TIMEOUT_MINUTES": "60",
    "DREAM_MIN_HOURS_BETWEEN_DREAMS": "8",
}


@pytest.fixture
def place(start: Start) -> Place:
    return start(**SETTINGS)


def tell(place: Place, *contents: str, peer: str = "alice", session: str = "s") -> None:
    place.say(session, *[(peer, content) for content in contents])
    place.work()


def timers(place: Place) -> list[Task]:
    return place.tasks(kinds.DREAM_TIMER, state="pending")


def dreamt(place: Place) -> list[Task]:
    return place.tasks(kinds.DREAM)


def collection(place: Place) -> Collection:
    with place.rt.storage.read() as tx:
        return tx.rows.page(Collection, equals(observer="alice", observed="alice"))[0]


class TestByThemselves:
    def test_after_enough_conclusions_and_an_idle_hour(self, place: Place) -> None:
        tell(place, "One.", "Two.")
        assert timers(place) == []
        tell(place, "Three.")
        (timer,) = timers(place)
        assert timer.not_before == place.clock() + timedelta(minutes=60)
        place.clock.advance(minutes=59)
        place.work()
        assert dreamt(place) == []
        place.clock.advance(minutes=1)
        place.work()
        (task,) = dreamt(place)
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
        assert (collection(place).last_dream_at, collection(place).explicit_at_last_dream) == (
            place.clock(),
            3,
        )
        assert timers(place) == []

    def test_a_further_conclusion_restarts_the_timer(self, place: Place) -> None:
        tell(place, "One.", "Two.", "Three.")
        place.clock.advance(minutes=50)
        tell(place, "Four.")
        (timer,) = timers(place)
        assert timer.not_before == place.clock() + timedelta(minutes=60)
        place.clock.advance(minutes=30)
        # What is repeated is no news.
        tell(place, "Four.")
        assert timers(place) == [timer]
        place.clock.advance(minutes=30)
        place.work()
        assert len(dreamt(place)) == 1

    def test_not_within_eight_hours_of_the_last(self, place: Place) -> None:
        tell(place, "One.", "Two.", "Three.")
        place.clock.advance(hours=1)
        place.work()
        last = place.clock()
        tell(place, "Four.", "Five.", "Six.")
        (timer,) = timers(place)
        assert timer.not_before == last + timedelta(hours=8)
        place.clock.advance(hours=8)
        place.work()
        assert len(dreamt(place)) == 2

    def test_a_dream_on_request_cancels_the_timer(self, place: Place) -> None:
        tell(place, "One.", "Two.", "Three.")
        assert dreams.schedule(place.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI))
        place.work()
        place.clock.advance(hours=1)
        place.work()
        assert len(dreamt(place)) == 1
        (timer,) = place.tasks(kinds.DREAM_TIMER)
        assert (timer.state, timer.outcome) == ("done", {"skipped": "not enough is new"})

    def test_a_timer_that_fires_too_early_is_set_again(self, place: Place) -> None:
        tell(place, "One.", "Two.", "Three.")
        assert dreams.schedule(place.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI))
        place.work()
        last = place.clock()
        for content in ("Four.", "Five.", "Six."):
            conclusions.create(
                place.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft(content, "alice", "alice")]
            )
        place.clock.advance(hours=1)
        place.work()
        (timer,) = timers(place)
        assert timer.not_before == last + timedelta(hours=8)
        assert len(dreamt(place)) == 1

    def test_timers_do_not_count_in_queue_status(self, place: Place) -> None:
        tell(place, "One.", "Two.", "Three.")
        assert len(timers(place)) == 1
        assert place.counts()[3] == 0

    def test_a_timer_survives_a_restart(self, start: Start, request: pytest.FixtureRequest) -> None:
        if "memory" in request.node.name:
            pytest.skip("a store in memory does not outlive its process")
        first = start(**SETTINGS)
        tell(first, "One.", "Two.", "Three.")
        first.rt.close()
        second = start(**SETTINGS)
        second.clock.advance(minutes=60)
        second.work()
        assert [task.state for task in dreamt(second)] == ["done"]

    def test_every_automatic_type_is_scheduled(self, start: Start) -> None:
        place = start(
            **SETTINGS
            | {"DREAM_ENABLED_TYPES": '["omni", "card_refresh"]', "DREAM_IDLE_TIMEOUT_MINUTES": "0"}
        )
        tell(place, "One.", "Two.", "Three.")
        assert [
            (task.payload["type"], task.payload["delay"], task.state) for task in dreamt(place)
        ] == [
            ("omni", "immediate", "done"),
            ("card_refresh", "immediate", "done"),
        ]

    @pytest.mark.parametrize("off", [{"DREAM_ENABLED": "false"}, {"DREAM_ENABLED_TYPES": "[]"}])
    def test_not_if_dreams_are_switched_off(self, start: Start, off: dict[str, str]) -> None:
        place = start(**SETTINGS | off)
        tell(place, "One.", "Two.", "Three.")
        assert timers(place) == []

    def test_not_if_the_session_forbids_it(self, place: Place) -> None:
        sessions.update(place.rt, PRINCIPAL, WORKSPACE, "s", None, {"dream": {"enabled": False}})
        tell(place, "One.", "Two.", "Three.")
        assert timers(place) == []
        tell(place, "Four.", session="t")
        assert len(timers(place)) == 1

    def test_the_configuration_is_read_again_when_the_timer_fires(self, place: Place) -> None:
        tell(place, "One.", "Two.", "Three.")
        workspaces.update(place.rt, PRINCIPAL, WORKSPACE, None, {"dream": {"enabled": False}})
        place.clock.advance(hours=1)
        place.work()
        assert dreamt(place) == []
        (timer,) = place.tasks(kinds.DREAM_TIMER)
        assert timer.outcome == {"skipped": "dreams are switched off here"}

    def test_conclusions_are_counted_per_observer(self, place: Place) -> None:
        place.join("s", bob=sessions.MemberConfig(observe_others=True))
        tell(place, "One.", "Two.")
        tell(place, "Three.", session="t")
        place.clock.advance(hours=2)
        place.work()
        with place.rt.storage.read() as tx:
            found = {
                (row.observer, row.observed): row.last_dream_at for row in tx.rows.page(Collection)
            }
        assert found[("alice", "alice")] is not None
        assert found[("bob", "alice")] is None


class TestOnRequest:
    def test_the_same_one_is_not_stored_twice(self, place: Place) -> None:
        tell(place, "One.")
        ask = DreamRequest("alice", dreams.OMNI)
        assert dreams.schedule(place.rt, PRINCIPAL, WORKSPACE, ask)
        assert not dreams.schedule(place.rt, PRINCIPAL, WORKSPACE, ask)
        assert not dreams.schedule(
            place.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI, observed="alice")
        )
        assert dreams.schedule(
            place.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.CARD_REFRESH)
        )
        assert len(dreamt(place)) == 2
        place.work()
        assert dreams.schedule(place.rt, PRINCIPAL, WORKSPACE, ask)
        assert len(dreamt(place)) == 3

    def test_a_pending_timer_does_not_delay_it(self, place: Place) -> None:
        tell(place, "One.", "Two.", "Three.")
        assert dreams.schedule(
            place.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI, session="s")
        )
        assert place.counts()[3] == 1
        place.work()
        (task,) = dreamt(place)
        assert (task.state, task.payload["trigger"]) == ("done", "manual")
        assert place.counts()[3] == 0

    def test_a_pending_refresh_becomes_a_rebuild(self, place: Place) -> None:
        tell(place, "One.")
        for rebuild in (False, True):
            dreams.schedule(
                place.rt,
                PRINCIPAL,
                WORKSPACE,
                DreamRequest("alice", dreams.CARD_REFRESH, rebuild=rebuild),
            )
        (task,) = dreamt(place)
        assert task.payload["rebuild"] is True

    def test_a_rebuild_is_queued_behind_a_running_refresh(self, place: Place) -> None:
        """The running one was started without it. A further request joins the queued one."""
        tell(place, "One.")

        def schedule(rebuild: bool) -> bool:
            request = DreamRequest("alice", dreams.CARD_REFRESH, rebuild=rebuild)
            return dreams.schedule(place.rt, PRINCIPAL, WORKSPACE, request)

        assert schedule(rebuild=False)
        unit = dreamt(place)[0].unit
        lease = place.rt.storage.write(
            lambda tx: tx.tasks.claim(unit, "another-process", place.clock(), 60)
        )
        assert lease is not None
        assert not schedule(rebuild=False)
        assert schedule(rebuild=True)
        assert not schedule(rebuild=True)
        assert [task.payload["rebuild"] for task in dreamt(place)] == [False, True]

    def test_a_rebuild_joins_the_dream_queued_behind_a_running_one(self, place: Place) -> None:
        tell(place, "One.")
        with place.rt.storage.read() as tx:
            alice = tx.workspaces.locate(WORKSPACE, peer_id="alice").peer
        assert alice is not None

        def enqueue(**options: Any) -> bool:
            return place.rt.storage.write(
                lambda tx: dreams.enqueue(
                    place.rt, tx, alice, alice, dreams.CARD_REFRESH, **options
                )
            )

        assert enqueue()
        unit = dreamt(place)[0].unit
        place.rt.storage.write(
            lambda tx: tx.tasks.claim(unit, "another-process", place.clock(), 60)
        )
        assert enqueue(trigger=dreams.SCOPE_BACKFILL)
        assert not enqueue(rebuild=True)
        assert [task.payload["rebuild"] for task in dreamt(place)] == [False, True]

    def test_a_scope_that_changed_does_not_lose_its_dream_to_one_that_runs(
        self, place: Place
    ) -> None:
        tell(place, "One.")

        def enqueue(trigger: str) -> bool:
            def change(view: object) -> bool:
                return dreams.enqueue(place.rt, view, alice, alice, dreams.OMNI, trigger=trigger)  # type: ignore[arg-type]

            return place.rt.storage.write(change)

        with place.rt.storage.read() as tx:
            alice = tx.workspaces.locate(WORKSPACE, peer_id="alice").peer
        assert alice is not None
        assert enqueue(dreams.MANUAL)
        unit = dreamt(place)[0].unit
        lease = place.rt.storage.write(
            lambda tx: tx.tasks.claim(unit, "somebody", place.clock(), 60)
        )
        assert lease is not None
        assert not enqueue(dreams.MANUAL)
        assert enqueue(dreams.SCOPE_REMOVAL)
        assert not enqueue(dreams.SCOPE_BACKFILL)
        assert [task.payload["trigger"] for task in dreamt(place)] == ["manual", "scope_removal"]

    def test_of_a_pair_without_conclusions(self, place: Place) -> None:
        tell(place, "One.")
        tell(place, "Other.", peer="bob", session="t")
        assert dreams.schedule(
            place.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI, observed="bob")
        )
        place.work()
        (task,) = dreamt(place)
        assert (task.state, task.outcome["known"]) == ("done", 0)
