"""A conclusion that a person corrects: the old text is superseded, not lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memservice.domain.errors import Conflict, InvalidInput, NotFound, Unauthorised
from memservice.domain.records import SUPERSEDED, Conclusion
from memservice.domain.sizes import MAX_CONCLUSION
from memservice.services import conclusions, corrections, messages, supersession
from memservice.services.auth import policy
from memservice.services.auth.permissions import Role
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ConclusionDraft
from memservice.services.messages import Draft
from support.services.console import Console

ADMIN = Principal(admin=True)
PAIR = {"observer": "alice", "observed": "alice"}


@pytest.fixture
def stored(console: Console) -> Conclusion:
    messages.create(console.rt, ADMIN, "w", "s", [Draft("I live in Ghent", "alice")])
    draft = ConclusionDraft("lives in Ghent", "alice", "alice", "s")
    return conclusions.create(console.rt, ADMIN, "w", [draft])[0]


def texts(console: Console, text: str) -> list[str]:
    return [row.content for row in conclusions.query(console.rt, ADMIN, "w", text, filters=PAIR)]


def test_a_correction_supersedes_and_keeps_the_sources(
    console: Console, stored: Conclusion
) -> None:
    new = corrections.correct(console.rt, ADMIN, "w", stored.uid, "  lives in Bruges ")
    assert (new.content, new.level, new.session) == ("lives in Bruges", stored.level, "s")
    assert (new.said_at, new.message_keys) == (stored.said_at, stored.message_keys)
    assert texts(console, "lives in") == ["lives in Bruges"]
    with console.rt.storage.read() as tx:
        old = tx.conclusions.by_uid(stored.workspace_key, stored.uid)
        collection = tx.conclusions.collection(stored.observer_key, stored.observed_key)
    assert old is not None
    assert (old.state, old.superseded_by) == (SUPERSEDED, new.key)
    assert old.internal["superseded"] == supersession.CORRECTED
    assert collection is not None
    assert collection.explicit_count == 1
    supersession.restore(console.rt, ADMIN, "w", stored.uid)
    assert sorted(texts(console, "lives in")) == ["lives in Bruges", "lives in Ghent"]


@pytest.mark.parametrize("text", ["", "  ", "lives in Ghent", "x" * (MAX_CONCLUSION + 1)])
def test_a_text_that_cannot_be_stored_changes_nothing(
    console: Console, stored: Conclusion, text: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        corrections.correct(console.rt, ADMIN, "w", stored.uid, text)
    assert [problem.loc for problem in caught.value.problems] == [("content",)]
    assert texts(console, "lives in") == ["lives in Ghent"]


def test_only_a_live_conclusion_is_corrected(console: Console, stored: Conclusion) -> None:
    corrections.correct(console.rt, ADMIN, "w", stored.uid, "lives in Bruges")
    for uid, error in ((stored.uid, Conflict), ("unknown", NotFound)):
        with pytest.raises(error):
            corrections.correct(console.rt, ADMIN, "w", uid, "lives in Antwerp")


def test_only_who_may_edit_memory_corrects(console: Console, stored: Conclusion) -> None:
    others = (
        policy.principal_of_member(Role.OPERATOR, None),
        policy.principal_of_member(Role.OWNER, frozenset({"other"})),
        replace(ADMIN, admin=False, workspace_id="w", peer_id="alice"),
        Principal(),
    )
    for principal in others:
        with pytest.raises(Unauthorised):
            corrections.correct(console.rt, principal, "w", stored.uid, "lives in Bruges")
    assert texts(console, "lives in") == ["lives in Ghent"]
