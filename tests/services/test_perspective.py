"""Whose eyes a search has: messages of a peer's sessions, stored while it was a member, whatever
their own time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memservice.services import cloning
from memservice.services.auth.bounds import bounds_for
from memservice.services.retrieval import search
from memservice.services.retrieval.search import Search
from support.services.services import ME, WORKSPACE, Services, contents

LONG_AGO = datetime(2019, 5, 8, tzinfo=UTC)
LATER = datetime(2031, 5, 8, tzinfo=UTC)


def visible_to(services: Services, peer: str, query: str = "heron") -> set[str]:
    return set(services.search(query, 100, {"peer_perspective": peer}))


def test_a_member_sees_messages_stored_during_its_membership(services: Services) -> None:
    services.say("s", ("ann", "heron one"))
    services.join("s", "bob")
    services.say("s", ("ann", "heron two"))
    services.say("s", ("ann", "heron three"))
    services.leave("s", "bob")
    services.say("s", ("ann", "heron four"))
    services.say("elsewhere", ("ann", "heron five"))
    assert visible_to(services, "ann") == {
        f"heron {n}" for n in ("one", "two", "three", "four", "five")
    }
    assert visible_to(services, "bob") == {"heron two", "heron three"}
    assert visible_to(services, "nobody") == set()
    assert visible_to(services, "bob", "?") == {"heron two", "heron three"}, (
        "the newest, where nothing is looked for"
    )


def test_a_conversation_of_long_ago_is_seen_by_the_members_it_is_stored_for(
    services: Services,
) -> None:
    services.join("old", "ann", "bob")
    services.say("old", ("ann", "heron of 2019"), at=LONG_AGO)
    services.say("old", ("ann", "heron of 2031"), at=LATER)
    assert visible_to(services, "bob") == {"heron of 2019", "heron of 2031"}
    services.leave("old", "bob")
    services.say("old", ("ann", "heron of 2018"), at=LONG_AGO)
    assert visible_to(services, "bob") == {"heron of 2019", "heron of 2031"}


def test_authors_see_the_whole_batch_that_brought_them_in(services: Services) -> None:
    services.say("s", ("ann", "heron one"), ("bob", "heron two"), at=LONG_AGO)
    assert visible_to(services, "ann") == visible_to(services, "bob") == {"heron one", "heron two"}


def test_a_returning_member_sees_messages_since_it_first_joined(services: Services) -> None:
    services.say("s", ("ann", "heron one"))
    services.join("s", "bob")
    services.say("s", ("ann", "heron two"))
    services.leave("s", "bob")
    services.say("s", ("ann", "heron three"))
    services.join("s", "bob")
    assert visible_to(services, "bob") == {"heron two", "heron three"}


def test_members_of_a_clone_see_the_same_messages(services: Services) -> None:
    first, *_ = services.say("s", *[("ann", f"heron {n}") for n in range(5)])
    services.join("s", "bob")
    services.say("s", ("ann", "heron 5"))
    services.leave("s", "bob")
    copy = cloning.clone(services.rt, ME, WORKSPACE, "s", first.uid)
    services.say(copy.slug, ("ann", "heron of the copy"))
    there = {"peer_perspective": "bob", "session_id": copy.slug}
    assert services.search("heron", filters=there) == []
    services.join(copy.slug, "bob")
    assert services.search("heron", filters=there) == ["heron of the copy"]


@pytest.mark.slow
def test_the_perspective_of_a_peer_in_many_sessions(services: Services) -> None:
    for number in range(300):
        services.say(f"s{number}", ("ann", f"heron {number}"))
    for number in range(0, 300, 2):
        services.join(f"s{number}", "bob")
        services.say(f"s{number}", ("ann", f"second heron {number}"))
    assert visible_to(services, "bob") <= {f"second heron {number}" for number in range(0, 300, 2)}
    assert len(visible_to(services, "bob")) == 100
    with services.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(WORKSPACE)
        assert workspace is not None
        seen_by_bob = bounds_for(tx, ME, workspace).with_messages(
            search.perspective_of(tx, workspace, "bob")
        )
        hits = Search(services.rt, "heron").messages(tx, seen_by_bob, 1000)
    assert set(contents(hits)) == {f"second heron {number}" for number in range(0, 300, 2)}
