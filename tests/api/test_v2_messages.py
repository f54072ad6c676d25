"""Messages of the second generation, and what is known from them."""

from __future__ import annotations

import io
from typing import Any

import pytest

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
NAIVE = "2024-05-06T07:08:09.123456"


class TestMessages:
    @pytest.mark.parametrize("path", ["/sessions/s/messages/", "/sessions/s/messages"])
    def test_are_stored_under_either_path(self, v2: V2Client, path: str) -> None:
        drafts = [
            {"peer_id": "a", "content": "one", "metadata": {"n": 1}, "created_at": NAIVE},
            {"peer_id": "b", "content": ""},
        ]
        first, empty = v2.ok(v2.post(path, {"messages": drafts}))
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
        (message,) = v2.ok(v2.post("/sessions/s/messages/upload", data=sent))
        assert (message["content"], message["metadata"], message["created_at"]) == (
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
        for filters, contents in allowed:
            assert (
                v2.ok(v2.post("/sessions/s/messages/list", {"filters": filters}))["items"]
                == contents
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
    def talk_messages(self, v2: V2Client) -> list[Any]:
        of_first = v2.say(
            "s",
            ("a", "The tortoise is called Balthazar."),
            ("b", "Physics is taught by Clara."),
            ("a", "The tortoise sleeps."),
        )
        return [*of_first, *v2.say("t", ("b", "A tortoise again."))]

    def test_answers_a_list_best_first(self, v2: V2Client, talk_messages: list[Any]) -> None:
        assert v2.ok(v2.post("/search", {"query": "who is called Balthazar", "limit": 1})) == [
            talk_messages[0]
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
        assert sorted(item["id"] for item in filtered) == sorted(
            [talk_messages[1]["id"], talk_messages[3]["id"]]
        )
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

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("client", "body"),
        [("1.0.1", "tortoise"), ("1.1.0", "tortoise"), ("1.1.0", {"query": "tortoise"})],
    )
    @pytest.mark.parametrize("path", ["/search", "/peers/a/search", "/sessions/s/search"])
    def test_answers_early_clients_in_pages(
        self, v2: V2Client, talk_messages: list[Any], client: str, body: Any, path: str
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
        self, v2: V2Client, talk_messages: list[Any]
    ) -> None:
        assert v2.ok(v2.post("/search", "Balthazar"))["items"][0] == talk_messages[0]


class TestWithoutASession:
    @pytest.mark.parametrize("client", ["1.0.1", "1.1.0"])
    def test_the_first_clients_store_messages_of_a_peer(self, v2: V2Client, client: str) -> None:
        early = v2.as_client(client)
        drafts = [
            {"peer_id": "a", "content": f"number {number}", "metadata": {"even": number % 2 == 0}}
            for number in range(3)
        ]
        messages = early.ok(early.post("/peers/a/messages", {"messages": drafts}))
        assert [item["content"] for item in messages] == ["number 0", "number 1", "number 2"]
        assert early.ok(early.post("/peers/a/messages/list"))["items"] == messages
        assert early.ids("/peers/a/messages/list", reverse="true", size=1) == [messages[2]["id"]]
        odd = early.ok(early.post("/peers/a/messages/list", {"filter": {"even": False}}))
        assert odd["items"] == messages[1:2]
        v2.say("s", ("a", "in a session"))
        assert early.ok(early.post("/peers/a/messages/list"))["total"] == 3
        assert early.ok(early.post("/peers/b/messages/list"))["items"] == []
        early.refused(
            early.post("/peers/a/messages", {"messages": [{"peer_id": "b", "content": "x"}]}),
            ["body", "messages", 0, "peer_id"],
        )
        (session_id,) = {item["session_id"] for item in messages}
        assert v2.newest.ids(f"/sessions/{session_id}/messages/list") == [
            item["id"] for item in messages
        ]


class TestEarlyFilters:
    @pytest.fixture
    def peopled(self, v2: V2Client) -> V2Client:
        v2.peer("a", metadata={"role": "cook", "age": 3})
        v2.peer("b", metadata={"role": "smith", "age": 5, "id": "a"})
        return v2

    @pytest.mark.parametrize(
        ("client", "filter_", "names"),
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
        self, peopled: V2Client, client: str, filter_: Any, names: list[str]
    ) -> None:
        early = peopled.as_client(client)
        assert [
            item["id"] for item in early.ok(early.post("/peers/list", {"filter": filter_}))["items"]
        ] == names

    def test_filters_overrides_filter(self, peopled: V2Client) -> None:
        both = {"filters": {"id": "b"}, "filter": {"role": "cook"}}
        assert [item["id"] for item in peopled.ok(peopled.post("/peers/list", both))["items"]] == [
            "b"
        ]

    def test_values_other_than_objects_are_refused(self, peopled: V2Client) -> None:
        value: Any
        for value in ([], "x", 1):
            peopled.refused(peopled.post("/peers/list", {"filter": value}), ["body", "filters"])

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
