"""Statements that move the time of an earlier one, and what the sentence beside one adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from memservice.spi.reasoner import AnswerRequest
from memservice.spi.toolbox import Evidence, Passage, Toolbox
from memservice_extractive.findings import find
from memservice_extractive.updates import changes

PAIRS = [
    ("en", "The rehearsal is on 3 May.", "They postponed the rehearsal to 10 May."),
    ("de", "Die Probe ist am 3. Mai.", "Die Probe wurde auf den 10. Mai verschoben."),
    ("es", "El ensayo es el 3 de mayo.", "Aplazaron el ensayo al 10 de mayo."),
    ("fr", "La répétition est le 3 mai.", "La répétition est décalée au 10 mai."),
    ("it", "Le prove sono il 3 maggio.", "Hanno spostato le prove al 10 maggio."),
    ("pt", "O ensaio é em 3 de maio.", "Adiaram o ensaio para 10 de maio."),
    ("ru", "Репетиция будет 3 мая.", "Репетицию перенесли на 10 мая."),
    ("zh", "排练在5月3号。", "排练改到5月10号了。"),
    ("ja", "稽古は5月3日です。", "稽古が5月10日に変更になった。"),
]


@pytest.mark.parametrize(("language", "earlier", "later"), PAIRS)
def test_a_word_of_change_and_a_shared_word_change_a_time(
    language: str, earlier: str, later: str
) -> None:
    assert changes(later, earlier, language)
    assert not changes(earlier, later, language)


def test_a_change_of_something_else_changes_nothing() -> None:
    assert not changes("They postponed the match to 10 May.", "The rehearsal is on 3 May.", "en")


@dataclass
class Talk:
    """Conclusions of one person with the message that each one is from."""

    statements: Sequence[tuple[int, str, str]]
    """Day of May, conclusion, message."""
    has_chains: bool = False
    has_cards: bool = False
    queries: list[str] = field(default_factory=list)

    def conclusions(self, query: str, limit: int) -> Sequence[Evidence]:
        self.queries.append(query)
        return [
            Evidence("conclusion", f"c{day}{index}", text, _at(day), about="ida")
            for index, (day, text, _) in enumerate(self.statements)
        ][:limit]

    def behind(self, uid: str) -> Sequence[Passage]:
        day, _, message = self.statements[int(uid[-1])]
        return [[Evidence("message", f"m{uid}", message, _at(day), author="ida")]]


def _at(day: int) -> datetime:
    return datetime(2024, 5, day, 9, tzinfo=UTC)


def first_pieces(question: str, *statements: tuple[int, str, str]) -> tuple[bool, list[str]]:
    tools: Toolbox = Talk(statements)  # type: ignore[assignment]
    findings = find(AnswerRequest(question, "ida", [], tools=tools))
    return findings.answers, [piece.text for piece in findings.pieces]


def test_a_moved_date_comes_before_the_one_that_it_replaces() -> None:
    old, new = "My choir concert is on 3 June.", "They shifted the concert to 17 June."
    answers, texts = first_pieces("When is Ida's concert?", (2, old, old), (9, new, new))
    assert answers
    assert texts[:2] == [new, old]


def test_the_message_is_quoted_if_the_date_is_beside_the_change() -> None:
    old = "My choir concert is on 3 June."
    new = "They had to postpone the concert."
    message = f"{new} It is 17 June."
    _, texts = first_pieces("When is Ida's concert?", (2, old, old), (9, new, message))
    assert texts[0] == message


def test_an_earlier_statement_moves_nothing() -> None:
    old, new = "They shifted the concert to 17 June.", "My choir concert is on 3 June."
    _, texts = first_pieces("When is Ida's concert?", (9, new, new), (2, old, old))
    assert texts[0] == new


def test_a_name_in_the_sentence_beside_a_pet_answers_a_question_for_it() -> None:
    pet = "Our greyhound is a thief."
    message = f"{pet} Pickle has hidden nine socks."
    answers, texts = first_pieces("What is Ida's dog called?", (2, pet, message))
    assert answers
    assert texts[0] == message


def test_a_message_without_a_name_does_not_answer_it() -> None:
    pet = "Our greyhound is a thief."
    message = f"{pet} Went to the vet again."
    answers, _ = first_pieces("What is Ida's dog called?", (2, pet, message))
    assert not answers
