"""The points where the generations disagree, one by one, and their solutions. Each test is named by
its number in the list of twenty-five, which `docs/migrating.md` explains to users."""

from __future__ import annotations

from typing import Any

import pytest

from api.conftest import Api
from api.test_auth_first_generation import call as call_with
from api.test_auth_first_generation import client as client
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.records import Metamessage, NamedCollection
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.api.all_generations import ALICE, AllGenerations, whole
from support.api.all_generations import all_generations as all_generations
from support.api.v1_client import uid

TORTOISE = "I adopted a tortoise named Balthazar."


@pytest.fixture
def user(all_generations: AllGenerations) -> str:
    """The path of alice, whom the first generation made."""
    return all_generations.v1.user(all_generations.v1.app())


def later(all_generations: AllGenerations) -> tuple[Api, Api]:
    return all_generations.v2, all_generations.newest


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
        made = "w" if api is all_generations.v2 else "t"
        assert api.post("/peers", {"id": made}).status_code == (
            200 if api is all_generations.v2 else 201
        )
        assert (
            all_generations.v1.refused(
                409, "POST", f"{all_generations.app()}/users", {"name": made}
            )
            == "User with this name already exists"
        )
        assert (
            all_generations.v1.get(f"{all_generations.app()}/users/get_or_create/{made}")["name"]
            == made
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


@pytest.mark.parametrize("shared", [True, False])
def test_conflict_05_sessions_without_an_owner_are_every_members(shared: bool) -> None:
    overrides = {"DB_CONNECTION_URI": "memory://", "API_V1_SHARED_SESSIONS": str(shared).lower()}
    runtime = open_runtime(load_settings(environ={}, overrides=overrides), "api")
    three = AllGenerations(create_app(runtime=runtime), runtime, "w")
    three.v2.session("room", peers={ALICE: {}, "bob": {}})
    room = three.uid_of("room")
    for name in (ALICE, "bob"):
        listed = three.v1.post(f"{three.user(name)}/sessions/list")
        assert ([item["id"] for item in listed["items"]], listed["total"]) == (
            ([room], 1) if shared else ([], 0)
        )
        assert {item["user_id"] for item in listed["items"]} <= {uid(three.user(name))}
        assert three.v1.call(
            "GET", f"{three.user(name)}/sessions", session_id=room
        ).status_code == (200 if shared else 404)
    runtime.close()


def test_conflict_06_messages_of_the_assistant_have_an_author(
    all_generations: AllGenerations, user: str
) -> None:
    all_generations.newest.session("room", peers={ALICE: {}})
    room = f"{user}/sessions/{all_generations.uid_of('room')}"
    owned = all_generations.v1.session(user)
    for session in (owned, room):
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


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_conflict_09_what_goes_with_a_session_and_what_with_its_workspace(
    all_generations: AllGenerations, user: str, generation: str
) -> None:
    api = all_generations.v2 if generation == "v2" else all_generations.newest
    session = all_generations.v1.session(user)
    (said,) = all_generations.v1.say(session, (True, "hello"))
    about = {"content": "", "session_id": uid(session)}
    all_generations.v1.post(f"{user}/metamessages", {"label": "of the session", **about})
    all_generations.v1.post(
        f"{user}/metamessages", {"label": "of a message", "message_id": said["id"], **about}
    )
    kept = all_generations.v1.post(f"{user}/metamessages", {"label": "of the user", "content": ""})[
        "id"
    ]
    shelf = all_generations.v1.post(f"{user}/collections", {"name": "shelf"})["id"]
    assert api.delete(f"/sessions/{uid(session)}").status_code == 202
    Worker(all_generations.runtime).run_until_idle()
    assert all_generations.v1.listed(f"{user}/metamessages") == [kept]
    assert all_generations.v1.listed(f"{user}/collections") == [shelf]
    assert api.delete("").status_code // 100 == 2
    Worker(all_generations.runtime).run_until_idle()
    with all_generations.runtime.storage.read() as tx:
        left = {row.uid for row in tx.rows.page(Metamessage)} | {
            row.uid for row in tx.rows.page(NamedCollection)
        }
    assert not {kept, shelf} & left


def test_conflict_10_metamessages_are_not_metadata(
    all_generations: AllGenerations, user: str
) -> None:
    session = all_generations.v1.session(user)
    (said,) = all_generations.v1.say(session, (True, "hello"))
    about = {
        "label": "mood",
        "content": "gloomy",
        "session_id": uid(session),
        "message_id": said["id"],
    }
    notes = [all_generations.v1.post(f"{user}/metamessages", about)["id"] for _ in range(2)]
    for api in later(all_generations):
        (message,) = api.ok(api.post(f"/sessions/{uid(session)}/messages/list"))["items"]
        assert message["metadata"] == {}
        assert api.ok(
            api.put(f"/sessions/{uid(session)}/messages/{said['id']}", {"metadata": {"label": "x"}})
        )
        assert api.ok(api.put(f"/sessions/{uid(session)}/messages/{said['id']}", {"metadata": {}}))
    assert all_generations.v1.listed(f"{user}/metamessages", {"message_id": said["id"]}) == notes
    all_generations.v1.say(
        session, *((True, f"The tower is {number} metres high.") for number in range(19))
    )
    Worker(all_generations.runtime).run_until_idle()
    (summary,) = all_generations.v1.post(
        f"{user}/metamessages/list", {"label": "honcho_chat_summary_short"}
    )["items"]
    for api in later(all_generations):
        assert (
            api.ok(api.get(f"/sessions/{uid(session)}/summaries"))["short_summary"]["content"]
            == summary["content"]
        )


@pytest.mark.parametrize(
    "used", [True, False], ids=["where the first is in use", "where it is not"]
)
def test_conflict_10_a_summary_of_a_shared_session_is_a_note_of_each_member(
    all_generations: AllGenerations, used: bool
) -> None:
    user = all_generations.v1.user(all_generations.v1.app())
    if used:
        all_generations.v1.session(user)
    all_generations.newest.session("room", peers={ALICE: {}, "bob": {}})
    said = [
        {"peer_id": ALICE, "content": f"The tower is {number} metres high."} for number in range(20)
    ]
    all_generations.newest.ok(
        all_generations.newest.post("/sessions/room/messages", {"messages": said}), 201
    )
    Worker(all_generations.runtime).run_until_idle()
    summary = all_generations.newest.ok(all_generations.newest.get("/sessions/room/summaries"))[
        "short_summary"
    ]
    room = all_generations.uid_of("room")
    for path in (user, all_generations.user("bob")):
        notes = all_generations.v1.post(
            f"{path}/metamessages/list", {"label": "honcho_chat_summary_short", "session_id": room}
        )["items"]
        assert [(note["content"], note["message_id"]) for note in notes] == [
            (summary["content"], summary["message_id"])
        ] * used


def test_conflict_11_documents_are_not_conclusions_but_for_one_collection(
    all_generations: AllGenerations, user: str
) -> None:
    collection = all_generations.v1.post(f"{user}/collections", {"name": "shelf"})
    shelf = f"{user}/collections/{collection['id']}/documents"
    all_generations.v1.post(shelf, {"content": "alice collects clocks"})
    assert [face.conclusions(ALICE) for face in all_generations.all()] == [[]] * 3
    made = all_generations.clients["v1"].conclude(ALICE, "alice likes tea")
    (shown,) = all_generations.newest.ok(all_generations.newest.post("/conclusions/list"))["items"]
    assert (shown["id"], shown["session_id"], shown["level"]) == (made, None, "explicit")
    known = all_generations.v1.get(f"{user}/collections/name/honcho")["id"]
    document_path = f"{user}/collections/{known}/documents/{made}"
    assert (
        all_generations.v1.put(document_path, {"content": "alice likes coffee"})["content"]
        == "alice likes coffee"
    )
    assert [face.nearest(ALICE, "coffee") for face in all_generations.all()] == [made] * 3
    assert [face.conclusions(ALICE) for face in all_generations.all()] == [
        [(made, "alice likes coffee")]
    ] * 3
    assert all_generations.v1.problem("DELETE", document_path)
    assert all_generations.v2.delete(f"/observations/{made}").status_code == 200
    assert all_generations.v1.refused(404, "GET", document_path)
    assert all_generations.v1.refused(404, "PUT", document_path, {"content": "x"})
    assert [face.conclusions(ALICE) for face in all_generations.all()] == [[]] * 3


def test_conflict_12_a_conclusion_without_a_session(
    all_generations: AllGenerations, user: str
) -> None:
    without = all_generations.clients["v1"].conclude(ALICE, "alice likes tea")
    within = all_generations.clients["v3"].conclude(ALICE, "alice sings")
    rows = {
        item["id"]: item["session_id"] for item in whole(all_generations.v2, "/observations/list")
    }
    assert rows[without] == "__global_observations__"
    assert {
        item["id"]: item["session_id"]
        for item in whole(all_generations.newest, "/conclusions/list")
    } == {**rows, without: None}
    assert all_generations.v2.ids(
        "/observations/list", {"filters": {"session_id": "__global_observations__"}}
    ) == [without]
    assert all_generations.v2.ids(
        "/observations/list", {"filters": {"session_id": rows[within]}}
    ) == [within]


def test_conflict_13_each_accepts_texts_of_its_own_length(
    all_generations: AllGenerations, user: str
) -> None:
    session = all_generations.v1.session(user)
    long = "word " * 10_000
    (said,) = all_generations.v1.say(session, (True, long))
    for api in later(all_generations):
        assert api.ok(api.get(f"/sessions/{uid(session)}/messages/{said['id']}"))["content"] == long
        refused = {"messages": [{"peer_id": ALICE, "content": long}]}
        api.refused(
            api.post(f"/sessions/{uid(session)}/messages", refused),
            ["body", "messages", 0, "content"],
        )
    shelf = all_generations.v1.post(f"{user}/collections", {"name": "shelf"})["id"]
    document = {"content": "x " * 50_000}
    assert (
        all_generations.v1.post(f"{user}/collections/{shelf}/documents", document)["content"]
        == document["content"]
    )
    all_generations.clients["v1"].conclude(ALICE, document["content"])
    for api in later(all_generations):
        noun = "observations" if api is all_generations.v2 else "conclusions"
        assert document["content"] in [
            item["content"] for item in api.ok(api.post(f"/{noun}/list"))["items"]
        ]
        pair = {
            "observer_id": ALICE,
            "observed_id": ALICE,
            "session_id": uid(session),
            "content": document["content"],
        }
        api.refused(api.post(f"/{noun}", {noun: [pair]}), ["body", noun, 0, "content"])
    Worker(all_generations.runtime).run_until_idle()


def test_conflict_14_metadata_is_needed_here_and_optional_there(
    all_generations: AllGenerations, user: str
) -> None:
    session = all_generations.v1.session(user, metadata={"a": 1})
    (said,) = all_generations.v1.say(session, (True, "hello"))
    for path in (session, f"{session}/messages/{said['id']}"):
        for body in ({}, {"metadata": None}):
            assert all_generations.v1.problem("PUT", path, body)[0] == ["body", "metadata"]
    for api in later(all_generations):
        assert api.ok(api.put(f"/sessions/{uid(session)}", {}))["metadata"] == {"a": 1}
        assert (
            api.ok(api.put(f"/sessions/{uid(session)}/messages/{said['id']}", {}))["metadata"] == {}
        )
        section = "deriver" if api is all_generations.v2 else "summary"
        api.ok(
            api.put(f"/sessions/{uid(session)}", {"configuration": {section: {"enabled": False}}})
        )
    merged = all_generations.newest.ok(all_generations.newest.put(f"/sessions/{uid(session)}", {}))[
        "configuration"
    ]
    assert merged == {"reasoning": {"enabled": False}, "summary": {"enabled": False}}
    all_generations.newest.ok(
        all_generations.newest.put(f"/sessions/{uid(session)}", {"metadata": {"b": 2}})
    )
    assert all_generations.v1.get(f"{user}/sessions", session_id=uid(session))["metadata"] == {
        "b": 2
    }, "replaced, not merged"


def test_conflict_15_the_same_filter_means_something_else(
    all_generations: AllGenerations, user: str
) -> None:
    first = all_generations.v1
    first.put(user, {"metadata": {"age": 5}})
    first.post(
        f"{all_generations.app()}/users",
        {"name": "bob", "metadata": {"age": {"gte": 1}, "AND": [], "*": "*"}},
    )

    def found(filter_: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
        listed = first.post(f"{all_generations.app()}/users/list", {"filter": filter_})
        named = [item["name"] for item in listed["items"]]
        assert listed["total"] == len(named)
        return named, *(
            api.ids("/peers/list", {"filters": filter_}) for api in later(all_generations)
        )  # type: ignore[return-value]

    assert first.listed(f"{all_generations.app()}/users", {"filter": {"age": {"gte": 1}}}) == [
        uid(all_generations.user("bob"))
    ]
    for api in later(all_generations):
        assert api.ids("/peers/list", {"filters": {"metadata": {"age": {"gte": 1}}}}) == [ALICE]
    assert found({"AND": []}) == (["bob"], [ALICE, "bob"], [ALICE, "bob"])
    assert first.listed(f"{all_generations.app()}/users", {"filter": {"*": "*"}}) == [
        uid(all_generations.user("bob"))
    ]


def test_conflict_16_chat_of_a_session_beside_chat_of_a_peer(
    all_generations: AllGenerations, user: str
) -> None:
    session = all_generations.v1.session(user)
    all_generations.v1.say(session, (True, TORTOISE))
    Worker(all_generations.runtime).run_until_idle()
    question = "What is the tortoise called?"
    answers = [face.chat(ALICE, uid(session), question) for face in all_generations.all()]
    assert all("Balthazar" in answer for answer in answers)
    raw = all_generations.v1.call(
        "POST", f"{session}/chat", {"queries": ["Hello.", question], "stream": True}
    )
    assert raw.mimetype == "text/event-stream"
    assert "Balthazar" in raw.text
    assert "data:" not in raw.text
    for api in later(all_generations):
        framed = api.post(
            f"/peers/{ALICE}/chat", {"query": question, "session_id": uid(session), "stream": True}
        )
        assert framed.text.startswith("data: {")
        assert '"done": true' in framed.text or '"done":true' in framed.text
    assert all_generations.v1.post(f"{session}/chat", {"queries": ["", " "]}) == {"content": "None"}


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
    made = call_with(client, {"ad": True}, "POST", "/v3/workspaces", {"id": "acme"}).get_json()[
        "uid"
    ]
    for claims in ({"ap": made}, {"w": "acme"}):
        assert call_with(client, claims, "GET", f"/v1/apps?app_id={made}").status_code == 200
        assert (
            call_with(client, claims, "POST", "/v2/workspaces/acme/peers/list", {}).status_code
            == 200
        )
        assert (
            call_with(client, claims, "POST", "/v3/workspaces/acme/peers/list", {}).status_code
            == 200
        )


@pytest.mark.parametrize(
    ("end", "status"),
    [(32503680000, 200), ("2999-01-01T00:00:00Z", 200), ("2020-01-01T00:00:00Z", 401), (1, 401)],
)
def test_conflict_19_a_key_ends_in_either_spelling(client: Any, end: object, status: int) -> None:
    made = call_with(client, {"ad": True}, "POST", "/v3/workspaces", {"id": "acme"}).get_json()[
        "uid"
    ]
    for claims in ({"ap": made, "exp": end}, {"w": "acme", "exp": end}):
        for method, path in (
            ("GET", f"/v1/apps?app_id={made}"),
            ("PUT", "/v2/workspaces/acme"),
            ("PUT", "/v3/workspaces/acme"),
        ):
            assert call_with(client, claims, method, path, {}).status_code == status


def test_conflict_20_each_has_statuses_of_its_own(
    all_generations: AllGenerations, user: str
) -> None:
    first, second, newest = all_generations.v1, all_generations.v2, all_generations.newest
    mine, here, root = first.session(user), all_generations.workspace, "//v{}/workspaces"
    words, said = (
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
            ("POST", "/sessions/two/messages", said),
            ("POST", "/sessions/three/messages", said),
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
    found = [
        (
            first.call(*one).status_code,
            second.call(*two).status_code,
            newest.call(*other).status_code,
        )
        for one, two, other in steps
    ]
    assert found == [(200, 200, 201)] * 4 + [(200, 202, 202)]


def test_conflict_21_an_id_that_equals_another_ones_uid(
    all_generations: AllGenerations, user: str
) -> None:
    newest = all_generations.newest
    newest.peer(uid(user), metadata={"who": "named as a uid"})
    peers = {item["id"]: item for item in whole(newest, "/peers/list")}
    assert set(peers) == {ALICE, uid(user)}
    session = all_generations.v1.session(user)
    (said,) = all_generations.v1.say(session, (True, "mine"))
    newest.session(said["id"], peers={uid(user): {}})
    assert (
        all_generations.v1.get(f"{all_generations.app()}/users", user_id=uid(user))["name"] == ALICE
    )
    for api in later(all_generations):
        assert api.ok(api.post("/peers", {"id": uid(user)}))["metadata"] == {
            "who": "named as a uid"
        }
        assert api.ids(f"/peers/{uid(user)}/sessions") == [said["id"]]
        assert api.ids("/peers/list", {"filters": {"id": uid(user)}}) == [uid(user)]
    other = f"{all_generations.app()}/users/{peers[uid(user)]['uid']}"
    assert all_generations.v1.listed(f"{other}/sessions") == [all_generations.uid_of(said["id"])]
    assert all_generations.v1.refused(404, "GET", f"{other}/sessions", session_id=said["id"])


def test_conflict_22_order_is_that_of_storing(all_generations: AllGenerations, user: str) -> None:
    session = all_generations.v1.session(user)
    batch = all_generations.v1.say(session, *((True, f"line {number}") for number in range(5)))
    assert len({message["created_at"] for message in batch}) == 1
    all_generations.newest.say(uid(session), (ALICE, "long ago"), created_at="2001-01-01T00:00:00Z")
    said = [*(f"line {number}" for number in range(5)), "long ago"]
    for face in all_generations.all():
        assert [told.content for told in face.messages(uid(session), ALICE)] == said
    assert [
        item["content"]
        for item in all_generations.v1.post(f"{session}/messages/list", reverse=True)["items"]
    ] == said[::-1]
    for api in later(all_generations):
        listed = api.ok(
            api.post(f"/sessions/{uid(session)}/messages/list", query_string={"reverse": "true"})
        )["items"]
        assert [item["content"] for item in listed] == said[::-1]


@pytest.mark.parametrize("deep", [False, True])
def test_conflict_23_only_the_first_generation_copies_metamessages(
    all_generations: AllGenerations, user: str, deep: bool
) -> None:
    session = all_generations.v1.session(user)
    (said,) = all_generations.v1.say(session, (True, "hello"))
    all_generations.v1.post(
        f"{user}/metamessages",
        {"label": "x", "content": "", "session_id": uid(session), "message_id": said["id"]},
    )
    clone = all_generations.v1.get(f"{session}/clone", deep_copy=deep)["id"]
    (copied,) = all_generations.v1.listed(f"{user}/sessions/{clone}/messages")
    notes = all_generations.v1.post(f"{user}/metamessages/list", {"session_id": clone})["items"]
    assert [note["message_id"] for note in notes] == ([copied] if deep else [])
    others = [
        all_generations.clients[name].clone(uid(session), ALICE, None) for name in ("v2", "v3")
    ]
    for other in others:
        assert all_generations.v1.get(f"{user}/sessions", session_id=other)["user_id"] == uid(
            user
        ), "a copy is its owner's"
        assert all_generations.v1.listed(f"{user}/metamessages", {"session_id": other}) == []
    for api in later(all_generations):
        assert clone in api.ids("/sessions/list"), "its uid is its id"


def test_conflict_24_totals_count_visible_rows(all_generations: AllGenerations, user: str) -> None:
    """Each kind of what some generation hides is there; lists are read whole, page by page, with
    their totals."""
    archived = all_generations.v1.session(user)
    owned = all_generations.v1.session(user)
    all_generations.v1.delete(archived)
    all_generations.newest.session("room", peers={ALICE: {}, "bob": {}})
    all_generations.newest.session("gone", peers={ALICE: {}})
    all_generations.newest.ok(all_generations.newest.post("/scopes", {"id": "team"}), 201)
    gone = all_generations.uid_of("gone")
    all_generations.newest.ok(all_generations.newest.delete("/sessions/gone"), 202)
    (assistant,) = set(all_generations.newest.ids("/peers/list")) - {ALICE, "bob"}
    seen = [set(face.peers()) for face in all_generations.all()]
    assert seen == [{ALICE, "bob"}, {ALICE, "bob", assistant}, {ALICE, "bob", assistant}]
    room = all_generations.uid_of("room")
    every = all_generations.v1.post(f"{user}/sessions/list", size=2)
    assert (every["total"], every["pages"]) == (4, 2)
    assert all_generations.v1.listed(f"{user}/sessions") == [uid(archived), uid(owned), room, gone]
    active = all_generations.v1.post(f"{user}/sessions/list", {"is_active": True}, size=1)
    assert (active["total"], active["pages"]) == (2, 2)
    for api in later(all_generations):
        assert [item["id"] for item in whole(api, "/sessions/list")] == [uid(owned), "room"]
        assert [item["id"] for item in whole(api, f"/peers/{ALICE}/sessions")] == [
            uid(owned),
            "room",
            "gone",
        ]


def test_conflict_25_one_path_for_the_keys_of_two_models(client: Any) -> None:
    admin = {"ad": True}
    made = call_with(client, admin, "POST", "/v3/workspaces", {"id": "acme"}).get_json()["uid"]
    call_with(client, admin, "POST", "/v3/workspaces/acme/peers", {"id": ALICE})
    for query in (f"app_id={made}", "workspace_id=acme"):
        token = call_with(client, admin, "POST", f"/v1/keys?{query}").get_json()["key"]
        bearer = {"Authorization": f"Bearer {token}"}
        assert client.get(f"/v1/apps?app_id={made}", headers=bearer).status_code == 200
        assert client.put("/v1/workspaces/acme", json={}, headers=bearer).status_code == 200
    assert call_with(client, admin, "POST", "/v1/keys").status_code == 422
    assert call_with(client, admin, "POST", "/v1/keys?peer_id=alice").status_code == 422


def test_every_conflict_has_a_test() -> None:
    numbers = {int(name.split("_")[2]) for name in globals() if name.startswith("test_conflict_")}
    assert numbers == set(range(1, 26))
