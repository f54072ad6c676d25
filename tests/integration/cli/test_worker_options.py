"""Wrong options of `memservice worker` are reported in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from memservice.cli import cli


@pytest.mark.usefixtures("process_as_before")
@pytest.mark.parametrize(
    ("arguments", "environ", "sentence"),
    [
        (("--queues", "ingest"), {}, "--queues needs RQ: set REDIS_URL"),
        (
            ("--queues", "ingest,thinking"),
            {"REDIS_URL": "redis://127.0.0.1:1/0"},
            "there is no queue 'thinking'; the queues are ingest, summary",
        ),
        (
            ("--queues", ","),
            {"REDIS_URL": "redis://127.0.0.1:1/0"},
            "name at least one; the queues are",
        ),
        (("--num-workers", "0"), {}, "0 is not in the range"),
        ((), {"REDIS_URL": "localhost"}, "REDIS_URL is not a Redis URL"),
        ((), {"DB_CONNECTION_URI": "memory://"}, "a worker cannot share it"),
    ],
)
def test_mistakes_are_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    environ: dict[str, str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["worker", *arguments], env=environ)
    assert result.exit_code != 0
    assert sentence in " ".join(f"{result.stderr} {result.exception}".split())
