"""From one installation to another: every workspace, then a look whether both hold the same."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from memservice.domain.errors import Conflict, MemserviceError
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, Fact, Workspace
from memservice.runtime import Runtime
from memservice.services.tasks import kinds
from memservice.services.transfer import export, importing
from memservice.services.transfer.export import ExportOptions
from memservice.services.transfer.importing import Report
from memservice.services.transfer.lines import END, HEADER, Line, Sum, parsed, read_vector
from memservice.services.transfer.record_formats import TASK, VECTOR

MARK = "copy.mark"
ROUNDING = 1e-6
"""How far a vector of length one may be from itself in another index: some ten times what float32
takes from it."""


class Different(MemserviceError):
    """The copy does not hold what the original does."""


def workspaces(rt: Runtime) -> list[str]:
    """The names of all workspaces, oldest first."""
    with rt.storage.read() as tx:
        return [workspace.slug for workspace in tx.rows.page(Workspace, equals(state=ACTIVE))]


def require_two(origin: Runtime, target: Runtime) -> None:
    """Raises Conflict if both work on one storage, by whatever names they reach it. The target has
    its schema."""
    mark = new_uid()
    target.storage.write(lambda tx: tx.facts.set(MARK, mark))
    try:
        with origin.storage.read() as tx:
            same = tx.facts.get(MARK) == mark
    finally:
        target.storage.write(lambda tx: tx.rows.delete(Fact, equals(name=MARK)))
    if same:
        raise Conflict(
            "the settings to copy from and those to copy to lead to the same storage: "
            "there is nothing to copy"
        )


def copy(
    lines: Iterator[bytes], target: Runtime, workspace_id: str, export_options: ExportOptions
) -> Report:
    """Store the lines of an export, then export the copy and compare, kind by kind: rows by
    checksum, vectors by their direction.

    Raises Different where the copy holds something else: because the original changed meanwhile, or
    the target had rows of its own.
    """
    original, there = Content(), Content()
    report = importing.load(target, original.watched(lines))
    if report.away is not None:
        raise Different(
            f"the copy of {workspace_id!r} lacks {report.later} vectors, as the target's "
            f"index is away ({report.away}). Everything "
            "else was "
            "stored, and tasks make them when it is back; copy again then to compare"
        )
    if report.others:
        which = "; ".join(
            (
                f"{o.number} vectors of kind {o.kind} by {o.embedder}, where the target has "
                f"them by {o.here}"
            )
            for o in report.others
        )
        raise Different(
            f"the copy of {workspace_id!r} could not take {which}. Everything else was "
            "stored; bring both to one embedder with "
            f"`memservice reembed --workspace {workspace_id} --to NAME`, then copy again "
            "to compare"
        )
    for _ in there.watched(export.lines(target, report.workspace, export_options)):
        pass
    if different := original.differs_from(there):
        raise Different(
            f"the copy of {workspace_id!r} differs from the original in "
            f"{', '.join(different)}. What was not there was stored, what was "
            "there is as it was. If the original was written to meanwhile, stop its "
            "servers and workers and copy again; if not, the "
            "target has something else under this name: delete the workspace there, and "
            "copy again"
        )
    return replace(report, sha256=original.sha256)


class Content:
    """What two exports of equal workspaces agree on."""

    def __init__(self) -> None:
        self._total = Sum()
        self._rows: dict[str, Sum] = {}
        self._vectors: dict[str, Directions] = {}

    def watched(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for data in lines:
            line = parsed(data, 0)
            kind = line["type"]
            if kind == VECTOR:
                self._vectors.setdefault(line["space"]["kind"], Directions()).add(line)
            elif kind not in (HEADER, END) and not _gives_vectors(line):
                self._total.add(data)
                self._rows.setdefault(kind, Sum()).add(data)
            yield data

    @property
    def sha256(self) -> str:
        """Of all rows."""
        return self._total.sha256

    def differs_from(self, other: Content) -> list[str]:
        """What is not the same in both."""
        rows = [
            kind
            for kind in {**self._rows, **other._rows}
            if _end(self._rows.get(kind)) != _end(other._rows.get(kind))
        ]
        none = Directions()
        kinds = {**self._vectors, **other._vectors}
        return rows + [
            f"vectors of kind {kind}"
            for kind in kinds
            if not self._vectors.get(kind, none).agree(other._vectors.get(kind, none))
        ]


def _gives_vectors(line: Line) -> bool:
    """Is it a task that the copy may have more of, because vectors were left out, now or by an
    earlier import?"""
    return (line["type"], line.get("kind")) == (TASK.name, kinds.EMBED)


def _end(rows: Sum | None) -> Line:
    return (rows or Sum()).end()


class Directions:
    """The vectors of one kind, summed so that not one can be another or change places unseen.

    Not their bytes: one index keeps a vector as it was given, another scales it to length one, and
    one outside the storage may round it once more. Their directions agree, but for the last digits
    of float32.
    """

    def __init__(self) -> None:
        self._number = 0
        self._sum: Any = 0.0

    def add(self, line: Line) -> None:
        """A line that holds a vector."""
        import numpy as np

        vector = read_vector(line["vector"], line["space"]["dimension"]).astype(np.float64)
        drawn = int.from_bytes(hashlib.sha256(line["uid"].encode()).digest()[:8], "big")
        self._number += 1
        self._sum = self._sum + (0.5 + drawn / 2**64) * vector / np.linalg.norm(vector)

    def agree(self, other: Directions) -> bool:
        import numpy as np

        if self._number != other._number or np.shape(self._sum) != np.shape(other._sum):
            return False
        # Roundings are independent of one another, so they add up as the root of their number.
        return bool(np.linalg.norm(self._sum - other._sum) <= ROUNDING * math.sqrt(self._number))
