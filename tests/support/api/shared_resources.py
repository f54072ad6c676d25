"""Tests of the resources that all three generations have: what one generation writes, the other two
read.

They run through the routes (test_three_generations.py) and through the published clients
(e2e/test_one_workspace.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest

from support.api.all_generations import ALICE, GenerationClient

TORTOISE = "I adopted a tortoise named Balthazar."


class SharedWorkspace(Protocol):
    """One workspace, and a client for each generation."""

    def all(self) -> Sequence[GenerationClient]: ...
    def settle(self) -> None:
        """Wait until all messages are derived from."""


@pytest.fixture
def talk(all_generations: SharedWorkspace, writer: GenerationClient) -> str:
    """The uid of a session of alice. The writer created the session and its workspace."""
    writer.make_workspace({})
    writer.make_peer(ALICE, {})
    return writer.make_session(ALICE, {})


class SharedResources:
    """Base class for modules with the fixtures `all_generations` and `writer`."""

    def test_workspaces(self, all_generations: SharedWorkspace, writer: GenerationClient) -> None:
        writer.make_workspace({"a": 1})
        assert [client.workspace() for client in all_generations.all()] == [{"a": 1}] * 3
        writer.set_workspace({"b": [2]})
        assert [client.workspace() for client in all_generations.all()] == [{"b": [2]}] * 3

    def test_peers(self, all_generations: SharedWorkspace, writer: GenerationClient) -> None:
        writer.make_workspace({})
        writer.make_peer(ALICE, {"n": 1})
        writer.make_peer("bob", {})
        writer.make_peer("carol", {})
        assert [client.peers() for client in all_generations.all()] == [
            {ALICE: {"n": 1}, "bob": {}, "carol": {}}
        ] * 3
        writer.set_peer(ALICE, {"n": 2})
        for client in all_generations.all():
            assert client.peers()[ALICE] == {"n": 2}

    def test_sessions(
        self, all_generations: SharedWorkspace, writer: GenerationClient, talk: str
    ) -> None:
        others = [writer.make_session(ALICE, {"n": number}) for number in range(2)]
        listed = [(talk, {}), (others[0], {"n": 0}), (others[1], {"n": 1})]
        assert [client.sessions(ALICE) for client in all_generations.all()] == [listed] * 3
        writer.set_session(talk, ALICE, {"x": True})
        for client in all_generations.all():
            assert client.sessions(ALICE)[0] == (talk, {"x": True})

    def test_messages(
        self, all_generations: SharedWorkspace, writer: GenerationClient, talk: str
    ) -> None:
        writer.say(talk, ALICE, "one", "two")
        writer.say(talk, "somebody", "three")
        messages = writer.messages(talk, ALICE)
        assert [(message.content, message.mine) for message in messages] == [
            ("one", True),
            ("two", True),
            ("three", False),
        ]
        assert [client.messages(talk, ALICE) for client in all_generations.all()] == [messages] * 3
        assert [
            client.message(talk, ALICE, messages[2].id) for client in all_generations.all()
        ] == [messages[2]] * 3
        writer.set_message(talk, ALICE, messages[1].id, {"seen": True})
        assert [
            client.message(talk, ALICE, messages[1].id).metadata for client in all_generations.all()
        ] == [{"seen": True}] * 3

    def test_each_goes_on_where_another_left_off(
        self, all_generations: SharedWorkspace, writer: GenerationClient, talk: str
    ) -> None:
        for number, client in enumerate(all_generations.all()):
            client.say(talk, ALICE, f"mine {number}")
            client.say(talk, "somebody", f"not mine {number}")
        expected = [
            (f"{prefix} {number}", prefix == "mine")
            for number in range(3)
            for prefix in ("mine", "not mine")
        ]
        for client in all_generations.all():
            assert [
                (message.content, message.mine) for message in client.messages(talk, ALICE)
            ] == expected

    def test_clones(
        self, all_generations: SharedWorkspace, writer: GenerationClient, talk: str
    ) -> None:
        writer.set_session(talk, ALICE, {"a": 1})
        ids = writer.say(talk, ALICE, "one", "two", "three")
        copies = [writer.clone(talk, ALICE, None), writer.clone(talk, ALICE, ids[1])]
        for client in all_generations.all():
            assert client.sessions(ALICE) == [(session, {"a": 1}) for session in (talk, *copies)]
            for session, contents in zip(
                copies, (["one", "two", "three"], ["one", "two"]), strict=True
            ):
                messages = client.messages(session, ALICE)
                assert [message.content for message in messages] == contents
                assert all(message.mine for message in messages)
                assert not {message.id for message in messages} & set(ids)

    def test_each_clones_what_another_made(
        self, all_generations: SharedWorkspace, writer: GenerationClient, talk: str
    ) -> None:
        writer.say(talk, ALICE, "one")
        copies = [client.clone(talk, ALICE, None) for client in all_generations.all()]
        for client in all_generations.all():
            assert [session for session, _ in client.sessions(ALICE)] == [talk, *copies]
            assert {
                message.content for session in copies for message in client.messages(session, ALICE)
            } == {"one"}

    def test_deleted_sessions(
        self, all_generations: SharedWorkspace, writer: GenerationClient, talk: str
    ) -> None:
        session = writer.make_session(ALICE, {})
        writer.say(talk, ALICE, "one")
        writer.delete_session(talk, ALICE)
        for client in all_generations.all():
            assert client.sessions(ALICE) == [(session, {})]

    def test_conclusions(
        self, all_generations: SharedWorkspace, writer: GenerationClient, talk: str
    ) -> None:
        uids = [
            writer.conclude(ALICE, text)
            for text in ("alice sings", "alice dances", "alice lives in Ulm")
        ]
        expected = list(
            zip(uids, ("alice sings", "alice dances", "alice lives in Ulm"), strict=True)
        )
        assert [client.conclusions(ALICE) for client in all_generations.all()] == [expected] * 3
        assert [client.nearest(ALICE, "dances") for client in all_generations.all()] == [
            uids[1]
        ] * 3

    def test_what_is_derived(
        self, all_generations: SharedWorkspace, writer: GenerationClient, talk: str
    ) -> None:
        writer.say(talk, ALICE, TORTOISE)
        all_generations.settle()
        (fact,) = writer.conclusions(ALICE)
        assert fact[1] == TORTOISE
        assert [client.conclusions(ALICE) for client in all_generations.all()] == [[fact]] * 3
        for client in all_generations.all():
            assert "Balthazar" in client.chat(ALICE, talk, "What is the tortoise called?")
