"""What a peer confirms or picks is the peer's, although another peer said it first. What the peer
does not confirm is not."""

from __future__ import annotations

import pytest

from memservice.pipeline.derive.assent import confirms, denies
from memservice.pipeline.derive.attribution import attributed
from memservice.spi.reasoner import Statement
from memservice.testing.confirmations import CONFIRMED, NOT_CONFIRMED, Dialogue
from services.pipeline.test_attribution import message


def judged(dialogue: Dialogue, between: tuple[tuple[str, str], ...] = ()) -> list[Statement]:
    """What is stored of an dialogue, with further messages between its two."""
    window = dialogue.messages(between)
    remaining, _ = attributed([dialogue.derived(window)], window[-1:], window, ["alice"])
    return remaining


@pytest.mark.slow
def test_confirmed_or_chosen_statements_are_kept() -> None:
    assert len(CONFIRMED) == 40
    lost = [dialogue.own for dialogue in CONFIRMED if not judged(dialogue)]
    assert len(lost) <= 2, lost
    assert all(
        (statement.basis, statement.confirms) == ("confirmed", (1,))
        for dialogue in CONFIRMED
        for statement in judged(dialogue)
    )


@pytest.mark.parametrize("dialogue", NOT_CONFIRMED, ids=lambda dialogue: dialogue.own[:20])
def test_unconfirmed_statements_are_dropped(dialogue: Dialogue) -> None:
    assert judged(dialogue) == []


def test_a_confirmation_must_follow_in_the_same_turn() -> None:
    dialogue = CONFIRMED[0]
    assert judged(dialogue, (("bob", "Is that so?"),)), "of one turn"
    turns = (("alice", "Hm, let me think."), ("bob", "Take your time."))
    assert judged(dialogue, turns) == [], "an older turn is not what was confirmed"


def test_only_the_statement_of_the_cited_message_is_confirmed() -> None:
    """Another message of the same turn is not confirmed with it."""
    window = [
        message(1, "bob", "You keep bees near the old mill."),
        message(2, "bob", "My neighbour plays the bassoon every evening."),
        message(3, "alice", "Yes, that is quite right about what I do."),
    ]
    statements = [
        Statement("alice keeps bees near the old mill.", (3,), basis="confirmed", confirms=(1,)),
        Statement("alice plays the bassoon every evening.", (3,), basis="confirmed", confirms=(1,)),
        Statement("alice plays the bassoon daily.", (3,), basis="confirmed", confirms=(3, 99)),
    ]
    remaining, misattributed = attributed(statements, window[-1:], window, ["alice"])
    assert [statement.content for statement in remaining] == ["alice keeps bees near the old mill."]
    assert misattributed == 2


@pytest.mark.parametrize(
    ("text", "agrees", "refuses"),
    [
        ("Yes, not bad at all", True, False),
        ("That's not right", False, True),
        ("Why not, the first one", True, False),
        ("没错", True, False),
        ("違います", False, True),
        ("Let me tell you about my holiday in Spain", False, False),
        ("", False, False),
    ],
)
def test_assent_and_denial_are_recognised(text: str, agrees: bool, refuses: bool) -> None:
    assert (confirms(text), denies(text)) == (agrees, refuses)
