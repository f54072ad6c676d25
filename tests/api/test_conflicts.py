"""The points where the generations disagree, one by one, and how they are settled: each test is
named by its number in the list of twenty-five, which `docs/migrating.md` tells users of."""

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
from support.api.three import ALICE, Three, whole
from support.api.three import three as three
from support.api.v1_world import uid

TORTOISE = "I adopted a tortoise named Balthazar."


@pytest.fixture
def user(three: Three) -> str:
    """The path of alice, whom the first generation made."""
    return three.first.user(three.first.app())


def later(three: Three) -> tuple[Api, Api]:
    return three.second, three.newest


def test_conflict_01_a_free_name_that_changes_beside_an_id_that_does_not(
    three: Three, user: str
) -> None:
    free = uid(three.first.user(three.app(), "Ann B."))
    assert set(three.newest.ids("/peers/list")) == {ALICE, free}
    three.first.put(user, {"name": "Alice Cooper"})
    for api in later(three):
        assert set(api.ids("/peers/list")) == {ALICE, free}
    # What was given away in one column is free in it, and taken in the other.
    again = three.first.post(f"{three.app()}/users", {"name": ALICE})
    assert set(three.newest.ids("/peers/list")) == {ALICE, free, again["id"]}


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_conflict_01_only_the_taken_name_is_replaced(
    three: Three, user: str, generation: str
) -> None:
    """Several peers are made at once, and a user was renamed to one of them."""
    three.first.put(user, {"name": "bob"})
    api = three.second if generation == "v2" else three.newest
    answer = api.post("/sessions", {"id": "room", "peers": {"bob": {}, "carol": {}}})
    assert answer.status_code // 100 == 2
    uids = {peer["id"]: peer["uid"] for peer in whole(three.newest, "/peers/list")}
    names = {
        item["id"]: item["name"] for item in three.first.post(f"{three.app()}/users/list")["items"]
    }
    assert names == {uid(user): "bob", uids["bob"]: uids["bob"], uids["carol"]: "carol"}
    assert three.first.get(f"{three.app()}/users/get_or_create/carol")["id"] == uids["carol"]


def test_conflict_02_strict_creation_beside_get_or_create(three: Three, user: str) -> None:
    assert three.first.refused(409, "POST", "/apps", {"name": three.workspace})
    for api in later(three):
        assert api.post("/peers", {"id": ALICE}).status_code == 200
        made = "w" if api is three.second else "t"
        assert api.post("/peers", {"id": made}).status_code == (200 if api is three.second else 201)
        assert (
            three.first.refused(409, "POST", f"{three.app()}/users", {"name": made})
            == "User with this name already exists"
        )
        assert three.first.get(f"{three.app()}/users/get_or_create/{made}")["name"] == made
    assert three.first.refused(409, "PUT", user, {"name": "t"})


def test_conflict_03_only_the_later_generations_create_by_the_way(three: Three, user: str) -> None:
    app = three.app()
    for method, path, body in (
        ("POST", "/apps/nothing/users", {"name": "x"}),
        ("POST", f"{app}/users/nobody/sessions", {}),
        ("POST", f"{user}/sessions/nothing/messages", {"content": "x", "is_user": True}),
        ("POST", f"{user}/collections/nothing/documents", {"content": "x"}),
        ("POST", f"{app}/users/nobody/metamessages", {"label": "x", "content": ""}),
        ("POST", f"{app}/users/nobody/sessions/x/chat", {"queries": "x"}),
    ):
        assert three.first.refused(404, method, path, body)
    assert [face.peers() for face in three.all()] == [{ALICE: {}}] * 3
    three.second.say("by-v2", ("bob", "x"))
    three.newest.say("by-v3", ("carol", "x"))
    for face in three.all():
        assert face.peers() == {ALICE: {}, "bob": {}, "carol": {}}


def test_conflict_04_owned_sessions_have_their_uid_for_an_id(three: Three, user: str) -> None:
    session = three.first.session(user)
    for api in later(three):
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
    three.newest.session("room", peers={ALICE: {}})
    assert three.first.refused(404, "GET", f"{user}/sessions", session_id="room")
    assert three.first.get(f"{user}/sessions", session_id=three.uid_of("room"))["user_id"] == uid(
        user
    )


@pytest.mark.parametrize("shared", [True, False])
def test_conflict_05_sessions_without_an_owner_are_every_members(shared: bool) -> None:
    overrides = {"DB_CONNECTION_URI": "memory://", "API_V1_SHARED_SESSIONS": str(shared).lower()}
    runtime = open_runtime(load_settings(environ={}, overrides=overrides), "api")
    three = Three(create_app(runtime=runtime), runtime, "w")
    three.second.session("room", peers={ALICE: {}, "bob": {}})
    room = three.uid_of("room")
    for name in (ALICE, "bob"):
        listed = three.first.post(f"{three.user(name)}/sessions/list")
        assert ([item["id"] for item in listed["items"]], listed["total"]) == (
            ([room], 1) if shared else ([], 0)
        )
        assert {item["user_id"] for item in listed["items"]} <= {uid(three.user(name))}
        assert three.first.call(
            "GET", f"{three.user(name)}/sessions", session_id=room
        ).status_code == (200 if shared else 404)
    runtime.close()


def test_conflict_06_messages_of_the_assistant_have_an_author(three: Three, user: str) -> None:
    three.newest.session("room", peers={ALICE: {}})
    room = f"{user}/sessions/{three.uid_of('room')}"
    owned = three.first.session(user)
    for session in (owned, room):
        three.first.say(session, (True, "hello"), (False, "good morning"))
    (assistant,) = set(three.newest.ids("/peers/list")) - {ALICE}
    for api in later(three):
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
    assert three.first.listed(f"{three.app()}/users") == [uid(user)]


def test_conflict_07_ownership_is_not_membership(three: Three, user: str) -> None:
    session = three.first.session(user)
    three.second.ok(three.second.put(f"/sessions/{uid(session)}/peers", {"carol": {}}))
    three.newest.say(uid(session), ("carol", "I was not asked."))
    assert three.first.listed(f"{user}/sessions") == [uid(session)]
    assert [
        message["is_user"] for message in three.first.post(f"{session}/messages/list")["items"]
    ] == [False]
    assert three.first.listed(f"{three.user('carol')}/sessions") == []
    assert three.first.refused(
        404,
        "POST",
        f"{three.user('carol')}/sessions/{uid(session)}/messages",
        {"content": "", "is_user": True},
    )
    assert three.first.say(session, (True, "I am still here."))


def test_conflict_08_archived_is_not_deleted(three: Three, user: str) -> None:
    archived, deleted = three.first.session(user), three.first.session(user)
    for session in (archived, deleted):
        three.first.say(session, (True, "hello"))
    three.first.delete(archived)
    assert three.second.delete(f"/sessions/{uid(deleted)}").status_code == 202
    for session in (archived, deleted):
        assert three.first.get(f"{user}/sessions", session_id=uid(session))["is_active"] is False
        assert three.first.listed(f"{session}/messages"), "readable, for good or until it is erased"
        for api in later(three):
            assert api.post("/sessions", {"id": uid(session)}).status_code == 404
    assert three.first.listed(f"{user}/sessions", {"is_active": True}) == []
    three.first.say(archived, (True, "still here"))
    for method, path, body in (
        ("PUT", deleted, {"metadata": {}}),
        ("DELETE", deleted, ...),
        ("POST", f"{deleted}/messages", {"content": "", "is_user": True}),
        ("GET", f"{deleted}/clone", ...),
        ("POST", f"{user}/metamessages", {"label": "x", "content": "", "session_id": uid(deleted)}),
    ):
        assert three.first.refused(404, method, path, body)
    Worker(three.runtime).run_until_idle()
    assert three.first.refused(404, "GET", f"{user}/sessions", session_id=uid(deleted))
    assert three.first.listed(f"{user}/sessions") == [uid(archived)]
    assert three.newest.delete("").status_code == 202, (
        "an archived session does not keep a workspace"
    )


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_conflict_09_what_goes_with_a_session_and_what_with_its_workspace(
    three: Three, user: str, generation: str
) -> None:
    api = three.second if generation == "v2" else three.newest
    session = three.first.session(user)
    (said,) = three.first.say(session, (True, "hello"))
    about = {"content": "", "session_id": uid(session)}
    three.first.post(f"{user}/metamessages", {"label": "of the session", **about})
    three.first.post(
        f"{user}/metamessages", {"label": "of a message", "message_id": said["id"], **about}
    )
    kept = three.first.post(f"{user}/metamessages", {"label": "of the user", "content": ""})["id"]
    shelf = three.first.post(f"{user}/collections", {"name": "shelf"})["id"]
    assert api.delete(f"/sessions/{uid(session)}").status_code == 202
    Worker(three.runtime).run_until_idle()
    assert three.first.listed(f"{user}/metamessages") == [kept]
    assert three.first.listed(f"{user}/collections") == [shelf]
    assert api.delete("").status_code // 100 == 2
    Worker(three.runtime).run_until_idle()
    with three.runtime.storage.read() as tx:
        left = {row.uid for row in tx.rows.page(Metamessage)} | {
            row.uid for row in tx.rows.page(NamedCollection)
        }
    assert not {kept, shelf} & left


def test_conflict_10_metamessages_are_not_metadata(three: Three, user: str) -> None:
    session = three.first.session(user)
    (said,) = three.first.say(session, (True, "hello"))
    about = {
        "label": "mood",
        "content": "gloomy",
        "session_id": uid(session),
        "message_id": said["id"],
    }
    notes = [three.first.post(f"{user}/metamessages", about)["id"] for _ in range(2)]
    for api in later(three):
        (message,) = api.ok(api.post(f"/sessions/{uid(session)}/messages/list"))["items"]
        assert message["metadata"] == {}
        assert api.ok(
            api.put(f"/sessions/{uid(session)}/messages/{said['id']}", {"metadata": {"label": "x"}})
        )
        assert api.ok(api.put(f"/sessions/{uid(session)}/messages/{said['id']}", {"metadata": {}}))
    assert three.first.listed(f"{user}/metamessages", {"message_id": said["id"]}) == notes
    three.first.say(
        session, *((True, f"The tower is {number} metres high.") for number in range(19))
    )
    Worker(three.runtime).run_until_idle()
    (summary,) = three.first.post(
        f"{user}/metamessages/list", {"label": "honcho_chat_summary_short"}
    )["items"]
    for api in later(three):
        assert (
            api.ok(api.get(f"/sessions/{uid(session)}/summaries"))["short_summary"]["content"]
            == summary["content"]
        )


@pytest.mark.parametrize(
    "used", [True, False], ids=["where the first is in use", "where it is not"]
)
def test_conflict_10_a_summary_of_a_shared_session_is_a_note_of_each_member(
    three: Three, used: bool
) -> None:
    user = three.first.user(three.first.app())
    if used:
        three.first.session(user)
    three.newest.session("room", peers={ALICE: {}, "bob": {}})
    said = [
        {"peer_id": ALICE, "content": f"The tower is {number} metres high."} for number in range(20)
    ]
    three.newest.ok(three.newest.post("/sessions/room/messages", {"messages": said}), 201)
    Worker(three.runtime).run_until_idle()
    summary = three.newest.ok(three.newest.get("/sessions/room/summaries"))["short_summary"]
    room = three.uid_of("room")
    for path in (user, three.user("bob")):
        notes = three.first.post(
            f"{path}/metamessages/list", {"label": "honcho_chat_summary_short", "session_id": room}
        )["items"]
        assert [(note["content"], note["message_id"]) for note in notes] == [
            (summary["content"], summary["message_id"])
        ] * used


def test_conflict_11_documents_are_not_conclusions_but_for_one_collection(
    three: Three, user: str
) -> None:
    collection = three.first.post(f"{user}/collections", {"name": "shelf"})
    shelf = f"{user}/collections/{collection['id']}/documents"
    three.first.post(shelf, {"content": "alice collects clocks"})
    assert [face.known(ALICE) for face in three.all()] == [[]] * 3
    made = three.faces["v1"].conclude(ALICE, "alice likes tea")
    (shown,) = three.newest.ok(three.newest.post("/conclusions/list"))["items"]
    assert (shown["id"], shown["session_id"], shown["level"]) == (made, None, "explicit")
    known = three.first.get(f"{user}/collections/name/honcho")["id"]
    place = f"{user}/collections/{known}/documents/{made}"
    assert (
        three.first.put(place, {"content": "alice likes coffee"})["content"] == "alice likes coffee"
    )
    assert [face.nearest(ALICE, "coffee") for face in three.all()] == [made] * 3
    assert [face.known(ALICE) for face in three.all()] == [[(made, "alice likes coffee")]] * 3
    assert three.first.problem("DELETE", place)
    assert three.second.delete(f"/observations/{made}").status_code == 200
    assert three.first.refused(404, "GET", place)
    assert three.first.refused(404, "PUT", place, {"content": "x"})
    assert [face.known(ALICE) for face in three.all()] == [[]] * 3


def test_conflict_12_a_conclusion_without_a_session(three: Three, user: str) -> None:
    without = three.faces["v1"].conclude(ALICE, "alice likes tea")
    within = three.faces["v3"].conclude(ALICE, "alice sings")
    rows = {item["id"]: item["session_id"] for item in whole(three.second, "/observations/list")}
    assert rows[without] == "__global_observations__"
    assert {
        item["id"]: item["session_id"] for item in whole(three.newest, "/conclusions/list")
    } == {**rows, without: None}
    assert three.second.ids(
        "/observations/list", {"filters": {"session_id": "__global_observations__"}}
    ) == [without]
    assert three.second.ids("/observations/list", {"filters": {"session_id": rows[within]}}) == [
        within
    ]


def test_conflict_13_each_accepts_texts_of_its_own_length(three: Three, user: str) -> None:
    session = three.first.session(user)
    long = "word " * 10_000
    (said,) = three.first.say(session, (True, long))
    for api in later(three):
        assert api.ok(api.get(f"/sessions/{uid(session)}/messages/{said['id']}"))["content"] == long
        refused = {"messages": [{"peer_id": ALICE, "content": long}]}
        api.refused(
            api.post(f"/sessions/{uid(session)}/messages", refused),
            ["body", "messages", 0, "content"],
        )
    shelf = three.first.post(f"{user}/collections", {"name": "shelf"})["id"]
    document = {"content": "x " * 50_000}
    assert (
        three.first.post(f"{user}/collections/{shelf}/documents", document)["content"]
        == document["content"]
    )
    three.faces["v1"].conclude(ALICE, document["content"])
    for api in later(three):
        noun = "observations" if api is three.second else "conclusions"
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
    Worker(three.runtime).run_until_idle()


def test_conflict_14_metadata_is_needed_here_and_optional_there(three: Three, user: str) -> None:
    session = three.first.session(user, metadata={"a": 1})
    (said,) = three.first.say(session, (True, "hello"))
    for path in (session, f"{session}/messages/{said['id']}"):
        for body in ({}, {"metadata": None}):
            assert three.first.problem("PUT", path, body)[0] == ["body", "metadata"]
    for api in later(three):
        assert api.ok(api.put(f"/sessions/{uid(session)}", {}))["metadata"] == {"a": 1}
        assert (
            api.ok(api.put(f"/sessions/{uid(session)}/messages/{said['id']}", {}))["metadata"] == {}
        )
        section = "deriver" if api is three.second else "summary"
        api.ok(
            api.put(f"/sessions/{uid(session)}", {"configuration": {section: {"enabled": False}}})
        )
    merged = three.newest.ok(three.newest.put(f"/sessions/{uid(session)}", {}))["configuration"]
    assert merged == {"reasoning": {"enabled": False}, "summary": {"enabled": False}}
    three.newest.ok(three.newest.put(f"/sessions/{uid(session)}", {"metadata": {"b": 2}}))
    assert three.first.get(f"{user}/sessions", session_id=uid(session))["metadata"] == {"b": 2}, (
        "replaced, not merged"
    )


def test_conflict_15_the_same_filter_means_something_else(three: Three, user: str) -> None:
    first = three.first
    first.put(user, {"metadata": {"age": 5}})
    first.post(
        f"{three.app()}/users",
        {"name": "bob", "metadata": {"age": {"gte": 1}, "AND": [], "*": "*"}},
    )

    def found(filter_: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
        listed = first.post(f"{three.app()}/users/list", {"filter": filter_})
        named = [item["name"] for item in listed["items"]]
        assert listed["total"] == len(named)
        return named, *(api.ids("/peers/list", {"filters": filter_}) for api in later(three))  # type: ignore[return-value]

    assert first.listed(f"{three.app()}/users", {"filter": {"age": {"gte": 1}}}) == [
        uid(three.user("bob"))
    ]
    for api in later(three):
        assert api.ids("/peers/list", {"filters": {"metadata": {"age": {"gte": 1}}}}) == [ALICE]
    assert found({"AND": []}) == (["bob"], [ALICE, "bob"], [ALICE, "bob"])
    assert first.listed(f"{three.app()}/users", {"filter": {"*": "*"}}) == [uid(three.user("bob"))]


def test_conflict_16_chat_of_a_session_beside_chat_of_a_peer(three: Three, user: str) -> None:
    session = three.first.session(user)
    three.first.say(session, (True, TORTOISE))
    Worker(three.runtime).run_until_idle()
    question = "What is the tortoise called?"
    answers = [face.chat(ALICE, uid(session), question) for face in three.all()]
    assert all("Balthazar" in answer for answer in answers)
    raw = three.first.call(
        "POST", f"{session}/chat", {"queries": ["Hello.", question], "stream": True}
    )
    assert raw.mimetype == "text/event-stream"
    assert "Balthazar" in raw.text
    assert "data:" not in raw.text
    for api in later(three):
        framed = api.post(
            f"/peers/{ALICE}/chat", {"query": question, "session_id": uid(session), "stream": True}
        )
        assert framed.text.startswith("data: {")
        assert '"done": true' in framed.text or '"done":true' in framed.text
    assert three.first.post(f"{session}/chat", {"queries": ["", " "]}) == {"content": "None"}


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
    three: Three,
    user: str,
    owned: bool,
    metadata: dict[str, Any],
    v2: dict[str, Any] | None,
    v3: dict[str, Any] | None,
    derived: int,
) -> None:
    if owned:
        name = uid(three.first.session(user, metadata=metadata))
    else:
        name = three.newest.session("room", peers={ALICE: {}}, metadata=metadata)["id"]
    if v2 is not None:
        three.second.ok(three.second.put(f"/sessions/{name}", {"configuration": v2}))
    if v3 is not None:
        three.newest.ok(three.newest.put(f"/sessions/{name}", {"configuration": v3}))
    three.first.say(f"{user}/sessions/{three.uid_of(name)}", (True, TORTOISE))
    Worker(three.runtime).run_until_idle()
    assert [len(face.known(ALICE)) for face in three.all()] == [derived] * 3


def test_conflict_17_an_old_switch_of_a_session_goes_before_the_present_one_of_its_workspace(
    three: Three, user: str
) -> None:
    three.newest.ok(three.newest.put("", {"configuration": {"reasoning": {"enabled": True}}}))
    session = three.first.session(user)
    three.second.ok(
        three.second.put(f"/sessions/{uid(session)}", {"configuration": {"deriver_disabled": True}})
    )
    three.first.say(session, (True, TORTOISE))
    Worker(three.runtime).run_until_idle()
    assert [face.known(ALICE) for face in three.all()] == [[]] * 3


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


def test_conflict_20_each_has_statuses_of_its_own(three: Three, user: str) -> None:
    first, second, newest = three.first, three.second, three.newest
    mine, here, root = first.session(user), three.workspace, "//v{}/workspaces"
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
            ("POST", f"{three.app()}/users", {"name": "one"}),
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


def test_conflict_21_an_id_that_equals_another_ones_uid(three: Three, user: str) -> None:
    newest = three.newest
    newest.peer(uid(user), metadata={"who": "named as a uid"})
    peers = {item["id"]: item for item in whole(newest, "/peers/list")}
    assert set(peers) == {ALICE, uid(user)}
    session = three.first.session(user)
    (said,) = three.first.say(session, (True, "mine"))
    newest.session(said["id"], peers={uid(user): {}})
    assert three.first.get(f"{three.app()}/users", user_id=uid(user))["name"] == ALICE
    for api in later(three):
        assert api.ok(api.post("/peers", {"id": uid(user)}))["metadata"] == {
            "who": "named as a uid"
        }
        assert api.ids(f"/peers/{uid(user)}/sessions") == [said["id"]]
        assert api.ids("/peers/list", {"filters": {"id": uid(user)}}) == [uid(user)]
    other = f"{three.app()}/users/{peers[uid(user)]['uid']}"
    assert three.first.listed(f"{other}/sessions") == [three.uid_of(said["id"])]
    assert three.first.refused(404, "GET", f"{other}/sessions", session_id=said["id"])


def test_conflict_22_order_is_that_of_storing(three: Three, user: str) -> None:
    session = three.first.session(user)
    batch = three.first.say(session, *((True, f"line {number}") for number in range(5)))
    assert len({message["created_at"] for message in batch}) == 1
    three.newest.say(uid(session), (ALICE, "long ago"), created_at="2001-01-01T00:00:00Z")
    said = [*(f"line {number}" for number in range(5)), "long ago"]
    for face in three.all():
        assert [told.content for told in face.messages(uid(session), ALICE)] == said
    assert [
        item["content"]
        for item in three.first.post(f"{session}/messages/list", reverse=True)["items"]
    ] == said[::-1]
    for api in later(three):
        listed = api.ok(
            api.post(f"/sessions/{uid(session)}/messages/list", query_string={"reverse": "true"})
        )["items"]
        assert [item["content"] for item in listed] == said[::-1]


@pytest.mark.parametrize("deep", [False, True])
def test_conflict_23_only_the_first_generation_copies_metamessages(
    three: Three, user: str, deep: bool
) -> None:
    session = three.first.session(user)
    (said,) = three.first.say(session, (True, "hello"))
    three.first.post(
        f"{user}/metamessages",
        {"label": "x", "content": "", "session_id": uid(session), "message_id": said["id"]},
    )
    clone = three.first.get(f"{session}/clone", deep_copy=deep)["id"]
    (copied,) = three.first.listed(f"{user}/sessions/{clone}/messages")
    notes = three.first.post(f"{user}/metamessages/list", {"session_id": clone})["items"]
    assert [note["message_id"] for note in notes] == ([copied] if deep else [])
    others = [three.faces[name].clone(uid(session), ALICE, None) for name in ("v2", "v3")]
    for other in others:
        assert three.first.get(f"{user}/sessions", session_id=other)["user_id"] == uid(user), (
            "a copy is its owner's"
        )
        assert three.first.listed(f"{user}/metamessages", {"session_id": other}) == []
    for api in later(three):
        assert clone in api.ids("/sessions/list"), "its uid is its id"


def test_conflict_24_totals_count_visible_rows(three: Three, user: str) -> None:
    """Each kind of what some generation hides is there; lists are read whole, page by page, with
    their totals."""
    archived = three.first.session(user)
    owned = three.first.session(user)
    three.first.delete(archived)
    three.newest.session("room", peers={ALICE: {}, "bob": {}})
    three.newest.session("gone", peers={ALICE: {}})
    three.newest.ok(three.newest.post("/scopes", {"id": "team"}), 201)
    gone = three.uid_of("gone")
    three.newest.ok(three.newest.delete("/sessions/gone"), 202)
    (assistant,) = set(three.newest.ids("/peers/list")) - {ALICE, "bob"}
    seen = [set(face.peers()) for face in three.all()]
    assert seen == [{ALICE, "bob"}, {ALICE, "bob", assistant}, {ALICE, "bob", assistant}]
    room = three.uid_of("room")
    every = three.first.post(f"{user}/sessions/list", size=2)
    assert (every["total"], every["pages"]) == (4, 2)
    assert three.first.listed(f"{user}/sessions") == [uid(archived), uid(owned), room, gone]
    active = three.first.post(f"{user}/sessions/list", {"is_active": True}, size=1)
    assert (active["total"], active["pages"]) == (2, 2)
    for api in later(three):
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
