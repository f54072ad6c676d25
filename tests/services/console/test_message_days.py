"""Messages per day on the home page: counted by workers, each message once, at a bounded cost."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from memservice.domain.errors import Unauthorised
from memservice.domain.records import Fact
from memservice.domain.times import day_of
from memservice.runtime import Runtime
from memservice.services import message_days, messages
from memservice.services.auth import policy
from memservice.services.auth.permissions import Role
from memservice.services.auth.principal import Principal
from memservice.services.message_days import MessageDays
from memservice.services.messages import Draft
from memservice.worker import retention
from support.services.console import Open
from support.services.services import Clock

ADMIN = Principal(admin=True)
MINUTE = timedelta(seconds=61)


@pytest.fixture
def rt(open_runtime: Open) -> Runtime:
    return open_runtime()


def say(rt: Runtime, number: int = 1, at: datetime | None = None) -> None:
    drafts = [Draft(f"message {n}", "alice", created_at=at) for n in range(number)]
    messages.create(rt, ADMIN, "w", "s", drafts)


def counted(rt: Runtime) -> MessageDays:
    days = message_days.per_day(rt, ADMIN)
    assert days is not None
    return days


def numbers(rt: Runtime) -> dict[str, int]:
    return {day.day: day.messages for day in counted(rt).days if day.messages}


def passes(rt: Runtime, clock: Clock, times: int = 2) -> None:
    for _ in range(times):
        message_days.count(rt)
        clock.advance(seconds=61)


def test_messages_are_counted_once_by_their_day(rt: Runtime, clock: Clock) -> None:
    assert message_days.per_day(rt, ADMIN) is None
    now = clock()
    say(rt, 3)
    say(rt, 2, now - timedelta(days=2))
    say(rt, 4, now - timedelta(days=100))
    passes(rt, clock, 5)
    assert numbers(rt) == {day_of(now): 3, day_of(now - timedelta(days=2)): 2}
    assert len(counted(rt).days) == message_days.DAYS
    assert counted(rt).is_complete
    say(rt, 5)
    passes(rt, clock, 5)
    assert numbers(rt)[day_of(now)] == 8


def test_a_transaction_that_commits_late_is_not_missed(rt: Runtime, clock: Clock) -> None:
    """Keys are given before the commit: a smaller key may appear after a greater one was seen."""
    say(rt)
    message_days.count(rt)
    assert numbers(rt) == {}, "not settled yet"
    clock.advance(seconds=59)
    message_days.count(rt)
    assert numbers(rt) == {}
    clock.advance(seconds=2)
    message_days.count(rt)
    assert sum(numbers(rt).values()) == 1


def test_a_pass_is_bounded_and_the_next_one_continues(
    rt: Runtime, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(rt, 50)
    message_days.count(rt)
    clock.advance(seconds=61)
    monkeypatch.setattr(message_days, "BATCH_SIZE", 20)
    monkeypatch.setattr(message_days, "TIME_LIMIT_SECONDS", 0.0)
    for number, is_complete in ((20, False), (40, False), (50, True)):
        message_days.count(rt)
        assert sum(numbers(rt).values()) == number
        assert counted(rt).is_complete == is_complete


def test_days_go_after_a_month(rt: Runtime, clock: Clock) -> None:
    say(rt)
    passes(rt, clock)
    clock.advance(days=31)
    say(rt)
    passes(rt, clock, 3)
    with rt.storage.read() as tx:
        (fact,) = [fact for fact in tx.rows.page(Fact) if fact.name == message_days.FACT]
    assert fact.value.count("20") < 10, "one day is left"
    assert sum(numbers(rt).values()) == 1


def test_a_store_in_the_place_of_another_is_counted_anew(rt: Runtime, clock: Clock) -> None:
    say(rt, 3)
    value = '{"complete": true, "counted": 99, "days": {}, "seen": 99, "seen_at": null}'
    rt.storage.write(lambda tx: tx.facts.set(message_days.FACT, value))
    passes(rt, clock, 3)
    assert sum(numbers(rt).values()) == 3


def test_the_sweep_of_a_worker_counts(rt: Runtime, clock: Clock) -> None:
    say(rt)
    retention.sweep(rt)
    clock.advance(seconds=61)
    retention.sweep(rt)
    assert sum(numbers(rt).values()) == 1


def test_only_visitors_of_all_workspaces_see_the_numbers(rt: Runtime) -> None:
    assert message_days.per_day(rt, policy.principal_of_member(Role.READER, None)) is None
    for principal in (
        policy.principal_of_member(Role.OWNER, frozenset({"w"})),
        Principal(workspace_id="w"),
    ):
        with pytest.raises(Unauthorised):
            message_days.per_day(rt, principal)
