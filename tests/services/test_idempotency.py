"""A request that is repeated under its key stores nothing again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from memservice.domain.errors import InvalidInput
from memservice.domain.records import IdempotencyKey, Message, Task
from memservice.worker import retention
from services.conftest import OpenServices
from support.services.services import Services


def stored(services: Services) -> int:
    with services.rt.storage.read() as tx:
        return tx.rows.count(Message)


def remembered(services: Services) -> int:
    with services.rt.storage.read() as tx:
        return tx.rows.count(IdempotencyKey)


def test_a_repetition_answers_as_before_and_stores_neither_messages_nor_tasks(
    services: Services,
) -> None:
    first = services.say("s", ("ann", "one"), ("bob", "two"), once="k")
    with services.rt.storage.read() as tx:
        tasks = tx.rows.count(Task)
    assert services.say("s", ("ann", "one"), ("bob", "two"), once="k") == first
    assert stored(services) == 2
    with services.rt.storage.read() as tx:
        assert tx.rows.count(Task) == tasks


def test_keys_are_separate_for_each_session(services: Services) -> None:
    for session in ("s", "t"):
        services.say(session, ("ann", "one"), once="k")
    services.say("s", ("ann", "one"), once="l")
    services.say("s", ("ann", "one"))
    assert stored(services) == 4


@pytest.mark.parametrize("other", [("ann", "other"), ("bob", "one")])
def test_a_different_request_under_the_same_key_is_refused(
    services: Services, other: tuple[str, str]
) -> None:
    services.say("s", ("ann", "one"), once="k")
    with pytest.raises(InvalidInput, match="used for other messages"):
        services.say("s", other, once="k")
    with pytest.raises(InvalidInput):
        services.say("s", ("ann", "one"), ("ann", "one"), once="k")
    assert stored(services) == 1


def test_a_failed_request_may_be_repeated(services: Services) -> None:
    with pytest.raises(InvalidInput):
        services.say("s", ("not a name", "one"), once="k")
    services.say("s", ("ann", "one"), once="k")
    assert stored(services) == 1


def test_concurrent_repetitions_store_once(open_services: OpenServices) -> None:
    services = open_services(DB_POOL_TIMEOUT="30")
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda _: services.say("s", ("ann", "one"), ("bob", "two"), once="k"), range(24)
            )
        )
    assert all(answer == answers[0] for answer in answers)
    assert stored(services) == 2


def test_keys_expire_after_a_day(services: Services) -> None:
    services.say("s", ("ann", "one"), once="early")
    services.clock.now += timedelta(hours=20)
    services.say("s", ("ann", "one"), once="late")
    retention.sweep(services.rt)
    assert remembered(services) == 2
    erased = 0
    for _ in range(5):
        services.clock.now += timedelta(hours=1)
        erased += retention.sweep(services.rt)["idempotency keys"]
    assert erased == 1
    services.say("s", ("ann", "one"), once="late")
    assert stored(services) == 2
    services.say("s", ("ann", "one"), once="early")
    assert stored(services) == 3
