"""The report of dialogues."""

from __future__ import annotations

import json

import pytest

from benchmarks.dialogues import DIALOGUES, report


@pytest.mark.slow
def test_a_report_has_context_answers_and_card() -> None:
    dialogues = json.loads(DIALOGUES.read_text(encoding="utf-8"))
    assert len(dialogues) == 10
    lines = report(dialogues[0])
    address = "Please ship everything to my office, 12 Mill Lane, York."
    assert lines.index("context:") < lines.index("chat: Where does Dana live?")
    assert f"    [2024-03-01 09:04:00] {address}" in lines
    assert f"    - [2024-03-01] about dana: {address}" in lines
    assert lines.index("card:") < lines.index(f"    INSTRUCTION: {address}")
