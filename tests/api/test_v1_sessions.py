"""Sessions and messages of the first generation: owned, archived, cloned; what each generation sees
of the other's."""

from __future__ import annotations

import pytest

from api.conftest import Api
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.api.v1_client import V1Client, uid

pytestmark = pytest.mark.every_index


@pytest.fixture
def v1(api: Api) -> V1Client:
    return V1Client(api)


@pytest.fixture
def user(v1: V1Client) -> str:
    return v1.user(v1.app())


def contents(v1: V1Client, session: str, **query: object) -> list[str]:
    return [message["content"] for message in v1.post(f"{session}/messages/list", **query)["items"]]


def test_a_session_is_created_found_updated_and_listed(v1: V1Client, user: str) -> None:
    created_session = v1.post(f"{user}/sessions", {"metadata": {"a": 1}})
    assert list(created_session) == [
        "id",
        "is_active",
        "user_id",
        "app_id",
        "metadata",
        "created_at",
    ]
    assert (
        created_session["is_active"],
        created_session["user_id"],
        created_session["metadata"],
    ) == (True, uid(user), {"a": 1})
    assert v1.get(f"{user}/sessions", session_id=created_session["id"]) == created_session
    session = f"{user}/sessions/{created_session['id']}"
    assert v1.put(session, {"metadata": {}}) == created_session | {"metadata": {}}
    other = v1.post(f"{user}/sessions", {})
    assert v1.listed(f"{user}/sessions") == [created_session["id"], other["id"]]
    assert v1.listed(f"{user}/sessions", reverse=True) == [other["id"], created_session["id"]]
    assert v1.listed(f"{user}/sessions", {"filter": {"a": 1}}) == []


def test_missing_bodies_are_refused(v1: V1Client, user: str) -> None:
    session = v1.session(user)
    assert v1.problem("POST", f"{user}/sessions")[0] == ["body"]
    assert v1.problem("PUT", session, {})[0] == ["body", "metadata"]
    assert v1.problem("PUT", session, {"metadata": None})[0] == ["body", "metadata"]


def test_unknown_sessions_are_404(v1: V1Client, user: str) -> None:
    text = "Session not found or does not belong to user"
    app, unknown = user.rpartition("/users/")[0], f"{user}/sessions/unknown"
    assert v1.refused(404, "GET", f"{user}/sessions", session_id="unknown") == text
    assert v1.refused(404, "PUT", unknown, {"metadata": {}}) == text
    assert v1.refused(404, "DELETE", unknown) == text
    assert v1.refused(404, "GET", f"{unknown}/clone") == "Session not found"
    assert v1.refused(404, "POST", f"{unknown}/messages", {"content": "", "is_user": True}) == text
    assert v1.refused(404, "GET", f"{unknown}/messages/x") == "Message with ID x not found"
    assert v1.refused(404, "PUT", f"{unknown}/messages/x", {"metadata": {}}) == "Message not found"
    assert v1.post(f"{unknown}/messages/list")["total"] == 0
    assert (
        v1.refused(404, "POST", f"{app}/users/nobody/sessions", {})
        == "User with ID 'nobody' not found"
    )
    assert v1.post(f"{app}/users/nobody/sessions/list")["total"] == 0
    assert (
        v1.refused(401, "GET", f"{user}/sessions")
        == "Session ID not found in query parameter or JWT"
    )
    somebody = v1.user(app, "bob")
    assert (
        v1.refused(404, "PUT", f"{somebody}/sessions/{uid(v1.session(user))}", {"metadata": {}})
        == text
    )


def test_messages_are_stored_in_order(v1: V1Client, user: str) -> None:
    session = v1.session(user)
    first = v1.post(
        f"{session}/messages", {"content": "", "is_user": "yes", "metadata": {"k": [1, 2]}}
    )
    assert list(first) == [
        "id",
        "content",
        "is_user",
        "session_id",
        "metadata",
        "created_at",
        "app_id",
        "user_id",
    ]
    assert (
        first["content"],
        first["is_user"],
        first["session_id"],
        first["user_id"],
    ) == (
        "",
        True,
        uid(session),
        uid(user),
    )
    batch = v1.say(session, (False, "hi"), (True, "I like tea"), (False, "noted"))
    assert len({message["created_at"] for message in batch}) == 1
    assert [message["is_user"] for message in batch] == [False, True, False]
    assert contents(v1, session) == ["", "hi", "I like tea", "noted"]
    assert contents(v1, session, reverse=True, size=2, page=2) == ["hi", ""]
    assert v1.post(f"{session}/messages/list", {"filter": {"k": [2]}})["items"] == [first]
    message_path = f"{session}/messages/{first['id']}"
    assert v1.get(message_path) == first
    assert (
        v1.put(message_path, {"metadata": {"new": True}})
        == first | {"metadata": {"new": True}}
        == v1.get(message_path)
    )
    assert v1.post(f"{session}/messages/batch", {"messages": []}) == []


@pytest.mark.slow
def test_limits_of_messages(v1: V1Client, user: str) -> None:
    session = v1.session(user)
    long = {"content": "x" * 50_000, "is_user": True}
    assert v1.post(f"{session}/messages", long)["content"] == long["content"]
    assert v1.problem("POST", f"{session}/messages", {"content": "x" * 50_001, "is_user": True})[
        0
    ] == ["body", "content"]
    assert v1.problem("POST", f"{session}/messages", {"content": "x"})[0] == ["body", "is_user"]
    many = [{"content": "x", "is_user": True}] * 101
    assert v1.problem("POST", f"{session}/messages/batch", {"messages": many})[0] == [
        "body",
        "messages",
    ]
    assert len(v1.post(f"{session}/messages/batch", {"messages": many[:100]})) == 100
    deep: dict[str, object] = {"a": {"b": {"c": {"d": {"e": {}}}}}}
    wrong = {"messages": [many[0], many[0] | {"metadata": deep}]}
    assert v1.problem("POST", f"{session}/messages/batch", wrong)[0] == [
        "body",
        "messages",
        1,
        "metadata",
    ]
    assert v1.problem("POST", f"{session}/messages", many[0] | {"metadata": deep})[0] == [
        "body",
        "metadata",
    ]
    assert len(contents(v1, session, size=100)) == 100


# Archiving


@pytest.mark.slow
def test_an_archived_session_is_visible_in_this_generation_only(v1: V1Client, user: str) -> None:
    api, session = v1.api, v1.session(user, metadata={"a": 1})
    stays = v1.session(user)
    v1.say(session, (True, "The parrot is called Kiwi."))
    v1.say(stays, (True, "The parrot sleeps."))
    slug = uid(session)
    assert len(api.ok(api.post("/search", {"query": "parrot"}))) == 2
    for _ in range(2):
        assert v1.delete(session) == {"message": "Session deleted successfully"}
    assert v1.get(f"{user}/sessions", session_id=slug)["is_active"] is False
    assert v1.listed(f"{user}/sessions") == [slug, uid(stays)]
    assert v1.listed(f"{user}/sessions", {"is_active": False}) == [slug, uid(stays)]
    only = v1.post(f"{user}/sessions/list", {"is_active": True})
    assert ([each["id"] for each in only["items"]], only["total"]) == ([uid(stays)], 1)
    assert v1.put(session, {"metadata": {"b": 2}})["is_active"] is False
    assert v1.say(session, (True, "A parrot again."))
    assert v1.get(f"{session}/clone")["is_active"] is True

    assert slug not in api.ids("/sessions/list")
    assert slug not in api.ids("/peers/alice/sessions")
    assert api.post("/sessions", {"id": slug}).status_code == 404
    assert api.put(f"/sessions/{slug}", {"metadata": {}}).status_code == 404
    assert api.delete(f"/sessions/{slug}").status_code == 404
    assert api.post(f"/sessions/{slug}/clone").status_code == 404
    messages = {"messages": [{"peer_id": "alice", "content": "x"}]}
    assert api.post(f"/sessions/{slug}/messages", messages).status_code == 404
    assert api.ok(api.post(f"/sessions/{slug}/messages/list"))["total"] == 0
    assert api.ok(api.post(f"/sessions/{slug}/search", {"query": "parrot"})) == []
    assert api.ok(api.get(f"/sessions/{slug}/context"))["messages"] == []
    assert api.post("/peers/alice/chat", {"query": "x", "session_id": slug}).status_code == 404
    dream = {"observer": "alice", "dream_type": "omni", "session_id": slug}
    before = api.ok(api.get("/queue/status"))["total_work_units"]
    assert api.post("/schedule_dream", dream).status_code == 204
    assert api.ok(api.get("/queue/status"))["total_work_units"] == before
    session_ids = {
        message["session_id"] for message in api.ok(api.post("/search", {"query": "parrot"}))
    }
    assert session_ids == set(api.ids("/sessions/list"))


def test_archived_sessions_do_not_prevent_the_deletion_of_a_workspace(
    v1: V1Client, user: str
) -> None:
    api, session = v1.api, v1.session(user)
    assert api.delete("").status_code == 409
    v1.delete(session)
    assert api.delete("").status_code == 202
    assert v1.refused(404, "GET", "/apps", app_id=user.split("/")[2])
    assert v1.app(api.workspace), "the name is free"


# Cloning


def test_a_clone_has_the_messages_up_to_one(v1: V1Client, user: str) -> None:
    session = v1.session(user, metadata={"a": 1})
    messages = v1.say(session, (True, "one"), (False, "two"), (True, "three"))
    clone = v1.get(f"{session}/clone", message_id=messages[1]["id"])
    assert clone["id"] != uid(session)
    assert (clone["metadata"], clone["user_id"], clone["is_active"]) == ({"a": 1}, uid(user), True)
    copies = v1.post(f"{user}/sessions/{clone['id']}/messages/list")["items"]
    assert [(copy["content"], copy["is_user"]) for copy in copies] == [
        ("one", True),
        ("two", False),
    ]
    assert {copy["created_at"] for copy in copies} == {clone["created_at"]}
    assert not {copy["id"] for copy in copies} & {message["id"] for message in messages}
    assert v1.refused(404, "GET", f"{session}/clone", message_id="unknown") == "Session not found"


def test_an_empty_session_can_be_cloned(v1: V1Client, user: str) -> None:
    clone = v1.get(f"{v1.session(user)}/clone")
    assert v1.get(f"{user}/sessions", session_id=clone["id"]) == clone
    assert len(v1.listed(f"{user}/sessions")) == 2


def test_a_deep_copy_has_metamessages_too(v1: V1Client, user: str) -> None:
    session = v1.session(user)
    messages = v1.say(session, (True, "one"), (False, "two"), (True, "three"))
    about = {"session_id": uid(session), "content": ""}
    for label, message in (
        ("session", None),
        ("first", messages[0]["id"]),
        ("last", messages[2]["id"]),
    ):
        v1.post(f"{user}/metamessages", {"label": label, "message_id": message, **about})
    v1.post(f"{user}/metamessages", {"label": "user", "content": ""})
    clone = v1.get(f"{session}/clone", deep_copy=True, message_id=messages[1]["id"])
    notes = v1.post(f"{user}/metamessages/list", {"session_id": clone["id"]})["items"]
    copies = v1.post(f"{user}/sessions/{clone['id']}/messages/list")["items"]
    assert [(note["label"], note["message_id"]) for note in notes] == [
        ("session", None),
        ("first", copies[0]["id"]),
    ]
    shallow = v1.get(f"{session}/clone")
    assert v1.listed(f"{user}/metamessages", {"session_id": shallow["id"]}) == []
    assert len(v1.listed(f"{user}/metamessages")) == 6


# Across generations


def test_messages_of_this_generation_are_read_by_the_others(v1: V1Client, user: str) -> None:
    api, session = v1.api, v1.session(user, metadata={"a": 1})
    message_rows = v1.say(session, (True, "I live in Ulm."), (False, "A nice town."))
    (shown,) = api.ok(api.post("/sessions/list"))["items"]
    assert (shown["id"], shown["uid"], shown["metadata"]) == (uid(session), uid(session), {"a": 1})
    messages = api.ok(api.post(f"/sessions/{uid(session)}/messages/list"))["items"]
    assert [message["id"] for message in messages] == [message["id"] for message in message_rows]
    (assistant,) = set(api.ids("/peers/list")) - {"alice"}
    assert [message["peer_id"] for message in messages] == ["alice", assistant]
    config = {
        peer: api.ok(api.get(f"/sessions/{uid(session)}/peers/{peer}/config"))
        for peer in ("alice", assistant)
    }
    assert {peer: membership["observe_me"] for peer, membership in config.items()} == {
        "alice": True,
        assistant: False,
    }


def test_messages_of_other_generations_are_read_here(v1: V1Client, user: str) -> None:
    api = v1.api
    uids = {peer["id"]: peer["uid"] for peer in api.ok(api.post("/peers/list"))["items"]}
    room_row = api.session("room", peers={"alice": {}, "bob": {}})
    api.say("room", ("alice", "hello"), ("bob", "good morning"))
    app = user.rpartition("/users/")[0]
    uids = {item["name"]: item["id"] for item in v1.post(f"{app}/users/list")["items"]}
    for name, mine in (("alice", [True, False]), ("bob", [False, True])):
        path = f"{app}/users/{uids[name]}"
        (session,) = v1.post(f"{path}/sessions/list")["items"]
        assert (session["id"], session["user_id"]) == (room_row["uid"], uids[name])
        messages = v1.post(f"{path}/sessions/{room_row['uid']}/messages/list")["items"]
        assert [message["is_user"] for message in messages] == mine
        assert {message["user_id"] for message in messages} == {uids[name]}
    session = f"{user}/sessions/{room_row['uid']}"
    v1.say(session, (False, "I am somebody else."), (True, "And I am Alice."))
    assert len(api.ids("/sessions/room/messages/list")) == 4
    assert len(api.ids("/peers/list")) == 3, "the assistant joined"
    assert v1.refused(404, "GET", f"{user}/sessions", session_id="room"), "a slug is no uid"
    api.ok(api.delete("/sessions/room/peers", ["alice"]))
    assert v1.listed(f"{user}/sessions") == []
    assert v1.refused(404, "POST", f"{session}/messages", {"content": "x", "is_user": True})


def test_the_owner_keeps_its_session_when_members_change(v1: V1Client, user: str) -> None:
    api, session = v1.api, v1.session(user)
    v1.say(session, (True, "one"))
    api.ok(api.put(f"/sessions/{uid(session)}/peers", {"carol": {}}))
    api.say(uid(session), ("carol", "two"))
    assert [message["is_user"] for message in v1.post(f"{session}/messages/list")["items"]] == [
        True,
        False,
    ]
    assert v1.listed(f"{user}/sessions") == [uid(session)]
    carol = v1.get(f"{user.rpartition('/users/')[0]}/users/name/carol")["id"]
    assert v1.listed(f"{user.rpartition('/users/')[0]}/users/{carol}/sessions") == [], (
        "owned by somebody else"
    )


def test_an_owner_that_left_returns_only_by_writing(v1: V1Client, user: str) -> None:
    api, session = v1.api, v1.session(user)
    members = f"/sessions/{uid(session)}/peers"
    api.ok(api.delete(members, ["alice"]))
    v1.say(session, (False, "Where are you?"))
    assert "alice" not in [peer["id"] for peer in api.ok(api.get(members))["items"]]
    v1.say(session, (True, "Here I am."))
    assert "alice" in [peer["id"] for peer in api.ok(api.get(members))["items"]]


def test_a_session_that_is_being_erased(v1: V1Client, user: str) -> None:
    api, session = v1.api, v1.session(user)
    v1.say(session, (True, "one"))
    note = v1.post(
        f"{user}/metamessages", {"label": "x", "content": "", "session_id": uid(session)}
    )
    v1.post(f"{user}/metamessages", {"label": "y", "content": ""})
    api.ok(api.delete(f"/sessions/{uid(session)}"), 202)
    assert v1.get(f"{user}/sessions", session_id=uid(session))["is_active"] is False
    assert v1.refused(404, "POST", f"{session}/messages", {"content": "x", "is_user": True})
    assert v1.refused(404, "PUT", session, {"metadata": {}})
    assert v1.refused(404, "DELETE", session)
    assert v1.refused(404, "PUT", f"{user}/metamessages/{note['id']}", {"metadata": {}})
    Worker(api.runtime).run_until_idle()
    assert v1.refused(404, "GET", f"{user}/sessions", session_id=uid(session))
    assert [note["label"] for note in v1.post(f"{user}/metamessages/list")["items"]] == ["y"]


def test_sessions_of_other_generations_can_be_hidden() -> None:
    runtime = open_runtime(
        load_settings(
            environ={},
            overrides={"DB_CONNECTION_URI": "memory://", "API_V1_SHARED_SESSIONS": "false"},
        ),
        "api",
    )
    api = Api(create_app(runtime=runtime), runtime, "w")
    first = V1Client(api)
    user = first.user(first.app("w"))
    own = first.session(user)
    shared = api.session("room", peers={"alice": {}})
    assert first.listed(f"{user}/sessions") == [uid(own)]
    assert first.refused(404, "GET", f"{user}/sessions", session_id=shared["uid"])
    runtime.close()


# What is derived


def test_only_messages_of_the_user_are_derived_from(v1: V1Client, user: str) -> None:
    api, session = v1.api, v1.session(user)
    v1.say(
        session,
        (True, "I adopted a tortoise named Balthazar."),
        (False, "I work as a nurse in Bergen."),
    )
    Worker(api.runtime).run_until_idle()
    conclusions = api.ok(api.post("/conclusions/list"))["items"]
    assert [
        (each["observer_id"], each["observed_id"], each["content"]) for each in conclusions
    ] == [("alice", "alice", "I adopted a tortoise named Balthazar.")]


@pytest.mark.parametrize(
    ("value", "derived"), [(True, 0), (0, 0), ("no", 0), (False, 1), (None, 1)]
)
def test_a_session_may_switch_deriving_off(
    v1: V1Client, user: str, value: object, derived: int
) -> None:
    api, session = v1.api, v1.session(user, metadata={"deriver_disabled": value})
    v1.say(session, (True, "I adopted a tortoise named Balthazar."))
    Worker(api.runtime).run_until_idle()
    assert api.ok(api.post("/conclusions/list"))["total"] == derived


def test_the_deriving_switch_is_ignored_in_sessions_of_other_generations(
    v1: V1Client, user: str
) -> None:
    api = v1.api
    api.session("room", metadata={"deriver_disabled": True})
    api.say("room", ("alice", "I adopted a tortoise named Balthazar."))
    Worker(api.runtime).run_until_idle()
    assert api.ok(api.post("/conclusions/list"))["total"] == 1


@pytest.mark.slow
def test_summaries_are_metamessages(v1: V1Client, user: str) -> None:
    api, session = v1.api, v1.session(user)
    messages = v1.say(
        session,
        *[
            (bool(number % 2), f"Fact number {number}: the tower is {number} metres high.")
            for number in range(20)
        ],
    )
    Worker(api.runtime).run_until_idle()
    (note,) = v1.post(f"{user}/metamessages/list", {"label": "honcho_chat_summary_short"})["items"]
    assert (note["session_id"], note["message_id"]) == (uid(session), messages[-1]["id"])
    assert note["metadata"] == {"message_count": 20, "summary_type": "SHORT"}
    summary = api.ok(api.get(f"/sessions/{uid(session)}/summaries"))["short_summary"]
    assert note["content"] == summary["content"]
