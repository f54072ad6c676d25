"""Scheduling dreams over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.filters import equals
from memservice.domain.records import Task
from memservice.services.tasks import kinds
from memservice.settings import load_settings
from memservice.worker.runner import run

if TYPE_CHECKING:
    from api.conftest import Api


def tasks(api: Api) -> list[Task]:
    with api.runtime.storage.read() as tx:
        workspace = tx.workspaces.by_slug(api.workspace)
        assert workspace is not None
        return tx.rows.page(Task, equals(kind=kinds.DREAM, workspace_key=workspace.key))


def dream(api: Api, **body: Any) -> Any:
    return api.post("/schedule_dream", {"dream_type": "omni", **body})


class TestSchedule:
    def test_answers_204_without_a_body(self, api: Api) -> None:
        api.peer("alice")
        answer = dream(api, observer="alice")
        assert (answer.status_code, answer.data) == (204, b"")
        assert "Content-Type" not in answer.headers
        (task,) = tasks(api)
        assert (task.payload["type"], task.payload["trigger"], task.payload["session"]) == (
            "omni",
            "manual",
            None,
        )

    def test_shows_in_the_queue_without_a_session(self, api: Api) -> None:
        api.peer("alice")
        api.session("s")
        dream(api, observer="alice", session_id="s")
        status = api.ok(api.get("/queue/status", query_string={"observer_id": "alice"}))
        assert (status["total_work_units"], status["pending_work_units"], status["sessions"]) == (
            1,
            1,
            None,
        )

    def test_the_same_one_is_stored_once(self, api: Api) -> None:
        api.peer("alice")
        for body in (
            {},
            {"observed": "alice"},
            {"observed": None, "session_id": None},
            {"dream_type": "card_refresh"},
        ):
            assert dream(api, observer="alice", **body).status_code == 204
        assert [task.payload["type"] for task in tasks(api)] == ["omni", "card_refresh"]

    def test_consolidates(self, api: Api) -> None:
        api.peer("alice")
        api.conclude("alice", "alice", "I live in Rome.", "I like tea.", "I moved to Berlin.")
        rows = api.ok(api.post("/conclusions/list", {}, query_string={"reverse": "true"}))["items"]
        assert len(rows) == 3
        dream(api, observer="alice")
        (task,) = tasks(api)
        run(api.runtime, task.unit)
        left = api.ok(api.post("/conclusions/list", {}))
        assert sorted(row["content"] for row in left["items"]) == [
            "I like tea.",
            "I live in Rome.",
            "I moved to Berlin.",
        ]
        assert left["total"] == 3
        card = api.ok(api.get("/peers/alice/card"))["peer_card"]
        assert any("Berlin" in line for line in card)

    def test_a_dream_about_an_unknown_peer_does_nothing(self, api: Api) -> None:
        """Clients name peers before the service has heard of them."""
        api.missing(dream(api, observer="alice"), api.workspace)
        api.peer("alice")
        for body in ({"observer": "nobody"}, {"observed": "nobody"}, {"session_id": "nowhere"}):
            api.ok(dream(api, **({"observer": "alice"} | body)), 204)
        assert tasks(api) == []
        assert api.ids("/peers/list") == ["alice"]

    def test_a_scope_observes_and_is_not_observed(self, api: Api) -> None:
        api.peer("alice")
        api.ok(api.post("/scopes", {"id": "work"}), 201)
        assert dream(api, observer="scope.work", observed="alice").status_code == 204
        api.refused(dream(api, observer="alice", observed="scope.work"), ["body", "observed"])
        api.refused(dream(api, observer="alice", observed="scope.none"), ["body", "observed"])
        api.refused(dream(api, observer="scope.work"), ["body", "observed"])

    @pytest.mark.parametrize(
        ("body", "loc"),
        [
            ({}, "observer"),
            ({"observer": None}, "observer"),
            ({"observer": 1}, "observer"),
            ({"observer": "a", "dream_type": "nap"}, "dream_type"),
            ({"observer": "a", "dream_type": None}, "dream_type"),
            ({"observer": "a", "rebuild": "maybe"}, "rebuild"),
            ({"observer": "a", "session_id": ["s"]}, "session_id"),
            ({"observer": "a\0"}, "observer"),
        ],
    )
    def test_malformed_bodies_are_refused(self, api: Api, body: dict[str, Any], loc: str) -> None:
        api.refused(dream(api, **body), ["body", loc])

    def test_a_body_is_needed(self, api: Api) -> None:
        api.refused(api.post("/schedule_dream"))


def test_scheduling_is_refused_if_dreams_are_switched_off(tmp_path: Path) -> None:
    settings = load_settings(
        environ={},
        cwd=tmp_path,
        overrides={"DB_CONNECTION_URI": "memory://", "DREAM_ENABLED": "false"},
    )
    runtime = open_runtime(settings, "api")
    runtime.storage.migrate()
    client = create_app(runtime=runtime).test_client()
    assert client.post("/v3/workspaces/w/peers", json={"id": "alice"}).status_code == 201
    answer = client.post(
        "/v3/workspaces/w/schedule_dream", json={"observer": "alice", "dream_type": "omni"}
    )
    assert (answer.status_code, answer.get_json()) == (
        400,
        {"detail": "Dreams are not enabled in the system configuration"},
    )
    runtime.close()
