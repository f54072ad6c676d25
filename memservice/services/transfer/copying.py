"""Copies of all workspaces from one installation to another, with a comparison of both."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from memservice.domain.errors import Conflict, MemserviceError
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, Fact, Workspace
from memservice.runtime import Runtime
from memservice.services.tasks import kinds
from memservice.services.transfer import export, importing
from memservice.services.transfer.export import ExportOptions
from memservice.services.transfer.importing import Report
from memservice.services.transfer.lines import END, HEADER, Line, Sum, parse_line, read_vector
from memservice.services.transfer.record_formats import TASK, VECTOR

MARK = "copy.mark"
ROUNDING = 1e-6
"""Maximum distance between a unit vector and its copy in another index: about ten times the error
of float32."""


class CopyMismatch(MemserviceError):
    """The copy differs from the original."""


def workspaces(rt: Runtime) -> list[str]:
    """The names of all workspaces, oldest first."""
    with rt.storage.read() as tx:
        return [workspace.slug for workspace in tx.rows.page(Workspace, equals(state=ACTIVE))]


def require_two(origin: Runtime, target: Runtime) -> None:
    """Raises Conflict if both use the same storage, even under different names. The target has its
    schema."""
    mark = new_uid()
    target.storage.write(lambda tx: tx.facts.set(MARK, mark))
    try:
        with origin.storage.read() as tx:
            same = tx.facts.get(MARK) == mark
    finally:
        target.storage.write(lambda tx: tx.rows.delete(Fact, equals(name=MARK)))
    if same:
        raise Conflict(
            "the source settings and the target settings lead to the same storage: "
            "there is nothing to copy"
        )


def copy(
    lines: Iterator[bytes],
    target: Runtime,
    workspace_id: str,
    export_options: ExportOptions,
    *,
    respect_erasures: bool = True,
) -> Report:
    """Store the lines of an export, then export the copy and compare, kind by kind: rows by
    checksum, vectors by their direction.

    Raises CopyMismatch if the copy differs: the original changed during the copy, or the target had
    other rows.
    """
    original, copied = Content(), Content()
    report = importing.load(target, original.summed(lines), respect_erasures=respect_erasures)
    if left_out := sum(report.left_out.values()):
        raise CopyMismatch(
            f"the copy of {workspace_id!r} lacks {left_out} rows that were erased in the target or "
            "rest on erased rows. Everything else was stored; to copy these too, use "
            "--no-respect-erasures"
        )
    if report.index_error is not None:
        raise CopyMismatch(
            f"the copy of {workspace_id!r} lacks {report.deferred_vectors} vectors, because the "
            f"target's index is unavailable ({report.index_error}). Everything else was stored, "
            "and tasks add the vectors when it is available; then copy again to compare"
        )
    if report.rejected_vectors:
        rejected = "; ".join(
            (
                f"{o.number} vectors of kind {o.kind} by {o.embedder}, while the target uses "
                f"{o.local_embedder}"
            )
            for o in report.rejected_vectors
        )
        raise CopyMismatch(
            f"the copy of {workspace_id!r} cannot contain {rejected}. Everything else was "
            "stored; use the same embedder for both with "
            f"`memservice reembed --workspace {workspace_id} --to NAME`, then copy again "
            "to compare"
        )
    for _ in copied.summed(export.lines(target, report.workspace, export_options)):
        pass
    if different := original.differs_from(copied):
        raise CopyMismatch(
            f"the copy of {workspace_id!r} differs from the original in "
            f"{', '.join(different)}. Missing rows were stored, existing rows did not "
            "change. If the original was written to during the copy, stop its servers and "
            "workers and copy again; if not, the target has another workspace under this "
            "name: delete it there, and copy again"
        )
    return replace(report, sha256=original.sha256)


class Content:
    """The checksums of an export, equal for equal workspaces."""

    def __init__(self) -> None:
        self._total = Sum()
        self._rows: dict[str, Sum] = {}
        self._vectors: dict[str, Directions] = {}

    def summed(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for data in lines:
            line = parse_line(data, 0)
            kind = line["type"]
            if kind == VECTOR:
                self._vectors.setdefault(line["space"]["kind"], Directions()).add(line)
            elif kind not in (HEADER, END) and not _gives_vectors(line):
                self._total.add(data)
                self._rows.setdefault(kind, Sum()).add(data)
            yield data

    @property
    def sha256(self) -> str:
        """Checksum of all rows."""
        return self._total.sha256

    def differs_from(self, other: Content) -> list[str]:
        """The kinds of rows and vectors that differ."""
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
    """Whether it is a task that only the copy may have, because vectors were left out, now or by an
    earlier import."""
    return (line["type"], line.get("kind")) == (TASK.name, kinds.EMBED)


def _end(rows: Sum | None) -> Line:
    return (rows or Sum()).end()


class Directions:
    """The vectors of one kind, summed with weights so that a changed or exchanged vector changes
    the sum.

    The sum does not use their bytes: one index stores a vector unchanged, another scales it to unit
    length, and an index outside the storage may round it again. Their directions agree except for
    the last digits of float32.
    """

    def __init__(self) -> None:
        self._number = 0
        self._sum: Any = 0.0

    def add(self, line: Line) -> None:
        """Add the vector of a line."""
        import numpy as np

        vector = read_vector(line["vector"], line["space"]["dimension"]).astype(np.float64)
        weight_bits = int.from_bytes(hashlib.sha256(line["uid"].encode()).digest()[:8], "big")
        self._number += 1
        self._sum = self._sum + (0.5 + weight_bits / 2**64) * vector / np.linalg.norm(vector)

    def agree(self, other: Directions) -> bool:
        import numpy as np

        if self._number != other._number or np.shape(self._sum) != np.shape(other._sum):
            return False
        # Rounding errors are independent, so their sum grows with the square root of their number.
        return bool(np.linalg.norm(self._sum - other._sum) <= ROUNDING * math.sqrt(self._number))
