"""`memservice doctor` and `/health/ready`: each part, well and not, and what is said then."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from integration.cli.conftest import Run
from memservice.app import create_app
from memservice.domain.errors import IndexUnavailable, Unavailable
from memservice.domain.filters import equals
from memservice.domain.records import FAILED, Space, Task
from memservice.operations import doctor
from memservice.operations.doctor import BROKEN, DEGRADED, OK, Check
from memservice.services import conclusions, messages
from memservice.services.conclusions import ConclusionDraft
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Finding, Transaction
from memservice.worker import heartbeats
from services.pipeline.conftest import OpenPipeline
from services.pipeline.conftest import open_pipeline as open_pipeline
from services.pipeline.conftest import store_uri as store_uri
from support.clients.server import serving
from support.pipeline.pipeline import PRINCIPAL, Pipeline

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


@pytest.fixture
def pipeline(open_pipeline: OpenPipeline) -> Pipeline:
    return open_pipeline()


def check(pipeline: Pipeline, name: str) -> Check:
    (finding,) = [one for one in doctor.look(pipeline.rt) if one.name == name]
    return finding


def has_workers(pipeline: Pipeline) -> bool:
    return "workers" in {one.name for one in doctor.look(pipeline.rt)}


def test_a_working_installation_has_no_findings(pipeline: Pipeline) -> None:
    heartbeats.register(pipeline.rt, "w1")
    pipeline.say("s", ("alice", "I keep bees."))
    pipeline.work()
    assert {one.state for one in doctor.look(pipeline.rt)} == {OK}, doctor.look(pipeline.rt)


@pytest.mark.every_storage("sqlite")
def test_pending_work_without_a_worker_is_reported(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I keep bees."))
    if has_workers(pipeline):
        assert check(pipeline, "workers").state == DEGRADED
        assert "start `memservice worker`" in check(pipeline, "workers").advice
    assert check(pipeline, "work").state == OK
    pipeline.clock.advance(seconds=90)
    assert (check(pipeline, "work").state, "90 s" in check(pipeline, "work").found) == (
        DEGRADED,
        True,
    )


def test_a_worker_without_heartbeats_is_not_listed(pipeline: Pipeline) -> None:
    heartbeats.register(pipeline.rt, "w1")
    with pipeline.rt.storage.read() as tx:
        assert [worker.name for worker in heartbeats.workers(tx, pipeline.clock())] == ["w1"]
    pipeline.clock.now += heartbeats.HEARTBEAT_TIMEOUT + timedelta(seconds=1)
    heartbeats.register(pipeline.rt, "w2")
    with pipeline.rt.storage.read() as tx:
        assert [worker.name for worker in heartbeats.workers(tx, pipeline.clock())] == ["w2"]
    heartbeats.unregister(pipeline.rt, "w2")
    with pipeline.rt.storage.read() as tx:
        assert heartbeats.workers(tx, pipeline.clock()) == []


@pytest.mark.every_storage("sqlite")
def test_workers_with_different_models_are_reported(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_workers(pipeline):
        pytest.skip("a storage that lives inside one process has no workers beside it")
    with monkeypatch.context() as other:
        other.setattr(pipeline.rt, "reasoners", {**pipeline.rt.reasoners, "derive": "llm"})
        heartbeats.register(pipeline.rt, "w1")
    assert (check(pipeline, "workers").state, "w1" in check(pipeline, "workers").found) == (
        DEGRADED,
        True,
    )


def test_failed_tasks_are_reported(pipeline: Pipeline) -> None:
    messages.create(pipeline.rt, PRINCIPAL, "w", "s", [messages.Draft("I keep bees.", "alice")])
    pipeline.rt.storage.write(
        lambda tx: tx.rows.change(Task, equals(kind="representation"), state=FAILED)
    )
    assert "jobs list --state failed" in check(pipeline, "work").advice


def test_unusable_vectors_are_reported(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I keep bees."))
    conclusions.create(
        pipeline.rt, PRINCIPAL, "w", [ConclusionDraft("keeps bees", "alice", "alice", "s")]
    )
    with pipeline.rt.storage.read() as tx:
        (space,) = [space for space in tx.spaces.of_workspace(1) if space.kind == "conclusion"]
    pipeline.rt.storage.write(
        lambda tx: tx.spaces.save(replace(space, embedder="somebody-elses-1"))
    )
    finding = check(pipeline, "embedder")
    assert (finding.state, "memservice reembed" in finding.advice) == (DEGRADED, True)


@dataclass
class Away:
    """An index outside the storage with scripted contents, or unreachable."""

    number: int | None
    dimension: int | None = None
    capabilities: frozenset[Capability] = frozenset()

    def _ask(self) -> int:
        if self.number is None:
            raise IndexUnavailable("the vector index at http://secret-host:6333 cannot be reached")
        return self.number

    def count(self, tx: Transaction | None, space: Space) -> int:
        return self._ask()

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        return list(range(1, self._ask() + 1))[:limit]

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        return {key: np.ones(self.dimension or space.dimension, np.float32) for key in keys}


class TestVectors:
    """An index outside the storage."""

    def test_an_unreachable_index_is_reported_before_the_first_vector(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pipeline.rt, "vectors", Away(None))
        finding = check(pipeline, "vectors")
        assert (finding.state, "secret-host" in finding.found, "secret-host" in finding.advice) == (
            DEGRADED,
            True,
            False,
        )
        assert (
            "secret-host"
            not in create_app(runtime=pipeline.rt).test_client().get("/health/ready").text
        )

    def test_the_index_is_checked_even_if_the_storage_has_failed(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse() -> None:
            raise Unavailable("the database is away")

        monkeypatch.setattr(pipeline.rt, "vectors", Away(None))
        monkeypatch.setattr(pipeline.rt.storage, "check", refuse)
        states = {one.name: one.state for one in doctor.look(pipeline.rt)}
        assert states == {"storage": BROKEN, "vectors": DEGRADED, "embedder": OK, "plugins": OK}

    def test_a_slow_index_is_not_waited_for(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        index = Away(0)
        monkeypatch.setattr(pipeline.rt, "vectors", index)
        answers = threading.Event()
        waited: list[bool] = []

        def count(*_: object) -> int:
            waited.append(answers.wait(30))
            return 1

        monkeypatch.setattr(Away, "count", count)
        assert check(pipeline, "vectors").state == DEGRADED
        assert waited == []
        answers.set()

    def test_an_emptied_index_or_another_dimension_is_reported(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pipeline.say("s", ("alice", "I keep bees."))
        conclusions.create(
            pipeline.rt, PRINCIPAL, "w", [ConclusionDraft("keeps bees", "alice", "alice", "s")]
        )
        pipeline.work()
        monkeypatch.setattr(pipeline.rt, "vectors", Away(0))
        finding = check(pipeline, "vectors")
        assert (finding.state, "a running worker fills it" in finding.advice) == (DEGRADED, True)
        monkeypatch.setattr(pipeline.rt, "vectors", Away(9))
        assert check(pipeline, "vectors").state == OK
        monkeypatch.setattr(pipeline.rt, "vectors", Away(9, dimension=3))
        assert (
            check(pipeline, "vectors").state,
            "dimension 3" in check(pipeline, "vectors").found,
        ) == (
            DEGRADED,
            True,
        )


def test_a_space_of_another_dimension_than_the_embedders_is_reported(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I keep bees."))
    conclusions.create(
        pipeline.rt, PRINCIPAL, "w", [ConclusionDraft("keeps bees", "alice", "alice")]
    )
    with pipeline.rt.storage.read() as tx:
        (space,) = [space for space in tx.spaces.of_workspace(1) if space.kind == "conclusion"]
    pipeline.rt.storage.write(lambda tx: tx.spaces.save(replace(space, dimension=3)))
    assert (
        check(pipeline, "vectors").state,
        "dimension 3" in check(pipeline, "vectors").found,
    ) == (
        DEGRADED,
        True,
    )


class TestReady:
    def test_checks_are_served_over_http(self, pipeline: Pipeline) -> None:
        heartbeats.register(pipeline.rt, "w1")
        client = create_app(runtime=pipeline.rt).test_client()
        answer = client.get("/health/ready")
        assert answer.status_code == 200
        assert answer.get_json()["status"] == "ok"
        assert {"storage", "counts", "vectors", "embedder", "work", "plugins"} <= {
            one["name"] for one in answer.get_json()["checks"]
        }
        assert all(one.keys() == {"name", "state", "advice"} for one in answer.get_json()["checks"])

    def test_503_if_writes_fail(self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*args: object, **how: object) -> list[Finding]:
            return [Finding("failed", "/var/lib/x.db is full", "check that its disk is not full")]

        monkeypatch.setattr(pipeline.rt.storage, "examine", refuse)
        answer = create_app(runtime=pipeline.rt).test_client().get("/health/ready")
        (storage,) = [one for one in answer.get_json()["checks"] if one["name"] == "storage"]
        assert (answer.status_code, storage) == (
            503,
            {"name": "storage", "state": "failed", "advice": "check that its disk is not full"},
        )
        assert "/var/lib" not in answer.text

    def test_readiness_reads_little_and_the_command_everything(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        depths: list[bool] = []

        def examine(*, thorough: bool = False) -> list[Finding]:
            depths.append(thorough)
            return []

        monkeypatch.setattr(pipeline.rt.storage, "examine", examine)
        create_app(runtime=pipeline.rt).test_client().get("/health/ready")
        doctor.look(pipeline.rt, thorough=True)
        assert depths == [False, True]

    def test_503_if_the_store_is_damaged(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse() -> None:
            raise Unavailable("the database is away")

        client = create_app(runtime=pipeline.rt).test_client()
        monkeypatch.setattr(pipeline.rt.storage, "check", refuse)
        answer = client.get("/health/ready")
        assert (answer.status_code, answer.get_json()["status"]) == (503, "failed")
        assert client.get("/health").get_json() == {"status": "ok"}, "that one never asks"


@pytest.mark.e2e
class TestCommand:
    def test_works_beside_a_running_service(self, memservice: Run, tmp_path: Path) -> None:
        with serving(tmp_path) as server:
            deadline = time.monotonic() + 30
            while (
                "workers    none" in (result := memservice("doctor")).stdout
                and time.monotonic() < deadline
            ):
                time.sleep(0.2)
            assert result.returncode == 0, result.stdout + result.stderr
            assert "degraded" not in result.stdout
            assert "ok        workers    1" in result.stdout
            with urllib.request.urlopen(f"{server.url}/health/ready", timeout=10) as answer:
                assert json.loads(answer.read())["status"] == "ok"

    def test_a_missing_store_is_reported(self, memservice: Run, tmp_path: Path) -> None:
        result = memservice("doctor")
        assert result.returncode == 1
        assert "FAILED    storage" in result.stdout
        assert (
            f"There is no file {tmp_path / 'memservice.db'}: check DB_CONNECTION_URI"
            in result.stdout
        )
        assert "memservice db upgrade" in result.stdout
        assert list(tmp_path.iterdir()) == []

    def test_wrong_settings_are_reported(self, memservice: Run) -> None:
        result = memservice("doctor", "--json", DB_CONNECTION_URI="nosuch://x")
        assert result.returncode == 1
        assert json.loads(result.stdout)["state"] == BROKEN

    def test_an_unreachable_redis_is_reported(self, memservice: Run) -> None:
        memservice("db", "upgrade")
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            result = memservice(
                "doctor", "--json", REDIS_URL=f"redis://127.0.0.1:{nobody.getsockname()[1]}/0"
            )
        assert result.returncode == 0, "it is only late then"
        (redis,) = [one for one in json.loads(result.stdout)["checks"] if one["name"] == "redis"]
        assert redis["state"] == DEGRADED

    @pytest.mark.parametrize("kind", ["qdrant", "redis"])
    def test_an_unreachable_index_is_reported_for_an_empty_store(
        self, memservice: Run, kind: str
    ) -> None:
        memservice("db", "upgrade")
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            scheme = {"qdrant": "http", "redis": "redis"}[kind]
            url = f"{scheme}://127.0.0.1:{nobody.getsockname()[1]}"
            result = memservice("doctor", "--json", VECTOR_STORE_TYPE=kind, VECTOR_STORE_URL=url)
        assert result.returncode == 0, "search goes on from text"
        assert {one["name"]: one["state"] for one in json.loads(result.stdout)["checks"]}[
            "vectors"
        ] == DEGRADED

    def test_an_unreachable_postgres_does_not_hide_other_findings(self, memservice: Run) -> None:
        uri = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"
        result = memservice(
            "doctor", "--json", DB_CONNECTION_URI=uri, REDIS_URL="redis://127.0.0.1:1/0"
        )
        assert result.returncode == 1
        checks = {one["name"]: one for one in json.loads(result.stdout)["checks"]}
        assert {name: one["state"] for name, one in checks.items()} == {
            "storage": BROKEN,
            "embedder": OK,
            "redis": DEGRADED,
            "plugins": OK,
        }
        assert "cannot be reached" in checks["storage"]["found"]

    def test_an_invalid_redis_url_is_reported(self, memservice: Run) -> None:
        memservice("db", "upgrade")
        result = memservice("doctor", "--json", REDIS_URL="rediss//nonsense")
        (redis,) = [one for one in json.loads(result.stdout)["checks"] if one["name"] == "redis"]
        assert (result.returncode, redis["state"]) == (1, BROKEN)
        assert "REDIS_URL" in redis["advice"]

    def test_a_newer_schema_is_reported(self, memservice: Run, tmp_path: Path) -> None:
        memservice("db", "upgrade")
        with closing(sqlite3.connect(tmp_path / "memservice.db")) as database:
            database.execute("UPDATE alembic_version SET version_num = '9999'")
            database.commit()
        result = memservice("doctor")
        assert result.returncode == 1
        assert "FAILED    storage" in result.stdout
        assert "Upgrade memservice" in result.stdout
        assert "plugins" in result.stdout

    # By default, test_mistakes.py reports one.
    @pytest.mark.heavy
    def test_a_missing_driver_is_reported(self, memservice: Run, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text(
            "import sys\n\nsys.modules['psycopg'] = None\n", encoding="utf-8"
        )
        result = memservice(
            "doctor",
            PYTHONPATH=str(tmp_path),
            DB_CONNECTION_URI="postgresql+psycopg://nobody@127.0.0.1:1/nothing",
        )
        assert result.returncode == 1
        assert "FAILED" in result.stdout
        assert "pip install 'memservice[postgres]'" in result.stdout
        assert "plugins" in result.stdout

    def test_models_are_called_only_on_request(self, memservice: Run, tmp_path: Path) -> None:
        memservice("db", "upgrade")
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
            assert memservice("doctor", LLM_OPENAI_BASE_URL=url).returncode == 0
            result = memservice(
                "doctor",
                "--ask-models",
                LLM_OPENAI_BASE_URL=url,
                LLM_OPENAI_API_KEY="sk-do-not-show",
            )
        assert result.returncode == 1
        assert "FAILED    models     openai/" in result.stdout
        assert "sk-do-not-show" not in result.stdout + result.stderr
        assert "none is configured" in memservice("doctor", "--ask-models").stdout
