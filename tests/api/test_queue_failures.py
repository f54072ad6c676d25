"""Failed background work over HTTP: seen, and tried again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.plugins import load_plugins
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.pipeline.fakes import ScriptedReasoner
from support.stores.stores import sqlite_store_at

W = "/v3/workspaces/w"


class Failing:
    """An application whose reasoner fails while the test says so."""

    def __init__(self, folder: Path, backoff: str = "0") -> None:
        environ = {
            "DB_CONNECTION_URI": sqlite_store_at(folder / "f.db"),
            "REASONER": "scripted",
            "WORKER_MAX_ATTEMPTS": "2",
        }
        settings = load_settings(
            environ=environ | {"WORKER_RETRY_BACKOFF_SECONDS": backoff}, cwd=folder
        )
        self.reasoner = ScriptedReasoner()
        self.rt = open_runtime(
            settings, "api", plugins=load_plugins(settings, extra=[self.reasoner])
        )
        self.rt.storage.migrate()
        self.http: FlaskClient = create_app(runtime=self.rt).test_client()

    def say(self, session: str, text: str, workspace: str = "w") -> None:
        body = {"messages": [{"peer_id": "alice", "content": text}]}
        assert (
            self.http.post(
                f"/v3/workspaces/{workspace}/sessions/{session}/messages", json=body
            ).status_code
            == 201
        )

    def work(self, *, fails: bool) -> None:
        def no(request: object) -> None:
            raise RuntimeError("the model is away")

        self.reasoner.act = no if fails else None
        Worker(self.rt).run_until_idle(30)

    def failures(self, **query: Any) -> Any:
        answer = self.http.get(f"{W}/queue/failures", query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.json

    def retry(self, body: object = None) -> Any:
        return self.http.post(
            f"{W}/queue/failures/retry", **({} if body is None else {"json": body})
        )


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Failing]:
    client = Failing(tmp_path)
    yield client
    client.rt.close()


@pytest.mark.slow
def test_tasks_with_a_pending_retry_are_listed_on_request(tmp_path: Path) -> None:
    failing = Failing(tmp_path, backoff="60")

    def no(request: object) -> None:
        raise RuntimeError("the model is away")

    failing.say("s", "I like tea.")
    failing.reasoner.act = no
    Worker(failing.rt).run_until_idle(30)
    assert failing.failures()["items"] == []
    (failure,) = failing.failures(include="retrying")["items"]
    assert (failure["state"], failure["attempts"]) == ("pending", 1)
    assert failure["error"] == "RuntimeError: the model is away"
    assert failure["next_try_at"] is not None
    answer = failing.http.get(f"{W}/queue/failures", query_string={"include": "everything"})
    assert answer.status_code == 422
    assert answer.json is not None
    assert answer.json["detail"][0]["loc"] == ["query", "include"]
    failing.rt.close()


@pytest.mark.slow
def test_a_failure_names_its_rows_and_its_error(failing: Failing) -> None:
    failing.say("s", "I like tea.")
    failing.work(fails=True)
    page = failing.failures()
    assert {name: page[name] for name in ("total", "page", "size", "pages")} == {
        "total": 1,
        "page": 1,
        "size": 50,
        "pages": 1,
    }
    (failure,) = page["items"]
    about = ("task_type", "session_id", "observer_id", "observed_id", "attempts", "error")
    assert [failure[name] for name in about] == [
        "representation",
        "s",
        None,
        "alice",
        2,
        "RuntimeError: the model is away",
    ]
    assert failure.keys() == {*about, "id", "created_at", "failed_at", "state", "next_try_at"}
    assert (failure["state"], failure["next_try_at"]) == ("failed", None)
    assert "tea" not in str(page), "nothing of what was said"
    status = failing.http.get(f"{W}/queue/status").json
    assert status is not None
    assert (
        status["total_work_units"],
        status["completed_work_units"],
        status["pending_work_units"],
    ) == (1, 1, 0)


@pytest.mark.slow
def test_the_latest_failure_comes_first_and_other_workspaces_are_apart(failing: Failing) -> None:
    for session in ("s", "t"):
        failing.say(session, "I like tea.")
        failing.work(fails=True)
    failing.say("u", "I own a boat.", workspace="other")
    failing.work(fails=True)
    assert [item["session_id"] for item in failing.failures()["items"]] == ["t", "s"]
    assert [item["session_id"] for item in failing.failures(size=1, page=2)["items"]] == ["s"]
    assert [item["session_id"] for item in failing.failures(reverse="true")["items"]] == ["s", "t"]


@pytest.mark.slow
def test_all_or_selected_failures_are_retried_with_all_attempts(failing: Failing) -> None:
    for session in ("s", "t", "u"):
        failing.say(session, f"I was in {session}.")
    failing.work(fails=True)
    ids = {item["session_id"]: item["id"] for item in failing.failures()["items"]}
    assert failing.retry({"ids": [ids["s"]]}).json == {"retried": 1}
    assert {item["session_id"] for item in failing.failures()["items"]} == {"t", "u"}
    failing.work(fails=True)
    assert {item["session_id"]: item["attempts"] for item in failing.failures()["items"]} == {
        "s": 2,
        "t": 2,
        "u": 2,
    }
    assert failing.retry().json == {"retried": 3}
    failing.work(fails=False)
    assert failing.failures()["total"] == 0
    with failing.rt.storage.read() as tx:
        from memservice.domain.records import Conclusion

        assert sorted(row.content for row in tx.rows.page(Conclusion)) == [
            "I was in s.",
            "I was in t.",
            "I was in u.",
        ]


@pytest.mark.slow
def test_an_unknown_id_is_an_error_and_nothing_is_retried(failing: Failing) -> None:
    failing.say("s", "I like tea.")
    failing.work(fails=True)
    (failure,) = failing.failures()["items"]
    answer = failing.retry({"ids": [failure["id"], "nobody"]})
    assert (answer.status_code, answer.json) == (
        404,
        {"detail": "Task nobody not found among the failures of workspace w"},
    )
    assert failing.failures()["total"] == 1
    assert failing.retry({"ids": []}).json == {"retried": 0}
    assert failing.retry({"ids": "all"}).status_code == 422


def test_an_unknown_workspace_has_no_failures(failing: Failing) -> None:
    assert failing.failures()["items"] == []
    assert failing.retry().json == {"retried": 0}
    assert failing.retry({"ids": ["x"]}).status_code == 404
