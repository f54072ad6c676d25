"""What is in Redis: one job a unit, none of them lost to an id that is in flight, nothing but
JSON."""

from __future__ import annotations

import json
import re
import zlib

import pytest
from redis import Redis
from rq.job import Job

from memservice.domain.errors import ConfigurationError
from memservice.services.tasks.kinds import KINDS
from memservice.worker import rq_queues
from memservice.worker.rq_queues import QUEUES, JobQueues, connect, queue_of
from memservice.worker.unit_jobs import FUNCTION, UnitJob

UNIT = "representation:1:2:3"


def waiting(queues: JobQueues) -> list[str]:
    """Units of the jobs in all queues, as a worker would take them."""
    jobs = [job for queue in queues.named(QUEUES) for job in queue.get_jobs()]
    return [str(job.unit) for job in jobs if isinstance(job, UnitJob)]


def only_job(queues: JobQueues) -> Job:
    """As RQ itself reads it, with everything that is stored."""
    ((queue, id),) = [(queue, id) for queue in queues.named(QUEUES) for id in queue.get_job_ids()]
    return Job.fetch(id, connection=queue.connection, serializer=queue.serializer)


def test_urgent_work_has_separate_queues() -> None:
    assert QUEUES == ("ingest", "summary", "webhook", "dream", "maintenance")
    queues = {kind: queue_of(f"{kind}:1") for kind in KINDS}
    assert queues == {
        "representation": "ingest",
        "card": "ingest",
        "embed": "ingest",
        "index": "ingest",
        "forget": "maintenance",
        "mend": "maintenance",
        "summary": "summary",
        "webhook": "webhook",
        "dream": "dream",
        "dream_timer": "dream",
        "scope_backfill": "maintenance",
        "scope_removal": "maintenance",
        "erase": "maintenance",
        "reindex": "maintenance",
        "repack": "maintenance",
    }


def test_wake_ups_before_a_job_begins_are_one_job(queues: JobQueues) -> None:
    assert [queues.wake([UNIT]) for _ in range(3)] == [1, 0, 0]
    assert waiting(queues) == [UNIT]


def test_a_wake_up_after_a_job_began_is_another_job(queues: JobQueues) -> None:
    queues.wake([UNIT])
    first = only_job(queues)
    # a worker took it: the job is there, and in no queue
    queues.named(["ingest"])[0].remove(first.id)
    queues.begin(UNIT)
    assert queues.wake([UNIT]) == 1
    second = only_job(queues)
    assert second.id != first.id
    first.delete()  # it ends, and takes only itself away
    assert waiting(queues) == [UNIT]


def test_job_ids_are_valid_and_differ_by_unit_and_installation(
    queues: JobQueues, connection: Redis
) -> None:
    other = JobQueues(connection, "another")
    units = [UNIT, "dream:1:2:3", "webhook:1:ünit 'x'"]
    ids = [
        space._id(unit, epoch) for space in (queues, other) for unit in units for epoch in (0, 1)
    ]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", id) for id in ids)


def test_a_job_is_json_has_no_time_out_no_retry_and_keeps_no_result(
    queues: JobQueues, connection: Redis
) -> None:
    queues.wake([UNIT])
    job = only_job(queues)
    assert (job.func_name, job.args, job.timeout, job.result_ttl, job.retries_left) == (
        FUNCTION,
        [UNIT],
        -1,
        0,
        None,
    )
    stored = connection.hget(job.key, "data")
    assert isinstance(stored, bytes)
    assert json.loads(zlib.decompress(stored)) == [FUNCTION, None, [UNIT], {}]


def test_only_lost_jobs_are_enqueued_again(queues: JobQueues, connection: Redis) -> None:
    units = [f"representation:1:1:{number}" for number in range(3)]
    queues.wake(units)
    (ingest,) = queues.named(["ingest"])
    ingest.remove(ingest.get_jobs()[1])  # the process that took it was killed before it began
    assert queues.wake(units) == 0, "the killed one's job is still there"
    assert queues.wake_lost(units) == 1
    assert sorted(waiting(queues)) == units
    assert queues.wake_lost(units) == 0
    for key in connection.scan_iter("*"):  # as if Redis had been flushed, and only for this test
        if queues._namespace.encode() in key or key.startswith(b"rq:job:"):
            connection.delete(key)
    assert queues.wake_lost(units) == 3
    assert sorted(waiting(queues)) == units


def test_an_invalid_url_is_reported_in_one_sentence() -> None:
    with pytest.raises(
        ConfigurationError, match=r"REDIS_URL is not a Redis URL: .*redis://127\.0\.0\.1:6379/0"
    ):
        connect("localhost:6379")


def test_waiting_for_redis_is_bounded() -> None:
    options = connect("redis://127.0.0.1:6379/0").connection_pool.connection_kwargs
    assert (
        (options["socket_connect_timeout"], options["socket_timeout"])
        == (rq_queues.CONNECT_SECONDS, rq_queues.ANSWER_SECONDS)
        == (1, 1)
    )
