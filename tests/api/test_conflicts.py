"""The points where the generations disagree, one by one, and their solutions. Each test is named by
its number in the list of twenty-five, which `docs/migrating.md` explains to users."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from api.test_auth_first_generation import client as client
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.records import Metamessage, NamedCollection
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.api.all_generations import ALICE, AllGenerations, whole
from support.api.all_generations import all_generations as all_generations
from support.api.conflicts import later
from support.api.conflicts import user as user
from support.api.v1_client import uid


def test_conflict_01_a_free_name_that_changes_beside_an_id_that_does_not(
    all_generations: AllGenerations, user: str
) -> None:
    free = uid(all_generations.v1.user(all_generations.app(), "Ann B."))
    assert set(all_generations.newest.ids("/peers/list")) == {ALICE, free}
    all_generations.v1.put(user, {"name": "Alice Cooper"})
    for api in later(all_generations):
        assert set(api.ids("/peers/list")) == {ALICE, free}
    # What was given away in one column is free in it, and taken in the other.
    again = all_generations.v1.post(f"{all_generations.app()}/users", {"name": ALICE})
    assert set(all_generations.newest.ids("/peers/list")) == {ALICE, free, again["id"]}


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_conflict_01_only_the_taken_name_is_replaced(
    all_generations: AllGenerations, user: str, generation: str
) -> None:
    """Several peers are made at once, and a user was renamed to one of them."""
    all_generations.v1.put(user, {"name": "bob"})
    api = all_generations.v2 if generation == "v2" else all_generations.newest
    answer = api.post("/sessions", {"id": "room", "peers": {"bob": {}, "carol": {}}})
    assert answer.status_code // 100 == 2
    uids = {peer["id"]: peer["uid"] for peer in whole(all_generations.newest, "/peers/list")}
    names = {
        item["id"]: item["name"]
        for item in all_generations.v1.post(f"{all_generations.app()}/users/list")["items"]
    }
    assert names == {uid(user): "bob", uids["bob"]: uids["bob"], uids["carol"]: "carol"}
    assert (
        all_generations.v1.get(f"{all_generations.app()}/users/get_or_create/carol")["id"]
        == uids["carol"]
    )


def test_conflict_02_strict_creation_beside_get_or_create(
    all_generations: AllGenerations, user: str
) -> None:
    assert all_generations.v1.refused(409, "POST", "/apps", {"name": all_generations.workspace})
    for api in later(all_generations):
        assert api.post("/peers", {"id": ALICE}).status_code == 200
        name = "w" if api is all_generations.v2 else "t"
        assert api.post("/peers", {"id": name}).status_code == (
            200 if api is all_generations.v2 else 201
        )
        assert (
            all_generations.v1.refused(
                409, "POST", f"{all_generations.app()}/users", {"name": name}
            )
            == "User with this name already exists"
        )
        assert (
            all_generations.v1.get(f"{all_generations.app()}/users/get_or_create/{name}")["name"]
            == name
        )
    assert all_generations.v1.refused(409, "PUT", user, {"name": "t"})


def test_conflict_03_only_the_later_generations_create_by_the_way(
    all_generations: AllGenerations, user: str
) -> None:
    app = all_generations.app()
    for method, path, body in (
        ("POST", "/apps/nothing/users", {"name": "x"}),
        ("POST", f"{app}/users/nobody/sessions", {}),
        ("POST", f"{user}/sessions/nothing/messages", {"content": "x", "is_user": True}),
        ("POST", f"{user}/collections/nothing/documents", {"content": "x"}),
        ("POST", f"{app}/users/nobody/metamessages", {"label": "x", "content": ""}),
        ("POST", f"{app}/users/nobody/sessions/x/chat", {"queries": "x"}),
    ):
        assert all_generations.v1.refused(404, method, path, body)
    assert [face.peers() for face in all_generations.all()] == [{ALICE: {}}] * 3
    all_generations.v2.say("by-v2", ("bob", "x"))
    all_generations.newest.say("by-v3", ("carol", "x"))
    for face in all_generations.all():
        assert face.peers() == {ALICE: {}, "bob": {}, "carol": {}}


def test_conflict_04_owned_sessions_have_their_uid_for_an_id(
    all_generations: AllGenerations, user: str
) -> None:
    session = all_generations.v1.session(user)
    for api in later(all_generations):
        assert api.ids("/sessions/list") == [uid(session)]
        assistant, owner = sorted(
            (peer["id"] for peer in api.ok(api.get(f"/sessions/{uid(session)}/peers"))["items"]),
            key=[ALICE].count,
        )
        assert owner == ALICE
        configs = [
            api.ok(api.get(f"/sessions/{uid(session)}/peers/{peer}/config"))["observe_me"]
            for peer in (owner, assistant)
        ]
        assert configs == [True, False]
    all_generations.newest.session("room", peers={ALICE: {}})
    assert all_generations.v1.refused(404, "GET", f"{user}/sessions", session_id="room")
    assert all_generations.v1.get(f"{user}/sessions", session_id=all_generations.uid_of("room"))[
        "user_id"
    ] == uid(user)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_conflict_05_sessions_without_an_owner_are_every_members(shared: bool) -> None:
    overrides = {"DB_CONNECTION_URI": "memory://", "API_V1_SHARED_SESSIONS": str(shared).lower()}
    runtime = open_runtime(load_settings(environ={}, overrides=overrides), "api")
    three = AllGenerations(create_app(runtime=runtime), runtime, "w")
    three.v2.session("room", peers={ALICE: {}, "bob": {}})
    session = three.uid_of("room")
    for name in (ALICE, "bob"):
        response = three.v1.post(f"{three.user(name)}/sessions/list")
        assert ([item["id"] for item in response["items"]], response["total"]) == (
            ([session], 1) if shared else ([], 0)
        )
        assert {item["user_id"] for item in response["items"]} <= {uid(three.user(name))}
        assert three.v1.call(
            "GET", f"{three.user(name)}/sessions", session_id=session
        ).status_code == (200 if shared else 404)
    runtime.close()


def test_conflict_06_messages_of_the_assistant_have_an_author(
    all_generations: AllGenerations, user: str
) -> None:
    all_generations.newest.session("room", peers={ALICE: {}})
    session_path = f"{user}/sessions/{all_generations.uid_of('room')}"
    owned = all_generations.v1.session(user)
    for session in (owned, session_path):
        all_generations.v1.say(session, (True, "hello"), (False, "good morning"))
    (assistant,) = set(all_generations.newest.ids("/peers/list")) - {ALICE}
    for api in later(all_generations):
        for name in (uid(owned), "room"):
            assert [
                each["peer_id"]
                for each in api.ok(api.post(f"/sessions/{name}/messages/list"))["items"]
            ] == [ALICE, assistant]
            assert assistant in [
                peer["id"] for peer in api.ok(api.get(f"/sessions/{name}/peers"))["items"]
            ]
        assert api.ok(api.put(f"/peers/{assistant}", {"metadata": {"ordinary": True}}))[
            "metadata"
        ] == {"ordinary": True}
    assert all_generations.v1.listed(f"{all_generations.app()}/users") == [uid(user)]


def test_conflict_07_ownership_is_not_membership(
    all_generations: AllGenerations, user: str
) -> None:
    session = all_generations.v1.session(user)
    all_generations.v2.ok(all_generations.v2.put(f"/sessions/{uid(session)}/peers", {"carol": {}}))
    all_generations.newest.say(uid(session), ("carol", "I was not asked."))
    assert all_generations.v1.listed(f"{user}/sessions") == [uid(session)]
    assert [
        message["is_user"]
        for message in all_generations.v1.post(f"{session}/messages/list")["items"]
    ] == [False]
    assert all_generations.v1.listed(f"{all_generations.user('carol')}/sessions") == []
    assert all_generations.v1.refused(
        404,
        "POST",
        f"{all_generations.user('carol')}/sessions/{uid(session)}/messages",
        {"content": "", "is_user": True},
    )
    assert all_generations.v1.say(session, (True, "I am still here."))


@pytest.mark.slow
def test_conflict_08_archived_is_not_deleted(all_generations: AllGenerations, user: str) -> None:
    archived, deleted = all_generations.v1.session(user), all_generations.v1.session(user)
    for session in (archived, deleted):
        all_generations.v1.say(session, (True, "hello"))
    all_generations.v1.delete(archived)
    assert all_generations.v2.delete(f"/sessions/{uid(deleted)}").status_code == 202
    for session in (archived, deleted):
        assert (
            all_generations.v1.get(f"{user}/sessions", session_id=uid(session))["is_active"]
            is False
        )
        assert all_generations.v1.listed(f"{session}/messages"), (
            "readable, for good or until it is erased"
        )
        for api in later(all_generations):
            assert api.post("/sessions", {"id": uid(session)}).status_code == 404
    assert all_generations.v1.listed(f"{user}/sessions", {"is_active": True}) == []
    all_generations.v1.say(archived, (True, "still here"))
    for method, path, body in (
        ("PUT", deleted, {"metadata": {}}),
        ("DELETE", deleted, ...),
        ("POST", f"{deleted}/messages", {"content": "", "is_user": True}),
        ("GET", f"{deleted}/clone", ...),
        ("POST", f"{user}/metamessages", {"label": "x", "content": "", "session_id": uid(deleted)}),
    ):
        assert all_generations.v1.refused(404, method, path, body)
    Worker(all_generations.runtime).run_until_idle()
    assert all_generations.v1.refused(404, "GET", f"{user}/sessions", session_id=uid(deleted))
    assert all_generations.v1.listed(f"{user}/sessions") == [uid(archived)]
    assert all_generations.newest.delete("").status_code == 202, (
        "an archived session does not keep a workspace"
    )


@pytest.mark.slow
@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_conflict_09_what_goes_with_a_session_and_what_with_its_workspace(
    all_generations: AllGenerations, user: str, generation: str
) -> None:
    api = all_generations.v2 if generation == "v2" else all_generations.newest
    session = all_generations.v1.session(user)
    (message,) = all_generations.v1.say(session, (True, "hello"))
    about = {"content": "", "session_id": uid(session)}
    all_generations.v1.post(f"{user}/metamessages", {"label": "of the session", **about})
    all_generations.v1.post(
        f"{user}/metamessages", {"label": "of a message", "message_id": message["id"], **about}
    )
    metamessage = all_generations.v1.post(
        f"{user}/metamessages", {"label": "of the user", "content": ""}
    )["id"]
    shelf = all_generations.v1.post(f"{user}/collections", {"name": "shelf"})["id"]
    assert api.delete(f"/sessions/{uid(session)}").status_code == 202
    Worker(all_generations.runtime).run_until_idle()
    assert all_generations.v1.listed(f"{user}/metamessages") == [metamessage]
    assert all_generations.v1.listed(f"{user}/collections") == [shelf]
    assert api.delete("").status_code // 100 == 2
    Worker(all_generations.runtime).run_until_idle()
    with all_generations.runtime.storage.read() as tx:
        left = {row.uid for row in tx.rows.page(Metamessage)} | {
            row.uid for row in tx.rows.page(NamedCollection)
        }
    assert not {metamessage, shelf} & left


def test_every_conflict_has_a_test() -> None:
    files = Path(__file__).parent.glob("test_conflicts*.py")
    sources = "".join(file.read_text(encoding="utf-8") for file in files)
    numbers = {int(number) for number in re.findall(r"^def test_conflict_(\d+)", sources, re.M)}
    assert numbers == set(range(1, 26))
