"""Messages of the second generation, and what is known from them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api.test_recall import summarize
from memservice.domain.ids import new_uid
from memservice.domain.records import DEDUCTIVE, INDUCTIVE, LONG, SHORT, Conclusion
from memservice.spi.storage import Transaction
from support.api.answering_reasoner import AnsweringReasoner, talking
from support.api.v2_client import V2Client
from support.api.v2_client import v2 as v2

pytestmark = pytest.mark.every_index

GLOBAL = "__global_observations__"
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
OBSERVATION = ["id", "content", "observer_id", "observed_id", "session_id", "created_at"]
FORMS = [
    ("1.0.1", str),
    ("1.1.0", str),
    ("1.8.0", dict),
    ("1.11.0", str),
    ("js 1.8.0", dict),
    ("js 2.2.0", str),
]
"""Of a representation, by client."""
NAIVE = "2024-05-06T07:08:09.123456"


class TestMessages:
    @pytest.mark.parametrize("path", ["/sessions/s/messages/", "/sessions/s/messages"])
    def test_are_stored_under_either_path(self, v2: V2Client, path: str) -> None:
        given = [
            {"peer_id": "a", "content": "one", "metadata": {"n": 1}, "created_at": NAIVE},
            {"peer_id": "b", "content": ""},
        ]
        first, empty = v2.ok(v2.post(path, {"messages": given}))
        assert list(first) == MESSAGE
        assert (first["content"], first["peer_id"], first["session_id"], first["metadata"]) == (
            "one",
            "a",
            "s",
            {"n": 1},
        )
        assert (first["created_at"], first["token_count"], first["workspace_id"]) == (
            NAIVE + "Z",
            1,
            v2.workspace,
        )
        assert (empty["content"], empty["token_count"]) == ("", 0)
        assert v2.ok(v2.get(f"/sessions/s/messages/{first['id']}")) == first
        assert v2.ids("/sessions/s/messages/list") == [first["id"], empty["id"]]
        assert v2.ids("/sessions/s/messages/list", reverse="true") == [empty["id"], first["id"]]
        changed = v2.ok(v2.put(f"/sessions/s/messages/{first['id']}", {"metadata": {"n": 2}}))
        assert changed == {**first, "metadata": {"n": 2}}
        assert v2.ok(v2.put(f"/sessions/s/messages/{first['id']}", {})) == changed
        assert (
            v2.ok(v2.get("/sessions/s/messages/" + "x" * 21), 404)["detail"]
            == f"Message with ID {'x' * 21} not found"
        )

    def test_are_at_most_a_hundred_of_25000_characters(self, v2: V2Client) -> None:
        path, long = "/sessions/s/messages/", {"peer_id": "a", "content": "x" * 25_001}
        v2.refused(v2.post(path, {"messages": []}), ["body", "messages"])
        v2.refused(
            v2.post(path, {"messages": [{"peer_id": "a", "content": "x"}] * 101}),
            ["body", "messages"],
        )
        v2.refused(v2.post(path, {"messages": [long]}), ["body", "messages", 0, "content"])
        earliest = v2.as_client("1.0.1")
        assert len(earliest.ok(earliest.post(path, {"messages": [long]}))) == 1, (
            "the first version took twice as much"
        )
        earliest.refused(earliest.post(path, {"messages": [{**long, "content": "x" * 50_001}]}))

    def test_deriving_can_be_switched_off_for_one_message(self, v2: V2Client) -> None:
        v2.say("s", ("a", "I live in Ulm."), configuration={"deriver": {"enabled": False}})
        assert v2.ok(v2.get("/deriver/status"))["total_work_units"] == 0
        v2.say(
            "s",
            ("a", "I live in Ulm."),
            configuration={"deriver": {"enabled": True}, "peer_card": {"use": False}},
        )
        assert v2.ok(v2.get("/deriver/status"))["total_work_units"] == 1

    def test_come_from_files(self, v2: V2Client) -> None:
        form = {
            "peer_id": "a",
            "metadata": '{"from": "disk"}',
            "configuration": '{"deriver": {"enabled": false}}',
            "created_at": NAIVE,
        }
        sent = {**form, "file": (io.BytesIO(b"I live in Ulm."), "a.txt", "text/plain")}
        (made,) = v2.ok(v2.post("/sessions/s/messages/upload", data=sent))
        assert (made["content"], made["metadata"], made["created_at"]) == (
            "I live in Ulm.",
            {"from": "disk"},
            NAIVE + "Z",
        )
        assert v2.ok(v2.get("/deriver/status"))["total_work_units"] == 0
        empty = {"peer_id": "a", "file": (io.BytesIO(b""), "a.json", "application/json")}
        v2.refused(v2.post("/sessions/s/messages/upload", data=empty))
        picture = {"peer_id": "a", "file": (io.BytesIO(b"\x89PNG"), "a.png", "image/png")}
        assert v2.post("/sessions/s/messages/upload", data=picture).status_code == 415

    def test_are_filtered(self, v2: V2Client) -> None:
        one, two = v2.say("s", ("a", "one"), ("b", "two"))
        allowed: list[tuple[Any, Any]] = [
            ({"peer_id": "b"}, [two]),
            ({"NOT": [{"peer_id": "b"}]}, [one]),
            ({"OR": [{"peer_id": "a"}, {"peer_id": "b"}]}, [one, two]),
            ({"peer_id": "*", "created_at": {"gte": "2024-01-01"}}, [one, two]),
            ({"AND": []}, [one, two]),
        ]
        for filters, found in allowed:
            assert (
                v2.ok(v2.post("/sessions/s/messages/list", {"filters": filters}))["items"] == found
            ), filters
        refusals: list[tuple[Any, str]] = [
            (
                {"id": "x"},
                "Column 'id' is not allowed to be filtered on or does not exist on Message",
            ),
            ({"NOT": None}, "NOT operator cannot be None"),
            ({"AND": {}}, "AND operator must contain a list, got dict"),
            ({"created_at": {"gte": "soon"}}, "Invalid datetime value: soon"),
        ]
        for filters, text in refusals:
            (problem,) = v2.refused(v2.post("/sessions/s/messages/list", {"filters": filters}))
            assert problem["loc"][:2] == ["body", "filters"]
            assert problem["msg"] == text
            assert problem["type"] == "value_error"


class TestSearch:
    @pytest.fixture
    def said(self, v2: V2Client) -> list[Any]:
        made = v2.say(
            "s",
            ("a", "The tortoise is called Balthazar."),
            ("b", "Physics is taught by Clara."),
            ("a", "The tortoise sleeps."),
        )
        return [*made, *v2.say("t", ("b", "A tortoise again."))]

    def test_answers_a_list_best_first(self, v2: V2Client, said: list[Any]) -> None:
        assert v2.ok(v2.post("/search", {"query": "who is called Balthazar", "limit": 1})) == [
            said[0]
        ]
        assert {
            item["peer_id"]
            for item in v2.ok(v2.post("/peers/a/search", {"query": "tortoise physics"}))
        } == {"a"}
        assert {
            item["session_id"]
            for item in v2.ok(v2.post("/sessions/t/search", {"query": "tortoise"}))
        } == {"t"}
        filtered = v2.ok(v2.post("/search", {"query": "tortoise", "filters": {"peer_id": "b"}}))
        assert sorted(item["id"] for item in filtered) == sorted([said[1]["id"], said[3]["id"]])
        assert (
            v2.ok(
                v2.post("/search", {"query": "tortoise", "filters": {"peer_perspective": "nobody"}})
            )
            == []
        )
        wrong: Any
        for wrong in (
            {},
            {"query": 1},
            {"query": "x", "limit": 0},
            {"query": "x", "limit": 101},
            {"query": "x", "filters": {"nope": 1}},
            [],
        ):
            v2.refused(v2.post("/search", wrong))

    @pytest.mark.parametrize(
        ("client", "body"),
        [("1.0.1", "tortoise"), ("1.1.0", "tortoise"), ("1.1.0", {"query": "tortoise"})],
    )
    @pytest.mark.parametrize("path", ["/search", "/peers/a/search", "/sessions/s/search"])
    def test_answers_early_clients_in_pages(
        self, v2: V2Client, said: list[Any], client: str, body: Any, path: str
    ) -> None:
        early = v2.as_client(client)
        whole = [item["id"] for item in v2.ok(v2.post(path, {"query": "tortoise"}))]
        assert len(whole) > 1
        page = early.ok(early.post(path, body, query_string={"page": 2, "size": 1}))
        assert [item["id"] for item in page["items"]] == whole[1:2]
        assert (page["total"], page["page"], page["size"], page["pages"]) == (
            len(whole),
            2,
            1,
            len(whole),
        )
        assert list(page["items"][0]) == MESSAGE

    def test_a_bare_text_is_answered_in_pages_whoever_sends_it(
        self, v2: V2Client, said: list[Any]
    ) -> None:
        assert v2.ok(v2.post("/search", "Balthazar"))["items"][0] == said[0]


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
    def known(self, v2: V2Client) -> V2Client:
        v2.peer("a")
        v2.session("s")
        v2.conclude("a", "a", "a lives in Ulm", "a keeps bees", session="s")
        derived(v2, DEDUCTIVE, "a knows honey", premises=["a keeps bees"])
        derived(v2, INDUCTIVE, "a likes animals", sources=["bees", "dogs"])
        return v2

    def test_is_an_object_here_and_text_there(self, known: V2Client) -> None:
        found = known.ok(known.post("/peers/a/representation", {}))["representation"]
        assert [item["content"] for item in found["explicit"]] == ["a lives in Ulm", "a keeps bees"]
        assert all(
            item.keys() == {"created_at", "message_ids", "session_name", "content"}
            for item in found["explicit"]
        )
        assert {item["session_name"] for item in found["explicit"]} == {"s"}
        assert [(item["conclusion"], item["premises"]) for item in found["deductive"]] == [
            ("a knows honey", ["a keeps bees"]),
            ("a likes animals", ["bees", "dogs"]),
        ]
        assert {item["session_name"] for item in found["deductive"]} == {GLOBAL}
        assert all(
            re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", item["created_at"])
            for item in found["explicit"]
        )
        text = known.ok(known.newest.post("/peers/a/representation", {}))["representation"]
        assert all(
            content in text
            for content in ("a lives in Ulm", "a keeps bees", "a knows honey", "a likes animals")
        )

    @pytest.mark.parametrize(("client", "kind"), FORMS)
    def test_has_the_form_of_each_client(self, known: V2Client, client: str, kind: type) -> None:
        asking = known.as_client(client)
        assert isinstance(
            asking.ok(asking.post("/peers/a/representation", {"session_id": "s"}))[
                "representation"
            ],
            kind,
        )
        assert isinstance(asking.ok(asking.get("/peers/a/context"))["representation"], kind)

    def test_the_field_names_of_both_generations_are_accepted(self, known: V2Client) -> None:
        for words in ({"max_observations": 1}, {"max_conclusions": 1}):
            found = known.ok(known.post("/peers/a/representation", words))["representation"]
            assert len(found["explicit"]) + len(found["deductive"]) == 1
            context = known.ok(known.get("/peers/a/context", query_string=words))["representation"]
            assert len(context["explicit"]) + len(context["deductive"]) == 1
        best = known.ok(
            known.post(
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
            known.refused(known.post("/peers/a/representation", wrong), ["body", next(iter(wrong))])
        known.refused(
            known.get("/peers/a/context", query_string={"max_observations": 0}),
            ["query", "max_observations"],
        )

    def test_of_an_unknown_peer_is_empty(self, v2: V2Client) -> None:
        assert v2.ok(v2.post("/peers/a/representation", {})) == {
            "representation": {"explicit": [], "deductive": []},
            "explicit": [],
            "deductive": [],
        }

    def test_a_quoted_message_is_among_explicit_conclusions(self, v2: V2Client) -> None:
        (made,) = v2.say("s", ("a", "My tortoise is called Balthazar."))
        found = v2.ok(v2.post("/peers/a/representation", {"search_query": "Balthazar"}))[
            "representation"
        ]["explicit"]
        assert [(item["content"], item["session_name"]) for item in found] == [
            (f"a: {made['content']}", "s")
        ]
        assert len(found[0]["message_ids"]) == 1

    def test_is_part_of_contexts(self, known: V2Client) -> None:
        known.ok(known.put("/peers/a/card", {"peer_card": ["Name: Ann"]}))
        alone = known.ok(known.get("/peers/a/context"))
        assert list(alone) == ["peer_id", "target_id", "representation", "peer_card"]
        assert (alone["peer_id"], alone["target_id"], alone["peer_card"]) == (
            "a",
            "a",
            ["Name: Ann"],
        )
        with_session = known.ok(
            known.get(
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
        one = known.ok(
            known.get(
                "/sessions/s/context", query_string={"peer_target": "a", "max_observations": 1}
            )
        )
        assert sum(len(part) for part in one["peer_representation"].values()) == 1
        known.refused(known.get("/sessions/s/context", query_string={"peer_perspective": "a"}))
        newer = known.as_client("1.11.0")
        assert (
            "a keeps bees"
            in newer.ok(newer.get("/sessions/s/context", query_string={"peer_target": "a"}))[
                "peer_representation"
            ]
        )


class TestSessionContext:
    def test_summary_and_messages_by_client(self, v2: V2Client) -> None:
        said = v2.say("s", *[("a", f"number {number}") for number in range(6)])
        summarize(v2, "s", SHORT, "Numbers.", said[2], 2)
        summarize(v2, "s", LONG, "Many numbers were counted.", said[3], 5)
        found = v2.ok(v2.get("/sessions/s/context"))
        assert found["summary"]["content"] == "Many numbers were counted."
        assert list(found["summary"]) == [
            "content",
            "message_id",
            "summary_type",
            "created_at",
            "token_count",
        ]
        assert found["messages"] == said[3:]
        assert (found["peer_representation"], found["peer_card"]) == (None, None)
        for client in ("1.0.1", "1.1.0"):
            early = v2.as_client(client)
            assert early.ok(early.get("/sessions/s/context")) == {
                "id": "s",
                "messages": said[3:],
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
        ) == ("s", "Numbers.", said[3]["id"])
        assert v2.ok(v2.get("/sessions/none/summaries")) == {
            "id": "none",
            "short_summary": None,
            "long_summary": None,
        }
        assert v2.ok(v2.get("/sessions/none/context"))["messages"] == []
        assert v2.ok(v2.get("/sessions/s/context", query_string={"tokens": 0}))["messages"] == []
        v2.refused(v2.get("/sessions/s/context", query_string={"tokens": 100_001}))


class TestObservations:
    @pytest.mark.parametrize(
        ("path", "key"), [("/observations", "observations"), ("/conclusions", "conclusions")]
    )
    def test_are_served_under_both_names(self, v2: V2Client, path: str, key: str) -> None:
        for name in ("a", "b"):
            v2.peer(name)
        v2.session("s")
        pair = {"observer_id": "a", "observed_id": "b", "session_id": "s"}
        texts = ["b plays the cello", "b is allergic to peanuts"]
        made = v2.ok(v2.post(path, {key: [{"content": text, **pair} for text in texts]}))
        assert [list(item) for item in made] == [OBSERVATION, OBSERVATION]
        assert [item["content"] for item in made] == texts
        assert {
            (item["observer_id"], item["observed_id"], item["session_id"]) for item in made
        } == {("a", "b", "s")}
        assert v2.ids(f"{path}/list") == [made[1]["id"], made[0]["id"]], "newest first"
        assert v2.ids(f"{path}/list", reverse="true") == [made[0]["id"], made[1]["id"]]
        filters = {"observer": "a", "observed_id": "b"}
        asked = {"query": "allergic to peanuts", "top_k": 1, "filters": filters}
        assert v2.ok(v2.post(f"{path}/query", asked)) == [made[1]]
        (problem,) = v2.refused(
            v2.post(f"{path}/query", {"query": "x", "filters": {"observer": "a"}})
        )
        assert problem["msg"] == "observer and observed must be specified for semantic search"
        assert v2.ok(v2.delete(f"{path}/{made[0]['id']}")) == {
            "message": "Observation deleted successfully"
        }
        answer = v2.delete(f"{path}/{made[0]['id']}")
        assert v2.ok(answer, 404)["detail"] == (
            f"Document {made[0]['id']} not found or does not belong to workspace {v2.workspace}"
        )
        assert v2.ids(f"{path}/list") == [made[1]["id"]]

    def test_have_a_session_field_even_without_a_session(self, v2: V2Client) -> None:
        v2.peer("a")
        v2.session("s")
        v2.conclude("a", "a", "from the session", session="s")
        (alone,) = v2.conclude("a", "a", "from nowhere", session=GLOBAL)
        assert alone["session_id"] == GLOBAL
        (there,) = v2.ok(v2.newest.post("/conclusions/list", {"filters": {"session_id": None}}))[
            "items"
        ]
        assert (there["id"], there["session_id"]) == (alone["id"], None)

        def found(filters: Any) -> list[str]:
            return [
                item["content"]
                for item in v2.ok(v2.post("/observations/list", {"filters": filters}))["items"]
            ]

        for is_global in (GLOBAL, [GLOBAL], {"in": [GLOBAL]}):
            assert found({"session_id": is_global}) == ["from nowhere"]
        assert (
            found({"session_id": {"ne": GLOBAL}})
            == found({"NOT": [{"session_name": GLOBAL}]})
            == ["from the session"]
        )
        assert found({"session_id": {"in": [GLOBAL, "s"]}}) == ["from nowhere", "from the session"]
        (nearest,) = v2.ok(
            v2.post(
                "/observations/query",
                {
                    "query": "nowhere",
                    "filters": {"observer": "a", "observed": "a", "session_id": GLOBAL},
                },
            )
        )
        assert nearest["session_id"] == GLOBAL

    def test_unknown_peers_and_sessions_are_named(self, v2: V2Client) -> None:
        v2.peer("a")
        given = {"content": "x", "observer_id": "a", "observed_id": "a", "session_id": "none"}
        v2.missing(v2.post("/observations", {"observations": [given]}), "none")
        for key in given:
            less = {name: value for name, value in given.items() if name != key}
            v2.refused(
                v2.post("/observations", {"observations": [less]}),
                ["body", "observations", 0, key],
            )
        v2.refused(v2.post("/observations", {"observations": []}), ["body", "observations"])

    def test_of_scopes_are_not_shown(self, v2: V2Client) -> None:
        v2.peer("a")
        v2.session("s")
        v2.conclude("a", "a", "seen", session="s")
        v2.ok(v2.newest.post("/scopes", {"id": "team"}), 201)

        def copied(tx: Transaction) -> None:
            workspace = tx.workspaces.by_slug(v2.workspace)
            assert workspace is not None
            scope = tx.peers.by_slug(workspace.key, "scope.team")
            (row,) = tx.conclusions.page(workspace.key)
            assert scope is not None
            tx.conclusions.put(
                [replace(row, key=0, uid=new_uid(), observer_key=scope.key, observer=scope.slug)]
            )

        v2.runtime.storage.write(copied)
        assert v2.ok(v2.newest.post("/conclusions/list"))["total"] == 2
        listed = v2.ok(v2.post("/observations/list"))
        assert ([item["observer_id"] for item in listed["items"]], listed["total"]) == (["a"], 1)


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
        made = v2.session("s", peers={"b": {"observe_others": True}})
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
        assert status["sessions"][made["uid"]]["session_id"] == made["uid"], "by the internal id"
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
        made = v2.ok(v2.post("/webhooks", {"url": self.URL}))
        assert (made["url"], made["workspace_id"]) == (self.URL, v2.workspace)
        assert v2.ok(v2.post("/webhooks", {"url": self.URL}))["id"] == made["id"]
        assert [item["id"] for item in v2.ok(v2.get("/webhooks"))["items"]] == [made["id"]]
        answer = v2.get("/webhooks/test")
        assert (answer.status_code, answer.get_json()) == (200, None)
        answer = v2.delete(f"/webhooks/{made['id']}")
        assert (answer.status_code, answer.data) == (200, b"null")
        v2.missing(v2.delete(f"/webhooks/{made['id']}"), made["id"], v2.workspace)

    def test_invalid_urls_are_refused(self, v2: V2Client) -> None:
        v2.missing(v2.post("/webhooks", {"url": self.URL}), v2.workspace)
        v2.create()
        for url in ("nonsense", "ftp://93.184.215.14/x", "http://127.0.0.1/x", "http://10.0.0.1/"):
            v2.refused(v2.post("/webhooks", {"url": url}), ["body", "url"])


class TestWithoutASession:
    @pytest.mark.parametrize("client", ["1.0.1", "1.1.0"])
    def test_the_first_clients_store_messages_of_a_peer(self, v2: V2Client, client: str) -> None:
        early = v2.as_client(client)
        given = [
            {"peer_id": "a", "content": f"number {number}", "metadata": {"even": number % 2 == 0}}
            for number in range(3)
        ]
        made = early.ok(early.post("/peers/a/messages", {"messages": given}))
        assert [item["content"] for item in made] == ["number 0", "number 1", "number 2"]
        assert early.ok(early.post("/peers/a/messages/list"))["items"] == made
        assert early.ids("/peers/a/messages/list", reverse="true", size=1) == [made[2]["id"]]
        odd = early.ok(early.post("/peers/a/messages/list", {"filter": {"even": False}}))
        assert odd["items"] == made[1:2]
        v2.say("s", ("a", "in a session"))
        assert early.ok(early.post("/peers/a/messages/list"))["total"] == 3
        assert early.ok(early.post("/peers/b/messages/list"))["items"] == []
        early.refused(
            early.post("/peers/a/messages", {"messages": [{"peer_id": "b", "content": "x"}]}),
            ["body", "messages", 0, "peer_id"],
        )
        (room,) = {item["session_id"] for item in made}
        assert v2.newest.ids(f"/sessions/{room}/messages/list") == [item["id"] for item in made]


class TestEarlyFilters:
    @pytest.fixture
    def peopled(self, v2: V2Client) -> V2Client:
        v2.peer("a", metadata={"role": "cook", "age": 3})
        v2.peer("b", metadata={"role": "smith", "age": 5, "id": "a"})
        return v2

    @pytest.mark.parametrize(
        ("client", "given", "found"),
        [
            ("1.1.0", {"role": "cook"}, ["a"]),
            ("1.1.0", {"metadata": {"role": "smith"}}, ["b"]),
            ("1.1.0", {"id": "a"}, ["a"]),
            ("1.1.0", {"id": "b", "role": "cook"}, []),
            ("1.1.0", {"OR": [{"id": "a"}, {"metadata": {"age": {"gte": 5}}}]}, ["a", "b"]),
            ("1.1.0", {}, ["a", "b"]),
            ("1.1.0", None, ["a", "b"]),
            ("1.0.1", {"role": "smith"}, ["b"]),
            ("1.0.1", {"id": "a"}, ["b"]),
        ],
    )
    def test_apply_to_metadata(
        self, peopled: V2Client, client: str, given: Any, found: list[str]
    ) -> None:
        early = peopled.as_client(client)
        assert [
            item["id"] for item in early.ok(early.post("/peers/list", {"filter": given}))["items"]
        ] == found

    def test_filters_overrides_filter(self, peopled: V2Client) -> None:
        both = {"filters": {"id": "b"}, "filter": {"role": "cook"}}
        assert [item["id"] for item in peopled.ok(peopled.post("/peers/list", both))["items"]] == [
            "b"
        ]

    def test_values_other_than_objects_are_refused(self, peopled: V2Client) -> None:
        given: Any
        for given in ([], "x", 1):
            peopled.refused(peopled.post("/peers/list", {"filter": given}), ["body", "filters"])

    def test_can_restrict_to_active_sessions(self, v2: V2Client) -> None:
        for name in ("kept", "gone"):
            v2.session(name, peers={"a": {}})
        v2.ok(v2.delete("/sessions/gone"), 202)
        early = v2.as_client("1.0.1")

        def listed(body: Any) -> list[str]:
            return [item["id"] for item in early.ok(early.post("/peers/a/sessions", body))["items"]]

        assert listed({"is_active": True}) == ["kept"]
        assert listed({"is_active": False}) == listed({}) == ["kept", "gone"]
        assert listed({"is_active": True, "filter": {"none": 1}}) == []
