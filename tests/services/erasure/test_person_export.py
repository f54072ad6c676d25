"""The data of one person as a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memservice.domain.errors import NotFound, Unauthorised
from memservice.services import cards, workspaces
from memservice.services.auth.principal import Principal
from memservice.services.erasure import person
from support.services.services import ME, WORKSPACE, Services

ALICE = Principal(workspace_id=WORKSPACE, peer_id="alice")


def exported(
    services: Services, principal: Principal = ME, peer: str = "alice"
) -> list[dict[str, Any]]:
    return [json.loads(line) for line in person.export(services.rt, principal, WORKSPACE, peer)]


@pytest.fixture
def filled(services: Services) -> Services:
    services.say("talk", ("alice", "I live in Oslo."), ("bob", "The secret of Bob."))
    services.conclude("bob", "alice", "Alice lives in Oslo")
    services.conclude("alice", "bob", "Bob is kind")
    services.conclude("bob", "bob", "Bob likes tea")
    cards.put(services.rt, ME, WORKSPACE, "bob", "alice", ["Lives in Oslo"])
    return services


def test_the_file_has_what_is_stored_of_a_peer_and_about_it(filled: Services) -> None:
    header, *rows, end = exported(filled)
    assert (header["type"], header["workspace_id"], header["peer_id"]) == (
        "header",
        WORKSPACE,
        "alice",
    )
    by_type = {kind: [row for row in rows if row["type"] == kind] for kind in end["counts"]}
    assert {kind: len(entries) for kind, entries in by_type.items()} == end["counts"]
    assert [row["id"] for row in by_type["peer"]] == ["alice"]
    assert [row["session_id"] for row in by_type["membership"]] == ["talk"]
    assert [row["content"] for row in by_type["message"]] == ["I live in Oslo."]
    assert [row["lines"] for row in by_type["card"]] == [["Lives in Oslo"]]
    assert {row["content"] for row in by_type["conclusion"]} == {
        "Alice lives in Oslo",
        "Bob is kind",
    }
    assert "secret" not in str(rows)


def test_every_row_is_in_the_file_once(filled: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.say("talk", *[("alice", f"Number {number}.") for number in range(7)])
    filled.conclude("alice", "alice", "Alice counts")
    monkeypatch.setattr(person, "BATCH_SIZE", 3)
    rows = exported(filled)
    texts = [row["content"] for row in rows if row["type"] == "message"]
    assert texts == ["I live in Oslo.", *[f"Number {number}." for number in range(7)]]
    ids = [row["id"] for row in rows if row["type"] == "conclusion"]
    assert len(ids) == len(set(ids)) == 3


def test_a_peer_that_does_not_exist_is_an_error_before_the_first_line(filled: Services) -> None:
    for workspace, peer in ((WORKSPACE, "nobody"), ("nowhere", "alice"), (WORKSPACE, "scope.x")):
        with pytest.raises(NotFound, match=peer):
            person.export(filled.rt, ME, workspace, peer)


def test_a_key_of_a_peer_needs_self_service(filled: Services, subtests: pytest.Subtests) -> None:
    def attempt(principal: Principal, peer: str = "alice") -> Callable[[], object]:
        return lambda: exported(filled, principal, peer)

    with pytest.raises(Unauthorised, match="self_service"):
        attempt(ALICE)()
    for enabled in (False, None, "yes"):
        with subtests.test(enabled=enabled), pytest.raises(Unauthorised):
            section = {"self_service": {"enabled": enabled}}
            workspaces.update(filled.rt, ME, WORKSPACE, None, section)
            attempt(ALICE)()
    workspaces.update(filled.rt, ME, WORKSPACE, None, {"self_service": {"enabled": True}})
    assert exported(filled, ALICE)[1:] == exported(filled)[1:]
    for principal, peer in (
        (ALICE, "bob"),
        (Principal(workspace_id="other", peer_id="alice"), "alice"),
        (Principal(workspace_id=WORKSPACE, peer_id="alice", session_id="talk"), "alice"),
        (Principal(workspace_id=WORKSPACE, session_id="talk"), "alice"),
    ):
        with subtests.test(principal=principal), pytest.raises(Unauthorised):
            attempt(principal, peer)()
