"""Chat over HTTP with the reasoner that is there by default: what is answered, from what, and what
is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from memservice.domain.errors import Unauthorised
from memservice.services.auth.principal import Principal
from memservice.services.chat.chat import ChatOptions, ask_peer

if TYPE_CHECKING:
    from api.conftest import Api

pytestmark = pytest.mark.every_index

NOTHING = "Nothing is known"
CLOSEST = "no stored statement about alice answers this. The closest ones are:"
EVIDENCE = ["conclusions", "messages", "tool_calls", "reasoning_trace_id"]


def ask(api: Api, query: str, peer: str = "alice", **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = api.ok(api.post(f"/peers/{peer}/chat", {"query": query, **body}))
    return answer


def ask_all(api: Api, query: str, **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = api.ok(api.post("/chat", {"query": query, **body}))
    return answer


def read(answer: dict[str, Any]) -> list[str]:
    """Contents of the conclusions that were read."""
    return [item["content"] for item in answer["evidence"]["conclusions"]]


@pytest.fixture
def talk(api: Api) -> Api:
    """Alice and Bob in one session, Carol in another; each with a conclusion or two."""
    api.say(
        "home",
        ("alice", "I adopted a tortoise named Balthazar."),
        ("bob", "The tortoise ate my lettuce."),
    )
    api.say("work", ("carol", "Our tortoise is a robot."), ("alice", "My office is in Ghent."))
    api.conclude("alice", "alice", "Alice keeps a tortoise.", session="home")
    api.conclude("alice", "alice", "Alice works in Ghent.", session="work")
    api.conclude("alice", "bob", "Bob grows lettuce.", session="home")
    api.conclude("bob", "bob", "Bob is fond of lettuce and soup.", session="home")
    return api


class TestAnswer:
    @pytest.mark.slow
    def test_is_composed_of_conclusions_with_their_sources(self, talk: Api) -> None:
        answer = ask(talk, "What is the tortoise called?")
        assert list(answer) == ["content"]
        assert "No language model is configured" in answer["content"]
        assert "about alice: Alice keeps a tortoise." in answer["content"]
        assert "alice: I adopted a tortoise named Balthazar." in answer["content"]
        assert "Ghent" not in answer["content"]

    @pytest.mark.parametrize("query", ["What is her blood type?", "What is alice's blood type?"])
    def test_shows_the_closest_statements_if_none_answers(self, talk: Api, query: str) -> None:
        answer = ask(talk, query, include_evidence=True)
        assert CLOSEST in answer["content"]
        assert "about alice: Alice works in Ghent." in answer["content"]
        read = {item["content"] for item in answer["evidence"]["conclusions"]}
        assert read == {"Alice works in Ghent.", "Alice keeps a tortoise."}
        assert answer["evidence"]["messages"] == []

    @pytest.mark.parametrize(
        ("query", "has_statements"),
        [("What is alice's blood type?", False), ("Which planet is the biggest?", True)],
        ids=["no statements", "not about a person"],
    )
    def test_states_that_nothing_is_known(self, api: Api, query: str, has_statements: bool) -> None:
        api.peer("alice")
        if has_statements:
            api.conclude("alice", "alice", "Alice works in Ghent.")
        answer = ask(api, query, include_evidence=True)
        assert answer["content"].startswith(NOTHING)
        evidence = answer["evidence"]
        read = [item["content"] for item in evidence.pop("conclusions")]
        assert read == ["Alice works in Ghent."] * has_statements
        assert evidence == {"messages": [], "tool_calls": [], "reasoning_trace_id": None}

    def test_for_a_peer_without_memory_states_that_nothing_is_known(self, api: Api) -> None:
        api.peer("alice")
        assert ask(api, "Where do I live?")["content"].startswith(NOTHING)

    @pytest.mark.parametrize(
        "query",
        ["What do you know about Alice?", "Who is alice?", "Tell me everything you remember."],
    )
    def test_a_question_without_content_gets_the_newest_messages(
        self, talk: Api, query: str
    ) -> None:
        answer = ask(talk, query, include_evidence=True)
        assert read(answer) == ["Alice works in Ghent.", "Alice keeps a tortoise."]
        assert {item["peer_id"] for item in answer["evidence"]["messages"]} == {"alice"}

    def test_about_another_peer(self, talk: Api) -> None:
        answer = ask(talk, "Who grows lettuce?", target="bob", include_evidence=True)
        assert read(answer) == ["Bob grows lettuce."]
        assert [
            (item["observer_id"], item["observed_id"]) for item in answer["evidence"]["conclusions"]
        ] == [("alice", "bob")]
        assert "bob" in answer["content"]

    @pytest.mark.slow
    def test_uses_messages_of_the_peers_sessions(self, talk: Api) -> None:
        def sessions(peer: str) -> set[str]:
            messages = ask(talk, "tortoise", peer, include_evidence=True)["evidence"]["messages"]
            return {item["session_id"] for item in messages}

        assert sessions("alice") == {"home", "work"}
        assert sessions("bob") == {"home"}
        assert sessions("carol") == {"work"}
        # Also of one that it left.
        talk.ok(talk.delete("/sessions/home/peers", ["bob"]))
        assert sessions("bob") == {"home"}

    def test_uses_messages_dated_before_the_membership(self, api: Api) -> None:
        api.say("s", ("alice", "The lighthouse is in Genoa."), created_at="2019-01-01T00:00:00Z")
        api.say("s", ("bob", "Indeed."))
        assert "Genoa" in ask(api, "Where is the lighthouse?", "bob")["content"]

    @pytest.mark.slow
    def test_neighbours_of_a_hit_are_used(self, api: Api) -> None:
        api.say(
            "s",
            ("alice", "What is your parrot called?"),
            ("bob", "Hercules!"),
            ("alice", "I must go."),
        )
        answer = ask(api, "parrot", "bob")["content"]
        assert "Hercules!" in answer
        assert ask(api, "What time is it in Tokyo?", "bob")["content"].startswith(NOTHING)

    def test_nul_in_the_query_is_dropped(self, talk: Api) -> None:
        assert "Balthazar" in ask(talk, "tor\0toise")["content"]
        talk.refused(talk.post("/peers/alice/chat", {"query": "\0"}), ["body", "query"])

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("level", "most"), [("minimal", 10), ("low", 25), ("medium", 25), ("high", 25), ("max", 25)]
    )
    def test_the_level_limits_the_evidence(self, api: Api, level: str, most: int) -> None:
        api.peer("alice")
        api.conclude(
            "alice", "alice", *[f"Alice saw whale number {number}." for number in range(30)]
        )
        api.say("s", *[("alice", f"I saw whale {number}.") for number in range(30)])
        evidence = ask(api, "whale", reasoning_level=level, include_evidence=True)["evidence"]
        assert (len(evidence["conclusions"]), len(evidence["messages"])) == (most, most)

    @pytest.mark.slow
    def test_cards_are_used_if_the_configuration_allows_it(self, talk: Api) -> None:
        talk.put("/peers/alice/card", {"peer_card": ["Her shoe size is 38"]})
        assert "Her shoe size is 38" in ask(talk, "What shoe size does she have?")["content"]
        talk.ok(talk.put("", {"configuration": {"peer_card": {"use": False}}}))
        assert CLOSEST in ask(talk, "What shoe size does she have?")["content"]
        talk.ok(talk.put("/sessions/home", {"configuration": {"peer_card": {"use": True}}}))
        assert (
            "Her shoe size is 38"
            in ask(talk, "What shoe size does she have?", session_id="home")["content"]
        )


class TestNarrowing:
    def test_a_session_restricts_messages_only(self, talk: Api) -> None:
        answer = ask(talk, "tortoise office Ghent", session_id="work", include_evidence=True)
        assert {item["session_id"] for item in answer["evidence"]["messages"]} == {"work"}
        assert sorted(read(answer)) == ["Alice keeps a tortoise.", "Alice works in Ghent."]

    @pytest.mark.parametrize("form", [["home"], "home", {"in": ["home", "unknown"]}])
    def test_an_allowlist_restricts_messages_and_conclusions(self, talk: Api, form: object) -> None:
        answer = ask(
            talk, "tortoise office Ghent", filters={"session_id": form}, include_evidence=True
        )
        assert read(answer) == ["Alice keeps a tortoise."]
        assert {item["session_id"] for item in answer["evidence"]["messages"]} == {"home"}

    def test_an_empty_allowlist_has_no_evidence(self, talk: Api) -> None:
        answer = ask(talk, "tortoise", filters={"session_id": []}, include_evidence=True)
        assert answer["content"].startswith(NOTHING)
        assert (read(answer), answer["evidence"]["messages"]) == ([], [])

    def test_an_allowlist_includes_the_card(self, talk: Api) -> None:
        talk.put("/peers/alice/card", {"peer_card": ["Her shoe size is 38"]})
        assert "38" in ask(talk, "shoe size", filters={"session_id": []})["content"]

    def test_a_scope_answers_from_its_own_memory(self, talk: Api) -> None:
        talk.ok(talk.post("/scopes", {"id": "private"}), 201)
        talk.ok(talk.post("/scopes/private/sessions", {"session_ids": ["home"]}), 204)
        talk.conclude("scope.private", "alice", "Alice hides a tortoise.")
        answer = ask(talk, "tortoise", scope="private", include_evidence=True)
        assert read(answer) == ["Alice hides a tortoise."]
        assert answer["evidence"]["conclusions"][0]["observer_id"] == "scope.private"
        assert {item["session_id"] for item in answer["evidence"]["messages"]} == {"home"}

    @pytest.mark.slow
    def test_several_scopes_work_as_an_allowlist(self, talk: Api) -> None:
        for scope, session in (("one", "home"), ("two", "work")):
            talk.ok(talk.post("/scopes", {"id": scope}), 201)
            talk.ok(talk.post(f"/scopes/{scope}/sessions", {"session_ids": [session]}), 204)
        talk.ok(talk.post("/scopes", {"id": "empty"}), 201)
        query = "tortoise Ghent"
        assert read(ask(talk, query, scope=["one"], include_evidence=True)) == [
            "Alice keeps a tortoise."
        ]
        assert len(read(ask(talk, query, scope=["one", "two"], include_evidence=True))) == 2
        answer = ask(talk, query, scope=["empty"], include_evidence=True)
        assert (read(answer), answer["evidence"]["messages"]) == ([], [])
        assert ask_all(talk, query, scope=["empty"])["content"].startswith(NOTHING)


class TestWorkspace:
    def test_uses_the_memory_of_all_peers(self, talk: Api) -> None:
        answer = ask_all(talk, "Who likes lettuce?", include_evidence=True)
        pairs = {
            (item["observer_id"], item["observed_id"]) for item in answer["evidence"]["conclusions"]
        }
        assert pairs == {("alice", "bob"), ("bob", "bob")}
        assert {item["peer_id"] for item in answer["evidence"]["messages"]} == {"bob"}
        assert "about bob: Bob grows lettuce." in answer["content"]

    def test_a_session_restricts_messages_only(self, talk: Api) -> None:
        answer = ask_all(talk, "tortoise", session_id="work", include_evidence=True)
        assert {item["session_id"] for item in answer["evidence"]["messages"]} == {"work"}
        assert read(answer) == ["Alice keeps a tortoise."]

    def test_the_same_fact_is_read_once(self, talk: Api) -> None:
        talk.conclude("carol", "alice", "alice keeps a  TORTOISE.")
        assert len(read(ask_all(talk, "tortoise", include_evidence=True))) == 1

    def test_copies_in_scopes_are_left_out(self, talk: Api) -> None:
        talk.ok(talk.post("/scopes", {"id": "private"}), 201)
        talk.ok(talk.post("/scopes/private/sessions", {"session_ids": ["home"]}), 204)
        talk.conclude("scope.private", "bob", "Bob stores lettuce.")
        answer = ask_all(talk, "lettuce", include_evidence=True)
        assert "Bob stores lettuce." not in read(answer)
        inside = ask_all(talk, "lettuce", scope="private", include_evidence=True)
        assert read(inside) == ["Bob stores lettuce."]
        assert {item["session_id"] for item in inside["evidence"]["messages"]} == {"home"}
        several = ask_all(talk, "lettuce Ghent", scope=["private"], include_evidence=True)
        assert sorted(read(several)) == ["Bob grows lettuce.", "Bob is fond of lettuce and soup."]

    @pytest.mark.slow
    def test_a_named_peer_restricts_the_evidence(self, talk: Api) -> None:
        answer = ask_all(talk, "What do you know about Bob?", include_evidence=True)
        assert {item["observed_id"] for item in answer["evidence"]["conclusions"]} == {"bob"}
        assert {item["peer_id"] for item in answer["evidence"]["messages"]} == {"bob"}
        assert ask_all(talk, "Which planet is the biggest?")["content"].startswith(NOTHING)

    def test_no_card_is_read(self, talk: Api) -> None:
        talk.put("/peers/alice/card", {"peer_card": ["Her shoe size is 38"]})
        assert ask_all(talk, "shoe size")["content"].startswith(NOTHING)

    def test_other_workspaces_are_not_used(self, talk: Api) -> None:
        other = talk.workspace + "-other"
        talk.ok(talk.post(f"//v3/workspaces/{other}/peers", {"id": "alice"}), 201)
        for path in ("chat", "peers/alice/chat"):
            body = {"query": "tortoise", "include_evidence": True}
            answer = talk.ok(talk.post(f"//v3/workspaces/{other}/{path}", body))
            assert (read(answer), answer["evidence"]["messages"]) == ([], [])


class TestEvidence:
    def test_has_documented_fields(self, talk: Api) -> None:
        evidence = ask(talk, "tortoise", include_evidence=True)["evidence"]
        assert list(evidence) == EVIDENCE
        (conclusion,) = evidence["conclusions"]
        answer = talk.ok(talk.get(f"/conclusions/{conclusion['id']}"))
        assert list(conclusion) == [
            "id",
            "content",
            "level",
            "created_at",
            "session_id",
            "observer_id",
            "observed_id",
            "source_ids",
        ]
        assert conclusion == {name: answer[name] for name in conclusion} | {"source_ids": []}
        message = evidence["messages"][0]
        assert list(message) == ["id", "session_id", "peer_id", "created_at"]
        assert message["id"] in talk.ids(f"/sessions/{message['session_id']}/messages/list")
        assert (evidence["tool_calls"], evidence["reasoning_trace_id"]) == ([], None)

    def test_includes_the_latest_messages_of_the_session(self, talk: Api) -> None:
        answer = ask(talk, "Which planet is the biggest?", session_id="home", include_evidence=True)
        assert answer["content"].startswith(NOTHING)
        assert [item["peer_id"] for item in answer["evidence"]["messages"]] == ["alice", "bob"]

    def test_has_each_message_once(self, talk: Api) -> None:
        messages = ask(talk, "tortoise", session_id="home", include_evidence=True)["evidence"][
            "messages"
        ]
        ids = [item["id"] for item in messages]
        assert len(ids) == len(set(ids)) == 2

    @pytest.mark.slow
    def test_is_included_on_request_only(self, talk: Api) -> None:
        assert "evidence" not in ask(talk, "tortoise")
        assert "evidence" not in ask_all(talk, "tortoise", include_evidence=False)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "count": {"type": "integer"},
        "sources": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["answer", "count"],
}


class TestResponseFormat:
    @pytest.mark.parametrize("path", ["/peers/alice/chat", "/chat"])
    @pytest.mark.parametrize(
        "query", ["What is the tortoise called?", "Which planet is the biggest?"]
    )
    def test_the_answer_follows_the_format(self, talk: Api, path: str, query: str) -> None:
        answer = talk.ok(talk.post(path, {"query": query, "response_format": SCHEMA}))
        content = json.loads(answer["content"])
        assert isinstance(content["answer"], str)
        assert isinstance(content["count"], int)
        assert ("Balthazar" in answer["content"]) == ("tortoise" in query)

    def test_an_invalid_format_is_refused(self, talk: Api) -> None:
        for path in ("/peers/alice/chat", "/chat"):
            for stream in (False, True):
                bad = {"type": "object", "properties": {"a": {"allOf": []}}}
                (problem,) = talk.refused(
                    talk.post(path, {"query": "x", "stream": stream, "response_format": bad}),
                    ["body", "response_format"],
                )
                assert problem["msg"] == "Invalid response_format: $.a: 'allOf' is not supported"


class TestRefusals:
    @pytest.mark.parametrize("stream", [False, True])
    def test_unknown_peers_and_sessions_are_named_and_not_created(
        self, api: Api, stream: bool
    ) -> None:
        def post(path: str, **body: Any) -> Any:
            return api.post(path, {"query": "x", "stream": stream, **body})

        api.missing(post("/peers/alice/chat"), api.workspace)
        api.missing(post("/chat"), api.workspace)
        assert api.ids("//v3/workspaces/list", {"filters": {"id": api.workspace}}) == []
        api.peer("bob")
        api.missing(post("/peers/alice/chat"), "alice", api.workspace)
        api.missing(post("/peers/bob/chat", target="alice"), "alice")
        api.missing(post("/peers/bob/chat", session_id="none"), "none")
        api.missing(post("/chat", session_id="none"), "none")
        for path in ("/peers/bob/chat", "/chat"):
            api.missing(post(path, scope="none"), "none", api.workspace)
            api.missing(post(path, scope=["none"]), "none", api.workspace)
        assert api.ids("/peers/list") == ["bob"]
        assert api.ids("/sessions/list") == []

    def test_a_session_that_is_being_deleted_is_refused(self, talk: Api) -> None:
        talk.ok(talk.delete("/sessions/home"), 202)
        talk.missing(talk.post("/peers/alice/chat", {"query": "x", "session_id": "home"}), "home")

    def test_scopes_are_not_accepted_as_peers(self, talk: Api) -> None:
        talk.ok(talk.post("/scopes", {"id": "private"}), 201)
        for name in ("scope.private", "scope.none"):
            talk.refused(talk.post(f"/peers/{name}/chat", {"query": "x"}), ["path", "peer_id"])
            talk.refused(
                talk.post("/peers/alice/chat", {"query": "x", "target": name}), ["body", "target"]
            )

    @pytest.mark.parametrize(
        ("body", "loc"),
        [
            ({}, "query"),
            ({"query": ""}, "query"),
            ({"query": None}, "query"),
            ({"query": 5}, "query"),
            ({"query": "x" * 10_001}, "query"),
            ({"query": "x", "stream": "perhaps"}, "stream"),
            ({"query": "x", "reasoning_level": "extreme"}, "reasoning_level"),
            ({"query": "x", "reasoning_level": None}, "reasoning_level"),
            ({"query": "x", "response_format": "json"}, "response_format"),
            ({"query": "x", "response_format": {}}, "response_format"),
            ({"query": "x", "include_evidence": "perhaps"}, "include_evidence"),
            ({"query": "x", "session_id": 1}, "session_id"),
            ({"query": "x", "session_id": "a\0"}, "session_id"),
            ({"query": "x", "scope": []}, "scope"),
            ({"query": "x", "scope": ["s"] * 101}, "scope"),
            ({"query": "x", "scope": 1}, "scope"),
            ({"query": "x", "scope": "s", "session_id": "home"}, "scope"),
        ],
        ids=range(17),
    )
    def test_malformed_bodies_are_refused(self, api: Api, body: dict[str, Any], loc: str) -> None:
        for path in ("/peers/alice/chat", "/chat"):
            api.refused(api.post(path, body), ["body", loc])

    @pytest.mark.parametrize(
        ("body", "loc"),
        [
            ({"target": 1}, ["target"]),
            ({"filters": []}, ["filters"]),
            ({"filters": {"peer_id": "alice"}}, ["filters", "peer_id"]),
            ({"filters": {"session_id": "*"}}, ["filters", "session_id", 0]),
            ({"filters": {"session_id": {"ne": "home"}}}, ["filters", "session_id"]),
            (
                {"filters": {"session_id": [f"s{n}" for n in range(1001)]}},
                ["filters", "session_id"],
            ),
            (
                {"filters": {"session_id": ["home"]}, "session_id": "work"},
                ["filters", "session_id"],
            ),
            ({"filters": {"session_id": ["home"]}, "scope": "s"}, ["scope"]),
        ],
        ids=range(8),
    )
    def test_malformed_bodies_with_a_peer_are_refused(
        self, api: Api, body: dict[str, Any], loc: list[str | int]
    ) -> None:
        api.refused(api.post("/peers/alice/chat", {"query": "x", **body}), ["body", *loc])

    @pytest.mark.slow
    def test_the_longest_query_is_accepted(self, talk: Api) -> None:
        assert isinstance(ask(talk, "tortoise " * 1111)["content"], str)

    def test_null_fields_count_as_absent(self, talk: Api) -> None:
        nulls: dict[str, Any] = dict.fromkeys(
            ("session_id", "target", "filters", "scope", "response_format")
        )
        assert "Balthazar" in ask(talk, "tortoise", **nulls)["content"]
        assert (
            "Balthazar"
            in ask_all(talk, "tortoise", session_id=None, scope=None, target="ignored", filters=1)[
                "content"
            ]
        )


class TestNarrowKeys:
    """What the key of a peer may do beyond the route's own rule."""

    @pytest.fixture
    def alice(self, talk: Api) -> Principal:
        return Principal(workspace_id=talk.workspace, peer_id="alice")

    def test_a_peer_key_may_use_only_its_own_sessions(self, talk: Api, alice: Principal) -> None:
        talk.session("other")
        for options in (
            ChatOptions("x", session="home"),
            ChatOptions("x", filters={"session_id": ["home", "work"]}),
        ):
            assert ask_peer(talk.runtime, alice, talk.workspace, "alice", options).content()
        for options in (
            ChatOptions("x", session="other"),
            ChatOptions("x", filters={"session_id": ["home", "other"]}),
            ChatOptions("x", scope="private"),
        ):
            with pytest.raises(Unauthorised):
                ask_peer(talk.runtime, alice, talk.workspace, "alice", options)
        with pytest.raises(Unauthorised):
            ask_peer(talk.runtime, alice, talk.workspace, "bob", ChatOptions("x"))
