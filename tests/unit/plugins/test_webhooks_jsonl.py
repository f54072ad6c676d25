"""Delivery to a file, on a disk that is full for a while."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from memservice_webhooks import jsonl
from memservice_webhooks.jsonl import JsonLinesTransport


class Full(io.FileIO):
    """Takes the beginning of what is written."""

    def write(self, data: Any, /) -> int:
        return super().write(bytes(data)[:20]) or 0


def test_a_truncated_line_is_not_delivered_and_the_next_one_is_complete(
    tmp_path: Path,
) -> None:
    transport = JsonLinesTransport(str(tmp_path))
    assert transport.deliver("jsonl:a", b'{"n":1}', {}).delivered
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            jsonl,
            "open",
            lambda path, mode, buffering, opener: Full(path, mode, opener=opener),
            raising=False,
        )
        cut = transport.deliver("jsonl:a", b'{"n":2}', {})
    assert (cut.status, cut.error) == (
        None,
        "the line was written only in part: the disk may be full",
    )
    for n in (2, 3):
        assert transport.deliver("jsonl:a", b'{"n":%d}' % n, {}).delivered
    first, torn, *others = (tmp_path / "a.jsonl").read_bytes().splitlines()
    assert len(torn) == 20
    assert [json.loads(line)["body"] for line in (first, *others)] == [
        '{"n":1}',
        '{"n":2}',
        '{"n":3}',
    ]


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    outcome = JsonLinesTransport(str(tmp_path / "none")).deliver("jsonl:a", b"{}", {})
    assert (outcome.status, outcome.error) == (None, "FileNotFoundError: No such file or directory")
