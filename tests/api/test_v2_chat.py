"""Chat, background work and webhooks of the second generation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.api.answering_reasoner import AnsweringReasoner, talking
from support.api.v2_client import V2Client
from support.api.v2_client import v2 as v2

pytestmark = pytest.mark.every_index


class TestChat:
    @pytest.fixture
    def api_and_reasoner(self, tmp_path: Path) -> Iterator[tuple[V2Client, AnsweringReasoner]]:
        with talking(tmp_path) as (api, reasoner):
            second = V2Client(api.app, api.runtime, "w")
            second.peer("a")
            yield second, reasoner

    def test_the_answer_is_a_text(
        self, api_and_reasoner: tuple[V2Client, AnsweringReasoner]
    ) -> None:
        second, reasoner = api_and_reasoner
        assert second.ok(second.post("/peers/a/chat", {"query": "Really?"})) == {"content": "Yes."}
        assert reasoner.last.level == "low"
        reasoner.say = lambda request: [""]
        assert second.ok(second.post("/peers/a/chat", {"query": "Really?"})) == {"content": "None"}

    @pytest.mark.slow
    @pytest.mark.parametrize("client", [None, "1.8.0", "1.11.0"])
    def test_a_stream_has_the_framing_of_this_generation(
        self, api_and_reasoner: tuple[V2Client, AnsweringReasoner], client: str | None
    ) -> None:
        second = api_and_reasoner[0] if client is None else api_and_reasoner[0].as_client(client)
        answer = second.post("/peers/a/chat", {"query": "Really?", "stream": True})
        assert answer.mimetype == "text/event-stream"
        *parts, last, rest = answer.text.split("\n\n")
        assert [json.loads(part.removeprefix("data: ")) for part in parts] == [
            {"delta": {"content": piece}, "done": False} for piece in ("Yes", ".")
        ]
        assert last == 'data: {"delta": {"content": null}, "done": true}'
        assert rest == ""

    @pytest.mark.parametrize("client", ["1.0.1", "1.1.0", None])
    def test_early_clients_send_queries_and_get_plain_text_streams(
        self, api_and_reasoner: tuple[V2Client, AnsweringReasoner], client: str | None
    ) -> None:
        second, reasoner = (
            api_and_reasoner[0] if client is None else api_and_reasoner[0].as_client(client),
            api_and_reasoner[1],
        )
        assert second.ok(second.post("/peers/a/chat", {"queries": "One?"})) == {"content": "Yes."}
        answer = second.post("/peers/a/chat", {"queries": ["One?", "Two?"], "stream": True})
        assert (answer.status_code, answer.text) == (200, "Yes.")
        assert reasoner.last.question == "One?\nTwo?"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"query": ""},
            {"query": "x" * 10_001},
            {"queries": [1]},
            {"queries": []},
            {"queries": None},
        ],
    )
    def test_invalid_questions_are_refused(
        self, api_and_reasoner: tuple[V2Client, AnsweringReasoner], body: Any
    ) -> None:
        api_and_reasoner[0].refused(
            api_and_reasoner[0].post("/peers/a/chat", body), ["body", "query"]
        )

    def test_a_question_creates_nothing(
        self, api_and_reasoner: tuple[V2Client, AnsweringReasoner]
    ) -> None:
        second = api_and_reasoner[0]
        second.missing(second.post("/peers/nobody/chat", {"query": "x"}), "nobody")
        second.missing(second.post("/peers/a/chat", {"query": "x", "target": "nobody"}), "nobody")
        second.missing(second.post("/peers/a/chat", {"query": "x", "session_id": "none"}), "none")
        assert second.ids("/peers/list") == ["a"]


class TestWork:
    @pytest.mark.parametrize("path", ["/deriver/status", "/queue/status"])
    def test_status_counts_work_units(self, v2: V2Client, path: str) -> None:
        session = v2.session("s", peers={"b": {"observe_others": True}})
        v2.say("s", ("a", "I live in Ulm."))
        status = v2.ok(v2.get(path))
        assert list(status) == [
            "total_work_units",
            "completed_work_units",
            "in_progress_work_units",
            "pending_work_units",
            "sessions",
        ]
        assert (status["total_work_units"], status["pending_work_units"]) == (1, 1)
        assert status["sessions"][session["uid"]]["session_id"] == session["uid"], (
            "by the internal id"
        )
        assert v2.ok(v2.get(path, query_string={"session_id": "s"}))["sessions"] is None
        for query, total in (
            ({"observer_id": "b"}, 1),
            ({"sender_id": "a"}, 1),
            ({"sender_id": "b"}, 0),
            ({"observer_id": "nobody"}, 0),
        ):
            assert v2.ok(v2.get(path, query_string=query))["total_work_units"] == total, query
        for query, total in (
            ({"peer_id": "a"}, 1),
            ({"peer_id": "nobody", "include_sender": "true"}, 0),
        ):
            assert v2.ok(v2.get(path, query_string=query))["total_work_units"] == total, query

    @pytest.mark.parametrize("kind", ["consolidate", "agent"])
    def test_dreams_are_triggered(self, v2: V2Client, kind: str) -> None:
        v2.peer("a")
        answer = v2.post("/trigger_dream", {"observer": "a", "dream_type": kind})
        assert (answer.status_code, answer.data) == (204, b"")
        v2.ok(v2.post("/trigger_dream", {"observer": "a", "dream_type": kind}), 204)
        assert v2.ok(v2.get("/deriver/status"))["total_work_units"] == 1, (
            "one that waits already is enough"
        )
        v2.ok(v2.post("/trigger_dream", {"observer": "nobody", "dream_type": kind}), 204)
        assert v2.ok(v2.get("/deriver/status"))["total_work_units"] == 1, (
            "of whom nobody knows there is nothing to dream"
        )
        v2.refused(
            v2.post("/trigger_dream", {"observer": "a", "dream_type": "omni"}),
            ["body", "dream_type"],
        )

    def test_dreams_are_scheduled_by_the_newest_name(self, v2: V2Client) -> None:
        v2.peer("a")
        v2.session("s")
        answer = v2.post(
            "/schedule_dream", {"observer": "a", "dream_type": "omni", "session_id": "s"}
        )
        assert (answer.status_code, answer.data) == (204, b"")


class TestWebhooks:
    URL = "https://93.184.215.14/hook"

    def test_are_registered_listed_and_deleted(self, v2: V2Client) -> None:
        v2.create()
        endpoint = v2.ok(v2.post("/webhooks", {"url": self.URL}))
        assert (endpoint["url"], endpoint["workspace_id"]) == (self.URL, v2.workspace)
        assert v2.ok(v2.post("/webhooks", {"url": self.URL}))["id"] == endpoint["id"]
        assert [item["id"] for item in v2.ok(v2.get("/webhooks"))["items"]] == [endpoint["id"]]
        answer = v2.get("/webhooks/test")
        assert (answer.status_code, answer.get_json()) == (200, None)
        answer = v2.delete(f"/webhooks/{endpoint['id']}")
        assert (answer.status_code, answer.data) == (200, b"null")
        v2.missing(v2.delete(f"/webhooks/{endpoint['id']}"), endpoint["id"], v2.workspace)

    def test_invalid_urls_are_refused(self, v2: V2Client) -> None:
        v2.missing(v2.post("/webhooks", {"url": self.URL}), v2.workspace)
        v2.create()
        for url in ("nonsense", "ftp://93.184.215.14/x", "http://127.0.0.1/x", "http://10.0.0.1/"):
            v2.refused(v2.post("/webhooks", {"url": url}), ["body", "url"])
