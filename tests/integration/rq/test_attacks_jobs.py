"""Jobs that another program put into Redis: a unit is read from those that look like ours, and
nothing that a job names is imported, called or sent a request, whatever list of RQ's it stands
in."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from rq import Callback, Queue, Repeat, Retry
from rq.job import Job
from rq.serializers import JSONSerializer

from memservice.worker import rq_worker
from memservice.worker.rq_queues import JobQueues
from memservice.worker.unit_jobs import DATA_MAX, FUNCTION, UnitJob, unit_of
from support.process_state import restored_process

STRANGE = "made_up_by_another_program"
PAST = "2024-03-01T00:00:00.000000Z"


def called(
    function: str = FUNCTION,
    instance: Any = None,
    arguments: Any = ("summary:1:1",),
    named: Any = (),
) -> bytes:
    return json.dumps([function, instance, list(arguments), dict(named)]).encode()


@pytest.fixture
def touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Was a module imported, or one of its functions called, that only a job names?"""
    (tmp_path / f"{STRANGE}.py").write_text("def f(*given, **named):\n    pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda: STRANGE in sys.modules
    sys.modules.pop(STRANGE, None)


@pytest.fixture
def requests() -> Iterator[tuple[str, list[str]]]:
    """The URL of a server on this machine, and the requests it has had."""
    got: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(f"{self.command} {self.path}")
            self.send_response(204)
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/internal", got
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def units_run(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The units that the worker works on."""
    units: list[str] = []
    monkeypatch.setattr(rq_worker, "work", units.append)
    return units


@pytest.fixture
def hostile(queues: JobQueues) -> Queue:
    """The queue `ingest` as a program with RQ's own classes writes to it."""
    (queue,) = queues.named(["ingest"])
    return Queue(queue.name, connection=queue.connection, serializer=JSONSerializer)


def write(connection: Redis, id: str, data: bytes, **fields: str) -> None:
    """A job's hash, as HSET makes it."""
    mapping: dict[Any, Any] = {"data": zlib.compress(data), "created_at": PAST, **fields}
    connection.hset(f"rq:job:{id}", mapping=mapping)


def all_names(function: str, url: str) -> dict[str, str]:
    """Every field of a job with which RQ 2.12 calls, asks or repeats something."""
    webhooks = [
        {"url": url, "job_status": status, "method": "POST", "headers": {"X": "y"}}
        for status in ("finished", "failed")
    ]
    names = {f"{moment}_callback_name": function for moment in ("success", "failure", "stopped")}
    return {
        **names,
        "webhooks": json.dumps(webhooks),
        "retries_left": "3",
        "repeats_left": "3",
        "repeat_intervals": "[0]",
        "timeout": "1",
    }


def work(queues: JobQueues, *names: str) -> None:
    """RQ's whole loop, from its maintenance to the last job."""
    with restored_process():
        rq_worker.UnitWorker(queues.named(names or ["ingest"]), threading.Event()).work(
            burst=True, logging_level="WARNING"
        )


def test_the_unit_of_a_valid_job_is_read() -> None:
    assert unit_of(zlib.compress(called())) == "summary:1:1"


@pytest.mark.parametrize(
    "data",
    [
        called("os.system", arguments=["true"]),
        called(f"{STRANGE}.f"),
        called(instance={"work": 1}),
        called(arguments=[]),
        called(arguments=["a", "b"]),
        called(arguments=[{"unit": 1}]),
        called(arguments=[5]),
        called(named={"unit": "x"}),
        b"[]",
        b"5",
        b"{",
        b"",
        b"\x80\x04\x95",
        b"[" * 100_000,
        b"9" * 90_000,
        b'["' + b"x" * DATA_MAX,
        called(arguments=["summary:1:1"], named=[("a", "b")]),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_no_unit_is_read_from_other_jobs(
    data: bytes, packed: bool, touched: Callable[[], bool]
) -> None:
    assert unit_of(zlib.compress(data) if packed else data) is None
    assert not touched()


def test_a_decompression_bomb_is_not_unpacked() -> None:
    bomb = zlib.compress(b" " * 200_000_000)
    began = time.process_time()
    assert unit_of(bomb) is None
    assert time.process_time() - began < 0.1


def test_a_job_has_only_its_unit(connection: Redis, touched: Callable[[], bool]) -> None:
    """Whatever a release of RQ stores with a job: what is read is what a new job without anything
    has."""
    write(
        connection,
        "made-up",
        called(),
        **all_names(f"{STRANGE}.f", "http://127.0.0.1:1/"),
        dependency_ids='["x"]',
        meta='{"a":1}',
    )
    job = UnitJob("made-up", connection=connection, serializer=JSONSerializer)
    job.restore(dict(connection.hgetall(job.key).items()))  # type: ignore[arg-type]  # bytes, as the connection decodes nothing
    connection.delete("rq:job:made-up")
    fresh = vars(UnitJob("made-up", connection=connection, serializer=JSONSerializer))
    differing = {name for name, value in vars(job).items() if fresh.get(name) != value}
    assert differing == {"unit", "created_at"}
    assert (
        job.unit,
        job.success_callback,
        job.failure_callback,
        job.stopped_callback,
        job.webhooks,
    ) == ("summary:1:1", *[None] * 3, [])
    with pytest.raises(RuntimeError, match="are never called"):
        job.perform()
    assert not touched()


@pytest.mark.parametrize(
    "registry", ["wip", "finished", "failed", "deferred", "scheduled", "canceled"]
)
def test_maintenance_calls_nothing(
    registry: str,
    queues: JobQueues,
    hostile: Queue,
    touched: Callable[[], bool],
    requests: tuple[str, list[str]],
    units_run: list[str],
) -> None:
    """RQ goes through its lists when a worker starts, and calls what the jobs that are overdue in
    them name."""
    for unit, data in (
        ("overdue", called(f"{STRANGE}.f")),
        ("like-ours", called(arguments=["summary:6:6"])),
    ):
        id = f"{registry}-{unit}"
        names = all_names(f"{STRANGE}.f", requests[0])
        write(hostile.connection, id, data, origin=hostile.name, status="started", **names)
        hostile.connection.zadd(
            f"rq:{registry}:{hostile.name}", {f"{id}:one" if registry == "wip" else id: 1}
        )
    hostile.connection.rpush(hostile.intermediate_queue_key, f"{registry}-overdue")
    hostile.connection.set(
        f"{hostile.intermediate_queue_key}:first_seen:{registry}-overdue", "1", ex=60
    )
    work(queues)
    assert (touched(), requests[1], units_run) == (False, [], [])


def test_the_failure_callback_of_an_overdue_job_is_not_called(
    queues: JobQueues, hostile: Queue, capsys: pytest.CaptureFixture[str]
) -> None:
    """The very commands: RQ's own worker prints the job."""
    write(
        hostile.connection,
        "evil1",
        b'["x",null,[],{}]',
        origin=hostile.name,
        status="started",
        failure_callback_name="builtins.print",
    )
    hostile.connection.zadd(f"rq:wip:{hostile.name}", {"evil1:exec1": 1})
    work(queues)
    assert "evil1" not in capsys.readouterr().out


def test_a_job_like_ours_sends_no_requests(
    queues: JobQueues,
    hostile: Queue,
    requests: tuple[str, list[str]],
    touched: Callable[[], bool],
    units_run: list[str],
) -> None:
    for number, unit in enumerate(("summary:1:1", "summary:1:2")):
        write(
            hostile.connection,
            f"ours-{number}",
            called(arguments=[unit]),
            origin=hostile.name,
            **all_names(f"{STRANGE}.f", requests[0]),
        )
        hostile.connection.rpush(hostile.key, f"ours-{number}")
    work(queues)
    assert units_run == ["summary:1:1", "summary:1:2"], (
        "each once: neither tried again nor repeated"
    )
    assert (touched(), requests[1]) == (False, [])


def test_a_job_of_another_function_is_refused_and_removed(
    queues: JobQueues,
    hostile: Queue,
    requests: tuple[str, list[str]],
    touched: Callable[[], bool],
    units_run: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    write(
        hostile.connection,
        "foreign",
        called(f"{STRANGE}.f"),
        origin=hostile.name,
        **all_names(f"{STRANGE}.f", requests[0]),
    )
    hostile.connection.rpush(hostile.key, "foreign")
    with caplog.at_level(logging.ERROR, "memservice.worker"):
        work(queues)
        work(queues)
    assert caplog.text.count("memservice did not enqueue it") == 1
    assert (units_run, touched(), requests[1], hostile.fetch_job("foreign")) == (
        [],
        False,
        [],
        None,
    )


def test_callbacks_and_retries_of_jobs_are_ignored(
    queues: JobQueues, hostile: Queue, touched: Callable[[], bool], units_run: list[str]
) -> None:
    """By RQ's own calls: callbacks, retries, repeats, dependents, and a unit that fails."""
    sys.modules.pop(STRANGE, None)
    first = hostile.enqueue(
        FUNCTION,
        "summary:1:1",
        on_success=Callback(f"{STRANGE}.f"),
        on_failure=Callback(f"{STRANGE}.f"),
    )
    hostile.enqueue(FUNCTION, "summary:1:2", retry=Retry(max=3), repeat=Repeat(times=3, interval=0))
    hostile.enqueue(f"{STRANGE}.f", depends_on=first)
    work(queues)
    work(queues)
    assert (units_run, touched()) == (["summary:1:1", "summary:1:2"], False)


def test_the_timeout_of_a_job_is_ignored(
    queues: JobQueues, hostile: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RQ raises an error in the middle of a job whose time is over."""
    ended: list[str] = []

    def slowly(unit: str) -> None:
        time.sleep(1.5)
        ended.append(unit)

    monkeypatch.setattr(rq_worker, "work", slowly)
    hostile.enqueue(FUNCTION, "summary:1:1", job_timeout=1)
    work(queues)
    assert ended == ["summary:1:1"]


@pytest.mark.parametrize("names", [("ingest",), ("ingest", "summary")])
def test_a_job_leaves_nothing_in_redis(
    names: tuple[str, ...], queues: JobQueues, connection: Redis, units_run: list[str]
) -> None:
    def keys_left() -> set[str]:
        return {
            str(key)
            for key in connection.scan_iter("*")
            if not key.startswith((b"rq:worker", b"rq:queues", b"rq:clean"))
        }

    before = keys_left()
    queues.wake(["representation:9:9"])
    work(queues, *names)
    assert units_run == ["representation:9:9"]
    assert keys_left() - before == set()


def test_an_unreadable_job_does_not_stop_later_ones(
    queues: JobQueues, hostile: Queue, units_run: list[str]
) -> None:
    write(
        hostile.connection,
        "odd",
        b"",
        status="no such status",
        created_at="never",
        result_ttl="x",
        timeout="y",
        dependency_ids="{",
    )
    hostile.connection.rpush(hostile.key, "odd", "gone")
    hostile.enqueue(FUNCTION, "summary:1:1")
    work(queues)
    assert units_run == ["summary:1:1"]


def test_rqs_own_job_class_would_fail_these_tests(
    hostile: Queue, touched: Callable[[], bool]
) -> None:
    """These tests would notice: RQ's own class reads and imports what the names say."""
    write(hostile.connection, "plain", called(f"{STRANGE}.f"), failure_callback_name=f"{STRANGE}.f")
    job = Job.fetch("plain", connection=hostile.connection, serializer=JSONSerializer)
    hostile.connection.delete("rq:job:plain")
    assert job.failure_callback is not None
    assert touched()
