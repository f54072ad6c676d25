"""Representations, contexts, summaries and the queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from memservice.domain.records import LONG, SHORT, Summary
from memservice.services.retrieval import context
from support.api.answering_reasoner import talking

if TYPE_CHECKING:
    from pathlib import Path

    from api.conftest import Api
    from memservice.spi.storage import Transaction

pytestmark = [pytest.mark.every_storage("sqlite"), pytest.mark.every_index]

MESSAGE = [
    "id",
    "content",
    "peer_id",
    "session_id",
    "metadata",
    "created_at",
    "workspace_id",
    "token_count",
]


def summarize(
    api: Api, session: str, kind: str, content: str, message: dict[str, Any], tokens: int
) -> None:
    """Store a summary up to this message, as the background work does."""

    def change(tx: Transaction) -> None:
        row = tx.workspaces.locate(api.workspace, session_id=session).session
        assert row is not None
        covered = tx.messages.by_uid(row.key, message["id"])
        assert covered is not None
        tx.summaries.save(
            Summary(
                workspace_key=row.workspace_key,
                session_key=row.key,
                kind=kind,
                content=content,
                message_key=covered.key,
                message_uid=covered.uid,
                tokens=tokens,
                reasoner="test",
                created_at=datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC),
            )
        )

    api.runtime.storage.write(change)


class TestRepresentation:
    def test_is_markdown(self, api: Api) -> None:
        api.peer("alice")
        api.conclude("alice", "alice", "likes tea", "plays chess")
        text = api.ok(api.post("/peers/alice/representation", {}))["representation"]
        lines = text.split("\n")
        assert lines[:2] == ["## Explicit Observations", ""]
        assert [line.partition("] ")[2] for line in lines[2:4]] == ["likes tea", "plays chess"]
        datetime.strptime(lines[2].partition("]")[0], "[%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)

    def test_of_unknown_rows_is_empty(self, api: Api) -> None:
        assert api.ok(api.post("/peers/alice/representation", {})) == {"representation": ""}
        api.peer("alice")
        api.conclude("alice", "alice", "likes tea")
        assert (
            api.ok(api.post("/peers/alice/representation", {"target": "nobody"}))["representation"]
            == ""
        )
        assert (
            api.ok(api.post("/peers/alice/representation", {"session_id": "none"}))[
                "representation"
            ]
            == ""
        )

    def test_of_another_peer(self, api: Api) -> None:
        api.peer("alice")
        api.peer("bob")
        api.conclude("alice", "bob", "owns a boat")
        api.conclude("bob", "bob", "owns a bike")
        text = api.ok(api.post("/peers/alice/representation", {"target": "bob"}))["representation"]
        assert "owns a boat" in text
        assert "owns a bike" not in text

    def test_defaults_to_25(self, api: Api) -> None:
        api.peer("alice")
        api.conclude("alice", "alice", *[f"fact number {number}" for number in range(40)])

        def count(**body: Any) -> int:
            return int(
                api.ok(api.post("/peers/alice/representation", body))["representation"].count(
                    "fact number"
                )
            )

        assert count() == 25
        assert count(max_conclusions=None) == 40
        assert count(max_conclusions=3) == 3
        context = api.ok(api.get("/peers/alice/context"))
        assert context["representation"].count("fact number") == 40

    def test_a_body_is_required(self, api: Api) -> None:
        api.refused(api.post("/peers/alice/representation"), ["body"])
        api.refused(api.post("/peers/alice/representation", None), ["body"])

    def test_sessions_restrict_it(self, api: Api) -> None:
        api.peer("alice")
        api.session("s")
        api.conclude("alice", "alice", "said in s", session="s")
        api.conclude("alice", "alice", "said nowhere")
        for body in (
            {"session_id": "s"},
            {"filters": {"session_id": "s"}},
            {"filters": {"session_id": {"in": ["s", "other"]}}},
        ):
            text = api.ok(api.post("/peers/alice/representation", body))["representation"]
            assert "said in s" in text
            assert "said nowhere" not in text
        assert (
            api.ok(api.post("/peers/alice/representation", {"filters": {"session_id": []}}))[
                "representation"
            ]
            == ""
        )

    BAD: tuple[tuple[dict[str, Any], list[str | int] | None], ...] = (
        ({"max_conclusions": 0}, ["body", "max_conclusions"]),
        ({"max_conclusions": 101}, ["body", "max_conclusions"]),
        ({"search_top_k": 0}, ["body", "search_top_k"]),
        ({"search_max_distance": 1.01}, ["body", "search_max_distance"]),
        ({"scope": []}, ["body", "scope"]),
        ({"scope": [f"s{number}" for number in range(101)]}, ["body", "scope"]),
        ({"scope": [1]}, ["body", "scope", 0]),
        ({"scope": 3}, ["body", "scope"]),
        ({"scope": "x", "session_id": "s"}, None),
        ({"scope": "x", "filters": {"session_id": "s"}}, None),
        ({"filters": {"peer_id": "x"}}, None),
        ({"filters": {"session_id": "*"}}, None),
        ({"filters": {"session_id": "s"}, "session_id": "t"}, None),
        ({"filters": {"session_id": [f"s{number}" for number in range(1001)]}}, None),
    )

    def test_invalid_bodies_are_refused(self, api: Api, subtests: pytest.Subtests) -> None:
        api.peer("alice")
        for body, loc in self.BAD:
            with subtests.test(body=body):
                api.refused(api.post("/peers/alice/representation", body), *([loc] if loc else []))

    def test_of_a_scope_uses_its_conclusions_only(self, api: Api) -> None:
        api.session("s", scopes=["mine"], peers={"alice": {}})
        api.conclude("scope.mine", "alice", "seen by the scope", session="s")
        api.conclude("alice", "alice", "own in s", session="s")
        api.conclude("alice", "alice", "own elsewhere")
        one = api.ok(api.post("/peers/alice/representation", {"scope": "mine"}))["representation"]
        assert "seen by the scope" in one
        assert "own" not in one
        several = api.ok(api.post("/peers/alice/representation", {"scope": ["mine"]}))[
            "representation"
        ]
        assert "own in s" in several
        assert "own elsewhere" not in several
        api.missing(api.post("/peers/alice/representation", {"scope": "unknown"}), "unknown")
        api.refused(api.post("/peers/scope.mine/representation", {}))
        api.refused(api.post("/peers/alice/representation", {"target": "scope.mine"}))

    def test_a_query_puts_matches_first(self, api: Api) -> None:
        api.peer("alice")
        api.conclude(
            "alice",
            "alice",
            "owns a boat in Kiel",
            *[f"unrelated note number {number}" for number in range(30)],
        )
        text = api.ok(
            api.post(
                "/peers/alice/representation",
                {"search_query": "boat in Kiel", "max_conclusions": 3},
            )
        )["representation"]
        assert "owns a boat in Kiel" in text


class TestPeerContext:
    def test_has_four_keys(self, api: Api) -> None:
        api.missing(api.get("/peers/alice/context"), "alice")
        api.ok(api.put("/peers/alice/card", {"peer_card": ["Name: Alice"]}))
        api.conclude("alice", "alice", "likes tea")
        peer_context = api.ok(api.get("/peers/alice/context"))
        assert list(peer_context) == ["peer_id", "target_id", "representation", "peer_card"]
        assert peer_context["peer_id"] == peer_context["target_id"] == "alice"
        assert "likes tea" in peer_context["representation"]
        assert peer_context["peer_card"] == ["Name: Alice"]

    def test_about_another_peer(self, api: Api) -> None:
        api.ok(api.put("/peers/alice/card?target=bob", {"peer_card": ["bob is tall"]}))
        peer_context = api.ok(api.get("/peers/alice/context?target=bob"))
        assert peer_context == {
            "peer_id": "alice",
            "target_id": "bob",
            "representation": "",
            "peer_card": ["bob is tall"],
        }

    @pytest.mark.parametrize(
        ("query", "name"),
        [
            ("search_top_k=0", "search_top_k"),
            ("search_max_distance=2", "search_max_distance"),
            ("max_conclusions=x", "max_conclusions"),
            ("include_most_frequent=maybe", "include_most_frequent"),
            ("search_max_distance=nan", "search_max_distance"),
        ],
    )
    def test_invalid_queries_are_refused(self, api: Api, query: str, name: str) -> None:
        api.refused(api.get(f"/peers/alice/context?{query}"), ["query", name])


class TestSessionContext:
    def test_of_an_unknown_session_is_an_empty_shell(self, api: Api) -> None:
        session_context = api.ok(api.get("/sessions/s/context"))
        assert session_context == {
            "id": "s",
            "messages": [],
            "summary": None,
            "peer_representation": None,
            "peer_card": None,
        }
        assert list(session_context) == [
            "id",
            "messages",
            "summary",
            "peer_representation",
            "peer_card",
        ]

    def test_has_the_newest_messages_that_fit_oldest_first(self, api: Api) -> None:
        messages = api.say("s", *[("alice", f"number {number}") for number in range(10)])
        session_context = api.ok(api.get("/sessions/s/context"))
        assert session_context["messages"] == messages
        assert [list(message) for message in session_context["messages"]] == [MESSAGE] * 10
        three = sum(message["token_count"] for message in messages[-3:])
        assert api.ok(api.get(f"/sessions/s/context?tokens={three}"))["messages"] == messages[-3:]
        assert api.ok(api.get("/sessions/s/context?tokens=0"))["messages"] == []
        assert api.ok(api.get("/sessions/s/context?tokens=-5"))["messages"] == []

    def test_summary_comes_first_and_its_last_message_is_repeated(self, api: Api) -> None:
        messages = api.say("s", *[("alice", f"number {number}") for number in range(10)])
        summarize(api, "s", SHORT, "short text", messages[6], 5)
        session_context = api.ok(api.get("/sessions/s/context"))
        assert session_context["summary"] == {
            "content": "short text",
            "message_id": messages[6]["id"],
            "summary_type": "honcho_chat_summary_short",
            "created_at": "2026-01-02T03:04:05Z",
            "token_count": 5,
        }
        assert list(session_context["summary"]) == [
            "content",
            "message_id",
            "summary_type",
            "created_at",
            "token_count",
        ]
        assert session_context["messages"] == messages[6:]
        without = api.ok(api.get("/sessions/s/context?summary=false"))
        assert without["summary"] is None
        assert without["messages"] == messages

    def test_uses_the_long_summary_if_it_fits_into_40_percent(self, api: Api) -> None:
        messages = api.say("s", *[("alice", f"number {number}") for number in range(10)])
        summarize(api, "s", SHORT, "short text", messages[8], 5)
        summarize(api, "s", LONG, "long text", messages[4], 50)

        def kind(tokens: int) -> str | None:
            summary = api.ok(api.get(f"/sessions/s/context?tokens={tokens}"))["summary"]
            return None if summary is None else summary["content"]

        assert kind(125) == "long text"
        assert kind(124) == "short text"
        assert kind(13) == "short text"
        assert kind(12) is None

    def test_with_a_target(self, api: Api) -> None:
        api.say("s", ("alice", "hello"), ("bob", "hi"))
        api.conclude("bob", "bob", "owns a boat")
        api.ok(api.put("/peers/bob/card", {"peer_card": ["Name: Bob"]}))
        session_context = api.ok(api.get("/sessions/s/context?peer_target=bob"))
        assert "owns a boat" in session_context["peer_representation"]
        assert session_context["peer_card"] == ["Name: Bob"]
        assert len(session_context["messages"]) == 2
        from_alice = api.ok(api.get("/sessions/s/context?peer_target=bob&peer_perspective=alice"))
        assert from_alice["peer_representation"] == ""
        assert from_alice["peer_card"] is None
        empty = api.ok(api.get("/sessions/s/context?peer_target="))
        assert empty["peer_representation"] is None, "an empty target is none"
        api.missing(api.get("/sessions/s/context?peer_target=nobody"), "nobody")

    def test_an_allowlist_drops_the_card(self, api: Api) -> None:
        api.say("s", ("bob", "hi"))
        api.conclude("bob", "bob", "in s", session="s")
        api.conclude("bob", "bob", "anywhere")
        api.ok(api.put("/peers/bob/card", {"peer_card": ["Name: Bob"]}))
        for query in ("limit_to_session=true", "sessions=s", "sessions=other&sessions=s"):
            session_context = api.ok(api.get(f"/sessions/s/context?peer_target=bob&{query}"))
            assert "in s" in session_context["peer_representation"]
            assert "anywhere" not in session_context["peer_representation"]
            assert session_context["peer_card"] is None

    def test_the_length_of_an_allowlist_is_limited(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(context, "MAX_SESSIONS", 2)
        api.say("s", ("bob", "hi"))
        path = "/sessions/s/context?peer_target=bob&sessions=s&sessions=t"
        api.ok(api.get(path))
        (problem,) = api.refused(api.get(f"{path}&sessions=u"), ["query", "sessions"])
        assert "At most 2 sessions" in problem["msg"]
        assert "got 3" in problem["msg"]

    def test_scope_is_the_observer(self, api: Api) -> None:
        api.session("s", scopes=["mine"], peers={"bob": {}})
        api.conclude("scope.mine", "bob", "seen by the scope", session="s")
        session_context = api.ok(api.get("/sessions/s/context?peer_target=bob&scope=mine"))
        assert "seen by the scope" in session_context["peer_representation"]
        api.missing(api.get("/sessions/s/context?peer_target=bob&scope=unknown"), "unknown")

    BAD = (
        "peer_perspective=alice",
        "scope=x&peer_target=bob&peer_perspective=alice",
        "scope=x",
        "peer_target=bob&sessions=s&scope=x",
        "peer_target=bob&sessions=s&limit_to_session=true",
        "sessions=s",
        "peer_target=bob&sessions=other",
        "peer_target=bob&" + "&".join(f"sessions=s{number}" for number in range(1001)),
        "tokens=100001",
        "tokens=99999999999999999999999",
        "tokens=1.5",
        "tokens=x",
        "search_top_k=101",
        "search_max_distance=-1",
        "max_conclusions=0",
        "summary=maybe",
        "limit_to_session=2",
    )

    def test_invalid_queries_are_refused(self, api: Api, subtests: pytest.Subtests) -> None:
        api.say("s", ("alice", "hello"), ("bob", "hi"))
        for query in self.BAD:
            with subtests.test(query=query):
                api.refused(api.get(f"/sessions/s/context?{query}"))

    def test_a_query_without_target_is_ignored(self, api: Api) -> None:
        messages = api.say("s", ("alice", "hello"))
        assert api.ok(api.get("/sessions/s/context?search_query=anything"))["messages"] == messages


class TestSummaries:
    def test_of_an_unknown_session_are_null(self, api: Api) -> None:
        assert api.ok(api.get("/sessions/s/summaries")) == {
            "id": "s",
            "short_summary": None,
            "long_summary": None,
        }

    def test_both_kinds(self, api: Api) -> None:
        messages = api.say("s", ("alice", "hello"))
        summarize(api, "s", LONG, "long text", messages[0], 7)
        summaries = api.ok(api.get("/sessions/s/summaries"))
        assert list(summaries) == ["id", "short_summary", "long_summary"]
        assert summaries["short_summary"] is None
        assert summaries["long_summary"]["content"] == "long text"
        assert summaries["long_summary"]["summary_type"] == "honcho_chat_summary_long"
        assert summaries["long_summary"]["message_id"] == messages[0]["id"]


class TestQueue:
    def test_of_an_unknown_workspace_is_zero(self, api: Api) -> None:
        zeros = {
            "total_work_units": 0,
            "completed_work_units": 0,
            "in_progress_work_units": 0,
            "pending_work_units": 0,
        }
        assert api.ok(api.get("/queue/status")) == {**zeros, "sessions": None}

    def test_counts_items_by_session(self, api: Api) -> None:
        session = api.session("s")
        api.say("s", ("alice", "hello"), ("bob", "hi"), ("alice", "bye"))
        status = api.ok(api.get("/queue/status"))
        assert list(status) == [
            "total_work_units",
            "completed_work_units",
            "in_progress_work_units",
            "pending_work_units",
            "sessions",
        ]
        assert status["total_work_units"] == status["pending_work_units"] == 3
        assert list(status["sessions"]) == [session["uid"]]
        assert status["sessions"][session["uid"]] == {
            "session_id": session["uid"],
            "total_work_units": 3,
            "completed_work_units": 0,
            "in_progress_work_units": 0,
            "pending_work_units": 3,
        }

    def test_is_filtered_by_session_observer_and_sender(self, api: Api) -> None:
        api.say("s", ("alice", "hello"), ("bob", "hi"), ("alice", "bye"))
        api.say("t", ("alice", "hello"))

        def total(**query: str) -> int:
            return int(api.ok(api.get("/queue/status", query_string=query))["total_work_units"])

        assert total(sender_id="alice") == 3
        assert total(sender_id="bob") == 1
        assert total(observer_id="bob") == 1
        assert total(observer_id="bob", sender_id="alice") == 4, "observer and sender are ORed"
        assert total(session_id="t") == 1
        assert total(session_id="") == total(observer_id="") == 4, "empty ones are ignored"
        assert total(session_id="none") == total(sender_id="nobody") == 0
        assert api.ok(api.get("/queue/status?session_id=t"))["sessions"] is None


def test_the_default_number_of_conclusions(tmp_path: Path) -> None:
    with talking(tmp_path, DERIVER_WORKING_REPRESENTATION_MAX_OBSERVATIONS="3") as (api, _):
        api.say("s", ("alice", "Hello."))
        api.conclude(
            "alice", "alice", *[f"Alice saw whale number {number}." for number in range(9)]
        )

        def lines(answer: dict[str, Any], name: str = "representation") -> int:
            return str(answer[name]).count("whale")

        assert lines(api.ok(api.get("/peers/alice/context"))) == 3
        assert lines(api.ok(api.get("/peers/alice/context?max_conclusions=7"))) == 7
        assert (
            lines(api.ok(api.get("/sessions/s/context?peer_target=alice")), "peer_representation")
            == 3
        )
        assert lines(api.ok(api.post("/peers/alice/representation", {}))) == 9, "there it is 25"
        assert (
            lines(api.ok(api.post("/peers/alice/representation", {"max_conclusions": None}))) == 3
        )
