"""Fixtures that every test may use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import redis_server
from receiver import Receiver, receiving

pytest.register_assert_rewrite("api.three_nouns")  # assertions outside of test files

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Redis, one for the whole run. Tests share it, so each uses a NAMESPACE of its own."""
    with redis_server.shared(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint of webhooks on this machine."""
    with receiving() as opened:
        yield opened


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Nothing is skipped in silence: what was not exercised, how often, and what it needs."""
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if reasons:
        terminalreporter.section("not exercised")
        for reason, number in sorted(reasons.items()):
            terminalreporter.write_line(f"{number} × {reason}")
    if terminalreporter.config.option.markexpr == "not heavy":
        terminalreporter.write_line("what takes minutes (many kills, 50,000 messages moved, thousands of requests) is run with -m heavy")


def _reason(report: pytest.TestReport) -> str:
    told = report.longrepr
    return str(told[2] if isinstance(told, tuple) else told).removeprefix("Skipped: ")
