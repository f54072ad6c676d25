"""What one generation writes, the other two read: the same assertions for each of them, on one workspace, noun by noun.

Where a noun exists in some generations only, it must not show in the others.
"""

from __future__ import annotations

import pytest

from api.three import ALICE, Face, Three
from api.three import three as three
from api.three import writer as writer
from api.v1_world import uid
from memservice.pipeline.worker import Worker

TORTOISE = "I adopted a tortoise named Balthazar."


@pytest.fixture
def talk(three: Three, writer: Face) -> str:
    """The uid of a session of alice's that the writer made, in a workspace that the writer made."""
    writer.make_workspace({})
    writer.make_peer(ALICE, {})
    return writer.make_session(ALICE, {})


def test_workspaces(three: Three, writer: Face) -> None:
    writer.make_workspace({"a": 1})
    assert [face.workspace() for face in three.all()] == [{"a": 1}] * 3
    writer.set_workspace({"b": [2]})
    assert [face.workspace() for face in three.all()] == [{"b": [2]}] * 3


def test_peers(three: Three, writer: Face) -> None:
    writer.make_workspace({})
    writer.make_peer(ALICE, {"n": 1})
    writer.make_peer("bob", {})
    writer.make_peer("carol", {})
    assert [face.peers() for face in three.all()] == [{ALICE: {"n": 1}, "bob": {}, "carol": {}}] * 3
    writer.set_peer(ALICE, {"n": 2})
    for face in three.all():
        assert face.peers()[ALICE] == {"n": 2}


def test_sessions(three: Three, writer: Face, talk: str) -> None:
    others = [writer.make_session(ALICE, {"n": number}) for number in range(2)]
    seen = [(talk, {}), (others[0], {"n": 0}), (others[1], {"n": 1})]
    assert [face.sessions(ALICE) for face in three.all()] == [seen] * 3
    writer.set_session(talk, ALICE, {"x": True})
    for face in three.all():
        assert face.sessions(ALICE)[0] == (talk, {"x": True})


def test_messages(three: Three, writer: Face, talk: str) -> None:
    writer.say(talk, ALICE, "one", "two")
    writer.say(talk, "somebody", "three")
    seen = writer.messages(talk, ALICE)
    assert [(told.content, told.mine) for told in seen] == [("one", True), ("two", True), ("three", False)]
    assert [face.messages(talk, ALICE) for face in three.all()] == [seen] * 3
    assert [face.message(talk, ALICE, seen[2].id) for face in three.all()] == [seen[2]] * 3
    writer.set_message(talk, ALICE, seen[1].id, {"seen": True})
    assert [face.message(talk, ALICE, seen[1].id).metadata for face in three.all()] == [{"seen": True}] * 3


def test_each_goes_on_where_another_left_off(three: Three, writer: Face, talk: str) -> None:
    for number, face in enumerate(three.all()):
        face.say(talk, ALICE, f"mine {number}")
        face.say(talk, "somebody", f"not mine {number}")
    said = [(f"{whose} {number}", whose == "mine") for number in range(3) for whose in ("mine", "not mine")]
    for face in three.all():
        assert [(told.content, told.mine) for told in face.messages(talk, ALICE)] == said


def test_clones(three: Three, writer: Face, talk: str) -> None:
    writer.set_session(talk, ALICE, {"a": 1})
    said = writer.say(talk, ALICE, "one", "two", "three")
    copies = [writer.clone(talk, ALICE, None), writer.clone(talk, ALICE, said[1])]
    for face in three.all():
        assert face.sessions(ALICE) == [(session, {"a": 1}) for session in (talk, *copies)]
        for session, contents in zip(copies, (["one", "two", "three"], ["one", "two"]), strict=True):
            told = face.messages(session, ALICE)
            assert [each.content for each in told] == contents
            assert all(each.mine for each in told)
            assert not {each.id for each in told} & set(said)


def test_each_clones_what_another_made(three: Three, writer: Face, talk: str) -> None:
    writer.say(talk, ALICE, "one")
    copies = [face.clone(talk, ALICE, None) for face in three.all()]
    for face in three.all():
        assert [session for session, _ in face.sessions(ALICE)] == [talk, *copies]
        assert {told.content for session in copies for told in face.messages(session, ALICE)} == {"one"}


def test_deleted_sessions(three: Three, writer: Face, talk: str) -> None:
    kept = writer.make_session(ALICE, {})
    writer.say(talk, ALICE, "one")
    name = three.slug(talk)
    writer.delete_session(talk, ALICE)
    for face in three.all():
        assert face.sessions(ALICE) == [(kept, {})]
    for api in (three.second, three.newest):
        assert name not in api.ids("/sessions/list")
        api.missing(api.post("/sessions", {"id": name}), name)
        assert api.post(f"/sessions/{name}/messages", {"messages": [{"peer_id": ALICE, "content": "x"}]}).status_code == 404


def test_conclusions(three: Three, writer: Face, talk: str) -> None:
    made = [writer.conclude(ALICE, text) for text in ("alice sings", "alice dances", "alice lives in Ulm")]
    seen = list(zip(made, ("alice sings", "alice dances", "alice lives in Ulm"), strict=True))
    assert [face.known(ALICE) for face in three.all()] == [seen] * 3
    assert [face.nearest(ALICE, "dances") for face in three.all()] == [made[1]] * 3


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_a_conclusion_that_is_deleted_is_gone_everywhere(three: Three, writer: Face, talk: str, generation: str) -> None:
    gone, kept = writer.conclude(ALICE, "alice sings"), writer.conclude(ALICE, "alice dances")
    path = f"/observations/{gone}" if generation == "v2" else f"/conclusions/{gone}"
    api = three.second if generation == "v2" else three.newest
    assert api.delete(path).status_code == (200 if generation == "v2" else 204)
    assert [face.known(ALICE) for face in three.all()] == [[(kept, "alice dances")]] * 3
    assert [face.nearest(ALICE, "sings") for face in three.all()] == [kept] * 3


def test_what_is_derived(three: Three, writer: Face, talk: str) -> None:
    (said,) = writer.say(talk, ALICE, TORTOISE)
    Worker(three.runtime).run_until_idle()
    (fact,) = writer.known(ALICE)
    assert fact[1] == TORTOISE
    assert [face.known(ALICE) for face in three.all()] == [[fact]] * 3
    for face in three.all():
        assert "Balthazar" in face.chat(ALICE, talk, "What is the tortoise called?")
    for api in (three.second, three.newest):
        assert [found["id"] for found in api.ok(api.post("/search", {"query": "Balthazar"}))] == [said]


def test_summaries(three: Three, writer: Face, talk: str) -> None:
    writer.say(talk, ALICE, *(f"Fact number {number}: the tower is {number} metres high." for number in range(20)))
    Worker(three.runtime).run_until_idle()
    name = three.slug(talk)
    texts = [api.ok(api.get(f"/sessions/{name}/summaries"))["short_summary"]["content"] for api in (three.second, three.newest)]
    notes = three.first.post(f"{three.user()}/metamessages/list", {"label": "honcho_chat_summary_short"})["items"]
    if writer is three.faces["v1"]:
        texts += [note["content"] for note in notes]
        assert [note["session_id"] for note in notes] == [talk]
    else:
        assert notes == [], "a metamessage has an owner, and this session has none"
    assert len(set(texts)) == 1
    assert texts[0]


# Nouns that not every generation has


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_cards_and_webhooks(three: Three, generation: str) -> None:
    writes, reads = (three.second, three.newest) if generation == "v2" else (three.newest, three.second)
    three.first.user(three.first.app())
    assert writes.put(f"/peers/{ALICE}/card", {"peer_card": ["Lives in Ulm"]}).status_code == 200
    assert reads.ok(reads.get(f"/peers/{ALICE}/card")) == {"peer_card": ["Lives in Ulm"]}
    answer = writes.post("/webhooks", {"url": "https://93.184.215.14/hook"})
    assert answer.status_code // 100 == 2
    assert [item["id"] for item in reads.ok(reads.get("/webhooks"))["items"]] == [answer.get_json()["id"]]
    assert three.faces["v1"].peers() == {ALICE: {}}
    assert three.first.listed(f"{three.user()}/collections") == []
    assert three.first.listed(f"{three.user()}/metamessages") == []


def test_what_only_the_first_generation_has(three: Three) -> None:
    user = three.first.user(three.first.app())
    session = three.first.session(user)
    three.first.say(session, (True, "hello"))
    before = [(face.peers(), face.sessions(ALICE), face.messages(uid(session), ALICE)) for face in three.all()[1:]]
    three.first.post(f"{user}/metamessages", {"label": "mood", "content": "gloomy", "session_id": uid(session)})
    shelf = three.first.post(f"{user}/collections", {"name": "shelf"})["id"]
    three.first.post(f"{user}/collections/{shelf}/documents", {"content": "A gloomy tale."})
    assert [(face.peers(), face.sessions(ALICE), face.messages(uid(session), ALICE)) for face in three.all()[1:]] == before
    assert [face.known(ALICE) for face in three.all()] == [[]] * 3
    for api in (three.second, three.newest):
        assert api.ok(api.post("/search", {"query": "gloomy"})) == []
        assert "gloomy" not in api.get(f"/sessions/{uid(session)}/context").text
        assert "gloomy" not in api.post(f"/peers/{ALICE}/representation", {}).text


# Membership


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_members_that_come_and_go(three: Three, generation: str) -> None:
    """A session of the later generations is every member's; one of the first stays its owner's."""
    api = three.second if generation == "v2" else three.newest
    owned = three.first.session(three.first.user(three.first.app()))
    three.newest.session("room", peers={ALICE: {}})
    room = three.uid_of("room")
    first, later = three.faces["v1"], [three.faces["v2"], three.faces["v3"]]
    for session in (uid(owned), "room"):
        assert api.post(f"/sessions/{session}/peers", {"bob": {}}).status_code == 200
    assert [found for found, _ in first.sessions("bob")] == [room]
    for face in later:
        assert [found for found, _ in face.sessions("bob")] == [uid(owned), room]
    for session in (uid(owned), "room"):
        assert api.delete(f"/sessions/{session}/peers", [ALICE]).status_code == 200
    assert [found for found, _ in first.sessions(ALICE)] == [uid(owned)]
    for other in (three.second, three.newest):
        assert [peer["id"] for peer in other.ok(other.get("/sessions/room/peers"))["items"]] == ["bob"]
        assert ALICE not in [peer["id"] for peer in other.ok(other.get(f"/sessions/{uid(owned)}/peers"))["items"]]
    assert three.first.refused(404, "PUT", f"{three.user()}/sessions/{room}", {"metadata": {}})
    first.say(uid(owned), ALICE, "I am back.")
    for other in (three.second, three.newest):
        assert ALICE in [peer["id"] for peer in other.ok(other.get(f"/sessions/{uid(owned)}/peers"))["items"]]
