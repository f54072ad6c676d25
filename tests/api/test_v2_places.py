"""Workspaces, peers and sessions of the second generation."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.second import Second
from support.api.second import second as second

METADATA = {"plan": "gold", "seats": 3, "deep": {"x": None}}


def test_get_or_create_answers_200(second: Second) -> None:
    made = second.create()
    assert second.create() == made
    assert made["id"] == second.workspace
    assert made["configuration"] == {}
    for noun in ("peers", "sessions"):
        first = second.ok(second.post(f"/{noun}", {"name": "a", "metadata": METADATA}))
        assert first["id"] == "a"
        assert second.ok(second.post(f"/{noun}", {"id": "a", "name": "ignored"})) == first
        assert first["metadata"] == METADATA


def test_existing_rows_are_changed_by_the_rules_of_each_resource(second: Second) -> None:
    path = "//v2/workspaces"
    second.ok(second.post(path, {"id": second.workspace, "metadata": {"a": 1}}))
    assert second.ok(second.post(path, {"id": second.workspace, "metadata": {"a": 2}}))[
        "metadata"
    ] == {"a": 1}
    assert second.ok(second.put("", {"metadata": {"a": 3}}))["metadata"] == {"a": 3}
    second.peer("p", metadata={"a": 1}, configuration={"observe_me": False, "b": 1})
    assert second.peer("p", configuration={"c": 2})["configuration"] == {"c": 2}
    assert second.ok(second.put("/peers/p", {"metadata": {"z": 1}}))["metadata"] == {"z": 1}
    second.session("s", metadata={"a": 1}, configuration={"summary": {"enabled": False}})
    again = second.session("s", metadata={"a": 2}, configuration={"deriver": {"enabled": False}})
    assert again["metadata"] == {"a": 2}
    assert again["configuration"] == {"summary": {"enabled": False}, "deriver": {"enabled": False}}


def test_put_creates_missing_rows(second: Second) -> None:
    assert second.ok(second.put("", {"metadata": {"a": 1}}))["id"] == second.workspace
    assert second.ok(second.put("/peers/p", {}))["id"] == "p"
    assert second.ok(second.put("/sessions/s", {}))["is_active"] is True


class TestConfiguration:
    def test_deriver_corresponds_to_reasoning_in_the_newest_generation(
        self, second: Second
    ) -> None:
        given = {
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
        assert second.ok(second.put("", {"configuration": given}))["configuration"] == shown
        assert second.session("s", configuration=given)["configuration"] == shown
        assert second.ok(second.newest.put("", {}))["configuration"] == there
        assert second.ok(second.newest.post("/sessions", {"id": "s"}))["configuration"] == there
        second.ok(second.newest.put("", {"configuration": {"reasoning": {"enabled": True}}}))
        assert second.create()["configuration"]["deriver"] == {"enabled": True}

    def test_a_section_replaces_that_section_only_and_null_changes_nothing(
        self, second: Second
    ) -> None:
        second.ok(
            second.put(
                "",
                {
                    "configuration": {
                        "deriver": {"enabled": False},
                        "summary": {"messages_per_short_summary": 12},
                    }
                },
            )
        )
        changed = second.ok(
            second.put(
                "", {"configuration": {"deriver": {"custom_instructions": "x"}, "summary": None}}
            )
        )
        assert changed["configuration"] == {
            "deriver": {"custom_instructions": "x"},
            "summary": {"messages_per_short_summary": 12},
        }

    @pytest.mark.parametrize("client", ["1.11.0", "js 2.2.0"])
    def test_newer_clients_use_the_name_reasoning(self, second: Second, client: str) -> None:
        newer = second.as_client(client)
        assert newer.session("s", configuration={"reasoning": {"enabled": False}})[
            "configuration"
        ] == {"reasoning": {"enabled": False}}
        assert second.session("s")["configuration"] == {"deriver": {"enabled": False}}

    def test_deriver_overrides_reasoning_if_both_are_sent(self, second: Second) -> None:
        both = {"reasoning": {"enabled": True}, "deriver": {"enabled": False}}
        assert second.ok(second.put("", {"configuration": both}))["configuration"] == {
            "deriver": {"enabled": False}
        }

    @pytest.mark.parametrize(
        "switch",
        [{"deriver": {"enabled": False}}, {"deriver_disabled": True}, {"deriver_enabled": False}],
    )
    def test_every_switch_of_this_generation_stops_the_deriver(
        self, second: Second, switch: Any
    ) -> None:
        second.session("quiet", configuration=switch)
        second.say("quiet", ("p", "I live in Ulm."))
        second.say("loud", ("p", "I live in Ulm."))
        assert (
            second.ok(second.get("/deriver/status", query_string={"session_id": "quiet"}))[
                "total_work_units"
            ]
            == 0
        )
        assert (
            second.ok(second.get("/deriver/status", query_string={"session_id": "loud"}))[
                "total_work_units"
            ]
            == 1
        )

    def test_the_rules_are_enforced(self, second: Second) -> None:
        short = {"summary": {"messages_per_short_summary": 30, "messages_per_long_summary": 20}}
        problems = second.refused(
            second.put("", {"configuration": short}), ["body", "configuration", "summary"]
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
            second.refused(second.put("", {"configuration": wrong}))


class TestWorkspaces:
    def test_deleting_one_erases_everything_and_returns_it(self, second: Second) -> None:
        made = second.ok(
            second.put("", {"metadata": {"a": 1}, "configuration": {"deriver": {"enabled": True}}})
        )
        second.say("open", ("p", "Hello."))
        assert second.ok(second.delete("")) == made
        second.missing(second.delete(""), second.workspace)
        assert second.ids("/sessions/list") == []
        assert second.create()["metadata"] == {}, "the id is free again"
        assert second.ids("/peers/list") == []

    def test_are_listed_with_filters(self, second: Second) -> None:
        second.ok(second.put("", {"metadata": {"team": "red"}}))
        listed = second.ok(
            second.post(
                "//v2/workspaces/list",
                {"filters": {"id": second.workspace, "metadata": {"team": "red"}}},
            )
        )
        assert [item["id"] for item in listed["items"]] == [second.workspace]
        assert (listed["total"], listed["page"], listed["size"], listed["pages"]) == (1, 1, 50, 1)
        none = second.ok(
            second.post("//v2/workspaces/list", {"filters": {"id": "nobody-has-this"}})
        )
        assert (none["items"], none["total"], none["pages"]) == ([], 0, 0)


class TestSessions:
    def test_peers_are_added_and_removed(self, second: Second) -> None:
        second.session("s", peers={"a": {"observe_others": True}, "b": {}})
        assert (
            second.ok(second.post("/sessions/s/peers", {"c": {"observe_me": False}}))["id"] == "s"
        )
        assert {peer["id"] for peer in second.ok(second.get("/sessions/s/peers"))["items"]} == {
            "a",
            "b",
            "c",
        }
        second.ok(second.delete("/sessions/s/peers", ["b", "nobody"]))
        second.ok(second.put("/sessions/s/peers", {"c": {}, "d": {}}))
        assert {peer["id"] for peer in second.ok(second.get("/sessions/s/peers"))["items"]} == {
            "c",
            "d",
        }
        assert second.ids("/peers/a/sessions") == ["s"], "left, and still listed"
        second.missing(second.put("/sessions/none/peers", {}), "none")
        second.refused(second.post("/sessions", {"id": "t", "peers": ["a"]}), ["body", "peers"])

    def test_a_members_configuration_is_set_by_either_method(self, second: Second) -> None:
        second.session("s", peers={"a": {}})
        answer = second.post("/sessions/s/peers/a/config", {"observe_me": False})
        assert (answer.status_code, answer.data) == (200, b"")
        answer = second.put("/sessions/s/peers/a/config", {"observe_others": True})
        assert (answer.status_code, answer.data) == (204, b"")
        assert second.ok(second.get("/sessions/s/peers/a/config")) == {
            "observe_me": False,
            "observe_others": True,
        }
        second.missing(second.post("/sessions/s/peers/nobody/config", {}), "nobody")

    def test_at_most_ten_members_observe(self, second: Second) -> None:
        answer = second.post(
            "/sessions",
            {"id": "s", "peers": {f"p{number}": {"observe_others": True} for number in range(11)}},
        )
        assert "Maximum allowed is 10 observers" in second.ok(answer, 400)["detail"]

    def test_deleting_one_hides_it(self, second: Second) -> None:
        second.say("s", ("p", "Hello."))
        assert second.ok(second.delete("/sessions/s"), 202) == {
            "message": "Session deleted successfully"
        }
        assert second.ids("/sessions/list") == []
        second.missing(second.post("/sessions", {"id": "s"}), "s")
        second.missing(second.delete("/sessions/s"), "s")

    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_are_cloned(self, second: Second, method: str) -> None:
        second.session(
            "s",
            metadata={"a": 1},
            configuration={"deriver": {"enabled": True}},
            peers={"p": {"observe_me": False}},
        )
        said = second.say("s", ("p", "one"), ("p", "two"), ("p", "three"))
        clone = second.ok(
            second.call(method, "/sessions/s/clone", query_string={"message_id": said[1]["id"]})
        )
        assert clone["id"] != "s"
        assert (clone["metadata"], clone["configuration"]) == (
            {"a": 1},
            {"deriver": {"enabled": True}},
        )
        copied = second.ok(second.post(f"/sessions/{clone['id']}/messages/list"))["items"]
        assert [message["content"] for message in copied] == ["one", "two"]
        assert [message["token_count"] for message in copied] == [
            message["token_count"] for message in said[:2]
        ]
        assert (
            second.ok(second.get(f"/sessions/{clone['id']}/peers/p/config"))["observe_me"] is False
        )
        assert second.ids("/sessions/list") == ["s", clone["id"]], (
            "an empty answer would be a lost clone"
        )
        second.missing(second.call(method, "/sessions/none/clone"))

    def test_an_empty_session_is_cloned(self, second: Second) -> None:
        second.session("s")
        clone = second.ok(second.get("/sessions/s/clone"))
        assert second.ids("/sessions/list") == ["s", clone["id"]]


class TestPages:
    @pytest.mark.parametrize("noun", ["peers", "sessions"])
    def test_are_numbered_and_reversible(self, second: Second, noun: str) -> None:
        names = [f"n{number}" for number in range(5)]
        for name in names:
            second.ok(second.post(f"/{noun}", {"id": name}))
        assert second.ids(f"/{noun}/list", size=2, page=2) == names[2:4]
        assert second.ids(f"/{noun}/list", reverse="true") == names[::-1]
        page = second.ok(second.post(f"/{noun}/list", {}, query_string={"size": 2, "page": 9}))
        assert (page["items"], page["total"], page["pages"]) == ([], 5, 3)
        for query in ({"page": 0}, {"size": 101}, {"size": "x"}):
            second.refused(second.post(f"/{noun}/list", {}, query_string=query))

    def test_of_unknown_parents_are_empty(self, second: Second) -> None:
        for path in (
            "/peers/list",
            "/sessions/list",
            "/peers/p/sessions",
            "/sessions/s/messages/list",
            "/observations/list",
        ):
            assert second.ok(second.post(path))["items"] == []
        assert second.ok(second.get("/sessions/s/peers"))["items"] == []

    def test_of_peers_have_no_scopes(self, second: Second) -> None:
        second.peer("a")
        second.session("s")
        second.ok(second.newest.post("/scopes", {"id": "team"}), 201)
        second.ok(second.newest.post("/scopes/team/sessions", {"session_ids": ["s"]}), 204)
        assert second.ids("/peers/list") == ["a"]
        assert second.ok(second.post("/peers/list", {"kind": "scope"}))["total"] == 1, (
            "unknown keys are ignored"
        )
        assert second.ok(second.get("/sessions/s/peers"))["items"] == []
        second.refused(second.put("/peers/scope.team", {}))


class TestNames:
    @pytest.mark.parametrize("name", ["", "two words", "a/b", "ä", "x" * 513, "scope.x", "a\n"])
    def test_invalid_names_are_refused_everywhere(self, second: Second, name: str) -> None:
        second.refused(second.post("/peers", {"id": name}), ["body", "id"])
        second.refused(second.post("/sessions", {"id": name}), ["body", "id"])
        second.refused(
            second.post("/sessions/s/messages/", {"messages": [{"peer_id": name, "content": "x"}]})
        )

    def test_long_names_are_accepted(self, second: Second) -> None:
        name = "x" * 512
        assert second.peer(name)["id"] == second.session(name)["id"] == name

    def test_invalid_names_in_paths_are_refused(self, second: Second) -> None:
        second.refused(second.put("/peers/two%20words", {}))
        second.refused(second.put("//v2/workspaces/two%20words", {}))
