"""Apps and users of the first generation: free names that change, and the ids that the others know
them by."""

from __future__ import annotations

import pytest

from api.conftest import Api
from support.api.v1_client import V1Client, uid


@pytest.fixture
def v1(api: Api) -> V1Client:
    return V1Client(api)


def test_an_app_is_created_found_renamed_and_listed(v1: V1Client) -> None:
    name = f"{v1.api.workspace} of / Ünï"
    app_row = v1.post("/apps", {"name": name, "metadata": {"a": 1}, "unknown": True})
    assert list(app_row) == ["id", "name", "metadata", "created_at"]
    assert (app_row["name"], app_row["metadata"], len(app_row["id"])) == (name, {"a": 1}, 21)
    assert v1.get("/apps", app_id=app_row["id"]) == app_row
    changed = v1.put(f"/apps/{app_row['id']}", {"name": f"{name}!"})
    assert changed == app_row | {"name": f"{name}!"}
    assert v1.put(f"/apps/{app_row['id']}", {}) == changed
    assert v1.put(f"/apps/{app_row['id']}", {"metadata": {}, "name": None})["metadata"] == {}
    assert app_row["id"] in v1.listed("/apps", size=100, reverse=True)


def test_a_taken_name_is_a_conflict_without_retry(v1: V1Client) -> None:
    name = v1.api.workspace
    app = v1.app()
    answer = v1.call("POST", "/apps", {"name": name})
    assert (answer.status_code, answer.get_json()) == (
        409,
        {"detail": f"App with name '{name}' already exists"},
    )
    assert answer.headers["x-should-retry"] == "false"
    other = v1.app(f"{name}-other")
    assert (
        v1.refused(409, "PUT", other, {"name": name})
        == "App update failed - unique constraint violation"
    )
    v1.user(app), v1.user(app, "bob")
    assert (
        v1.refused(409, "POST", f"{app}/users", {"name": "bob"})
        == "User with this name already exists"
    )
    bob = v1.get(f"{app}/users/name/bob")["id"]
    assert (
        v1.refused(409, "PUT", f"{app}/users/{bob}", {"name": "alice"})
        == "User update failed - unique constraint violation"
    )
    assert v1.put(f"{app}/users/{bob}", {"name": "bob"})["name"] == "bob"
    assert v1.user(other, "bob"), "names are unique in one app only"


def test_unknown_ids_and_names_are_404(v1: V1Client) -> None:
    app = v1.app()
    assert v1.refused(404, "GET", "/apps", app_id="nothing") == "App with ID nothing not found"
    assert v1.refused(404, "GET", "/apps/name/nobody's") == "App with name 'nobody's' not found"
    assert v1.refused(404, "PUT", "/apps/nothing", {}) == "App with ID nothing not found"
    assert (
        v1.refused(404, "GET", f"{app}/users", user_id="nobody")
        == "User with ID 'nobody' not found"
    )
    assert v1.refused(404, "GET", f"{app}/users/name/nobody") == "User with name 'nobody' not found"
    assert v1.refused(404, "PUT", f"{app}/users/nobody", {}) == "User with ID 'nobody' not found"
    assert (
        v1.refused(404, "POST", "/apps/nothing/users", {"name": "x"})
        == "App with ID nothing not found"
    )
    other = v1.app(f"{v1.api.workspace}-other")
    assert v1.refused(404, "GET", f"{other}/users", user_id=uid(v1.user(app))), (
        "a user of another app"
    )
    empty = {"items": [], "total": 0, "page": 3, "size": 50, "pages": 0}
    assert v1.post("/apps/nothing/users/list", page=3) == empty
    assert v1.refused(401, "GET", "/apps") == "App ID not found in query parameter or JWT"
    assert v1.refused(401, "GET", f"{app}/users") == "User ID not found in query parameter or JWT"


def test_limits_of_names(v1: V1Client) -> None:
    app = v1.app()
    for path in ("/apps", f"{app}/users"):
        assert v1.problem("POST", path, {"name": ""})[0] == ["body", "name"]
        assert v1.problem("POST", path, {"name": "\0"})[0] == ["body", "name"]
        assert v1.problem("POST", path, {"name": "n" * 101})[0] == ["body", "name"]
        assert v1.problem("GET", f"{path}/get_or_create/{'n' * 101}")[0] == ["path", "name"]
    user = v1.user(app)
    assert v1.put(user, {"name": ""})["name"] == ""
    assert v1.put(user, {"name": "n" * 512})["name"] == "n" * 512
    assert v1.problem("PUT", user, {"name": "n" * 513})[0] == ["body", "name"]
    assert v1.post(f"{app}/users", {"name": "a\0b"})["name"] == "ab"


def test_get_or_create_finds_the_created_row(v1: V1Client) -> None:
    name = f"{v1.api.workspace} one"
    app_row = v1.get(f"/apps/get_or_create/{name}")
    assert (app_row["name"], app_row["metadata"]) == (name, {})
    assert v1.get(f"/apps/get_or_create/{name}") == app_row == v1.get(f"/apps/name/{name}")
    user = v1.get(f"/apps/{app_row['id']}/users/get_or_create/Ann B")
    assert v1.get(f"/apps/{app_row['id']}/users/get_or_create/Ann B") == user
    assert v1.listed(f"/apps/{app_row['id']}/users") == [user["id"]]


def test_get_or_create_finds_existing_names_above_the_limit(v1: V1Client) -> None:
    app = v1.app()
    long = f"{v1.api.workspace}{'n' * 150}"
    assert (
        v1.put(app, {"name": long})["id"] == v1.get(f"/apps/get_or_create/{long}")["id"] == uid(app)
    )
    peer = v1.api.ok(v1.api.post("/peers", {"id": "p" * 512}), 201)["uid"]
    assert v1.get(f"{app}/users/get_or_create/{'p' * 512}")["id"] == peer
    assert v1.listed(f"{app}/users") == [peer]


# Names across generations


def test_a_valid_name_becomes_the_id_in_later_generations(v1: V1Client) -> None:
    app, api = v1.app(), v1.api
    user = v1.user(app)
    assert api.ids("/peers/list") == ["alice"]
    v1.put(user, {"name": "Alice Cooper", "metadata": {"from": "v1"}})
    (peer,) = api.ok(api.post("/peers/list"))["items"]
    assert (peer["id"], peer["uid"], peer["metadata"]) == ("alice", uid(user), {"from": "v1"})
    api.ok(api.put("/peers/alice", {"metadata": {"from": "v3"}}))
    assert v1.get(f"{app}/users", user_id=uid(user))["metadata"] == {"from": "v3"}
    v1.put(app, {"name": "renamed once"})
    assert api.ids("/peers/list") == ["alice"]
    assert v1.refused(409, "POST", "/apps", {"name": "renamed once"})
    v1.put(app, {"name": f"{api.workspace} again"})


def test_a_name_that_is_no_valid_id_is_replaced_by_the_uid(v1: V1Client) -> None:
    app_row = v1.post("/apps", {"name": f"{v1.api.workspace} free text"})
    api = Api(v1.api.app, v1.api.runtime, app_row["id"])
    user = v1.user(f"/apps/{app_row['id']}", "Ann B.")
    assert api.ids("/peers/list") == [uid(user)]


def test_rows_of_the_third_generation_are_found_by_name(v1: V1Client) -> None:
    api = v1.api
    workspace = api.create()
    assert v1.refused(409, "POST", "/apps", {"name": api.workspace})
    app_row = v1.get(f"/apps/get_or_create/{api.workspace}")
    assert app_row["id"] == workspace["uid"]
    api.peer("carol")
    user = v1.get(f"/apps/{app_row['id']}/users/get_or_create/carol")
    assert v1.listed(f"/apps/{app_row['id']}/users") == [user["id"]]
    assert v1.refused(409, "POST", f"/apps/{app_row['id']}/users", {"name": "carol"})


def test_former_names_can_be_used_again(v1: V1Client) -> None:
    app, api = v1.app(), v1.api
    alice = v1.user(app)
    v1.put(alice, {"name": "bob"})
    api.peer("bob")
    users = v1.post(f"{app}/users/list")["items"]
    assert [user["name"] for user in users] == ["bob", users[1]["id"]]
    second = v1.post(f"{app}/users", {"name": "alice"})
    assert set(api.ids("/peers/list")) == {"alice", "bob", second["id"]}
    assert v1.get(f"{app}/users/name/alice") == second


def test_a_renamed_user_appears_under_its_new_name(v1: V1Client) -> None:
    app = v1.app()
    user = v1.user(app, "Ann B.")
    v1.say(v1.session(user), (True, "The key lies under the mat."), (False, "Good to know."))
    newest = Api(v1.api.app, v1.api.runtime, v1.api.workspace)
    assert [
        each["peer_id"]
        for each in newest.ok(newest.post("/search", {"query": "What did Ann say?", "limit": 1}))
    ] == [uid(user)]


def test_neither_scopes_nor_the_assistant_are_users(v1: V1Client) -> None:
    app, api = v1.app(), v1.api
    user = v1.user(app)
    v1.session(user)
    api.ok(api.post("/scopes", {"id": "team"}), 201)
    response = v1.post(f"{app}/users/list", size=1)
    assert ([each["id"] for each in response["items"]], response["total"], response["pages"]) == (
        [uid(user)],
        1,
        1,
    )
    (assistant,) = set(api.ids("/peers/list")) - {"alice"}
    peers = {peer["id"]: peer for peer in api.ok(api.post("/peers/list"))["items"]}
    for name in (assistant, peers[assistant]["uid"]):
        assert v1.refused(404, "GET", f"{app}/users", user_id=name)
        assert v1.refused(404, "GET", f"{app}/users/name/{name}")
    assert v1.refused(409, "GET", f"{app}/users/get_or_create/{assistant}")
    v1.session(user)
    assert len(api.ids("/peers/list")) == 2, "one assistant, however many sessions"


# Lists


def test_listings_are_paged(v1: V1Client) -> None:
    app = v1.app()
    ids = [v1.post(f"{app}/users", {"name": f"user {number}"})["id"] for number in range(5)]
    assert v1.listed(f"{app}/users", {}, size=2) == ids[:2]
    assert v1.listed(f"{app}/users", size=2, page=2, reverse="true") == ids[2:0:-1]
    beyond = v1.post(f"{app}/users/list", size=2, page=9)
    assert beyond == {"items": [], "total": 5, "page": 9, "size": 2, "pages": 3}
    for query in ({"page": 0}, {"size": 0}, {"size": 101}, {"page": "x"}, {"reverse": "perhaps"}):
        assert v1.problem("POST", f"{app}/users/list", **query)[0] == ["query", *query]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filter_", "names"),
    [
        (None, "abcd"),
        ({}, "abcd"),
        ({"n": 1}, "ab"),
        ({"n": 1.0}, "ab"),
        ({"n": "1"}, ""),
        ({"n": True}, ""),
        ({"z": {"gte": 1}}, "c"),
        ({"z": {}}, "c"),
        ({"tags": ["x"]}, "a"),
        ({"tags": []}, "ab"),
        ({"AND": [{"n": 1}]}, "d"),
        ({"NOT": None}, "d"),
        ({"*": "*"}, "d"),
        ({"n": None}, ""),
    ],
)
def test_a_filter_means_containment_only(v1: V1Client, filter_: object, names: str) -> None:
    app = v1.app()
    metadata = {
        "a": {"n": 1, "tags": ["x", "y"]},
        "b": {"n": 1, "tags": []},
        "c": {"z": {"gte": 1, "more": 2}},
        "d": {"AND": [{"n": 1}], "NOT": None, "*": "*"},
    }
    for name, metadata_of_user in metadata.items():
        v1.post(f"{app}/users", {"name": name, "metadata": metadata_of_user})
    page = v1.post(f"{app}/users/list", {"filter": filter_})
    assert ("".join(item["name"] for item in page["items"]), page["total"]) == (names, len(names))


def test_a_filter_has_to_be_an_object(v1: V1Client) -> None:
    app = v1.app()
    assert v1.problem("POST", f"{app}/users/list", {"filter": [1]})[0] == ["body", "filter"]
