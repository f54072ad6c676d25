"""Sessions and the peers in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from memservice.domain.records import DELETING

if TYPE_CHECKING:
    from api.conftest import Api
    from memservice.spi.storage import Transaction


def begin_deletion(api: Api, session: str) -> None:
    """Put the session in the state in which it waits for its erasure."""

    def change(tx: Transaction) -> None:
        row = tx.workspaces.locate(api.workspace, session_id=session).session
        assert row is not None
        tx.sessions.save(replace(row, state=DELETING))

    api.runtime.storage.write(change)


def members(api: Api, session: str = "s") -> list[str]:
    return [peer["id"] for peer in api.ok(api.get(f"/sessions/{session}/peers"))["items"]]


def config(api: Api, peer: str, session: str = "s") -> Any:
    return api.ok(api.get(f"/sessions/{session}/peers/{peer}/config"))


def test_create_answers_all_fields_in_order_and_creates_what_is_missing(api: Api) -> None:
    session = api.session(
        "s",
        metadata={"a": 1},
        configuration={"dream": {"enabled": False}},
        peers={"alice": {"observe_others": True}},
    )
    assert list(session) == [
        "id",
        "uid",
        "is_active",
        "workspace_id",
        "metadata",
        "configuration",
        "created_at",
    ]
    assert session["id"] == "s"
    assert session["is_active"] is True
    assert session["workspace_id"] == api.workspace
    assert session["metadata"] == {"a": 1}
    assert session["configuration"] == {"dream": {"enabled": False}}
    assert members(api) == ["alice"]
    assert config(api, "alice") == {"observe_me": None, "observe_others": True}


def test_an_existing_session_is_updated(api: Api) -> None:
    session = api.session(
        "s",
        metadata={"a": 1},
        configuration={"dream": {"enabled": False}, "summary": {"enabled": False}},
        peers={"alice": {}},
    )
    changed = api.ok(
        api.post(
            "/sessions",
            {
                "id": "s",
                "metadata": {"b": 2},
                "configuration": {"summary": {"enabled": True}},
                "peers": {"bob": {}},
            },
        )
    )
    assert changed["uid"] == session["uid"]
    assert changed["metadata"] == {"b": 2}
    assert changed["configuration"] == {"dream": {"enabled": False}, "summary": {"enabled": True}}
    assert sorted(members(api)) == ["alice", "bob"]
    assert api.ok(api.post("/sessions", {"id": "s"})) == changed


def test_name_and_peer_names_are_aliases(api: Api) -> None:
    session = api.ok(
        api.post("/sessions", {"name": "s", "peer_names": {"alice": {"observe_me": False}}}), 201
    )
    assert session["id"] == "s"
    assert members(api) == ["alice"]
    assert config(api, "alice") == {"observe_me": False, "observe_others": None}


def test_update_creates_replaces_and_merges(api: Api) -> None:
    session = api.ok(
        api.put(
            "/sessions/s", {"metadata": {"a": 1}, "configuration": {"dream": {"enabled": False}}}
        )
    )
    assert session["id"] == "s"
    changed = api.ok(api.put("/sessions/s", {"configuration": {"reasoning": {"enabled": False}}}))
    assert changed["metadata"] == {"a": 1}
    assert changed["configuration"] == {
        "dream": {"enabled": False},
        "reasoning": {"enabled": False},
    }
    assert api.ok(api.put("/sessions/s", {"metadata": {}}))["metadata"] == {}


@pytest.mark.parametrize("name", ["", "a b", "x" * 513, "a\0"])
def test_bad_names_are_refused(api: Api, name: str) -> None:
    api.refused(api.post("/sessions", {"id": name}), ["body", "id"])


def test_bad_peer_names_are_refused_and_nothing_is_created(api: Api) -> None:
    api.create()
    api.refused(
        api.post("/sessions", {"id": "s", "peers": {"ok": {}, "not ok": {}, "scope.x": {}}})
    )
    assert api.ids("/sessions/list") == []
    assert api.ids("/peers/list") == []


@pytest.mark.parametrize(
    ("peers", "loc"),
    [
        (["alice"], ["body", "peers"]),
        ({"alice": None}, ["body", "peers", "alice"]),
        ({"alice": []}, ["body", "peers", "alice"]),
        ({"alice": {"observe_me": "perhaps"}}, ["body", "peers", "alice", "observe_me"]),
    ],
)
def test_peers_of_the_wrong_shape_are_refused(
    api: Api, peers: object, loc: list[str | int]
) -> None:
    api.refused(api.post("/sessions", {"id": "s", "peers": peers}), loc)


def test_list_shows_active_sessions_only(api: Api) -> None:
    for name in ("b", "a", "c"):
        api.session(name, metadata={"n": name})
    begin_deletion(api, "a")
    assert api.ids("/sessions/list") == ["b", "c"]
    assert api.ids("/sessions/list", reverse="true") == ["c", "b"]
    assert api.ids("/sessions/list", {"filters": {"is_active": True}}) == ["b", "c"]
    assert api.ids("/sessions/list", {"filters": {"is_active": False}}) == []
    assert api.ids("/sessions/list", {"filters": {"metadata": {"n": "c"}}}) == ["c"]
    api.refused(api.post("/sessions/list", {"filters": {"is_active": "true"}}))


def test_a_session_that_is_being_erased_is_404_for_writes(api: Api) -> None:
    api.say("s", ("alice", "hello"))
    begin_deletion(api, "s")
    api.missing(api.post("/sessions", {"id": "s"}), "s")
    api.missing(api.put("/sessions/s", {"metadata": {}}), "s")
    api.missing(
        api.post("/sessions/s/messages", {"messages": [{"content": "x", "peer_id": "alice"}]}), "s"
    )
    api.missing(api.post("/sessions/s/peers", {"bob": {}}), "s")
    assert len(api.ids("/sessions/s/messages/list")) == 1, "reads still answer"
    assert [item["is_active"] for item in api.ok(api.post("/peers/alice/sessions"))["items"]] == [
        False
    ]


class TestMembers:
    def test_add_creates_session_and_peers_and_keeps_an_active_members_config(
        self, api: Api
    ) -> None:
        added = api.ok(api.post("/sessions/s/peers", {"alice": {"observe_me": False}}))
        assert added["id"] == "s"
        api.ok(api.post("/sessions/s/peers", {"alice": {"observe_me": True}, "bob": {}}))
        assert sorted(members(api)) == ["alice", "bob"]
        assert config(api, "alice")["observe_me"] is False

    def test_a_returning_member_takes_the_new_config(self, api: Api) -> None:
        api.ok(api.post("/sessions/s/peers", {"alice": {"observe_me": False}}))
        api.ok(api.delete("/sessions/s/peers", ["alice"]))
        assert members(api) == []
        assert config(api, "alice")["observe_me"] is False, "readable for members that left"
        api.ok(api.post("/sessions/s/peers", {"alice": {"observe_others": True}}))
        assert config(api, "alice") == {"observe_me": None, "observe_others": True}

    def test_set_replaces_ordinary_members_of_an_existing_session(self, api: Api) -> None:
        api.missing(api.put("/sessions/s/peers", {"alice": {}}), "s")
        api.session("s", peers={"alice": {}, "bob": {}}, scopes=["mine"])
        api.ok(api.put("/sessions/s/peers", {"bob": {}, "carol": {}}))
        assert sorted(members(api)) == ["bob", "carol"]
        api.ok(api.put("/sessions/s/peers", {}))
        assert members(api) == []

    def test_remove_takes_an_array_and_ignores_unknown_names(self, api: Api) -> None:
        api.missing(api.delete("/sessions/s/peers", ["alice"]), "s")
        api.session("s", peers={"alice": {}, "bob": {}})
        assert (
            api.ok(api.delete("/sessions/s/peers", ["alice", "nobody", "scope.none"]))["id"] == "s"
        )
        assert members(api) == ["bob"]

    @pytest.mark.parametrize("body", [{}, {"peers": ["alice"]}, "alice", [1], [None], None, 3])
    def test_remove_refuses_anything_else(self, api: Api, body: object) -> None:
        api.session("s")
        problems = api.refused(api.delete("/sessions/s/peers", body))
        assert problems[0]["loc"][0] == "body"

    @pytest.mark.parametrize("body", [[], "alice", 3, None, {"alice": 1}])
    @pytest.mark.parametrize("method", ["POST", "PUT"])
    def test_add_and_set_refuse_anything_but_an_object(
        self, api: Api, method: str, body: object
    ) -> None:
        api.session("s")
        problems = api.refused(api.call(method, "/sessions/s/peers", body))
        assert problems[0]["loc"][0] == "body"

    def test_list_of_an_unknown_session_is_empty(self, api: Api) -> None:
        assert api.ok(api.get("/sessions/s/peers")) == {
            "items": [],
            "total": 0,
            "page": 1,
            "size": 50,
            "pages": 0,
        }

    def test_list_leaves_out_scopes_and_can_be_paged(self, api: Api) -> None:
        api.session("s", peers={"alice": {}}, scopes=["mine"])
        api.ok(api.post("/sessions/s/peers", {"bob": {}}))
        page = api.ok(api.get("/sessions/s/peers?size=1&page=2"))
        assert [peer["id"] for peer in page["items"]] == ["bob"]
        assert (page["total"], page["pages"]) == (2, 2)
        page = api.ok(api.get("/sessions/s/peers?reverse=true"))
        assert [peer["id"] for peer in page["items"]] == ["bob", "alice"]
        assert list(page["items"][0]) == [
            "id",
            "uid",
            "workspace_id",
            "created_at",
            "metadata",
            "configuration",
        ]

    def test_config_of_a_non_member_is_404(self, api: Api) -> None:
        api.session("s")
        api.peer("alice")
        api.missing(api.get("/sessions/s/peers/alice/config"))
        api.missing(api.get("/sessions/s/peers/nobody/config"))
        api.missing(api.get("/sessions/none/peers/alice/config"))

    def test_put_config_merges_and_answers_nothing(self, api: Api) -> None:
        api.session("s", peers={"alice": {"observe_me": False}})
        answer = api.put(
            "/sessions/s/peers/alice/config", {"observe_others": True, "observe_me": None}
        )
        assert answer.status_code == 204
        assert answer.data == b""
        assert "Content-Type" not in answer.headers
        assert config(api, "alice") == {"observe_me": False, "observe_others": True}

    def test_put_config_of_a_non_member_joins_it(self, api: Api) -> None:
        api.session("s")
        api.peer("alice")
        assert api.put("/sessions/s/peers/alice/config", {"observe_me": True}).status_code == 204
        assert members(api) == ["alice"]
        assert config(api, "alice") == {"observe_me": True, "observe_others": None}

    def test_put_config_of_unknown_things_is_404(self, api: Api) -> None:
        api.missing(api.put("/sessions/s/peers/alice/config", {}), "s")
        api.session("s")
        api.missing(api.put("/sessions/s/peers/alice/config", {}), "alice")

    def test_at_most_ten_members_may_observe_others(self, api: Api) -> None:
        observing = {f"p{number}": {"observe_others": True} for number in range(10)}
        api.session("s", peers=observing, scopes=["mine"])
        one_more = {"late": {"observe_others": True}}
        for refused in (
            api.post("/sessions/s/peers", one_more),
            api.put("/sessions/s/peers", observing | one_more),
            api.post("/sessions", {"id": "s", "peers": one_more}),
            api.post("/sessions", {"id": "other", "peers": observing | one_more}),
        ):
            detail = api.ok(refused, 400)["detail"]
            assert "10" in detail
            assert "11" in detail
        api.ok(api.post("/sessions/s/peers", {"late": {}}))
        assert (
            "10"
            in api.ok(api.put("/sessions/s/peers/late/config", {"observe_others": True}), 400)[
                "detail"
            ]
        )
        assert config(api, "late")["observe_others"] is None
        assert "other" not in api.ids("/sessions/list"), "a refused request stores nothing"

    def test_scopes_cannot_be_members(self, api: Api) -> None:
        api.session("s", scopes=["mine"])
        api.refused(api.post("/sessions/s/peers", {"scope.mine": {}}))
        api.refused(api.put("/sessions/s/peers", {"scope.mine": {}}))
        api.refused(api.delete("/sessions/s/peers", ["scope.mine"]))
        api.refused(api.get("/sessions/s/peers/scope.mine/config"))
        api.refused(api.put("/sessions/s/peers/scope.mine/config", {}))


def test_a_session_can_be_created_with_scopes(api: Api) -> None:
    api.session("s", scopes=["one", "two"])
    assert api.ids("/peers/list", {"kind": "scope"}) == ["scope.one", "scope.two"]
    assert api.ids("/peers/scope.one/sessions") == ["s"]
    api.refused(api.post("/sessions", {"id": "t", "scopes": ["bad name"]}))
    api.refused(api.post("/sessions", {"id": "t", "scopes": [1]}), ["body", "scopes", 0])
    api.refused(
        api.post("/sessions", {"id": "t", "scopes": [f"s{number}" for number in range(101)]}),
        ["body", "scopes"],
    )
