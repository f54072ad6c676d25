"""Clones of sessions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import Member, Message, Session, Task
from memservice.worker.polling import Worker

if TYPE_CHECKING:
    from api.conftest import Api

pytestmark = pytest.mark.every_index

UID = re.compile(r"[A-Za-z0-9_-]{21}")


def clone(api: Api, session: str = "s", **query: str) -> Any:
    return api.ok(api.post(f"/sessions/{session}/clone", query_string=query), 201)


def stored(api: Api, session: str) -> tuple[Session, list[Message], list[Member]]:
    with api.runtime.storage.read() as tx:
        row = tx.workspaces.locate(api.workspace, session_id=session).session
        assert row is not None
        return (
            row,
            tx.messages.run(row.key, 1, row.message_count),
            tx.members.of_session(row.key, active=False),
        )


def listed(api: Api, session: str) -> list[Any]:
    items: list[Any] = api.ok(api.post(f"/sessions/{session}/messages/list"))["items"]
    return items


def test_a_clone_is_a_new_session_with_the_same_messages_and_members(api: Api) -> None:
    original = api.session(
        "s",
        metadata={"a": {"b": 1}},
        configuration={"summary": {"enabled": False}},
        peers={"alice": {"observe_me": False}},
    )
    api.say(
        "s",
        ("alice", "hello there"),
        ("bob", ""),
        ("alice", "who spoke?"),
        metadata={"n": 1},
        created_at="2020-01-01T00:00:00Z",
    )
    api.ok(api.put("/sessions/s/peers/bob/config", {"observe_others": True}), 204)
    copy = clone(api)
    assert list(copy) == list(original)
    assert UID.fullmatch(copy["id"])
    assert copy["id"] == copy["uid"]
    assert copy["is_active"] is True
    assert copy["workspace_id"] == api.workspace
    assert copy["metadata"] == {"a": {"b": 1}}
    assert copy["configuration"] == {"summary": {"enabled": False}}
    assert copy["created_at"] > original["created_at"]
    assert api.ok(api.post("/sessions", {"id": copy["id"]})) == copy
    assert api.ids("/sessions/list") == ["s", copy["id"]]

    old, new = listed(api, "s"), listed(api, copy["id"])
    same = ("content", "peer_id", "metadata", "token_count", "workspace_id")
    assert [[item[key] for key in same] for item in new] == [
        [item[key] for key in same] for item in old
    ]
    assert not {item["id"] for item in new} & {item["id"] for item in old}
    assert {item["session_id"] for item in new} == {copy["id"]}
    assert {item["created_at"] for item in new} == {copy["created_at"]}
    for peer in ("alice", "bob"):
        configs = [
            api.ok(api.get(f"/sessions/{session}/peers/{peer}/config"))
            for session in ("s", copy["id"])
        ]
        assert configs[0] == configs[1]
    assert [peer["id"] for peer in api.ok(api.get(f"/sessions/{copy['id']}/peers"))["items"]] == [
        "alice",
        "bob",
    ]


def test_positions_and_token_sums_are_copied_and_continue(api: Api) -> None:
    message_rows = api.say("s", *(("alice", f"this is number {n}") for n in range(7)))
    copy = clone(api, message_id=message_rows[4]["id"])
    session, messages, _ = stored(api, copy["id"])
    _, originals, _ = stored(api, "s")
    assert [(m.seq, m.tokens, m.tokens_through) for m in messages] == [
        (m.seq, m.tokens, m.tokens_through) for m in originals[:5]
    ]
    assert session.message_count == 5
    assert (
        session.token_total
        == messages[-1].tokens_through
        == sum(item["token_count"] for item in message_rows[:5])
        > 0
    )
    api.say(copy["id"], ("alice", "and one more"))
    _, messages, _ = stored(api, copy["id"])
    assert [m.seq for m in messages] == [1, 2, 3, 4, 5, 6]
    assert len(listed(api, "s")) == 7, "the original is not touched"


def test_the_named_message_is_the_last_one_of_the_clone(api: Api) -> None:
    messages = api.say("s", ("alice", "one"), ("alice", "two"), ("alice", "three"))
    for last, contents in ((0, ["one"]), (1, ["one", "two"]), (2, ["one", "two", "three"])):
        assert [
            item["content"]
            for item in listed(api, clone(api, message_id=messages[last]["id"])["id"])
        ] == contents


def test_members_that_left_are_not_members_of_the_clone(api: Api) -> None:
    api.session("s", peers={"alice": {"observe_others": True}, "bob": {}}, scopes=["x"])
    api.ok(api.delete("/sessions/s/peers", ["alice"]))
    copy = clone(api)
    assert [peer["id"] for peer in api.ok(api.get(f"/sessions/{copy['id']}/peers"))["items"]] == [
        "bob"
    ]
    assert api.ok(api.get(f"/sessions/{copy['id']}/peers/alice/config")) == {
        "observe_me": None,
        "observe_others": True,
    }
    old, new = stored(api, "s")[2], stored(api, copy["id"])[2]
    facts = [
        [(m.peer, m.kind, m.observe_me, m.observe_others, m.joined_at, m.left_at) for m in members]
        for members in (old, new)
    ]
    assert facts[0] == facts[1]
    assert api.ids("/scopes/x/sessions/list") == ["s", copy["id"]]


def test_a_session_without_messages_is_cloned_too(api: Api) -> None:
    api.session("s", metadata={"a": 1}, peers={"alice": {}})
    copy = clone(api)
    assert api.ids("/sessions/list") == ["s", copy["id"]]
    assert listed(api, copy["id"]) == []
    assert [peer["id"] for peer in api.ok(api.get(f"/sessions/{copy['id']}/peers"))["items"]] == [
        "alice"
    ]


def test_a_clone_is_searchable_and_nothing_is_derived_from_it(api: Api) -> None:
    api.say("s", ("alice", "I live in Oslo and I collect sextants."), ("bob", "That is far away."))
    Worker(api.runtime).run_until_idle()
    total = api.ok(api.post("/conclusions/list"))["total"]
    assert total > 0
    copy = clone(api)
    hits = api.ok(api.post(f"/sessions/{copy['id']}/search", {"query": "sextants"}))
    assert {item["session_id"] for item in hits} == {copy["id"]}
    assert "sextants" in hits[0]["content"]
    everywhere = api.ok(api.post("/search", {"query": "sextants"}))
    assert {item["session_id"] for item in everywhere if "sextants" in item["content"]} == {
        "s",
        copy["id"],
    }
    session, _, _ = stored(api, copy["id"])
    with api.runtime.storage.read() as tx:
        assert tx.rows.count(Task, equals(session_key=session.key)) == 0
    Worker(api.runtime).run_until_idle()
    assert api.ok(api.post("/conclusions/list"))["total"] == total
    assert api.ok(api.get(f"/sessions/{copy['id']}/summaries"))["short_summary"] is None


def test_unknown_sessions_and_messages_cannot_be_cloned(api: Api) -> None:
    api.say("other", ("alice", "x"))
    foreign = api.say("s", ("alice", "y"))[0]["id"]
    detail = "Original session not found"
    assert api.ok(api.post("/sessions/nobody/clone"), 404)["detail"] == detail
    for message in ("nothing", foreign, ""):
        answer = api.post("/sessions/other/clone", query_string={"message_id": message})
        assert api.ok(answer, 404)["detail"] == "Session not found"
    api.ok(api.delete("/sessions/s"), 202)
    assert api.ok(api.post("/sessions/s/clone"), 404)["detail"] == detail
    assert api.ids("/sessions/list") == ["other"]


def test_sessions_of_the_same_name_in_two_workspaces_are_separate(api: Api) -> None:
    other = type(api)(api.app, api.runtime, api.workspace + "-other")
    other.say("s", ("carol", "theirs"))
    api.say("s", ("alice", "ours"))
    copy = clone(api)
    assert [item["content"] for item in listed(api, copy["id"])] == ["ours"]
    assert other.ids("/sessions/list") == ["s"]
    assert api.ids("/peers/list") == ["alice"]


@pytest.mark.parametrize("body", [..., None, {}])
def test_a_body_is_not_needed(api: Api, body: object) -> None:
    api.session("s")
    assert (
        api.ok(
            api.post("/sessions/s/clone", body, headers={"Content-Type": "application/json"}), 201
        )["is_active"]
        is True
    )
