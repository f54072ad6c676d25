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
    data = {"when": when, "outcome": outcome, "sections": sections}
    assert needed("testreport", {"data": data}, is_verbose=False) is is_sent


@pytest.mark.parametrize("event", ["logstart", "logfinish"])
@pytest.mark.parametrize("is_verbose", [False, True])
def test_the_begin_and_end_of_a_test_are_sent_if_they_are_printed(
    event: str, is_verbose: bool
) -> None:
    assert needed(event, {}, is_verbose=is_verbose) is is_verbose


def test_other_events_are_sent() -> None:
    assert needed("collectionfinish", {}, is_verbose=False)
