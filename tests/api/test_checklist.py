"""The contract's checklist of easy mistakes, one test each. Those about routes that are not served
yet are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from api.conftest import Api


def test_01_workspaces_ignore_the_body_of_an_existing_id_peers_and_sessions_update(
    api: Api,
) -> None:
    api.ok(api.post("//v3/workspaces", {"id": api.workspace, "metadata": {"v": 1}}), 201)
    assert api.ok(api.post("//v3/workspaces", {"id": api.workspace, "metadata": {"v": 2}}))[
        "metadata"
    ] == {"v": 1}
    for path in ("/peers", "/sessions"):
        api.ok(api.post(path, {"id": "x", "metadata": {"v": 1}}), 201)
        assert api.ok(api.post(path, {"id": "x", "metadata": {"v": 2}}))["metadata"] == {"v": 2}


def test_02_peer_configuration_replaces_the_others_merge_by_section(api: Api) -> None:
    one, two = (
        {"reasoning": {"enabled": False, "custom_instructions": "x"}, "a": 1},
        {"reasoning": {"enabled": True}, "b": 2},
    )
    merged = {"reasoning": {"enabled": True}, "a": 1, "b": 2}
    api.ok(api.put("/peers/p", {"configuration": one}))
    assert api.ok(api.put("/peers/p", {"configuration": two}))["configuration"] == two
    for path in ("", "/sessions/s"):
        api.ok(api.put(path, {"configuration": one}))
        assert api.ok(api.put(path, {"configuration": two}))["configuration"] == merged


def test_03_put_creates(api: Api) -> None:
    for path in ("/sessions/s", "/peers/p", ""):
        api.ok(api.put(path, {}))
    assert api.ids("/peers/list") == ["p"]
    assert api.ids("/sessions/list") == ["s"]


def test_04_created_is_201_and_existing_200_but_adding_peers_always_200(api: Api) -> None:
    for path, body in (
        ("//v3/workspaces", {"id": api.workspace}),
        ("/peers", {"id": "p"}),
        ("/sessions", {"id": "s"}),
    ):
        assert api.post(path, body).status_code == 201
        assert api.post(path, body).status_code == 200
    assert api.post("/sessions/new/peers", {"p": {}}).status_code == 200


def test_06_every_422_contains_a_list(api: Api) -> None:
    """The contract knows two shapes; ours is one, with the contract's text as `msg`."""
    problems = api.refused(
        api.post(
            "/peers/list",
            {"filters": {"AND": [{"AND": [{"AND": [{"AND": [{"AND": [{"AND": []}]}]}]}]}]}},
        )
    )
    assert problems[0]["msg"] == "Filter nesting exceeds maximum depth of 5"
    assert problems[0]["type"] == "value_error"


def test_07_ne_and_not_keep_null_columns_but_metadata_ne_drops_rows_without_the_key(
    api: Api,
) -> None:
    api.peer("p")
    api.session("s")
    inside = api.conclude("p", "p", "inside", session="s")[0]["id"]
    outside = api.conclude("p", "p", "outside")[0]["id"]
    assert api.ids("/conclusions/list", {"filters": {"session_id": {"ne": "s"}}}) == [outside]
    assert api.ids("/conclusions/list", {"filters": {"NOT": [{"session_id": "s"}]}}) == [outside]
    assert api.ids("/conclusions/list", {"filters": {"session_id": {"ne": None}}}) == [inside]
    api.peer("with", metadata={"n": 1})
    api.peer("other", metadata={"n": 2})
    assert api.ids("/peers/list", {"filters": {"metadata": {"n": {"ne": 1}}}}) == ["other"]


def test_08_conclusions_are_newest_first_everything_else_oldest_first(api: Api) -> None:
    api.peer("p1")
    api.peer("p2")
    first, second = (api.conclude("p1", "p2", text)[0]["id"] for text in ("a", "b"))
    assert api.ids("/conclusions/list") == [second, first]
    assert api.ids("/peers/list") == ["p1", "p2"]


def test_09_an_empty_body_with_a_json_content_type_works(api: Api) -> None:
    for path in (
        "//v3/workspaces/list",
        "/peers/list",
        "/sessions/list",
        "/peers/p/sessions",
        "/sessions/s/messages/list",
        "/conclusions/list",
    ):
        assert api.post(path, data=b"", content_type="application/json").status_code == 200


def test_10_context_has_no_ceiling_of_60_percent(api: Api) -> None:
    messages = api.say("s", *[("p", "one two three four five") for _ in range(10)])
    budget = sum(message["token_count"] for message in messages)
    assert len(api.ok(api.get(f"/sessions/s/context?tokens={budget}"))["messages"]) == 10


@pytest.mark.slow
def test_11_representation_defaults_to_25_for_post_and_100_elsewhere(api: Api) -> None:
    api.peer("p")
    api.conclude("p", "p", *[f"fact {number}" for number in range(60)])
    assert api.ok(api.post("/peers/p/representation", {}))["representation"].count("fact") == 25
    assert api.ok(api.get("/peers/p/context"))["representation"].count("fact") == 60
    assert (
        api.ok(api.get("/sessions/s/context?peer_target=p"))["peer_representation"].count("fact")
        == 60
    )


def test_13_an_allowlist_drops_derived_levels_and_in_context_the_card(api: Api) -> None:
    api.say("s", ("p", "hello"))
    api.ok(api.put("/peers/p/card", {"peer_card": ["card"]}))
    assert api.ok(api.get("/sessions/s/context?peer_target=p"))["peer_card"] == ["card"]
    assert (
        api.ok(api.get("/sessions/s/context?peer_target=p&limit_to_session=1"))["peer_card"] is None
    )


def test_14_unknown_sessions_read_as_empty_unknown_peers_differ_by_route(api: Api) -> None:
    api.create()
    for path in ("/sessions/none/context", "/sessions/none/summaries", "/sessions/none/peers"):
        assert api.get(path).status_code == 200
    for path, body in (
        ("/sessions/none/messages/list", None),
        ("/sessions/none/search", {"query": "x"}),
        ("/peers/none/search", {"query": "x"}),
    ):
        assert api.post(path, body).status_code == 200
    assert api.post("/peers/none/representation", {}).status_code == 200
    assert api.post("/peers/none/sessions").status_code == 200
    for path in (
        "/peers/none/card",
        "/peers/none/context",
        "/sessions/none/peers/p/config",
        "/sessions/none/context?peer_target=none",
    ):
        assert api.get(path).status_code == 404


def test_15_removing_peers_takes_a_json_array(api: Api) -> None:
    api.session("s", peers={"p": {}})
    assert api.delete("/sessions/s/peers", ["p"]).status_code == 200
    assert api.delete("/sessions/s/peers", {"p": {}}).status_code == 422


def test_16_conclusions_never_create_peers_nearly_everything_else_does(api: Api) -> None:
    api.create()
    assert (
        api.post(
            "/conclusions",
            {"conclusions": [{"content": "x", "observer_id": "a", "observed_id": "b"}]},
        ).status_code
        == 404
    )
    api.say("s", ("author", "hello"))
    api.ok(api.post("/sessions/s/peers", {"added": {}}))
    api.session("t", peers={"given": {}})
    api.ok(api.put("/peers/carded/card", {"peer_card": []}))
    assert sorted(api.ids("/peers/list")) == ["added", "author", "carded", "given"]


def test_17_configuring_a_non_member_joins_the_session(api: Api) -> None:
    api.session("s")
    api.peer("p")
    assert api.put("/sessions/s/peers/p/config", {}).status_code == 204
    assert [peer["id"] for peer in api.ok(api.get("/sessions/s/peers"))["items"]] == ["p"]


def test_20_queue_status_counts_items_by_the_sessions_uid(api: Api) -> None:
    uid = api.session("s")["uid"]
    api.say("s", ("p", "one"), ("p", "two"))
    status = api.ok(api.get("/queue/status"))
    assert status["total_work_units"] == 2
    assert list(status["sessions"]) == [uid]


def test_a_uid_stays_with_its_row_and_differs_between_rows(api: Api) -> None:
    rows = [api.create(), api.peer("x"), api.session("x")]
    assert len({row["uid"] for row in rows}) == 3
    again = [
        api.put("", {"metadata": {}}),
        api.put("/peers/x", {"metadata": {}}),
        api.put("/sessions/x", {"metadata": {}}),
    ]
    assert [api.ok(answer)["uid"] for answer in again] == [row["uid"] for row in rows]
    assert api.ok(api.post("/peers/list"))["items"][0]["uid"] == rows[1]["uid"]
    assert list(rows[1])[:2] == ["id", "uid"]
