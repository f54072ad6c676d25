"""Where the generations disagree about messages, metadata, documents and filters."""

from __future__ import annotations

from typing import Any

import pytest

from api.test_auth_first_generation import client as client
from memservice.worker.polling import Worker
from support.api.all_generations import ALICE, AllGenerations, whole
from support.api.all_generations import all_generations as all_generations
from support.api.conflicts import TORTOISE, later
from support.api.conflicts import user as user
from support.api.v1_client import uid


@pytest.mark.slow
def test_conflict_10_metamessages_are_not_metadata(
    all_generations: AllGenerations, user: str
) -> None:
    session = all_generations.v1.session(user)
    (subject,) = all_generations.v1.say(session, (True, "hello"))
    about = {
        "label": "mood",
        "content": "gloomy",
        "session_id": uid(session),
        "message_id": subject["id"],
    }
    notes = [all_generations.v1.post(f"{user}/metamessages", about)["id"] for _ in range(2)]
    for api in later(all_generations):
        (message,) = api.ok(api.post(f"/sessions/{uid(session)}/messages/list"))["items"]
        assert message["metadata"] == {}
        assert api.ok(
            api.put(
                f"/sessions/{uid(session)}/messages/{subject['id']}", {"metadata": {"label": "x"}}
            )
        )
        assert api.ok(
            api.put(f"/sessions/{uid(session)}/messages/{subject['id']}", {"metadata": {}})
        )
    assert all_generations.v1.listed(f"{user}/metamessages", {"message_id": subject["id"]}) == notes
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


@pytest.mark.slow
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
    messages = [
        {"peer_id": ALICE, "content": f"The tower is {number} metres high."} for number in range(20)
    ]
    all_generations.newest.ok(
        all_generations.newest.post("/sessions/room/messages", {"messages": messages}), 201
    )
    Worker(all_generations.runtime).run_until_idle()
    summary = all_generations.newest.ok(all_generations.newest.get("/sessions/room/summaries"))[
        "short_summary"
    ]
    session = all_generations.uid_of("room")
    for path in (user, all_generations.user("bob")):
        notes = all_generations.v1.post(
            f"{path}/metamessages/list",
            {"label": "honcho_chat_summary_short", "session_id": session},
        )["items"]
        assert [(note["content"], note["message_id"]) for note in notes] == [
            (summary["content"], summary["message_id"])
        ] * used


@pytest.mark.slow
def test_conflict_11_documents_are_not_conclusions_but_for_one_collection(
    all_generations: AllGenerations, user: str
) -> None:
    collection = all_generations.v1.post(f"{user}/collections", {"name": "shelf"})
    shelf = f"{user}/collections/{collection['id']}/documents"
    all_generations.v1.post(shelf, {"content": "alice collects clocks"})
    assert [face.conclusions(ALICE) for face in all_generations.all()] == [[]] * 3
    document = all_generations.clients["v1"].conclude(ALICE, "alice likes tea")
    (shown,) = all_generations.newest.ok(all_generations.newest.post("/conclusions/list"))["items"]
    assert (shown["id"], shown["session_id"], shown["level"]) == (document, None, "explicit")
    reserved = all_generations.v1.get(f"{user}/collections/name/honcho")["id"]
    document_path = f"{user}/collections/{reserved}/documents/{document}"
    assert (
        all_generations.v1.put(document_path, {"content": "alice likes coffee"})["content"]
        == "alice likes coffee"
    )
    assert [face.nearest(ALICE, "coffee") for face in all_generations.all()] == [document] * 3
    assert [face.conclusions(ALICE) for face in all_generations.all()] == [
        [(document, "alice likes coffee")]
    ] * 3
    assert all_generations.v1.problem("DELETE", document_path)
    assert all_generations.v2.delete(f"/observations/{document}").status_code == 200
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


@pytest.mark.slow
def test_conflict_13_each_accepts_texts_of_its_own_length(
    all_generations: AllGenerations, user: str
) -> None:
    session = all_generations.v1.session(user)
    long = "word " * 10_000
    (message,) = all_generations.v1.say(session, (True, long))
    for api in later(all_generations):
        assert (
            api.ok(api.get(f"/sessions/{uid(session)}/messages/{message['id']}"))["content"] == long
        )
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
    (message,) = all_generations.v1.say(session, (True, "hello"))
    for path in (session, f"{session}/messages/{message['id']}"):
        for body in ({}, {"metadata": None}):
            assert all_generations.v1.problem("PUT", path, body)[0] == ["body", "metadata"]
    for api in later(all_generations):
        assert api.ok(api.put(f"/sessions/{uid(session)}", {}))["metadata"] == {"a": 1}
        assert (
            api.ok(api.put(f"/sessions/{uid(session)}/messages/{message['id']}", {}))["metadata"]
            == {}
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

    def listings(filter_: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
        response = first.post(f"{all_generations.app()}/users/list", {"filter": filter_})
        named = [item["name"] for item in response["items"]]
        assert response["total"] == len(named)
        second, third = (
            api.ids("/peers/list", {"filters": filter_}) for api in later(all_generations)
        )
        return named, second, third

    assert first.listed(f"{all_generations.app()}/users", {"filter": {"age": {"gte": 1}}}) == [
        uid(all_generations.user("bob"))
    ]
    for api in later(all_generations):
        assert api.ids("/peers/list", {"filters": {"metadata": {"age": {"gte": 1}}}}) == [ALICE]
    assert listings({"AND": []}) == (["bob"], [ALICE, "bob"], [ALICE, "bob"])
    assert first.listed(f"{all_generations.app()}/users", {"filter": {"*": "*"}}) == [
        uid(all_generations.user("bob"))
    ]


@pytest.mark.slow
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


@pytest.mark.slow
def test_conflict_22_order_is_that_of_storing(all_generations: AllGenerations, user: str) -> None:
    session = all_generations.v1.session(user)
    batch = all_generations.v1.say(session, *((True, f"line {number}") for number in range(5)))
    assert len({message["created_at"] for message in batch}) == 1
    all_generations.newest.say(uid(session), (ALICE, "long ago"), created_at="2001-01-01T00:00:00Z")
    contents = [*(f"line {number}" for number in range(5)), "long ago"]
    for face in all_generations.all():
        assert [row.content for row in face.messages(uid(session), ALICE)] == contents
    assert [
        item["content"]
        for item in all_generations.v1.post(f"{session}/messages/list", reverse=True)["items"]
    ] == contents[::-1]
    for api in later(all_generations):
        answer = api.ok(
            api.post(f"/sessions/{uid(session)}/messages/list", query_string={"reverse": "true"})
        )["items"]
        assert [item["content"] for item in answer] == contents[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("deep", [False, True])
def test_conflict_23_only_the_first_generation_copies_metamessages(
    all_generations: AllGenerations, user: str, deep: bool
) -> None:
    session = all_generations.v1.session(user)
    (message,) = all_generations.v1.say(session, (True, "hello"))
    all_generations.v1.post(
        f"{user}/metamessages",
        {"label": "x", "content": "", "session_id": uid(session), "message_id": message["id"]},
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


@pytest.mark.slow
def test_conflict_24_totals_count_visible_rows(all_generations: AllGenerations, user: str) -> None:
    """Each kind of what some generation hides is there; lists are read whole, page by page, with
    their totals."""
    archived = all_generations.v1.session(user)
    owned = all_generations.v1.session(user)
    all_generations.v1.delete(archived)
    all_generations.newest.session("room", peers={ALICE: {}, "bob": {}})
    all_generations.newest.session("gone", peers={ALICE: {}})
    all_generations.newest.ok(all_generations.newest.post("/scopes", {"id": "team"}), 201)
    deleted = all_generations.uid_of("gone")
    all_generations.newest.ok(all_generations.newest.delete("/sessions/gone"), 202)
    (assistant,) = set(all_generations.newest.ids("/peers/list")) - {ALICE, "bob"}
    peer_ids = [set(face.peers()) for face in all_generations.all()]
    assert peer_ids == [{ALICE, "bob"}, {ALICE, "bob", assistant}, {ALICE, "bob", assistant}]
    session_uid = all_generations.uid_of("room")
    every = all_generations.v1.post(f"{user}/sessions/list", size=2)
    assert (every["total"], every["pages"]) == (4, 2)
    assert all_generations.v1.listed(f"{user}/sessions") == [
        uid(archived),
        uid(owned),
        session_uid,
        deleted,
    ]
    active = all_generations.v1.post(f"{user}/sessions/list", {"is_active": True}, size=1)
    assert (active["total"], active["pages"]) == (2, 2)
    for api in later(all_generations):
        assert [item["id"] for item in whole(api, "/sessions/list")] == [uid(owned), "room"]
        assert [item["id"] for item in whole(api, f"/peers/{ALICE}/sessions")] == [
            uid(owned),
            "room",
            "gone",
        ]
