"""`memservice usage`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from integration.cli.conftest import Run
from memservice.compose import open_runtime
from memservice.domain.records import Usage
from memservice.domain.times import day_of
from memservice.settings import load_settings


@pytest.fixture
def spent(memservice: Run, tmp_path: Path) -> str:
    """A store in which something was spent today, and long ago; returns today."""
    now = datetime.now(UTC)
    rt = open_runtime(
        load_settings(
            environ={"DB_CONNECTION_URI": f"sqlite:///{tmp_path}/memservice.db"}, cwd=tmp_path
        )
    )
    try:
        rt.storage.migrate()
        row = {
            "task": "summary.short",
            "provider": "openai",
            "outcome": "success",
            "created_at": now,
        }
        large = {"input_tokens": 100, "output_tokens": 50, "reasoning_tokens": 30}
        rows = [
            Usage(day=day_of(now), model="small", input_tokens=10, output_tokens=5, **row),  # type: ignore[arg-type]  # of several types
            Usage(day=day_of(now), model="large", **large, **row),  # type: ignore[arg-type]  # as above
            Usage(day="2020-02-02", model="small", input_tokens=1000, **row),  # type: ignore[arg-type]  # as above
        ]
        rt.storage.write(lambda tx: tx.usage.add(rows))
    finally:
        rt.close()
    return day_of(now)


def test_usage_by_day_and_model(memservice: Run, spent: str) -> None:
    result = memservice("usage")
    assert result.returncode == 0, result.stderr
    head, *rows, total = [line.split() for line in result.stdout.splitlines()]
    assert head[:4] == ["DAY", "MODEL", "CALLS", "FAILED"]
    assert head[6] == "REASONING"
    assert [row[:7] for row in rows] == [
        [spent, "large", "1", "0", "100", "50", "30"],
        [spent, "small", "1", "0", "10", "5", "0"],
    ]
    assert total == ["total", "2", "0", "110", "55", "30", "0", "0"]


def test_usage_since_a_day_as_json(memservice: Run, spent: str) -> None:
    result = memservice("usage", "--since", "2020-01-01", "--by", "task", "--json")
    (line,) = result.stdout.splitlines()
    assert json.loads(line)["task"] == "summary.short"
    assert json.loads(line)["input_tokens"] == 1110
    assert (
        memservice("usage", "--since", "7d", "--by", "workspace").stdout.splitlines()[1].split()[0]
        == "-"
    )


def test_usage_refuses_unknown_arguments(memservice: Run, spent: str) -> None:
    wrong = memservice("usage", "--since", "soon")
    assert wrong.returncode == 2
    assert "7d" in wrong.stderr
    missing = memservice("usage", "--workspace", "nobody")
    assert missing.returncode == 1
    assert "nobody" in missing.stderr


PRICES = {
    "small": {"input": 1.0, "output": 100.0},
    "openai/*": {"input": 10.0, "output": 1000.0, "cache_read": 1.0},
}


def test_usage_is_shown_in_money(memservice: Run, spent: str) -> None:
    result = memservice("usage", "--cost", LLM_PRICES=json.dumps(PRICES))
    head, large, small, total = [line.split() for line in result.stdout.splitlines()]
    assert (head[-1], large[-1], small[-1], total[-1]) == ("COST", "0.0510", "0.0005", "0.0515")
    by_task = memservice("usage", "--cost", "--by", "task", "--json", LLM_PRICES=json.dumps(PRICES))
    assert json.loads(by_task.stdout)["cost"] == 0.05151
    assert by_task.stderr == ""


def test_models_without_a_price_are_named(memservice: Run, spent: str) -> None:
    result = memservice("usage", "--cost", LLM_PRICES=json.dumps({"small": PRICES["small"]}))
    assert result.stderr == "no price in LLM_PRICES: openai/large\n"
    refused = memservice("usage", "--cost")
    assert (refused.returncode, "no prices are set: LLM_PRICES=" in refused.stderr) == (2, True)
