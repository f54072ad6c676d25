"""Workspaces, peers and sessions of the second generation."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.v2_client import V2Client
from support.api.v2_client import v2 as v2

METADATA = {"plan": "gold", "seats": 3, "deep": {"x": None}}


def test_get_or_create_answers_200(v2: V2Client) -> None:
    workspace = v2.create()
    assert v2.create() == workspace
    assert workspace["id"] == v2.workspace
    assert workspace["configuration"] == {}
    for noun in ("peers", "sessions"):
        first = v2.ok(v2.post(f"/{noun}", {"name": "a", "metadata": METADATA}))
        assert first["id"] == "a"
        assert v2.ok(v2.post(f"/{noun}", {"id": "a", "name": "ignored"})) == first
        assert first["metadata"] == METADATA


def test_existing_rows_are_changed_by_the_rules_of_each_resource(v2: V2Client) -> None:
    path = "//v2/workspaces"
    v2.ok(v2.post(path, {"id": v2.workspace, "metadata": {"a": 1}}))
    assert v2.ok(v2.post(path, {"id": v2.workspace, "metadata": {"a": 2}}))["metadata"] == {"a": 1}
    assert v2.ok(v2.put("", {"metadata": {"a": 3}}))["metadata"] == {"a": 3}
    v2.peer("p", metadata={"a": 1}, configuration={"observe_me": False, "b": 1})
    assert v2.peer("p", configuration={"c": 2})["configuration"] == {"c": 2}
    assert v2.ok(v2.put("/peers/p", {"metadata": {"z": 1}}))["metadata"] == {"z": 1}
    v2.session("s", metadata={"a": 1}, configuration={"summary": {"enabled": False}})
    again = v2.session("s", metadata={"a": 2}, configuration={"deriver": {"enabled": False}})
    assert again["metadata"] == {"a": 2}
    assert again["configuration"] == {"summary": {"enabled": False}, "deriver": {"enabled": False}}


def test_put_creates_missing_rows(v2: V2Client) -> None:
    assert v2.ok(v2.put("", {"metadata": {"a": 1}}))["id"] == v2.workspace
    assert v2.ok(v2.put("/peers/p", {}))["id"] == "p"
    assert v2.ok(v2.put("/sessions/s", {}))["is_active"] is True


class TestConfiguration:
    def test_deriver_corresponds_to_reasoning_in_the_newest_generation(self, v2: V2Client) -> None:
        configuration = {
            "deriver": {"enabled": False, "custom_instructions": "Only facts."},
            "dream": {"enabled": True, "other": 1},
            "own": [1],
        }
        shown = {
            "deriver": {"enabled": False, "custom_instructions": "Only facts."},
            "dream": {"enabled": True},
            "own": [1],
        }
        there = {"reasoning" if name == "deriver" else name: value for name, value in shown.items()}
        assert v2.ok(v2.put("", {"configuration": configuration}))["configuration"] == shown
        assert v2.session("s", configuration=configuration)["configuration"] == shown
        assert v2.ok(v2.newest.put("", {}))["configuration"] == there
        assert v2.ok(v2.newest.post("/sessions", {"id": "s"}))["configuration"] == there
        v2.ok(v2.newest.put("", {"configuration": {"reasoning": {"enabled": True}}}))
        assert v2.create()["configuration"]["deriver"] == {"enabled": True}

    def test_a_section_replaces_that_section_only_and_null_changes_nothing(
        self, v2: V2Client
    ) -> None:
        v2.ok(
            v2.put(
                "",
                {
                    "configuration": {
                        "deriver": {"enabled": False},
                        "summary": {"messages_per_short_summary": 12},
                    }
                },
            )
        )
        changed = v2.ok(
            v2.put(
                "", {"configuration": {"deriver": {"custom_instructions": "x"}, "summary": None}}
            )
        )
        assert changed["configuration"] == {
            "deriver": {"custom_instructions": "x"},
            "summary": {"messages_per_short_summary": 12},
        }

    @pytest.mark.parametrize("client", ["1.11.0", "js 2.2.0"])
    def test_newer_clients_use_the_name_reasoning(self, v2: V2Client, client: str) -> None:
        newer = v2.as_client(client)
        assert newer.session("s", configuration={"reasoning": {"enabled": False}})[
            "configuration"
        ] == {"reasoning": {"enabled": False}}
        assert v2.session("s")["configuration"] == {"deriver": {"enabled": False}}

    def test_deriver_overrides_reasoning_if_both_are_sent(self, v2: V2Client) -> None:
        both = {"reasoning": {"enabled": True}, "deriver": {"enabled": False}}
        assert v2.ok(v2.put("", {"configuration": both}))["configuration"] == {
            "deriver": {"enabled": False}
        }

    @pytest.mark.parametrize(
        "switch",
        [{"deriver": {"enabled": False}}, {"deriver_disabled": True}, {"deriver_enabled": False}],
    )
    def test_every_switch_of_this_generation_stops_the_deriver(
        self, v2: V2Client, switch: Any
    ) -> None:
        v2.session("quiet", configuration=switch)
        v2.say("quiet", ("p", "I live in Ulm."))
        v2.say("loud", ("p", "I live in Ulm."))
        assert (
            v2.ok(v2.get("/deriver/status", query_string={"session_id": "quiet"}))[
                "total_work_units"
            ]
            == 0
        )
        assert (
            v2.ok(v2.get("/deriver/status", query_string={"session_id": "loud"}))[
                "total_work_units"
            ]
            == 1
        )

    def test_the_rules_are_enforced(self, v2: V2Client) -> None:
        short = {"summary": {"messages_per_short_summary": 30, "messages_per_long_summary": 20}}
        problems = v2.refused(
            v2.put("", {"configuration": short}), ["body", "configuration", "summary"]
        )
        assert (
            problems[0]["msg"]
            == "messages_per_short_summary must be less than messages_per_long_summary"
        )
        for wrong in (
            {"deriver": {"enabled": "perhaps"}},
            {"reasoning\0": {"enabled": "perhaps"}},
            {"summary": {"messages_per_short_summary": 9}},
        ):
            v2.refused(v2.put("", {"configuration": wrong}))


class TestWorkspaces:
    def test_deleting_one_erases_everything_and_returns_it(self, v2: V2Client) -> None:
        workspace = v2.ok(
            v2.put("", {"metadata": {"a": 1}, "configuration": {"deriver": {"enabled": True}}})
        )
        v2.say("open", ("p", "Hello."))
        assert v2.ok(v2.delete("")) == workspace
        v2.missing(v2.delete(""), v2.workspace)
        assert v2.ids("/sessions/list") == []
        assert v2.create()["metadata"] == {}, "the id is free again"
        assert v2.ids("/peers/list") == []

    def test_are_listed_with_filters(self, v2: V2Client) -> None:
        v2.ok(v2.put("", {"metadata": {"team": "red"}}))
        answer = v2.ok(
            v2.post(
                "//v2/workspaces/list",
                {"filters": {"id": v2.workspace, "metadata": {"team": "red"}}},
            )
        )
        assert [item["id"] for item in answer["items"]] == [v2.workspace]
        assert (answer["total"], answer["page"], answer["size"], answer["pages"]) == (1, 1, 50, 1)
        none = v2.ok(v2.post("//v2/workspaces/list", {"filters": {"id": "nobody-has-this"}}))
        assert (none["items"], none["total"], none["pages"]) == ([], 0, 0)


class TestSessions:
    def test_peers_are_added_and_removed(self, v2: V2Client) -> None:
        v2.session("s", peers={"a": {"observe_others": True}, "b": {}})
        assert v2.ok(v2.post("/sessions/s/peers", {"c": {"observe_me": False}}))["id"] == "s"
        assert {peer["id"] for peer in v2.ok(v2.get("/sessions/s/peers"))["items"]} == {
            "a",
            "b",
            "c",
        }
        v2.ok(v2.delete("/sessions/s/peers", ["b", "nobody"]))
        v2.ok(v2.put("/sessions/s/peers", {"c": {}, "d": {}}))
        assert {peer["id"] for peer in v2.ok(v2.get("/sessions/s/peers"))["items"]} == {
            "c",
            "d",
        }
        assert v2.ids("/peers/a/sessions") == ["s"], "left, and still listed"
        v2.missing(v2.put("/sessions/none/peers", {}), "none")
        v2.refused(v2.post("/sessions", {"id": "t", "peers": ["a"]}), ["body", "peers"])

    def test_a_members_configuration_is_set_by_either_method(self, v2: V2Client) -> None:
        v2.session("s", peers={"a": {}})
        answer = v2.post("/sessions/s/peers/a/config", {"observe_me": False})
        assert (answer.status_code, answer.data) == (200, b"")
        answer = v2.put("/sessions/s/peers/a/config", {"observe_others": True})
        assert (answer.status_code, answer.data) == (204, b"")
        assert v2.ok(v2.get("/sessions/s/peers/a/config")) == {
            "observe_me": False,
            "observe_others": True,
        }
        v2.missing(v2.post("/sessions/s/peers/nobody/config", {}), "nobody")

    def test_at_most_ten_members_observe(self, v2: V2Client) -> None:
        answer = v2.post(
            "/sessions",
            {"id": "s", "peers": {f"p{number}": {"observe_others": True} for number in range(11)}},
        )
        assert "Maximum allowed is 10 observers" in v2.ok(answer, 400)["detail"]

    def test_deleting_one_hides_it(self, v2: V2Client) -> None:
        v2.say("s", ("p", "Hello."))
        assert v2.ok(v2.delete("/sessions/s"), 202) == {"message": "Session deleted successfully"}
        assert v2.ids("/sessions/list") == []
        v2.missing(v2.post("/sessions", {"id": "s"}), "s")
        v2.missing(v2.delete("/sessions/s"), "s")

    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_are_cloned(self, v2: V2Client, method: str) -> None:
        v2.session(
            "s",
            metadata={"a": 1},
            configuration={"deriver": {"enabled": True}},
            peers={"p": {"observe_me": False}},
        )
        messages = v2.say("s", ("p", "one"), ("p", "two"), ("p", "three"))
        clone = v2.ok(
            v2.call(method, "/sessions/s/clone", query_string={"message_id": messages[1]["id"]})
        )
        assert clone["id"] != "s"
        assert (clone["metadata"], clone["configuration"]) == (
            {"a": 1},
            {"deriver": {"enabled": True}},
        )
        copied = v2.ok(v2.post(f"/sessions/{clone['id']}/messages/list"))["items"]
        assert [message["content"] for message in copied] == ["one", "two"]
        assert [message["token_count"] for message in copied] == [
            message["token_count"] for message in messages[:2]
        ]
        assert v2.ok(v2.get(f"/sessions/{clone['id']}/peers/p/config"))["observe_me"] is False
        assert v2.ids("/sessions/list") == ["s", clone["id"]], (
            "an empty answer would be a lost clone"
        )
        v2.missing(v2.call(method, "/sessions/none/clone"))

    def test_an_empty_session_is_cloned(self, v2: V2Client) -> None:
        v2.session("s")
        clone = v2.ok(v2.get("/sessions/s/clone"))
        assert v2.ids("/sessions/list") == ["s", clone["id"]]


class TestPages:
    @pytest.mark.parametrize("noun", ["peers", "sessions"])
    def test_are_numbered_and_reversible(self, v2: V2Client, noun: str) -> None:
        names = [f"n{number}" for number in range(5)]
        for name in names:
            v2.ok(v2.post(f"/{noun}", {"id": name}))
        assert v2.ids(f"/{noun}/list", size=2, page=2) == names[2:4]
        assert v2.ids(f"/{noun}/list", reverse="true") == names[::-1]
        page = v2.ok(v2.post(f"/{noun}/list", {}, query_string={"size": 2, "page": 9}))
        assert (page["items"], page["total"], page["pages"]) == ([], 5, 3)
        for query in ({"page": 0}, {"size": 101}, {"size": "x"}):
            v2.refused(v2.post(f"/{noun}/list", {}, query_string=query))

    def test_of_unknown_parents_are_empty(self, v2: V2Client) -> None:
        for path in (
            "/peers/list",
            "/sessions/list",
            "/peers/p/sessions",
            "/sessions/s/messages/list",
            "/observations/list",
        ):
            assert v2.ok(v2.post(path))["items"] == []
        assert v2.ok(v2.get("/sessions/s/peers"))["items"] == []

    def test_of_peers_have_no_scopes(self, v2: V2Client) -> None:
        v2.peer("a")
        v2.session("s")
        v2.ok(v2.newest.post("/scopes", {"id": "team"}), 201)
        v2.ok(v2.newest.post("/scopes/team/sessions", {"session_ids": ["s"]}), 204)
        assert v2.ids("/peers/list") == ["a"]
        assert v2.ok(v2.post("/peers/list", {"kind": "scope"}))["total"] == 1, (
            "unknown keys are ignored"
        )
        assert v2.ok(v2.get("/sessions/s/peers"))["items"] == []
        v2.refused(v2.put("/peers/scope.team", {}))


class TestNames:
    @pytest.mark.parametrize("name", ["", "two words", "a/b", "ä", "x" * 513, "scope.x", "a\n"])
    def test_invalid_names_are_refused_everywhere(self, v2: V2Client, name: str) -> None:
        v2.refused(v2.post("/peers", {"id": name}), ["body", "id"])
        v2.refused(v2.post("/sessions", {"id": name}), ["body", "id"])
        v2.refused(
            v2.post("/sessions/s/messages/", {"messages": [{"peer_id": name, "content": "x"}]})
        )

    def test_long_names_are_accepted(self, v2: V2Client) -> None:
        name = "x" * 512
        assert v2.peer(name)["id"] == v2.session(name)["id"] == name

    def test_invalid_names_in_paths_are_refused(self, v2: V2Client) -> None:
        v2.refused(v2.put("/peers/two%20words", {}))
        v2.refused(v2.put("//v2/workspaces/two%20words", {}))
