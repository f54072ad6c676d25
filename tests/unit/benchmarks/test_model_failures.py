"""The benchmark of failing models runs, and its requirements are met."""

from __future__ import annotations

import pytest

from benchmarks import model_failures
from benchmarks.installation import documented


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario", model_failures.SCENARIOS, ids=lambda scenario: scenario.__name__
)
def test_the_requirement_is_met(
    scenario: model_failures.Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_failures, "MAX_SLOWNESS", 6.0)
    row = scenario(True)
    assert row.is_met, row.measured


def test_a_row_that_is_not_met_is_shown_and_sets_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = model_failures.Row("a", "b", "c", is_met=False)
    monkeypatch.setattr(model_failures, "SCENARIOS", (lambda quick: row,))
    assert model_failures.main([]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "| a | b | c | NO |"


def test_a_documented_block_that_is_missing_is_an_error() -> None:
    with pytest.raises(LookupError, match="has no block"):
        documented(model_failures.ROOT, "nothing.toml")
