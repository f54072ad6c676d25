"""Jobs that somebody else put into Redis: only ours are done, and nothing that they name besides is imported or called."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from rq.job import Callback, Job
from rq.serializers import JSONSerializer

from memservice.pipeline import rq_worker
from memservice.pipeline.job_queues import FUNCTION, JobQueues


def stored(connection: Redis, data: bytes, **fields: str) -> Job:
    """A job as it is read from Redis, of whatever was written there."""
    now = "2024-03-01T00:00:00.000000Z"
    job = Job("made-up", connection=connection, serializer=JSONSerializer)
    job.restore({b"data": zlib.compress(data), b"created_at": now.encode(), **{k.encode(): v.encode() for k, v in fields.items()}})
    return job


@pytest.fixture
def nowhere() -> Redis:
    """Nothing is asked of it."""
    return Redis.from_url("redis://127.0.0.1:1")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether a module that nobody but a job names was imported."""
    (tmp_path / "made_up_by_somebody.py").write_text("def f(*given):\n    pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda: "made_up_by_somebody" in sys.modules


def called(function: str = FUNCTION, instance: Any = None, given: Any = ("summary:1:1",), named: Any = ()) -> bytes:
    return json.dumps([function, instance, list(given), dict(named)]).encode()


def test_ours(nowhere: Redis) -> None:
    assert rq_worker._is_ours(stored(nowhere, called()))


@pytest.mark.parametrize(
    "data",
    [
        called("os.system", given=["true"]), called("made_up_by_somebody.f"), called(instance={"work": 1}), called(given=[]),
        called(given=["a", "b"]), called(given=[{"unit": 1}]), called(given=[5]), called(named={"unit": "x"}), b"[]", b"5", b"{", b"",
        b"\x80\x04\x95", b"[" * 100_000,
    ],
)  # fmt: skip
def test_not_ours(nowhere: Redis, data: bytes, module: Callable[[], bool]) -> None:
    assert not rq_worker._is_ours(stored(nowhere, data))
    assert not module()


@pytest.mark.parametrize("moment", ["success", "failure", "stopped"])
def test_nothing_is_called_after_a_job(nowhere: Redis, moment: str, module: Callable[[], bool]) -> None:
    """Ours to look at, but for what RQ would import and call when it is over."""
    assert not rq_worker._is_ours(stored(nowhere, called(), **{f"{moment}_callback_name": "made_up_by_somebody.f"}))
    assert not module()


def test_the_worker_asks(queues: JobQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way, over Redis: the refused job is gone and its callback was not called."""
    import threading

    seen: list[str] = []
    monkeypatch.setattr(rq_worker, "work", seen.append)
    (queue,) = queues.named(["ingest"])
    queue.enqueue(FUNCTION, "summary:1:1", on_success=Callback("builtins.print"), job_id="hostile")
    queue.enqueue(FUNCTION, "summary:1:2", job_id="ours")
    rq_worker.UnitWorker([queue], threading.Event()).work(burst=True, logging_level="WARNING")
    assert seen == ["summary:1:2"]
    assert not queue.fetch_job("hostile")
