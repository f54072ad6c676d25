"""Sentences of a story that their speaker asks for or tells: they are true of nobody."""

from __future__ import annotations

from collections.abc import Sequence

from memservice_extractive.requests import asks_for_fiction, begins_fiction
from memservice_extractive.tails import has_first_person


def invented(sentences: Sequence[str], language: str) -> list[bool]:
    """For each sentence of one message, in order, whether it belongs to a story: one that asks for
    a story, and those after it that are not about the speaker."""
    flags: list[bool] = []
    is_begun = False
    for sentence in sentences:
        is_told = is_begun and not has_first_person(sentence, language)
        flags.append(is_told or asks_for_fiction(sentence))
        is_begun = is_begun or begins_fiction(sentence)
    return flags
