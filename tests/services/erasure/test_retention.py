"""Messages and conclusions that are older than their retention."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import FINISHED, Conclusion, Erasure, Message
from memservice.runtime import Runtime
from memservice.services import sessions, workspaces
from memservice.services.erasure import retention
from memservice.worker import expiry
from memservice.worker import retention as retention_of_server
from memservice.worker.polling import Worker
from support.services.services import ME, WORKSPACE, Services

pytestmark = pytest.mark.every_storage("sqlite")
LOGGER = "memservice.maintenance"


def configure(services: Services, **section: int) -> None:
    workspaces.update(services.rt, ME, WORKSPACE, None, {"retention": section})


def stored(services: Services, record: type[Any] = Message) -> list[str]:
    with services.rt.storage.read() as tx:
        return [row.content for row in tx.rows.page(record)]


def receipts(services: Services) -> list[Erasure]:
    with services.rt.storage.read() as tx:
        return tx.erasures.page()


def key_of(services: Services, session: str) -> int:
    with services.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(WORKSPACE)
        assert workspace is not None
        (row,) = tx.sessions.by_slugs(workspace.key, [session])
        return row.key


def expire(services: Services) -> None:
    """Erase what is old now in the first two sessions and the workspace, and do the work that
    this causes. (The time of a round follows the clock slowly.)"""
    for key in (1, 2):
        while retention.erase_messages(services.rt, key, services.clock()):
            pass
        while retention.erase_conclusions(services.rt, 1, services.clock(), key):
            pass
    while retention.erase_conclusions(services.rt, 1, services.clock()):
        pass
    Worker(services.rt).run_until_idle()


def test_old_messages_are_erased_with_a_receipt(services: Services) -> None:
    services.say("talk", ("alice", "I live in Oslo."), ("bob", "I live in Rome."))
    services.clock.advance(days=20)
    services.say("talk", ("alice", "I moved to Bergen."))
    services.clock.advance(days=11)
    expire(services)
    assert len(stored(services)) == 3, "nothing is erased unless it is configured"
    configure(services, messages_days=30)
    expire(services)
    assert stored(services) == ["I moved to Bergen."]
    with services.rt.storage.read() as tx:
        (message,) = tx.rows.page(Message)
        session = tx.sessions.by_key(message.session_key)
    assert session is not None
    assert (message.seq, session.message_count) == (1, 1)
    (receipt,) = receipts(services)
    assert (receipt.kind, receipt.target, receipt.requested_by, receipt.state) == (
        "messages",
        "talk",
        "retention",
        FINISHED,
    )
    before = (services.clock() - timedelta(days=30)).isoformat()
    assert receipt.options == {"messages_days": 30, "before": before}
    assert receipt.counts["messages"] == 2
    assert not any("Oslo" in text for text in stored(services, Conclusion))


def test_a_message_of_exactly_the_limit_stays(services: Services) -> None:
    services.say("talk", ("alice", "I live in Oslo."))
    configure(services, messages_days=1)
    services.clock.advance(days=1)
    expire(services)
    assert len(stored(services)) == 1
    services.clock.advance(seconds=1)
    expire(services)
    assert stored(services) == []


def test_a_message_with_a_time_in_the_future_is_erased_after_the_same_days(
    services: Services,
) -> None:
    (future,) = services.say("talk", ("alice", "I live in Oslo."))
    later = services.clock() + timedelta(days=1_000)
    services.rt.storage.write(
        lambda tx: tx.rows.change(Message, equals(key=future.key), created_at=later)
    )
    configure(services, messages_days=1)
    services.clock.advance(days=1, seconds=1)
    expire(services)
    assert stored(services) == []


@pytest.mark.slow
def test_a_session_can_set_its_own_days(services: Services) -> None:
    services.say("talk", ("alice", "One."))
    services.say("other", ("alice", "Two."))
    configure(services, messages_days=10, conclusions_days=10)
    sessions.update(
        services.rt,
        ME,
        WORKSPACE,
        "talk",
        None,
        {"retention": {"messages_days": 100, "conclusions_days": 100}},
    )
    services.conclude("alice", "alice", "of talk", session="talk")
    services.conclude("alice", "alice", "of other", session="other")
    services.conclude("alice", "alice", "of no session")
    services.clock.advance(days=50)
    expire(services)
    assert stored(services) == ["One."]
    assert stored(services, Conclusion) == ["of talk"]
    services.clock.advance(days=51)
    expire(services)
    assert stored(services) == stored(services, Conclusion) == []
    assert {receipt.state for receipt in receipts(services)} == {FINISHED}


def test_what_was_concluded_only_from_old_conclusions_goes_with_them(services: Services) -> None:
    services.peer("alice")
    old = services.derive("alice", "alice", "alice has a cat")
    configure(services, conclusions_days=10)
    services.clock.advance(days=9)
    other = services.derive("alice", "alice", "alice has a dog")
    for content, sources in (("of one", [old.uid]), ("of both", [old.uid, other.uid])):
        services.derive("alice", "alice", content, "deductive", source_ids=sources)
    services.clock.advance(days=2)
    expire(services)
    assert stored(services, Conclusion) == ["alice has a dog", "of both"]
    with services.rt.storage.read() as tx:
        both = tx.rows.get(Conclusion, equals(content="of both"))
    assert both is not None
    assert both.source_ids == [other.uid]
    (receipt,) = receipts(services)
    assert (receipt.kind, receipt.counts["conclusions"]) == ("conclusions", 2)


def test_a_conclusion_of_exactly_the_limit_stays(services: Services) -> None:
    services.peer("alice")
    services.derive("alice", "alice", "alice has a cat")
    configure(services, conclusions_days=1)
    services.clock.advance(days=1)
    expire(services)
    assert stored(services, Conclusion) == ["alice has a cat"]
    services.clock.advance(seconds=1)
    expire(services)
    assert stored(services, Conclusion) == []


def test_a_batch_is_bounded(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    services.say("talk", *[("alice", f"Number {number}.") for number in range(7)])
    configure(services, messages_days=1)
    services.clock.advance(days=2)
    monkeypatch.setattr(retention, "BATCH_SIZE", 3)
    key = key_of(services, "talk")
    numbers = [retention.erase_messages(services.rt, key, services.clock()) for _ in range(4)]
    assert numbers == [3, 3, 1, 0]


@pytest.mark.slow
def test_a_round_visits_every_session_and_workspace(
    services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    services.say("talk", ("alice", "One."))
    services.say("other", ("alice", "Two."))
    services.conclude("alice", "alice", "three")
    configure(services, messages_days=1, conclusions_days=1)
    caplog.set_level(logging.INFO, LOGGER)
    expiry.run(services.rt)
    assert len(stored(services)) == 2
    for _ in range(60):  # the time of retention follows the clock an hour at a time
        services.clock.advance(hours=1)
        expiry.run(services.rt)
    assert stored(services) == stored(services, Conclusion) == []
    assert {record.getMessage() for record in caplog.records if record.name == LOGGER} == {
        "retention: erased 1 old messages",
        "retention: erased 1 old conclusions",
    }


def test_a_round_reads_no_messages_where_nothing_is_configured(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.say("talk", ("alice", "One."))
    visited: list[int] = []

    def visit(rt: Runtime, session_key: int, now: datetime) -> int:
        visited.append(session_key)
        return 0

    monkeypatch.setattr(retention, "erase_messages", visit)
    expiry.run(services.rt)
    assert visited == []
    configure(services, messages_days=1)
    services.clock.advance(hours=7)
    expiry.run(services.rt)
    assert visited == [key_of(services, "talk")]


@pytest.mark.slow
def test_an_interrupted_round_continues(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        services.say(f"s{number}", ("alice", f"Number {number}."))
    configure(services, messages_days=1)
    services.clock.advance(days=5)
    monkeypatch.setattr(retention_of_server, "steady_time", lambda rt: services.clock())
    monkeypatch.setattr(expiry, "TIME_SLICE_SECONDS", 0.0)
    pauses = [expiry.run(services.rt) for _ in range(40)]
    assert stored(services) == []
    number = pauses.index(expiry.INTERVAL_SECONDS)
    assert number >= 10, "each transaction was a call of its own"
    assert pauses[:number] == [0.0] * number


def test_a_clock_that_jumps_ahead_erases_nothing_at_once(services: Services) -> None:
    services.say("talk", ("alice", "One."))
    configure(services, messages_days=30)
    expiry.run(services.rt)
    services.clock.advance(days=400)
    expiry.run(services.rt)
    assert stored(services) == ["One."]
