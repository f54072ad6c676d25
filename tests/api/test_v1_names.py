"""Apps and users of the first generation: free names that change, and the ids that the others know
them by."""

from __future__ import annotations

import pytest

from api.conftest import Api
from support.api.v1_world import First, uid


@pytest.fixture
def first(api: Api) -> First:
    return First(api)


def test_an_app_is_created_found_renamed_and_listed(first: First) -> None:
    name = f"{first.api.workspace} of / Ünï"
    made = first.post("/apps", {"name": name, "metadata": {"a": 1}, "unknown": True})
    assert list(made) == ["id", "name", "metadata", "created_at"]
    assert (made["name"], made["metadata"], len(made["id"])) == (name, {"a": 1}, 21)
    assert first.get("/apps", app_id=made["id"]) == made
    changed = first.put(f"/apps/{made['id']}", {"name": f"{name}!"})
    assert changed == made | {"name": f"{name}!"}
    assert first.put(f"/apps/{made['id']}", {}) == changed
    assert first.put(f"/apps/{made['id']}", {"metadata": {}, "name": None})["metadata"] == {}
    assert made["id"] in first.listed("/apps", size=100, reverse=True)


def test_a_taken_name_is_a_conflict_without_retry(first: First) -> None:
    name = first.api.workspace
    app = first.app()
    answer = first.call("POST", "/apps", {"name": name})
    assert (answer.status_code, answer.get_json()) == (
        409,
        {"detail": f"App with name '{name}' already exists"},
    )
    assert answer.headers["x-should-retry"] == "false"
    other = first.app(f"{name}-other")
    assert (
        first.refused(409, "PUT", other, {"name": name})
        == "App update failed - unique constraint violation"
    )
    first.user(app), first.user(app, "bob")
    assert (
        first.refused(409, "POST", f"{app}/users", {"name": "bob"})
        == "User with this name already exists"
    )
    bob = first.get(f"{app}/users/name/bob")["id"]
    assert (
        first.refused(409, "PUT", f"{app}/users/{bob}", {"name": "alice"})
        == "User update failed - unique constraint violation"
    )
    assert first.put(f"{app}/users/{bob}", {"name": "bob"})["name"] == "bob"
    assert first.user(other, "bob"), "names are unique in one app only"


def test_unknown_ids_and_names_are_404(first: First) -> None:
    app = first.app()
    assert first.refused(404, "GET", "/apps", app_id="nothing") == "App with ID nothing not found"
    assert first.refused(404, "GET", "/apps/name/nobody's") == "App with name 'nobody's' not found"
    assert first.refused(404, "PUT", "/apps/nothing", {}) == "App with ID nothing not found"
    assert (
        first.refused(404, "GET", f"{app}/users", user_id="nobody")
        == "User with ID 'nobody' not found"
    )
    assert (
        first.refused(404, "GET", f"{app}/users/name/nobody") == "User with name 'nobody' not found"
    )
    assert first.refused(404, "PUT", f"{app}/users/nobody", {}) == "User with ID 'nobody' not found"
    assert (
        first.refused(404, "POST", "/apps/nothing/users", {"name": "x"})
        == "App with ID nothing not found"
    )
    other = first.app(f"{first.api.workspace}-other")
    assert first.refused(404, "GET", f"{other}/users", user_id=uid(first.user(app))), (
        "a user of another app"
    )
    empty = {"items": [], "total": 0, "page": 3, "size": 50, "pages": 0}
    assert first.post("/apps/nothing/users/list", page=3) == empty
    assert first.refused(401, "GET", "/apps") == "App ID not found in query parameter or JWT"
    assert (
        first.refused(401, "GET", f"{app}/users") == "User ID not found in query parameter or JWT"
    )


def test_limits_of_names(first: First) -> None:
    app = first.app()
    for path in ("/apps", f"{app}/users"):
        assert first.problem("POST", path, {"name": ""})[0] == ["body", "name"]
        assert first.problem("POST", path, {"name": "\0"})[0] == ["body", "name"]
        assert first.problem("POST", path, {"name": "n" * 101})[0] == ["body", "name"]
        assert first.problem("GET", f"{path}/get_or_create/{'n' * 101}")[0] == ["path", "name"]
    user = first.user(app)
    assert first.put(user, {"name": ""})["name"] == ""
    assert first.put(user, {"name": "n" * 512})["name"] == "n" * 512
    assert first.problem("PUT", user, {"name": "n" * 513})[0] == ["body", "name"]
    assert first.post(f"{app}/users", {"name": "a\0b"})["name"] == "ab"


def test_get_or_create_finds_the_created_row(first: First) -> None:
    name = f"{first.api.workspace} one"
    made = first.get(f"/apps/get_or_create/{name}")
    assert (made["name"], made["metadata"]) == (name, {})
    assert first.get(f"/apps/get_or_create/{name}") == made == first.get(f"/apps/name/{name}")
    user = first.get(f"/apps/{made['id']}/users/get_or_create/Ann B")
    assert first.get(f"/apps/{made['id']}/users/get_or_create/Ann B") == user
    assert first.listed(f"/apps/{made['id']}/users") == [user["id"]]


def test_get_or_create_finds_existing_names_above_the_limit(first: First) -> None:
    app = first.app()
    long = f"{first.api.workspace}{'n' * 150}"
    assert (
        first.put(app, {"name": long})["id"]
        == first.get(f"/apps/get_or_create/{long}")["id"]
        == uid(app)
    )
    peer = first.api.ok(first.api.post("/peers", {"id": "p" * 512}), 201)["uid"]
    assert first.get(f"{app}/users/get_or_create/{'p' * 512}")["id"] == peer
    assert first.listed(f"{app}/users") == [peer]


# Names across generations


def test_a_valid_name_becomes_the_id_in_later_generations(first: First) -> None:
    app, api = first.app(), first.api
    user = first.user(app)
    assert api.ids("/peers/list") == ["alice"]
    first.put(user, {"name": "Alice Cooper", "metadata": {"from": "v1"}})
    (peer,) = api.ok(api.post("/peers/list"))["items"]
    assert (peer["id"], peer["uid"], peer["metadata"]) == ("alice", uid(user), {"from": "v1"})
    api.ok(api.put("/peers/alice", {"metadata": {"from": "v3"}}))
    assert first.get(f"{app}/users", user_id=uid(user))["metadata"] == {"from": "v3"}
    first.put(app, {"name": "renamed once"})
    assert api.ids("/peers/list") == ["alice"]
    assert first.refused(409, "POST", "/apps", {"name": "renamed once"})
    first.put(app, {"name": f"{api.workspace} again"})


def test_a_name_that_is_no_valid_id_is_replaced_by_the_uid(first: First) -> None:
    made = first.post("/apps", {"name": f"{first.api.workspace} free text"})
    api = Api(first.api.app, first.api.runtime, made["id"])
    user = first.user(f"/apps/{made['id']}", "Ann B.")
    assert api.ids("/peers/list") == [uid(user)]


def test_rows_of_the_third_generation_are_found_by_name(first: First) -> None:
    api = first.api
    made = api.create()
    assert first.refused(409, "POST", "/apps", {"name": api.workspace})
    found = first.get(f"/apps/get_or_create/{api.workspace}")
    assert found["id"] == made["uid"]
    api.peer("carol")
    user = first.get(f"/apps/{found['id']}/users/get_or_create/carol")
    assert first.listed(f"/apps/{found['id']}/users") == [user["id"]]
    assert first.refused(409, "POST", f"/apps/{found['id']}/users", {"name": "carol"})


def test_former_names_can_be_used_again(first: First) -> None:
    app, api = first.app(), first.api
    alice = first.user(app)
    first.put(alice, {"name": "bob"})
    api.peer("bob")
    users = first.post(f"{app}/users/list")["items"]
    assert [user["name"] for user in users] == ["bob", users[1]["id"]]
    second = first.post(f"{app}/users", {"name": "alice"})
    assert set(api.ids("/peers/list")) == {"alice", "bob", second["id"]}
    assert first.get(f"{app}/users/name/alice") == second


def test_a_renamed_user_appears_under_its_new_name(first: First) -> None:
    app = first.app()
    user = first.user(app, "Ann B.")
    first.say(first.session(user), (True, "The key lies under the mat."), (False, "Good to know."))
    found = Api(first.api.app, first.api.runtime, first.api.workspace)
    assert [
        each["peer_id"]
        for each in found.ok(found.post("/search", {"query": "What did Ann say?", "limit": 1}))
    ] == [uid(user)]


def test_neither_scopes_nor_the_assistant_are_users(first: First) -> None:
    app, api = first.app(), first.api
    user = first.user(app)
    first.session(user)
    api.ok(api.post("/scopes", {"id": "team"}), 201)
    listed = first.post(f"{app}/users/list", size=1)
    assert ([each["id"] for each in listed["items"]], listed["total"], listed["pages"]) == (
        [uid(user)],
        1,
        1,
    )
    (assistant,) = set(api.ids("/peers/list")) - {"alice"}
    peers = {peer["id"]: peer for peer in api.ok(api.post("/peers/list"))["items"]}
    for name in (assistant, peers[assistant]["uid"]):
        assert first.refused(404, "GET", f"{app}/users", user_id=name)
        assert first.refused(404, "GET", f"{app}/users/name/{name}")
    assert first.refused(409, "GET", f"{app}/users/get_or_create/{assistant}")
    first.session(user)
    assert len(api.ids("/peers/list")) == 2, "one assistant, however many sessions"


# Lists


def test_listings_are_paged(first: First) -> None:
    app = first.app()
    ids = [first.post(f"{app}/users", {"name": f"user {number}"})["id"] for number in range(5)]
    assert first.listed(f"{app}/users", {}, size=2) == ids[:2]
    assert first.listed(f"{app}/users", size=2, page=2, reverse="true") == ids[2:0:-1]
    beyond = first.post(f"{app}/users/list", size=2, page=9)
    assert beyond == {"items": [], "total": 5, "page": 9, "size": 2, "pages": 3}
    for query in ({"page": 0}, {"size": 0}, {"size": 101}, {"page": "x"}, {"reverse": "perhaps"}):
        assert first.problem("POST", f"{app}/users/list", **query)[0] == ["query", *query]


@pytest.mark.parametrize(
    ("filter_", "found"),
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
def test_a_filter_means_containment_only(first: First, filter_: object, found: str) -> None:
    app = first.app()
    metadata = {
        "a": {"n": 1, "tags": ["x", "y"]},
        "b": {"n": 1, "tags": []},
        "c": {"z": {"gte": 1, "more": 2}},
        "d": {"AND": [{"n": 1}], "NOT": None, "*": "*"},
    }
    for name, given in metadata.items():
        first.post(f"{app}/users", {"name": name, "metadata": given})
    page = first.post(f"{app}/users/list", {"filter": filter_})
    assert ("".join(item["name"] for item in page["items"]), page["total"]) == (found, len(found))


def test_a_filter_has_to_be_an_object(first: First) -> None:
    app = first.app()
    assert first.problem("POST", f"{app}/users/list", {"filter": [1]})[0] == ["body", "filter"]
