"""Where the generations disagree about switches, keys, statuses and ids."""

from __future__ import annotations

from typing import Any

import pytest

from api.test_auth_first_generation import call as call_with
from api.test_auth_first_generation import client as client
from memservice.worker.polling import Worker
from support.api.all_generations import ALICE, AllGenerations, whole
from support.api.all_generations import all_generations as all_generations
from support.api.conflicts import TORTOISE, later
from support.api.conflicts import user as user
from support.api.v1_client import uid


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owned", "metadata", "v2", "v3", "derived"),
    [
        (True, {}, None, None, 1),
        (True, {"deriver_disabled": True}, None, None, 0),
        (False, {"deriver_disabled": True}, None, None, 1),
        (True, {}, {"deriver_disabled": True}, None, 0),
        (False, {}, {"deriver_disabled": True}, None, 0),
        (False, {}, {"deriver_enabled": False}, None, 0),
        (False, {}, {"deriver": {"enabled": False}}, None, 0),
        (True, {}, None, {"reasoning": {"enabled": False}}, 0),
        (False, {}, None, {"reasoning": {"enabled": False}}, 0),
        (True, {"deriver_disabled": True}, {"deriver": {"enabled": True}}, None, 0),
        (True, {"deriver_disabled": True}, None, {"reasoning": {"enabled": True}}, 0),
        (True, {"deriver_disabled": False}, None, {"reasoning": {"enabled": False}}, 0),
        (True, {"deriver_disabled": False}, {"deriver": {"enabled": True}}, None, 1),
    ],
)
def test_conflict_17_deriving_is_off_if_any_says_so(
    all_generations: AllGenerations,
    user: str,
    owned: bool,
    metadata: dict[str, Any],
    v2: dict[str, Any] | None,
    v3: dict[str, Any] | None,
    derived: int,
) -> None:
    if owned:
        name = uid(all_generations.v1.session(user, metadata=metadata))
    else:
        name = all_generations.newest.session("room", peers={ALICE: {}}, metadata=metadata)["id"]
    if v2 is not None:
        all_generations.v2.ok(all_generations.v2.put(f"/sessions/{name}", {"configuration": v2}))
    if v3 is not None:
        all_generations.newest.ok(
            all_generations.newest.put(f"/sessions/{name}", {"configuration": v3})
        )
    all_generations.v1.say(f"{user}/sessions/{all_generations.uid_of(name)}", (True, TORTOISE))
    Worker(all_generations.runtime).run_until_idle()
    assert [len(face.conclusions(ALICE)) for face in all_generations.all()] == [derived] * 3


def test_conflict_17_an_old_switch_of_a_session_goes_before_the_present_one_of_its_workspace(
    all_generations: AllGenerations, user: str
) -> None:
    all_generations.newest.ok(
        all_generations.newest.put("", {"configuration": {"reasoning": {"enabled": True}}})
    )
    session = all_generations.v1.session(user)
    all_generations.v2.ok(
        all_generations.v2.put(
            f"/sessions/{uid(session)}", {"configuration": {"deriver_disabled": True}}
        )
    )
    all_generations.v1.say(session, (True, TORTOISE))
    Worker(all_generations.runtime).run_until_idle()
    assert [face.conclusions(ALICE) for face in all_generations.all()] == [[]] * 3


@pytest.mark.slow
def test_conflict_18_both_families_of_keys_open_every_generation(client: Any) -> None:
    """More of this in test_three_keys.py."""
    app_uid = call_with(client, {"ad": True}, "POST", "/v3/workspaces", {"id": "acme"}).get_json()[
        "uid"
    ]
    for claims in ({"ap": app_uid}, {"w": "acme"}):
        assert call_with(client, claims, "GET", f"/v1/apps?app_id={app_uid}").status_code == 200
        assert (
            call_with(client, claims, "POST", "/v2/workspaces/acme/peers/list", {}).status_code
            == 200
        )
        assert (
            call_with(client, claims, "POST", "/v3/workspaces/acme/peers/list", {}).status_code
            == 200
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status"),
    [(32503680000, 200), ("2999-01-01T00:00:00Z", 200), ("2020-01-01T00:00:00Z", 401), (1, 401)],
)
def test_conflict_19_a_key_ends_in_either_spelling(client: Any, end: object, status: int) -> None:
    app_uid = call_with(client, {"ad": True}, "POST", "/v3/workspaces", {"id": "acme"}).get_json()[
        "uid"
    ]
    for claims in ({"ap": app_uid, "exp": end}, {"w": "acme", "exp": end}):
        for method, path in (
            ("GET", f"/v1/apps?app_id={app_uid}"),
            ("PUT", "/v2/workspaces/acme"),
            ("PUT", "/v3/workspaces/acme"),
        ):
            assert call_with(client, claims, method, path, {}).status_code == status


def test_conflict_20_each_has_statuses_of_its_own(
    all_generations: AllGenerations, user: str
) -> None:
    first, second, newest = all_generations.v1, all_generations.v2, all_generations.newest
    mine, here, root = first.session(user), all_generations.workspace, "//v{}/workspaces"
    words, messages = (
        {"content": "x", "is_user": True},
        {"messages": [{"peer_id": ALICE, "content": "x"}]},
    )
    steps: list[tuple[tuple[str, str, Any], tuple[str, str, Any], tuple[str, str, Any]]] = [
        (
            ("POST", "/apps", {"name": f"{here}-1"}),
            ("POST", root.format(2), {"id": f"{here}-2"}),
            ("POST", root.format(3), {"id": f"{here}-3"}),
        ),
        (
            ("POST", f"{all_generations.app()}/users", {"name": "one"}),
            ("POST", "/peers", {"id": "two"}),
            ("POST", "/peers", {"id": "three"}),
        ),
        (
            ("POST", f"{mine}/messages", words),
            ("POST", "/sessions/two/messages", messages),
            ("POST", "/sessions/three/messages", messages),
        ),
        (
            ("GET", f"{mine}/clone", ...),
            ("GET", "/sessions/two/clone", ...),
            ("POST", "/sessions/three/clone", ...),
        ),
        (
            ("DELETE", mine, ...),
            ("DELETE", "/sessions/two", ...),
            ("DELETE", "/sessions/three", ...),
        ),
    ]
    statuses = [
        (
            first.call(*one).status_code,
            second.call(*two).status_code,
            newest.call(*other).status_code,
        )
        for one, two, other in steps
    ]
    assert statuses == [(200, 200, 201)] * 4 + [(200, 202, 202)]


def test_conflict_21_an_id_that_equals_another_ones_uid(
    all_generations: AllGenerations, user: str
) -> None:
    newest = all_generations.newest
    newest.peer(uid(user), metadata={"who": "named as a uid"})
    peers = {item["id"]: item for item in whole(newest, "/peers/list")}
    assert set(peers) == {ALICE, uid(user)}
    session = all_generations.v1.session(user)
    (message,) = all_generations.v1.say(session, (True, "mine"))
    newest.session(message["id"], peers={uid(user): {}})
    assert (
        all_generations.v1.get(f"{all_generations.app()}/users", user_id=uid(user))["name"] == ALICE
    )
    for api in later(all_generations):
        assert api.ok(api.post("/peers", {"id": uid(user)}))["metadata"] == {
            "who": "named as a uid"
        }
        assert api.ids(f"/peers/{uid(user)}/sessions") == [message["id"]]
        assert api.ids("/peers/list", {"filters": {"id": uid(user)}}) == [uid(user)]
    other = f"{all_generations.app()}/users/{peers[uid(user)]['uid']}"
    assert all_generations.v1.listed(f"{other}/sessions") == [all_generations.uid_of(message["id"])]
    assert all_generations.v1.refused(404, "GET", f"{other}/sessions", session_id=message["id"])


@pytest.mark.slow
def test_conflict_25_one_path_for_the_keys_of_two_models(client: Any) -> None:
    admin = {"ad": True}
    app_uid = call_with(client, admin, "POST", "/v3/workspaces", {"id": "acme"}).get_json()["uid"]
    call_with(client, admin, "POST", "/v3/workspaces/acme/peers", {"id": ALICE})
    for query in (f"app_id={app_uid}", "workspace_id=acme"):
        token = call_with(client, admin, "POST", f"/v1/keys?{query}").get_json()["key"]
        bearer = {"Authorization": f"Bearer {token}"}
        assert client.get(f"/v1/apps?app_id={app_uid}", headers=bearer).status_code == 200
        assert client.put("/v1/workspaces/acme", json={}, headers=bearer).status_code == 200
    assert call_with(client, admin, "POST", "/v1/keys").status_code == 422
    assert call_with(client, admin, "POST", "/v1/keys?peer_id=alice").status_code == 422
