"""How representations read, character by character."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from memservice.domain.records import (
    CONTRADICTION,
    DEDUCTIVE,
    EXPLICIT,
    INDUCTIVE,
    Conclusion,
    Message,
)
from memservice.services.retrieval.representation_text import Selection, markdown, plain

NINE = datetime(2026, 1, 1, 9, 0, 0, 999_999, tzinfo=UTC)
HEADINGS = "EXPLICIT:\n\n\nDEDUCTIVE:\n\n\nINDUCTIVE:\n\n\nCONTRADICTION:\n\n"


def conclusion(
    key: int, content: str, level: str = EXPLICIT, minutes: int = 0, **internal: Any
) -> Conclusion:
    return Conclusion(
        key=key,
        uid=f"c{key}",
        workspace_key=1,
        collection_key=1,
        observer_key=1,
        observed_key=1,
        observer="a",
        observed="a",
        content=content,
        fingerprint=content,
        level=level,
        internal=internal,
        said_at=NINE + timedelta(minutes=minutes),
        created_at=NINE,
    )


def message(key: int, content: str, author: str, minutes: int) -> Message:
    return Message(
        key=key,
        uid=f"m{key}",
        workspace_key=1,
        session_key=1,
        author_key=1,
        session="s",
        author=author,
        seq=key,
        content=content,
        tokens=1,
        tokens_through=key,
        created_at=NINE + timedelta(minutes=minutes),
    )


def test_no_conclusions_give_an_empty_text() -> None:
    assert markdown(Selection()) == ""
    assert plain(Selection()) == HEADINGS, (
        "the headings count against a budget even if nothing stands under them"
    )


def test_one_explicit_conclusion() -> None:
    assert (
        markdown(Selection([conclusion(1, "X")]))
        == "## Explicit Observations\n\n[2026-01-01 09:00:00] X\n"
    )


def test_all_four_sections() -> None:
    selection = Selection(
        [
            conclusion(9, "second", minutes=1),
            conclusion(3, "tied first"),
            conclusion(5, "tied second"),
            conclusion(4, "follows", DEDUCTIVE, premises=["one", "two"]),
            conclusion(6, "stands alone", DEDUCTIVE, minutes=2),
            conclusion(
                7,
                "often walks",
                INDUCTIVE,
                sources=["a", "b"],
                pattern_type="behavior",
                confidence="high",
            ),
            conclusion(8, "is brief", INDUCTIVE, minutes=3),
            conclusion(2, "both cannot be", CONTRADICTION, sources=["yes", "no"]),
        ]
    )
    assert markdown(selection) == (
        "## Explicit Observations\n"
        "\n"
        "[2026-01-01 09:00:00] tied first\n"
        "[2026-01-01 09:00:00] tied second\n"
        "[2026-01-01 09:01:00] second\n"
        "\n"
        "## Deductive Observations\n"
        "\n"
        "[2026-01-01 09:00:00] follows\n"
        "   Premises:\n"
        "   - one\n"
        "   - two\n"
        "\n"
        "[2026-01-01 09:02:00] stands alone\n"
        "\n"
        "\n"
        "## Inductive Observations\n"
        "\n"
        " **Pattern** [high]: often walks\n"
        "   **Type**: behavior\n"
        "   **Sources**:\n"
        "   - a\n"
        "   - b\n"
        "\n"
        " **Pattern** [medium]: is brief\n"
        "\n"
        "## Contradictions\n"
        "\n"
        " **CONTRADICTION**: both cannot be\n"
        "   **Conflicting statements**:\n"
        "   - yes\n"
        "   - no\n"
    )
    assert plain(selection) == (
        "EXPLICIT:\n"
        "\n"
        "1. [2026-01-01 09:00:00] tied first\n"
        "2. [2026-01-01 09:00:00] tied second\n"
        "3. [2026-01-01 09:01:00] second\n"
        "\n"
        "DEDUCTIVE:\n"
        "\n"
        "1. [2026-01-01 09:00:00] follows\n"
        "    - one\n"
        "    - two\n"
        "2. [2026-01-01 09:02:00] stands alone\n"
        "\n"
        "INDUCTIVE:\n"
        "\n"
        "1. [2026-01-01 09:00:00] often walks\n"
        "    - a\n"
        "    - b\n"
        "2. [2026-01-01 09:03:00] is brief\n"
        "\n"
        "CONTRADICTION:\n"
        "\n"
        "1. [2026-01-01 09:00:00] both cannot be\n"
        "    - yes\n"
        "    - no\n"
    )


def test_five_sources_are_shown_and_the_others_counted() -> None:
    def text(number: int) -> str:
        return markdown(
            Selection([conclusion(1, "P", INDUCTIVE, sources=[f"s{n}" for n in range(number)])])
        )

    five = "## Inductive Observations\n\n **Pattern** [medium]: P\n   **Sources**:\n" + "".join(
        f"   - s{n}\n" for n in range(5)
    )
    assert text(5) == five
    assert text(6) == five + "   - ... and 1 more\n"
    assert text(12) == five + "   - ... and 7 more\n"


def test_verbatim_messages_are_among_explicit_conclusions() -> None:
    selection = Selection(
        [conclusion(1, "likes tea", minutes=1)],
        [message(1, "Tea?", "ann", 0), message(2, "Tea!", "bob", 2)],
        {"ann": "Ann Lee"},
    )
    assert markdown(selection) == (
        "## Explicit Observations\n\n"
        "[2026-01-01 09:00:00] Ann Lee: Tea?\n[2026-01-01 09:01:00] likes tea\n[2026-01-01 "
        "09:02:00] bob: Tea!\n"
    )


def test_provenance_that_is_not_text_is_left_out() -> None:
    odd = conclusion(1, "D", DEDUCTIVE, premises=["kept", 5, None])
    assert (
        markdown(Selection([odd]))
        == "## Deductive Observations\n\n[2026-01-01 09:00:00] D\n   Premises:\n   - kept\n\n"
    )
    assert (
        markdown(Selection([conclusion(1, "D", DEDUCTIVE, premises="no list")])).count("Premises")
        == 0
    )
