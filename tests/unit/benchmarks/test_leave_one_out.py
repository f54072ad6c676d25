"""The leave-one-set-out table of the benchmark of recall."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.recall import leave_one_out
from benchmarks.recall.leave_one_out import rows, values_of

QUESTIONS = 40
BASE = {"people": [0.5] * QUESTIONS, "assistant": [0.5] * QUESTIONS, "public": [0.5] * QUESTIONS}
FITTED = {**BASE, "people": [1.0] * QUESTIONS, "assistant": [0.2] * QUESTIONS}
"""Much better on one set, worse on another."""
BETTER = {name: [0.6] * QUESTIONS for name in BASE}


def test_a_gain_on_one_set_that_is_a_loss_on_another_is_seen() -> None:
    table = {row.left_out: row for row in rows({"base": BASE, "fitted": FITTED})}
    assert (table["assistant"].chosen, table["assistant"].best) == ("fitted", "base")
    assert table["assistant"].is_loss
    assert table["assistant"].change.mean == pytest.approx(-30)
    # Without the set that it was fitted to, nothing speaks for it.
    assert (table["people"].chosen, table["people"].best) == ("base", "fitted")
    assert not table["people"].is_loss


def test_a_variant_that_is_better_everywhere_is_chosen_everywhere() -> None:
    table = rows({"base": BASE, "better": BETTER})
    assert {(row.chosen, row.best, row.is_loss) for row in table} == {("better", "better", False)}
    assert all(row.change.mean == pytest.approx(10) for row in table)


def test_variants_with_other_questions_and_single_sets_are_refused() -> None:
    with pytest.raises(ValueError, match="short has other questions"):
        rows({"base": BASE, "short": {**BASE, "public": [0.5]}})
    with pytest.raises(ValueError, match="at least two sets"):
        rows({"base": {"people": [0.5]}})
    with pytest.raises(ValueError, match="no values of 'peer search'"):
        values_of({"people / workspace search / all": {"r@10": [1.0]}}, "peer search", "r@10")


def test_the_command_prints_the_table_and_draws_the_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["leave_one_out", "--chart", str(tmp_path / "chart.svg")]
    for name, values in (("base", BASE), ("fitted", FITTED)):
        results = {
            f"{key} / workspace search / {category}": {"r@10": row}
            for key, row in values.items()
            for category in ("all", "near")
        }
        (tmp_path / name).write_text(json.dumps(results))
        arguments.append(f"{name}={tmp_path / name}")
    monkeypatch.setattr(sys, "argv", arguments)
    leave_one_out.main()
    lines = capsys.readouterr().out.splitlines()
    assert "| assistant | fitted | -30.0 ±0.0 **loss** | base |" in lines
    drawn = ElementTree.parse(tmp_path / "chart.svg")
    bars = drawn.findall("{http://www.w3.org/2000/svg}rect")[1:]
    assert [float(bar.attrib["width"]) for bar in bars[:2]] == [210.0, 420.0]
