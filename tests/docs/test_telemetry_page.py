"""The page on telemetry: its tables equal the code's, and its commands work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memservice.settings import Settings
from memservice.settings.declare import tree
from memservice.telemetry import events
from services.telemetry.test_metrics import LISTED
from support.docs.blocks import blocks
from support.processes import preloaded


@pytest.fixture(scope="module")
def page(root: Path) -> Path:
    return root / "docs" / "telemetry.md"


def rows(page: Path, head: str) -> list[list[str]]:
    lines = page.read_text(encoding="utf-8").splitlines()
    first = lines.index(next(line for line in lines if line.startswith(f"| {head} |"))) + 2
    cells = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        cells.append([cell.strip() for cell in line.strip("|").split("|")])
    return cells


def test_every_event_is_listed(page: Path) -> None:
    high_volume = {row[0].strip("`"): row[1].startswith("H:") for row in rows(page, "type")}
    assert high_volume == {kind.TYPE: kind.HIGH_VOLUME for kind in events.TYPES}


def test_every_metric_is_listed_with_its_labels(page: Path) -> None:
    metrics = {
        row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in rows(page, "metric")
    }
    assert metrics == {
        line.split()[0]: set(line.split()[2:]) for line in LISTED.strip().splitlines()
    }


def test_settings_exist_with_the_stated_value(page: Path) -> None:
    variables = tree(Settings).by_variable
    text = page.read_text(encoding="utf-8")
    for variable in re.findall(r"`([A-Z]+_[A-Z_]+)(?:=[^`]*)?`", text):
        assert variable in variables or variable == "PROMETHEUS_MULTIPROC_DIR", variable
    defaults = re.findall(r"`([A-Z_]+)` \((\d+)\)", text)
    assert len(defaults) >= 3
    for variable, value in defaults:
        assert float(variables[variable].default) == float(value), variable


@pytest.mark.e2e
def test_the_commands_work(page: Path, tmp_path: Path) -> None:
    script = "set -eu\nmemservice db upgrade\n" + "\n".join(
        block.text for block in blocks(page, "sh")
    )
    result = preloaded.run_script(script, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "DAY" in result.stdout
