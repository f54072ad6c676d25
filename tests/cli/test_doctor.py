"""`memservice doctor` and `/health/ready`: each part, well and not, and what is said then."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from cli.conftest import Run
from e2e.server import serving
from memservice.app import create_app
from memservice.domain.errors import Unavailable
from memservice.domain.filters import where
from memservice.domain.records import FAILED, Task
from memservice.pipeline import doctor, presence
from memservice.pipeline.doctor import BROKEN, DEGRADED, OK, Check
from memservice.services import conclusions, messages
from memservice.services.conclusions import ConclusionDraft
from pipeline.conftest import Start
from pipeline.conftest import start as start
from pipeline.place import WHO, Place


@pytest.fixture
def place(start: Start) -> Place:
    return start()


def check(place: Place, name: str) -> Check:
    (found,) = [one for one in doctor.look(place.rt) if one.name == name]
    return found


def has_workers(place: Place) -> bool:
    return "workers" in {one.name for one in doctor.look(place.rt)}


def test_all_is_well(place: Place) -> None:
    presence.announce(place.rt, "w1")
    place.say("s", ("alice", "I keep bees."))
    place.work()
    assert {one.state for one in doctor.look(place.rt)} == {OK}, doctor.look(place.rt)


def test_nobody_works(place: Place) -> None:
    place.say("s", ("alice", "I keep bees."))
    if has_workers(place):
        assert check(place, "workers").state == DEGRADED
        assert "start `memservice worker`" in check(place, "workers").advice
    assert check(place, "work").state == OK
    place.clock.advance(seconds=90)
    assert (check(place, "work").state, "90 s" in check(place, "work").found) == (DEGRADED, True)


def test_a_worker_that_is_silent_is_gone(place: Place) -> None:
    presence.announce(place.rt, "w1")
    with place.rt.storage.read() as view:
        assert [worker.name for worker in presence.workers(view, place.clock())] == ["w1"]
    place.clock.now += presence.GONE_AFTER + timedelta(seconds=1)
    presence.announce(place.rt, "w2")
    with place.rt.storage.read() as view:
        assert [worker.name for worker in presence.workers(view, place.clock())] == ["w2"]
    presence.leave(place.rt, "w2")
    with place.rt.storage.read() as view:
        assert presence.workers(view, place.clock()) == []


def test_workers_with_other_models_are_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_workers(place):
        pytest.skip("a storage that lives inside one process has no workers beside it")
    with monkeypatch.context() as other:
        other.setattr(place.rt, "reasoners", {**place.rt.reasoners, "derive": "llm"})
        presence.announce(place.rt, "w1")
    assert (check(place, "workers").state, "w1" in check(place, "workers").found) == (DEGRADED, True)


def test_failed_work_is_told(place: Place) -> None:
    messages.create(place.rt, WHO, "w", "s", [messages.Draft("I keep bees.", "alice")])
    place.rt.storage.write(lambda view: view.rows.change(Task, where(kind="representation"), state=FAILED))
    assert "jobs list --state failed" in check(place, "work").advice


def test_vectors_that_cannot_be_used_are_told(place: Place) -> None:
    place.say("s", ("alice", "I keep bees."))
    conclusions.create(place.rt, WHO, "w", [ConclusionDraft("keeps bees", "alice", "alice", "s")])
    with place.rt.storage.read() as view:
        (space,) = [space for space in view.spaces.of_workspace(1) if space.kind == "conclusion"]
    place.rt.storage.write(lambda view: view.spaces.save(replace(space, embedder="somebody-elses-1")))
    found = check(place, "embedder")
    assert (found.state, "memservice reembed" in found.advice) == (DEGRADED, True)


class TestReady:
    def test_over_http(self, place: Place) -> None:
        presence.announce(place.rt, "w1")
        client = create_app(runtime=place.rt).test_client()
        answer = client.get("/health/ready")
        assert answer.status_code == 200
        assert answer.get_json()["status"] == "ok"
        assert {"storage", "counts", "vectors", "embedder", "work", "plugins"} <= {one["name"] for one in answer.get_json()["checks"]}
        assert all(one.keys() == {"name", "state"} for one in answer.get_json()["checks"])

    def test_503_when_the_store_is_broken(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse() -> None:
            raise Unavailable("the database is away")

        client = create_app(runtime=place.rt).test_client()
        monkeypatch.setattr(place.rt.storage, "check", refuse)
        answer = client.get("/health/ready")
        assert (answer.status_code, answer.get_json()["status"]) == (503, "failed")
        assert client.get("/health").get_json() == {"status": "ok"}, "that one never asks"


@pytest.mark.e2e
class TestCommand:
    def test_beside_a_running_service(self, memservice: Run, tmp_path: Path) -> None:
        with serving(tmp_path) as server:
            deadline = time.monotonic() + 30
            while "none: what is written" in (done := memservice("doctor")).stdout and time.monotonic() < deadline:
                time.sleep(0.2)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "degraded" not in done.stdout
            assert "ok        workers    1" in done.stdout
            with urllib.request.urlopen(f"{server.url}/health/ready", timeout=10) as answer:
                assert json.loads(answer.read())["status"] == "ok"

    def test_no_store_yet(self, memservice: Run) -> None:
        done = memservice("doctor")
        assert done.returncode == 1
        assert "FAILED    storage" in done.stdout
        assert "Create them with: memservice db upgrade" in done.stdout
        assert "DB_CONNECTION_URI" not in done.stdout, "it is not that the database cannot be found"

    def test_settings_that_are_wrong(self, memservice: Run) -> None:
        done = memservice("doctor", "--json", DB_CONNECTION_URI="nosuch://x")
        assert done.returncode == 1
        assert json.loads(done.stdout)["state"] == BROKEN

    def test_redis_that_is_away(self, memservice: Run) -> None:
        memservice("db", "upgrade")
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            found = memservice("doctor", "--json", REDIS_URL=f"redis://127.0.0.1:{nobody.getsockname()[1]}/0")
        assert found.returncode == 0, "it is only late then"
        (redis,) = [one for one in json.loads(found.stdout)["checks"] if one["name"] == "redis"]
        assert redis["state"] == DEGRADED

    def test_models_are_asked_only_on_request(self, memservice: Run, tmp_path: Path) -> None:
        memservice("db", "upgrade")
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
            assert memservice("doctor", LLM_OPENAI_BASE_URL=url).returncode == 0
            asked = memservice("doctor", "--ask-models", LLM_OPENAI_BASE_URL=url, LLM_OPENAI_API_KEY="sk-do-not-show")
        assert asked.returncode == 1
        assert "FAILED    models     openai/" in asked.stdout
        assert "sk-do-not-show" not in asked.stdout + asked.stderr
        assert "none is configured" in memservice("doctor", "--ask-models").stdout
