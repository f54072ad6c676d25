"""What one generation writes, the other two read: the same assertions for each of them, on one
workspace, noun by noun.

Where a noun exists in some generations only, it must not show in the others.
"""

from __future__ import annotations

import pytest

from memservice.worker.polling import Worker
from support.api.three import ALICE, Face, Three
from support.api.three import three as three
from support.api.three import writer as writer
from support.api.three_nouns import SharedNouns
from support.api.three_nouns import talk as talk
from support.api.v1_world import uid

pytestmark = pytest.mark.every_index


class TestSharedNouns(SharedNouns):
    """Through the routes; tests/e2e/test_one_workspace.py has them through the published
    clients."""


def test_the_name_of_a_deleted_session_is_not_reused(three: Three, writer: Face, talk: str) -> None:
    name = three.slug(talk)
    writer.delete_session(talk, ALICE)
    for api in (three.second, three.newest):
        assert name not in api.ids("/sessions/list")
        api.missing(api.post("/sessions", {"id": name}), name)
        assert (
            api.post(
                f"/sessions/{name}/messages", {"messages": [{"peer_id": ALICE, "content": "x"}]}
            ).status_code
            == 404
        )


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_a_deleted_conclusion_is_hidden_in_every_generation(
    three: Three, writer: Face, talk: str, generation: str
) -> None:
    gone, kept = writer.conclude(ALICE, "alice sings"), writer.conclude(ALICE, "alice dances")
    path = f"/observations/{gone}" if generation == "v2" else f"/conclusions/{gone}"
    api = three.second if generation == "v2" else three.newest
    assert api.delete(path).status_code == (200 if generation == "v2" else 204)
    assert [face.known(ALICE) for face in three.all()] == [[(kept, "alice dances")]] * 3
    assert [face.nearest(ALICE, "sings") for face in three.all()] == [kept] * 3


def test_messages_are_found_by_the_later_generations(three: Three, writer: Face, talk: str) -> None:
    (said,) = writer.say(talk, ALICE, "I adopted a tortoise named Balthazar.")
    Worker(three.runtime).run_until_idle()
    for api in (three.second, three.newest):
        assert [found["id"] for found in api.ok(api.post("/search", {"query": "Balthazar"}))] == [
            said
        ]


def test_a_summary_is_visible_in_every_generation(three: Three, writer: Face, talk: str) -> None:
    writer.say(
        talk,
        ALICE,
        *(f"Fact number {number}: the tower is {number} metres high." for number in range(20)),
    )
    Worker(three.runtime).run_until_idle()
    name = three.slug(talk)
    texts = [
        api.ok(api.get(f"/sessions/{name}/summaries"))["short_summary"]["content"]
        for api in (three.second, three.newest)
    ]
    notes = three.first.post(
        f"{three.user()}/metamessages/list", {"label": "honcho_chat_summary_short"}
    )["items"]
    if writer is three.faces["v1"]:
        texts += [note["content"] for note in notes]
        assert [note["session_id"] for note in notes] == [talk]
    else:
        assert notes == [], "a metamessage has an owner, and this session has none"
    assert len(set(texts)) == 1
    assert texts[0]


# Nouns that not every generation has


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_cards_and_webhooks_are_shared_by_the_later_generations(
    three: Three, generation: str
) -> None:
    writes, reads = (
        (three.second, three.newest) if generation == "v2" else (three.newest, three.second)
    )
    three.first.user(three.first.app())
    assert writes.put(f"/peers/{ALICE}/card", {"peer_card": ["Lives in Ulm"]}).status_code == 200
    assert reads.ok(reads.get(f"/peers/{ALICE}/card")) == {"peer_card": ["Lives in Ulm"]}
    answer = writes.post("/webhooks", {"url": "https://93.184.215.14/hook"})
    assert answer.status_code // 100 == 2
    assert [item["id"] for item in reads.ok(reads.get("/webhooks"))["items"]] == [
        answer.get_json()["id"]
    ]
    assert three.faces["v1"].peers() == {ALICE: {}}
    assert three.first.listed(f"{three.user()}/collections") == []
    assert three.first.listed(f"{three.user()}/metamessages") == []


def test_rows_of_the_first_generation_alone_do_not_affect_the_others(three: Three) -> None:
    user = three.first.user(three.first.app())
    session = three.first.session(user)
    three.first.say(session, (True, "hello"))
    before = [
        (face.peers(), face.sessions(ALICE), face.messages(uid(session), ALICE))
        for face in three.all()[1:]
    ]
    three.first.post(
        f"{user}/metamessages", {"label": "mood", "content": "gloomy", "session_id": uid(session)}
    )
    shelf = three.first.post(f"{user}/collections", {"name": "shelf"})["id"]
    three.first.post(f"{user}/collections/{shelf}/documents", {"content": "A gloomy tale."})
    assert [
        (face.peers(), face.sessions(ALICE), face.messages(uid(session), ALICE))
        for face in three.all()[1:]
    ] == before
    assert [face.known(ALICE) for face in three.all()] == [[]] * 3
    for api in (three.second, three.newest):
        assert api.ok(api.post("/search", {"query": "gloomy"})) == []
        assert "gloomy" not in api.get(f"/sessions/{uid(session)}/context").text
        assert "gloomy" not in api.post(f"/peers/{ALICE}/representation", {}).text


# Membership


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_members_join_and_leave_in_every_generation(three: Three, generation: str) -> None:
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
        assert [peer["id"] for peer in other.ok(other.get("/sessions/room/peers"))["items"]] == [
            "bob"
        ]
        assert ALICE not in [
            peer["id"] for peer in other.ok(other.get(f"/sessions/{uid(owned)}/peers"))["items"]
        ]
    assert three.first.refused(404, "PUT", f"{three.user()}/sessions/{room}", {"metadata": {}})
    first.say(uid(owned), ALICE, "I am back.")
    for other in (three.second, three.newest):
        assert ALICE in [
            peer["id"] for peer in other.ok(other.get(f"/sessions/{uid(owned)}/peers"))["items"]
        ]
