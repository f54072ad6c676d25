"""Answers without a model to questions for one value, among statements of what may be, of what is
not, and of what others said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from memservice.spi.reasoner import AnswerRequest
from memservice.spi.toolbox import Evidence, Passage, Toolbox
from memservice_extractive.certainty import denied, without_report, without_speech
from memservice_extractive.evidence import Piece
from memservice_extractive.findings import find


@dataclass
class Said:
    """Conclusions of one person, one a day."""

    statements: Sequence[str]

    def conclusions(self, query: str, limit: int) -> Sequence[Evidence]:
        return [
            Evidence("conclusion", f"c{day}", text, datetime(2024, 5, day, tzinfo=UTC), about="ida")
            for day, text in enumerate(self.statements, 1)
        ][:limit]

    def behind(self, uid: str) -> Sequence[Passage]:
        return []


def pieces(question: str, *statements: str) -> Sequence[Piece]:
    tools: Toolbox = Said(statements)  # type: ignore[assignment]
    findings = find(AnswerRequest(question, "ida", [], tools=tools))
    return findings.pieces if findings.answers else []


@pytest.mark.parametrize(
    ("question", "fact", "later"),
    [
        ("Where does Ida live?", "I live in Hamburg.", "I might move to Vienna next year."),
        ("Where does Ida live?", "I live in Hamburg.", "I'm thinking about moving to Vienna."),
        ("Where does Ida live?", "I live in Hamburg.", "I never lived in Rome, that was a joke."),
        ("Where does Ida work?", "I work at Siemens.", "I don't work at Bosch."),
        ("Wo wohnt Ida?", "Ich wohne in Ulm.", "Vielleicht ziehe ich bald nach Wien."),
        ("Wo wohnt Ida?", "Ich wohne in Ulm.", "Ich überlege, nach Graz zu ziehen."),
        ("Wo arbeitet Ida?", "Ich arbeite bei Siemens.", "Ich arbeite nicht bei Bosch."),
        ("¿Dónde vive Ida?", "Vivo en Sevilla.", "Quizás me mude a Madrid el año que viene."),
        ("¿Dónde trabaja Ida?", "Trabajo en Iberia.", "No trabajo en Renfe."),
    ],
)
def test_what_may_be_or_is_not_makes_no_value_an_earlier_one(
    question: str, fact: str, later: str
) -> None:
    first, *rest = pieces(question, fact, later)
    assert (first.text, first.is_earlier) == (fact, False)
    assert [piece.text for piece in rest] == [later]


@pytest.mark.parametrize(
    ("question", "fact", "later"),
    [
        ("Where does Ida work?", "I work at Siemens.", "I don't work at Siemens."),
        ("Where does Ida work?", "I work at Siemens.", "I don't work at Siemens anymore."),
        ("Where does Ida work?", "I work at Siemens.", "I don't work there, I work at Bosch."),
        ("Wo arbeitet Ida?", "Ich arbeite bei Siemens.", "Ich arbeite nicht mehr bei Siemens."),
        ("¿Dónde trabaja Ida?", "Trabajo en Iberia.", "Ya no trabajo en Iberia."),
    ],
)
def test_a_denial_of_what_was_said_comes_first(question: str, fact: str, later: str) -> None:
    first, second = pieces(question, fact, later)
    assert (first.text, first.is_earlier) == (later, False)
    assert (second.text, second.is_earlier) == (fact, True)


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("Where does Ida live?", 'My boss said: "I live in Madrid."'),
        ("Where does Ida live?", 'My boss told us: "I live in Madrid. It is hot there."'),
        ("Spielt Ida Golf?", "Mein Chef sagte: „Ich spiele Golf.“"),
        ("Où habite Ida ?", "Mon chef a dit : « J'habite à Metz. »"),
    ],
)
def test_what_others_are_quoted_as_saying_answers_no_question_about_the_speaker(
    question: str, quoted: str
) -> None:
    assert not pieces(question, quoted)


@pytest.mark.parametrize(
    ("question", "of_teller", "report"),
    [
        ("Where does Ida live?", "Where does Tom live?", "Tom says he lives in Oslo."),
        ("Where does Ida work?", "Where does Tom work?", "Tom told me he works at Volvo."),
        ("Wo wohnt Ida?", "Wo wohnt Tom?", "Tom sagt, er wohnt in Oslo."),
        ("¿Dónde vive Ida?", "¿Dónde vive Tom?", "Tom dice que vive en Oslo."),
        ("Où habite Ida ?", "Où habite Tom ?", "Tom dit qu'il habite à Oslo."),
    ],
)
def test_what_others_tell_of_themselves_answers_questions_about_them_alone(
    question: str, of_teller: str, report: str
) -> None:
    assert not pieces(question, report)
    assert pieces(of_teller, report)


def test_what_others_say_about_the_speaker_is_told_of_the_speaker() -> None:
    for sentence in ("My doctor says I have asthma.", "My doctor says no more coffee."):
        assert without_report(sentence, "en") == sentence


def test_the_speaker_may_quote_itself_and_name_things() -> None:
    own = 'I told them: "I live in Madrid."'
    assert pieces("Where does Ida live?", own)
    assert without_speech(own, "en") == own
    assert without_speech('My favourite book is "Dune".', "en") == 'My favourite book is "Dune".'


@pytest.mark.parametrize(
    ("sentence", "language", "value"),
    [
        ("I don't live far from Rome.", "en", None),
        ("I work not only at Bosch.", "en", None),
        ("Actually I don't live in Rome.", "en", " live in rome."),
        ("Ich wohne nicht weit von Ulm.", "de", None),
        ("Je n'habite pas loin de Lyon.", "fr", None),
        ("Я не работаю в банке.", "ru", " работаю в банке."),
        ("我不住在北京。", "zh", None),
    ],
)
def test_denials(sentence: str, language: str, value: str | None) -> None:
    result = denied(sentence, language)
    assert result == (value and value.rstrip("."))
