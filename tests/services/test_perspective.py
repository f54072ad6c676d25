"""Whose eyes a search has: messages of a peer's sessions, stored while it was a member, whatever
their own time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memservice.services import cloning
from memservice.services.auth.bounds import bounds_for
from memservice.services.retrieval import search
from memservice.services.retrieval.search import Search
from support.services.world import ME, WORKSPACE, Small, contents

LONG_AGO = datetime(2019, 5, 8, tzinfo=UTC)
LATER = datetime(2031, 5, 8, tzinfo=UTC)


def seen(small: Small, peer: str, query: str = "heron") -> set[str]:
    return set(small.search(query, 100, {"peer_perspective": peer}))


def test_a_member_sees_messages_stored_during_its_membership(small: Small) -> None:
    small.say("s", ("ann", "heron one"))
    small.join("s", "bob")
    small.say("s", ("ann", "heron two"))
    small.say("s", ("ann", "heron three"))
    small.leave("s", "bob")
    small.say("s", ("ann", "heron four"))
    small.say("elsewhere", ("ann", "heron five"))
    assert seen(small, "ann") == {f"heron {n}" for n in ("one", "two", "three", "four", "five")}
    assert seen(small, "bob") == {"heron two", "heron three"}
    assert seen(small, "nobody") == set()
    assert seen(small, "bob", "?") == {"heron two", "heron three"}, (
        "the newest, where nothing is looked for"
    )


def test_a_conversation_of_long_ago_is_seen_by_the_members_it_is_stored_for(small: Small) -> None:
    small.join("old", "ann", "bob")
    small.say("old", ("ann", "heron of 2019"), at=LONG_AGO)
    small.say("old", ("ann", "heron of 2031"), at=LATER)
    assert seen(small, "bob") == {"heron of 2019", "heron of 2031"}
    small.leave("old", "bob")
    small.say("old", ("ann", "heron of 2018"), at=LONG_AGO)
    assert seen(small, "bob") == {"heron of 2019", "heron of 2031"}


def test_authors_see_the_whole_batch_that_brought_them_in(small: Small) -> None:
    small.say("s", ("ann", "heron one"), ("bob", "heron two"), at=LONG_AGO)
    assert seen(small, "ann") == seen(small, "bob") == {"heron one", "heron two"}


def test_a_returning_member_sees_messages_since_it_first_joined(small: Small) -> None:
    small.say("s", ("ann", "heron one"))
    small.join("s", "bob")
    small.say("s", ("ann", "heron two"))
    small.leave("s", "bob")
    small.say("s", ("ann", "heron three"))
    small.join("s", "bob")
    assert seen(small, "bob") == {"heron two", "heron three"}


def test_members_of_a_clone_see_the_same_messages(small: Small) -> None:
    first, *_ = small.say("s", *[("ann", f"heron {n}") for n in range(5)])
    small.join("s", "bob")
    small.say("s", ("ann", "heron 5"))
    small.leave("s", "bob")
    copy = cloning.clone(small.rt, ME, WORKSPACE, "s", first.uid)
    small.say(copy.slug, ("ann", "heron of the copy"))
    there = {"peer_perspective": "bob", "session_id": copy.slug}
    assert small.search("heron", filters=there) == []
    small.join(copy.slug, "bob")
    assert small.search("heron", filters=there) == ["heron of the copy"]


@pytest.mark.slow
def test_the_perspective_of_a_peer_in_many_sessions(small: Small) -> None:
    for number in range(300):
        small.say(f"s{number}", ("ann", f"heron {number}"))
    for number in range(0, 300, 2):
        small.join(f"s{number}", "bob")
        small.say(f"s{number}", ("ann", f"second heron {number}"))
    assert seen(small, "bob") <= {f"second heron {number}" for number in range(0, 300, 2)}
    assert len(seen(small, "bob")) == 100
    with small.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(WORKSPACE)
        assert workspace is not None
        seen_by_bob = bounds_for(tx, ME, workspace).with_messages(
            search.perspective_of(tx, workspace, "bob")
        )
        found = Search(small.rt, "heron").messages(tx, seen_by_bob, 1000)
    assert set(contents(found)) == {f"second heron {number}" for number in range(0, 300, 2)}
