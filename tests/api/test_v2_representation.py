"""Cards, representations and the context of a session in the second generation."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from api.test_recall import summarize
from memservice.domain.ids import new_uid
from memservice.domain.records import DEDUCTIVE, INDUCTIVE, LONG, SHORT, Conclusion
from memservice.spi.storage import Transaction
from support.api.v2_client import V2Client
from support.api.v2_client import v2 as v2

pytestmark = pytest.mark.every_index


GLOBAL = "__global_observations__"


FORMS = [
    ("1.0.1", str),
    ("1.1.0", str),
    ("1.8.0", dict),
    ("1.11.0", str),
    ("js 1.8.0", dict),
    ("js 2.2.0", str),
]
"""Of a representation, by client."""


class TestCards:
    def test_are_set_and_read(self, v2: V2Client) -> None:
        v2.peer("a")
        assert v2.ok(v2.get("/peers/a/card")) == {"peer_card": None}
        lines = ["Name: Ann", " name:  ANN", *(f"line {number}" for number in range(50))]
        stored = v2.ok(v2.put("/peers/a/card", {"peer_card": lines}))["peer_card"]
        assert stored == [lines[0], *lines[2:41]]
        assert v2.ok(v2.get("/peers/a/card"))["peer_card"] == stored
        v2.ok(v2.put("/peers/a/card", {"peer_card": ["Likes tea"]}, query_string={"target": "b"}))
        assert v2.ok(v2.get("/peers/a/card", query_string={"target": "b"}))["peer_card"] == [
            "Likes tea"
        ]
        by_name = v2.get("//v2/peers/a/card", query_string={"workspace_id": v2.workspace})
        assert v2.ok(by_name)["peer_card"] == stored

    def test_an_unknown_peer_has_no_card_and_is_not_created(self, v2: V2Client) -> None:
        assert v2.ok(v2.get("/peers/nobody/card")) == {"peer_card": None}
        v2.missing(v2.put("/peers/nobody/card", {"peer_card": []}), "nobody", v2.workspace)
        assert v2.ids("/peers/list") == []


def derived(v2: V2Client, level: str, content: str, **internal: Any) -> None:
    """A conclusion as the worker would derive it from those of peer a about itself."""

    def change(tx: Transaction) -> None:
        workspace = tx.workspaces.by_slug(v2.workspace)
        assert workspace is not None
        (first, *_) = tx.conclusions.page(workspace.key)
        row: Conclusion = replace(
            first,
            key=0,
            uid=new_uid(),
            level=level,
            content=content,
            fingerprint=content,
            session=None,
            session_key=None,
        )
        tx.conclusions.put(
            [replace(row, internal=internal, source_ids=[first.uid], message_keys=[])]
        )

    v2.runtime.storage.write(change)


class TestRepresentation:
    @pytest.fixture
    def represented(self, v2: V2Client) -> V2Client:
        v2.peer("a")
        v2.session("s")
        v2.conclude("a", "a", "a lives in Ulm", "a keeps bees", session="s")
        derived(v2, DEDUCTIVE, "a knows honey", premises=["a keeps bees"])
        derived(v2, INDUCTIVE, "a likes animals", sources=["bees", "dogs"])
        return v2

    def test_is_an_object_here_and_text_there(self, represented: V2Client) -> None:
        representation = represented.ok(represented.post("/peers/a/representation", {}))[
            "representation"
        ]
        assert [item["content"] for item in representation["explicit"]] == [
            "a lives in Ulm",
            "a keeps bees",
        ]
        assert all(
            item.keys() == {"created_at", "message_ids", "session_name", "content"}
            for item in representation["explicit"]
        )
        assert {item["session_name"] for item in representation["explicit"]} == {"s"}
        assert [(item["conclusion"], item["premises"]) for item in representation["deductive"]] == [
            ("a knows honey", ["a keeps bees"]),
            ("a likes animals", ["bees", "dogs"]),
        ]
        assert {item["session_name"] for item in representation["deductive"]} == {GLOBAL}
        assert all(
            re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", item["created_at"])
            for item in representation["explicit"]
        )
        text = represented.ok(represented.newest.post("/peers/a/representation", {}))[
            "representation"
        ]
        assert all(
            content in text
            for content in ("a lives in Ulm", "a keeps bees", "a knows honey", "a likes animals")
        )

    @pytest.mark.parametrize(("client", "kind"), FORMS)
    def test_has_the_form_of_each_client(
        self, represented: V2Client, client: str, kind: type
    ) -> None:
        asking = represented.as_client(client)
        assert isinstance(
            asking.ok(asking.post("/peers/a/representation", {"session_id": "s"}))[
                "representation"
            ],
            kind,
        )
        assert isinstance(asking.ok(asking.get("/peers/a/context"))["representation"], kind)

    def test_the_field_names_of_both_generations_are_accepted(self, represented: V2Client) -> None:
        for words in ({"max_observations": 1}, {"max_conclusions": 1}):
            representation = represented.ok(represented.post("/peers/a/representation", words))[
                "representation"
            ]
            assert len(representation["explicit"]) + len(representation["deductive"]) == 1
            context = represented.ok(represented.get("/peers/a/context", query_string=words))[
                "representation"
            ]
            assert len(context["explicit"]) + len(context["deductive"]) == 1
        best = represented.ok(
            represented.post(
                "/peers/a/representation",
                {"search_query": "bees", "search_top_k": 1, "max_observations": 1},
            )
        )
        assert [item["content"] for item in best["representation"]["explicit"]] == ["a keeps bees"]
        for wrong in (
            {"max_observations": 0},
            {"max_observations": 101},
            {"search_max_distance": 2},
        ):
            represented.refused(
                represented.post("/peers/a/representation", wrong), ["body", next(iter(wrong))]
            )
        represented.refused(
            represented.get("/peers/a/context", query_string={"max_observations": 0}),
            ["query", "max_observations"],
        )

    def test_of_an_unknown_peer_is_empty(self, v2: V2Client) -> None:
        assert v2.ok(v2.post("/peers/a/representation", {})) == {
            "representation": {"explicit": [], "deductive": []},
            "explicit": [],
            "deductive": [],
        }

    def test_a_quoted_message_is_among_explicit_conclusions(self, v2: V2Client) -> None:
        (message,) = v2.say("s", ("a", "My tortoise is called Balthazar."))
        explicit = v2.ok(v2.post("/peers/a/representation", {"search_query": "Balthazar"}))[
            "representation"
        ]["explicit"]
        assert [(item["content"], item["session_name"]) for item in explicit] == [
            (f"a: {message['content']}", "s")
        ]
        assert len(explicit[0]["message_ids"]) == 1

    def test_is_part_of_contexts(self, represented: V2Client) -> None:
        represented.ok(represented.put("/peers/a/card", {"peer_card": ["Name: Ann"]}))
        alone = represented.ok(represented.get("/peers/a/context"))
        assert list(alone) == ["peer_id", "target_id", "representation", "peer_card"]
        assert (alone["peer_id"], alone["target_id"], alone["peer_card"]) == (
            "a",
            "a",
            ["Name: Ann"],
        )
        with_session = represented.ok(
            represented.get(
                "/sessions/s/context", query_string={"peer_target": "a", "last_message": "bees"}
            )
        )
        assert list(with_session) == [
            "id",
            "messages",
            "summary",
            "peer_representation",
            "peer_card",
        ]
        assert with_session["peer_card"] == ["Name: Ann"]
        assert "a keeps bees" in [
            item["content"] for item in with_session["peer_representation"]["explicit"]
        ]
        one = represented.ok(
            represented.get(
                "/sessions/s/context", query_string={"peer_target": "a", "max_observations": 1}
            )
        )
        assert sum(len(part) for part in one["peer_representation"].values()) == 1
        represented.refused(
            represented.get("/sessions/s/context", query_string={"peer_perspective": "a"})
        )
        newer = represented.as_client("1.11.0")
        assert (
            "a keeps bees"
            in newer.ok(newer.get("/sessions/s/context", query_string={"peer_target": "a"}))[
                "peer_representation"
            ]
        )


class TestSessionContext:
    def test_summary_and_messages_by_client(self, v2: V2Client) -> None:
        messages = v2.say("s", *[("a", f"number {number}") for number in range(6)])
        summarize(v2, "s", SHORT, "Numbers.", messages[2], 2)
        summarize(v2, "s", LONG, "Many numbers were counted.", messages[3], 5)
        context = v2.ok(v2.get("/sessions/s/context"))
        assert context["summary"]["content"] == "Many numbers were counted."
        assert list(context["summary"]) == [
            "content",
            "message_id",
            "summary_type",
            "created_at",
            "token_count",
        ]
        assert context["messages"] == messages[3:]
        assert (context["peer_representation"], context["peer_card"]) == (None, None)
        for client in ("1.0.1", "1.1.0"):
            early = v2.as_client(client)
            assert early.ok(early.get("/sessions/s/context")) == {
                "id": "s",
                "messages": messages[3:],
                "summary": "Many numbers were counted.",
            }
            assert (
                early.ok(early.get("/sessions/s/context", query_string={"summary": "false"}))[
                    "summary"
                ]
                == ""
            )
        both = v2.ok(v2.get("/sessions/s/summaries"))
        assert (
            both["id"],
            both["short_summary"]["content"],
            both["long_summary"]["message_id"],
        ) == ("s", "Numbers.", messages[3]["id"])
        assert v2.ok(v2.get("/sessions/none/summaries")) == {
            "id": "none",
            "short_summary": None,
            "long_summary": None,
        }
        assert v2.ok(v2.get("/sessions/none/context"))["messages"] == []
        assert v2.ok(v2.get("/sessions/s/context", query_string={"tokens": 0}))["messages"] == []
        v2.refused(v2.get("/sessions/s/context", query_string={"tokens": 100_001}))
