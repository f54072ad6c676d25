"""The data of one person as a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memservice.domain.errors import NotFound, Unauthorised
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.domain.records import DONE, HELD, NEVER, ApiKey, Conclusion, Peer, Task
from memservice.services import cards, corrections, dream_changes, workspaces
from memservice.services.auth.principal import Principal
from memservice.services.erasure import person, searches
from memservice.services.tasks import kinds
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


def test_every_table_that_refers_to_a_peer_is_in_the_file_or_has_a_reason_not_to_be() -> None:
    """`api_keys` name their peer by its id; audit entries and receipts are about requests."""
    referring = {
        record
        for record in searches.BY_TABLE
        if any(searches.REFERENCES.get(name) is Peer for name in record.__struct_fields__)
    }
    assert referring | {ApiKey} == person._FIELDS.keys() | person.WITHOUT.keys()
    assert not person._FIELDS.keys() & person.WITHOUT.keys()


def dream_about(row: Conclusion, filled: Services, state: str, payload: dict[str, Any]) -> Task:
    """A dream about the pair of a conclusion."""
    return Task(
        uid=new_uid(),
        unit="dream:1",
        kind=kinds.DREAM,
        workspace_key=row.workspace_key,
        observer_key=row.observer_key,
        observed_key=row.observed_key,
        payload={"type": "omni", **payload},
        state=state,
        not_before=NEVER,
        created_at=filled.clock(),
    )


def test_texts_that_wait_for_a_review_are_in_the_file(filled: Services) -> None:
    with filled.rt.storage.read() as tx:
        (row,) = tx.rows.page(Conclusion, equals(content="Alice lives in Oslo"))
    statement = {"content": "Alice is Norwegian", "level": "deductive", "source_ids": [row.uid]}
    proposal = {"created": [statement], "superseded": [], "card": ["Norwegian"], "reads": [row.uid]}
    task = dream_about(row, filled, HELD, {dream_changes.PROPOSAL: proposal})
    filled.rt.storage.write(lambda tx: tx.rows.put([task]))
    (dream,) = [line for line in exported(filled) if line["type"] == "dream"]
    assert (dream["conclusions"], dream["lines"]) == (["Alice is Norwegian"], ["Norwegian"])
    (dream,) = [line for line in exported(filled, peer="bob") if line["type"] == "dream"]
    assert dream["id"] == task.uid


def test_lines_that_a_dream_changed_are_in_the_file(filled: Services) -> None:
    with filled.rt.storage.read() as tx:
        (row,) = tx.rows.page(Conclusion, equals(content="Alice lives in Oslo"))
    card = {"before": ["Danish"], "given": [], "after": ["Norwegian"]}
    changes = {"created": [], "superseded": [], "card": card}
    dreams = [
        dream_about(row, filled, DONE, {dream_changes.CHANGES: payload})
        for payload in (changes, {**changes, "card": None})
    ]
    filled.rt.storage.write(lambda tx: tx.rows.put(dreams))
    (dream,) = [line for line in exported(filled) if line["type"] == "dream"]
    assert dream["id"] == dreams[0].uid
    assert (dream["state"], dream["conclusions"]) == (DONE, [])
    assert (dream["earlier_lines"], dream["lines"]) == (["Danish"], ["Norwegian"])


def test_a_conclusion_that_was_taken_back_is_in_the_file_with_the_reason(filled: Services) -> None:
    (line,) = [row for row in exported(filled) if row.get("content") == "Alice lives in Oslo"]
    assert (line["state"], line["superseded_at"], line["reason"]) == ("live", None, None)
    corrections.invalidate(filled.rt, ME, WORKSPACE, line["id"], "she moved")
    (line,) = [row for row in exported(filled) if row.get("content") == "Alice lives in Oslo"]
    assert (line["state"], line["reason"]) == ("superseded", "she moved")
    assert line["superseded_at"] is not None


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
