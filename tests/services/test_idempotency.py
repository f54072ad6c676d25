"""A request that is repeated under its key stores nothing again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from memservice.domain.errors import InvalidInput
from memservice.domain.records import IdempotencyKey, Message, Task
from memservice.worker import retention
from services.conftest import Begin
from support.services.world import Small


def stored(small: Small) -> int:
    with small.rt.storage.read() as tx:
        return tx.rows.count(Message)


def remembered(small: Small) -> int:
    with small.rt.storage.read() as tx:
        return tx.rows.count(IdempotencyKey)


def test_a_repetition_answers_as_before_and_stores_neither_messages_nor_tasks(small: Small) -> None:
    first = small.say("s", ("ann", "one"), ("bob", "two"), once="k")
    with small.rt.storage.read() as tx:
        tasks = tx.rows.count(Task)
    assert small.say("s", ("ann", "one"), ("bob", "two"), once="k") == first
    assert stored(small) == 2
    with small.rt.storage.read() as tx:
        assert tx.rows.count(Task) == tasks


def test_keys_are_separate_for_each_session(small: Small) -> None:
    for session in ("s", "t"):
        small.say(session, ("ann", "one"), once="k")
    small.say("s", ("ann", "one"), once="l")
    small.say("s", ("ann", "one"))
    assert stored(small) == 4


@pytest.mark.parametrize("other", [("ann", "other"), ("bob", "one")])
def test_a_different_request_under_the_same_key_is_refused(
    small: Small, other: tuple[str, str]
) -> None:
    small.say("s", ("ann", "one"), once="k")
    with pytest.raises(InvalidInput, match="used for other messages"):
        small.say("s", other, once="k")
    with pytest.raises(InvalidInput):
        small.say("s", ("ann", "one"), ("ann", "one"), once="k")
    assert stored(small) == 1


def test_a_failed_request_may_be_repeated(small: Small) -> None:
    with pytest.raises(InvalidInput):
        small.say("s", ("not a name", "one"), once="k")
    small.say("s", ("ann", "one"), once="k")
    assert stored(small) == 1


def test_concurrent_repetitions_store_once(begin: Begin) -> None:
    small = begin(DB_POOL_TIMEOUT="30")
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: small.say("s", ("ann", "one"), ("bob", "two"), once="k"), range(24))
        )
    assert all(answer == answers[0] for answer in answers)
    assert stored(small) == 2


def test_keys_expire_after_a_day(small: Small) -> None:
    small.say("s", ("ann", "one"), once="early")
    small.clock.now += timedelta(hours=20)
    small.say("s", ("ann", "one"), once="late")
    retention.sweep(small.rt)
    assert remembered(small) == 2
    erased = 0
    for _ in range(5):
        small.clock.now += timedelta(hours=1)
        erased += retention.sweep(small.rt)["idempotency keys"]
    assert erased == 1
    small.say("s", ("ann", "one"), once="late")
    assert stored(small) == 2
    small.say("s", ("ann", "one"), once="early")
    assert stored(small) == 3
