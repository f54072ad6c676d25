"""Assertions on the nouns that all three generations have: whoever writes, the other two read the
same.

They are made once and run through the routes (test_three_generations.py) and through the published
clients (e2e/test_one_workspace.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest

from support.api.three import ALICE, Face

TORTOISE = "I adopted a tortoise named Balthazar."


class World(Protocol):
    """One workspace, and its three faces."""

    def all(self) -> Sequence[Face]: ...
    def settle(self) -> None:
        """Until everything that was said is derived from."""


@pytest.fixture
def talk(three: World, writer: Face) -> str:
    """The uid of a session of alice's that the writer made, in a workspace that the writer made."""
    writer.make_workspace({})
    writer.make_peer(ALICE, {})
    return writer.make_session(ALICE, {})


class SharedNouns:
    """To be inherited from where the fixtures `three` and `writer` are."""

    def test_workspaces(self, three: World, writer: Face) -> None:
        writer.make_workspace({"a": 1})
        assert [face.workspace() for face in three.all()] == [{"a": 1}] * 3
        writer.set_workspace({"b": [2]})
        assert [face.workspace() for face in three.all()] == [{"b": [2]}] * 3

    def test_peers(self, three: World, writer: Face) -> None:
        writer.make_workspace({})
        writer.make_peer(ALICE, {"n": 1})
        writer.make_peer("bob", {})
        writer.make_peer("carol", {})
        assert [face.peers() for face in three.all()] == [
            {ALICE: {"n": 1}, "bob": {}, "carol": {}}
        ] * 3
        writer.set_peer(ALICE, {"n": 2})
        for face in three.all():
            assert face.peers()[ALICE] == {"n": 2}

    def test_sessions(self, three: World, writer: Face, talk: str) -> None:
        others = [writer.make_session(ALICE, {"n": number}) for number in range(2)]
        seen = [(talk, {}), (others[0], {"n": 0}), (others[1], {"n": 1})]
        assert [face.sessions(ALICE) for face in three.all()] == [seen] * 3
        writer.set_session(talk, ALICE, {"x": True})
        for face in three.all():
            assert face.sessions(ALICE)[0] == (talk, {"x": True})

    def test_messages(self, three: World, writer: Face, talk: str) -> None:
        writer.say(talk, ALICE, "one", "two")
        writer.say(talk, "somebody", "three")
        seen = writer.messages(talk, ALICE)
        assert [(told.content, told.mine) for told in seen] == [
            ("one", True),
            ("two", True),
            ("three", False),
        ]
        assert [face.messages(talk, ALICE) for face in three.all()] == [seen] * 3
        assert [face.message(talk, ALICE, seen[2].id) for face in three.all()] == [seen[2]] * 3
        writer.set_message(talk, ALICE, seen[1].id, {"seen": True})
        assert [face.message(talk, ALICE, seen[1].id).metadata for face in three.all()] == [
            {"seen": True}
        ] * 3

    def test_each_goes_on_where_another_left_off(
        self, three: World, writer: Face, talk: str
    ) -> None:
        for number, face in enumerate(three.all()):
            face.say(talk, ALICE, f"mine {number}")
            face.say(talk, "somebody", f"not mine {number}")
        said = [
            (f"{whose} {number}", whose == "mine")
            for number in range(3)
            for whose in ("mine", "not mine")
        ]
        for face in three.all():
            assert [(told.content, told.mine) for told in face.messages(talk, ALICE)] == said

    def test_clones(self, three: World, writer: Face, talk: str) -> None:
        writer.set_session(talk, ALICE, {"a": 1})
        said = writer.say(talk, ALICE, "one", "two", "three")
        copies = [writer.clone(talk, ALICE, None), writer.clone(talk, ALICE, said[1])]
        for face in three.all():
            assert face.sessions(ALICE) == [(session, {"a": 1}) for session in (talk, *copies)]
            for session, contents in zip(
                copies, (["one", "two", "three"], ["one", "two"]), strict=True
            ):
                told = face.messages(session, ALICE)
                assert [each.content for each in told] == contents
                assert all(each.mine for each in told)
                assert not {each.id for each in told} & set(said)

    def test_each_clones_what_another_made(self, three: World, writer: Face, talk: str) -> None:
        writer.say(talk, ALICE, "one")
        copies = [face.clone(talk, ALICE, None) for face in three.all()]
        for face in three.all():
            assert [session for session, _ in face.sessions(ALICE)] == [talk, *copies]
            assert {
                told.content for session in copies for told in face.messages(session, ALICE)
            } == {"one"}

    def test_deleted_sessions(self, three: World, writer: Face, talk: str) -> None:
        kept = writer.make_session(ALICE, {})
        writer.say(talk, ALICE, "one")
        writer.delete_session(talk, ALICE)
        for face in three.all():
            assert face.sessions(ALICE) == [(kept, {})]

    def test_conclusions(self, three: World, writer: Face, talk: str) -> None:
        made = [
            writer.conclude(ALICE, text)
            for text in ("alice sings", "alice dances", "alice lives in Ulm")
        ]
        seen = list(zip(made, ("alice sings", "alice dances", "alice lives in Ulm"), strict=True))
        assert [face.known(ALICE) for face in three.all()] == [seen] * 3
        assert [face.nearest(ALICE, "dances") for face in three.all()] == [made[1]] * 3

    def test_what_is_derived(self, three: World, writer: Face, talk: str) -> None:
        writer.say(talk, ALICE, TORTOISE)
        three.settle()
        (fact,) = writer.known(ALICE)
        assert fact[1] == TORTOISE
        assert [face.known(ALICE) for face in three.all()] == [[fact]] * 3
        for face in three.all():
            assert "Balthazar" in face.chat(ALICE, talk, "What is the tortoise called?")
