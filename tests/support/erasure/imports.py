"""Imports of exports that are older than an erasure, and what they are compared by."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from memservice.domain.filters import TRUE
from memservice.services.transfer import export, importing
from memservice.services.transfer.export import ExportOptions
from memservice.services.transfer.importing import Report
from memservice.spi.schema import TABLES
from support.pipeline.pipeline import WORKSPACE, Pipeline

DEFAULT = ExportOptions()
PLAIN = ExportOptions(vectors=False)
Open = Callable[[], Pipeline]
"""Opens an empty store."""


def exported(
    pipeline: Pipeline, workspace: str = WORKSPACE, options: ExportOptions = DEFAULT
) -> list[bytes]:
    return list(export.lines(pipeline.rt, workspace, options))


def load(
    pipeline: Pipeline, lines: list[bytes], as_slug: str | None = None, *, respect: bool = True
) -> Report:
    return importing.load(pipeline.rt, iter(lines), as_slug, respect_erasures=respect)


def comparable(pipeline: Pipeline, workspace: str = WORKSPACE) -> list[Any]:
    """All rows but tasks and summaries, with numbers in place of uids. Without what says when it
    was stored."""
    rows = [json.loads(line) for line in exported(pipeline, workspace, PLAIN)[1:-1]]
    rows = [row for row in rows if row["type"] not in ("tasks", "summaries", "workspaces")]
    for row in rows:
        if row["type"] == "cards":
            row.pop("updated_at")
    text = json.dumps(rows)
    for n, uid in enumerate(row["uid"] for row in rows if "uid" in row):
        text = text.replace(uid, f"#{n}")
    return list(json.loads(text))


def everything(pipeline: Pipeline) -> str:
    with pipeline.rt.storage.read() as tx:
        return "\n".join(repr(row) for spec in TABLES for row in tx.rows.page(spec.record, TRUE))
