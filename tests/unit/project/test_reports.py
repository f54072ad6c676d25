"""Test processes leave out the reports that say nothing, and no others."""

from __future__ import annotations

import pytest

from support.reports import needed


@pytest.mark.parametrize(
    ("when", "outcome", "sections", "is_sent"),
    [
        ("setup", "passed", [], False),
        ("teardown", "passed", [], False),
        ("call", "passed", [], True),
        ("teardown", "passed", [("Captured stdout teardown", "text")], True),
        *((when, "failed", [], True) for when in ("setup", "call", "teardown")),
        *((when, "skipped", [], True) for when in ("setup", "call")),
    ],
)
def test_reports_of_what_happened_are_sent(
    when: str, outcome: str, sections: list[tuple[str, str]], is_sent: bool
) -> None:
    assert needed({"when": when, "outcome": outcome, "sections": sections}) is is_sent
