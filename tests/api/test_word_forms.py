"""A search for another form of a word, or for a word derived from the same root, finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.word_forms import LANGUAGES, Table, table

if TYPE_CHECKING:
    from api.conftest import Api

pytestmark = [pytest.mark.every_storage("sqlite"), pytest.mark.slow]

CASES = 20
"""Queries of each language."""


def missed(api: Api, cases: Table) -> list[tuple[str, str | None]]:
    """The queries whose first result is not the right message, with that result."""
    wrong: list[tuple[str, str | None]] = []
    for query, answer in cases.cases:
        hits = api.ok(api.post("/search", {"query": query}))
        first = hits[0]["content"] if hits else None
        if first != answer:
            wrong.append((query, first))
    return wrong


def test_the_right_message_is_first_in_nine_languages(api: Api) -> None:
    workspace = api.workspace
    wrong: dict[str, list[tuple[str, str | None]]] = {}
    for language in LANGUAGES:
        api.workspace = f"{workspace}-{language}"
        cases = table(language)
        assert len(cases.cases) == CASES
        api.say("s", *(("alice", message) for message in cases.messages))
        wrong[language] = missed(api, cases)
    assert len(wrong.pop("en")) <= CASES * 0.05
    assert sum(map(len, wrong.values())) <= 0.05 * CASES * len(wrong), wrong
