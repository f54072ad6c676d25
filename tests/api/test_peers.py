"""Peers and their cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from api.conftest import Api


def test_create_answers_all_fields_in_order_and_creates_the_workspace(api: Api) -> None:
    peer = api.peer("alice", metadata={"a": 1}, configuration={"observe_me": False, "mine": 1})
    assert list(peer) == ["id", "uid", "workspace_id", "created_at", "metadata", "configuration"]
    assert peer["id"] == "alice"
    assert peer["workspace_id"] == api.workspace
    assert peer["metadata"] == {"a": 1}
    assert peer["configuration"] == {"observe_me": False, "mine": 1}
    assert len(peer["uid"]) == 21
    api.ok(api.post("//v3/workspaces", {"id": api.workspace}), 200)


def test_an_existing_peer_gets_the_sent_fields(api: Api) -> None:
    peer = api.peer("alice", metadata={"a": 1}, configuration={"observe_me": False})
    assert api.ok(api.post("/peers", {"id": "alice"})) == peer
    again = api.ok(api.post("/peers", {"id": "alice", "metadata": {"b": 2}}))
    assert again["metadata"] == {"b": 2}
    assert again["configuration"] == {"observe_me": False}
    again = api.ok(api.post("/peers", {"id": "alice", "configuration": {}}))
    assert again["metadata"] == {"b": 2}
    assert again["configuration"] == {}
    assert again["uid"] == peer["uid"]


def test_update_creates_and_replaces(api: Api) -> None:
    peer = api.ok(api.put("/peers/bob", {"metadata": {"a": 1}, "configuration": {"x": {"y": 1}}}))
    assert peer["id"] == "bob"
    changed = api.ok(api.put("/peers/bob", {"configuration": {"z": 1}}))
    assert changed["metadata"] == {"a": 1}
    assert changed["configuration"] == {"z": 1}, "a peer's configuration is replaced, never merged"
    assert api.ok(api.put("/peers/bob", {"metadata": None, "configuration": None})) == changed


def test_name_is_accepted_for_id(api: Api) -> None:
    assert api.ok(api.post("/peers", {"name": "alice"}), 201)["id"] == "alice"


@pytest.mark.parametrize("name", ["", "a b", "scope.x", "a\0b", "x" * 513])
def test_bad_names_are_refused(api: Api, name: str) -> None:
    api.refused(api.post("/peers", {"id": name}), ["body", "id"])


def test_update_of_a_bad_name_is_refused(api: Api) -> None:
    for name in ("a%20b", "scope.x", "%F0%9F%98%80"):
        api.refused(api.put(f"/peers/{name}", {}), ["path", "peer_id"])


def test_list_is_oldest_first_and_reversible(api: Api) -> None:
    for name in ("c", "a", "b"):
        api.peer(name)
    assert api.ids("/peers/list") == ["c", "a", "b"]
    assert api.ids("/peers/list", reverse="true") == ["b", "a", "c"]


def test_list_of_an_unknown_workspace_is_empty_and_creates_nothing(api: Api) -> None:
    assert api.ok(api.post("/peers/list")) == {
        "items": [],
        "total": 0,
        "page": 1,
        "size": 50,
        "pages": 0,
    }
    api.create()


def test_list_by_kind(api: Api) -> None:
    api.session("s", scopes=["mine"], peers={"alice": {}})
    assert api.ids("/peers/list") == ["alice"]
    assert api.ids("/peers/list", {"kind": "scope"}) == ["scope.mine"]
    assert sorted(api.ids("/peers/list", {"kind": "all"})) == ["alice", "scope.mine"]
    assert api.ids("/peers/list", {"kind": None}) == ["alice"]
    api.refused(api.post("/peers/list", {"kind": "peer"}), ["body", "kind"])


def test_list_by_filters(api: Api) -> None:
    api.peer("alice", metadata={"tier": 1})
    api.peer("bob", metadata={"tier": 2})
    assert api.ids("/peers/list", {"filters": {"metadata": {"tier": {"gt": 1}}}}) == ["bob"]
    assert api.ids("/peers/list", {"filters": {"id": {"in": ["alice"]}}}) == ["alice"]
    assert api.ids("/peers/list", {"filters": {"workspace_id": api.workspace}}) == ["alice", "bob"]
    assert api.ids("/peers/list", {"filters": {"workspace_id": "elsewhere"}}) == []
    api.refused(api.post("/peers/list", {"filters": {"name": "alice"}}))
    api.refused(api.post("/peers/list", {"filters": {"configuration": {}}}))


def test_a_peers_sessions_include_those_it_left(api: Api) -> None:
    api.session("s1", peers={"alice": {}})
    api.session("s2", peers={"alice": {}, "bob": {}})
    api.session("s3", peers={"bob": {}})
    api.ok(api.delete("/sessions/s1/peers", ["alice"]))
    assert api.ids("/peers/alice/sessions") == ["s1", "s2"]
    assert api.ids("/peers/alice/sessions", reverse="1") == ["s2", "s1"]
    assert api.ids("/peers/alice/sessions", {"filters": {"id": "s2"}}) == ["s2"]
    page = api.ok(api.post("/peers/alice/sessions", query_string={"size": 1, "page": 2}))
    assert [item["id"] for item in page["items"]] == ["s2"]
    assert (page["total"], page["pages"]) == (2, 2)
    assert api.ok(api.post("/peers/nobody/sessions"))["items"] == []


class TestCard:
    def test_of_an_unknown_peer_is_404(self, api: Api) -> None:
        api.missing(api.get("/peers/alice/card"), "alice")

    def test_is_null_until_it_is_written(self, api: Api) -> None:
        api.peer("alice")
        assert api.ok(api.get("/peers/alice/card")) == {"peer_card": None}
        assert api.ok(api.get("/peers/alice/card", query_string={"target": "nobody"})) == {
            "peer_card": None
        }

    def test_write_creates_the_peer_and_shows_what_was_stored(self, api: Api) -> None:
        answer = api.ok(
            api.put(
                "/peers/alice/card", {"peer_card": ["Name: Alice", "name:  ALICE", "Likes tea\0"]}
            )
        )
        assert answer == {"peer_card": ["Name: Alice", "Likes tea"]}
        assert api.ok(api.get("/peers/alice/card")) == answer

    def test_keeps_forty_lines_at_most(self, api: Api) -> None:
        lines = [f"line {number}" for number in range(50)]
        assert api.ok(api.put("/peers/alice/card", {"peer_card": lines}))["peer_card"] == lines[:40]

    def test_about_another_peer(self, api: Api) -> None:
        api.ok(api.put("/peers/alice/card", {"peer_card": ["own"]}))
        api.ok(
            api.put(
                "/peers/alice/card", {"peer_card": ["about bob"]}, query_string={"target": "bob"}
            )
        )
        assert api.ok(api.get("/peers/alice/card"))["peer_card"] == ["own"]
        assert api.ok(api.get("/peers/alice/card?target=bob"))["peer_card"] == ["about bob"]
        assert api.ok(api.get("/peers/alice/card?target=alice"))["peer_card"] == ["own"]
        assert api.ok(api.get("/peers/alice/card?target="))["peer_card"] == ["own"], (
            "an empty target is none"
        )
        assert api.ids("/peers/list") == ["alice"], "the target need not exist and is not created"

    @pytest.mark.parametrize("card", [None, "x", {}, [1], [None], [["x"]]])
    def test_of_the_wrong_shape_is_refused(self, api: Api, card: object) -> None:
        problems = api.refused(api.put("/peers/alice/card", {"peer_card": card}))
        assert problems[0]["loc"][:2] == ["body", "peer_card"]

    def test_can_be_emptied(self, api: Api) -> None:
        api.ok(api.put("/peers/alice/card", {"peer_card": ["x"]}))
        assert api.ok(api.put("/peers/alice/card", {"peer_card": []})) == {"peer_card": []}

    def test_about_a_scope_is_refused(self, api: Api) -> None:
        api.session("s", scopes=["mine"], peers={"alice": {}})
        api.refused(api.put("/peers/alice/card?target=scope.mine", {"peer_card": ["x"]}))
        assert api.ok(api.get("/peers/scope.mine/card")) == {"peer_card": None}

    def test_by_the_short_path_of_the_second_generation(self, api: Api) -> None:
        api.ok(api.put("/peers/alice/card", {"peer_card": ["own"]}))
        api.ok(api.put("/peers/alice/card?target=bob", {"peer_card": ["about bob"]}))
        url = f"//v2/peers/alice/card?workspace_id={api.workspace}"
        assert api.ok(api.get(url)) == {"peer_card": ["own"]}
        assert api.ok(api.get(url + "&target=bob")) == {"peer_card": ["about bob"]}
        api.ok(api.put("//v3/workspaces/default/peers/carol/card", {"peer_card": ["carol"]}))
        assert api.ok(api.get("//v2/peers/carol/card")) == {"peer_card": ["carol"]}
