"""What one generation writes, the other two read: the same assertions for each of them, on one
workspace, noun by noun.

Where a noun exists in some generations only, it must not show in the others.
"""

from __future__ import annotations

import pytest

from memservice.worker.polling import Worker
from support.api.all_generations import ALICE, AllGenerations, GenerationClient
from support.api.all_generations import all_generations as all_generations
from support.api.all_generations import writer as writer
from support.api.shared_resources import SharedResources
from support.api.shared_resources import talk as talk
from support.api.v1_client import uid

pytestmark = [pytest.mark.every_index, pytest.mark.slow]


class TestSharedResources(SharedResources):
    """Through the routes; tests/e2e/test_one_workspace.py has them through the published
    clients."""


def test_the_name_of_a_deleted_session_is_not_reused(
    all_generations: AllGenerations, writer: GenerationClient, talk: str
) -> None:
    name = all_generations.slug(talk)
    writer.delete_session(talk, ALICE)
    for api in (all_generations.v2, all_generations.newest):
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
    all_generations: AllGenerations, writer: GenerationClient, talk: str, generation: str
) -> None:
    deleted, remaining = (
        writer.conclude(ALICE, "alice sings"),
        writer.conclude(ALICE, "alice dances"),
    )
    path = f"/observations/{deleted}" if generation == "v2" else f"/conclusions/{deleted}"
    api = all_generations.v2 if generation == "v2" else all_generations.newest
    assert api.delete(path).status_code == (200 if generation == "v2" else 204)
    assert [face.conclusions(ALICE) for face in all_generations.all()] == [
        [(remaining, "alice dances")]
    ] * 3
    assert [face.nearest(ALICE, "sings") for face in all_generations.all()] == [remaining] * 3


def test_messages_are_found_by_the_later_generations(
    all_generations: AllGenerations, writer: GenerationClient, talk: str
) -> None:
    (message,) = writer.say(talk, ALICE, "I adopted a tortoise named Balthazar.")
    Worker(all_generations.runtime).run_until_idle()
    for api in (all_generations.v2, all_generations.newest):
        assert [hit["id"] for hit in api.ok(api.post("/search", {"query": "Balthazar"}))] == [
            message
        ]


def test_a_summary_is_visible_in_every_generation(
    all_generations: AllGenerations, writer: GenerationClient, talk: str
) -> None:
    writer.say(
        talk,
        ALICE,
        *(f"Fact number {number}: the tower is {number} metres high." for number in range(20)),
    )
    Worker(all_generations.runtime).run_until_idle()
    name = all_generations.slug(talk)
    texts = [
        api.ok(api.get(f"/sessions/{name}/summaries"))["short_summary"]["content"]
        for api in (all_generations.v2, all_generations.newest)
    ]
    notes = all_generations.v1.post(
        f"{all_generations.user()}/metamessages/list", {"label": "honcho_chat_summary_short"}
    )["items"]
    if writer is all_generations.clients["v1"]:
        texts += [note["content"] for note in notes]
        assert [note["session_id"] for note in notes] == [talk]
    else:
        assert notes == [], "a metamessage has an owner, and this session has none"
    assert len(set(texts)) == 1
    assert texts[0]


# Nouns that not every generation has


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_cards_and_webhooks_are_shared_by_the_later_generations(
    all_generations: AllGenerations, generation: str
) -> None:
    writes, reads = (
        (all_generations.v2, all_generations.newest)
        if generation == "v2"
        else (all_generations.newest, all_generations.v2)
    )
    all_generations.v1.user(all_generations.v1.app())
    assert writes.put(f"/peers/{ALICE}/card", {"peer_card": ["Lives in Ulm"]}).status_code == 200
    assert reads.ok(reads.get(f"/peers/{ALICE}/card")) == {"peer_card": ["Lives in Ulm"]}
    answer = writes.post("/webhooks", {"url": "https://93.184.215.14/hook"})
    assert answer.status_code // 100 == 2
    assert [item["id"] for item in reads.ok(reads.get("/webhooks"))["items"]] == [
        answer.get_json()["id"]
    ]
    assert all_generations.clients["v1"].peers() == {ALICE: {}}
    assert all_generations.v1.listed(f"{all_generations.user()}/collections") == []
    assert all_generations.v1.listed(f"{all_generations.user()}/metamessages") == []


def test_rows_of_the_first_generation_alone_do_not_affect_the_others(
    all_generations: AllGenerations,
) -> None:
    user = all_generations.v1.user(all_generations.v1.app())
    session = all_generations.v1.session(user)
    all_generations.v1.say(session, (True, "hello"))
    before = [
        (face.peers(), face.sessions(ALICE), face.messages(uid(session), ALICE))
        for face in all_generations.all()[1:]
    ]
    all_generations.v1.post(
        f"{user}/metamessages", {"label": "mood", "content": "gloomy", "session_id": uid(session)}
    )
    shelf = all_generations.v1.post(f"{user}/collections", {"name": "shelf"})["id"]
    all_generations.v1.post(f"{user}/collections/{shelf}/documents", {"content": "A gloomy tale."})
    assert [
        (face.peers(), face.sessions(ALICE), face.messages(uid(session), ALICE))
        for face in all_generations.all()[1:]
    ] == before
    assert [face.conclusions(ALICE) for face in all_generations.all()] == [[]] * 3
    for api in (all_generations.v2, all_generations.newest):
        assert api.ok(api.post("/search", {"query": "gloomy"})) == []
        assert "gloomy" not in api.get(f"/sessions/{uid(session)}/context").text
        assert "gloomy" not in api.post(f"/peers/{ALICE}/representation", {}).text


# Membership


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_members_join_and_leave_in_every_generation(
    all_generations: AllGenerations, generation: str
) -> None:
    """A session of the later generations is every member's; one of the first stays its owner's."""
    api = all_generations.v2 if generation == "v2" else all_generations.newest
    owned = all_generations.v1.session(all_generations.v1.user(all_generations.v1.app()))
    all_generations.newest.session("room", peers={ALICE: {}})
    session_uid = all_generations.uid_of("room")
    first, later = (
        all_generations.clients["v1"],
        [all_generations.clients["v2"], all_generations.clients["v3"]],
    )
    for session in (uid(owned), "room"):
        assert api.post(f"/sessions/{session}/peers", {"bob": {}}).status_code == 200
    assert [session_id for session_id, _ in first.sessions("bob")] == [session_uid]
    for face in later:
        assert [session_id for session_id, _ in face.sessions("bob")] == [uid(owned), session_uid]
    for session in (uid(owned), "room"):
        assert api.delete(f"/sessions/{session}/peers", [ALICE]).status_code == 200
    assert [session_id for session_id, _ in first.sessions(ALICE)] == [uid(owned)]
    for other in (all_generations.v2, all_generations.newest):
        assert [peer["id"] for peer in other.ok(other.get("/sessions/room/peers"))["items"]] == [
            "bob"
        ]
        assert ALICE not in [
            peer["id"] for peer in other.ok(other.get(f"/sessions/{uid(owned)}/peers"))["items"]
        ]
    assert all_generations.v1.refused(
        404, "PUT", f"{all_generations.user()}/sessions/{session_uid}", {"metadata": {}}
    )
    first.say(uid(owned), ALICE, "I am back.")
    for other in (all_generations.v2, all_generations.newest):
        assert ALICE in [
            peer["id"] for peer in other.ok(other.get(f"/sessions/{uid(owned)}/peers"))["items"]
        ]
