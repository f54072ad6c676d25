"""Statements of a speaker about itself, in the third person where that is safe."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice_extractive.third_person import MAX_LENGTH, in_third_person

SAFE = [
    ("I'm allergic to penicillin.", "maria is allergic to penicillin."),
    ("I’m vegetarian", "maria is vegetarian"),
    ("I am 34 years old.", "maria is 34 years old."),
    ("I've moved to Porto.", "maria has moved to Porto."),
    ("I'll be in Rome on Monday.", "maria will be in Rome on Monday."),
    ("I don't like spinach.", "maria doesn't like spinach."),
    ("I really love hiking in the Alps!", "maria really loves hiking in the Alps!"),
    ("I study law.", "maria studies law."),
    ("I play chess.", "maria plays chess."),
    ("I teach French.", "maria teaches French."),
    ("I go to the gym on Mondays.", "maria goes to the gym on Mondays."),
    ("I live in Lisbon and Porto.", "maria lives in Lisbon and Porto."),
    ("I have two cats and a dog.", "maria has two cats and a dog."),
    ("I moved to Braga and bought a boat.", "maria moved to Braga and bought a boat."),
    ("I live in Rome and worked in Oslo.", "maria lives in Rome and worked in Oslo."),
    ("I didn't eat or drink.", "maria didn't eat or drink."),
    ("I can't eat gluten or drink milk.", "maria can't eat gluten or drink milk."),
]
"""Add a row for a form of a verb that is new."""
UNSAFE = [
    "I live in Lisbon with my husband.",
    "I like it.",
    "I met her in Rome.",
    "I live and work in Lisbon.",
    "I live in Rome and cycle to work.",
    "I'm a nurse and cycle to work.",
    "I dance and juggle.",
    "I moved to Rome and work as a nurse.",
    "I was ill and work again.",
    "I've moved to Porto, and I work as a nurse.",
    "I'd like tea.",
    "I juggle.",
    "I never",
    "I.",
    "I live in Rome. It is hot.",
    'I love the song "Hey".',
    "Do I live in Rome?",
    "My dog is old.",
    "We live in Rome.",
    "maria lives in Rome.",
    "I'm Maria.",
    "",
    "I live " + "far " * MAX_LENGTH,
]
"""Add a row for a statement that would be wrong or ambiguous with a name as its subject."""


@pytest.mark.parametrize(("statement", "expected"), SAFE)
def test_a_statement_gets_the_name_as_its_subject(statement: str, expected: str) -> None:
    assert in_third_person(statement, "maria") == expected


@pytest.mark.parametrize("statement", UNSAFE)
def test_a_statement_that_is_not_safe_stays_as_it_was_said(statement: str) -> None:
    assert in_third_person(statement, "maria") is None


def test_a_conclusion_about_nobody_stays_as_it_was_said() -> None:
    assert in_third_person("I live in Rome.", "") is None


@given(st.text(max_size=60), st.sampled_from(["I ", "I'm ", "I never ", "I live ", "I've "]))
def test_all_words_but_subject_and_verb_stay(rest: str, beginning: str) -> None:
    statement = in_third_person(beginning + rest, "maria")
    if statement is not None:
        before, after = (re.findall(r"\w+", text) for text in (beginning + rest, statement))
        assert after[0] == "maria"
        changed = {"I", "m", "ve", "ll"}
        assert sum(word not in changed and word not in after for word in before) <= 2
