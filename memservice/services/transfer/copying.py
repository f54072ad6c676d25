"""From one installation to another: every workspace, then a look whether both hold the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memservice.domain.errors import MemserviceError
from memservice.domain.filters import where
from memservice.domain.records import ACTIVE, Workspace
from memservice.runtime import Runtime
from memservice.services.transfer import export, importing
from memservice.services.transfer.export import Wanted
from memservice.services.transfer.importing import Report
from memservice.services.transfer.lines import END, HEADER, Sum, parsed
from memservice.services.transfer.shapes import VECTOR


class Different(MemserviceError):
    """The copy does not hold what the original does."""


def workspaces(rt: Runtime) -> list[str]:
    """The names of all workspaces, oldest first."""
    with rt.storage.read() as view:
        return [workspace.slug for workspace in view.rows.page(Workspace, where(state=ACTIVE))]


def copy(lines: Iterator[bytes], target: Runtime, workspace: str, wanted: Wanted) -> Report:
    """Store the lines of an export, then compare the copy with them: all rows by checksum, vectors by their number, since an index may
    keep them less exactly than another.

    Raises Different where the copy holds something else: because the original changed meanwhile, or the target had rows of its own.
    """
    original, there = Rows(), Rows()
    report = importing.load(target, original.watched(lines))
    for _ in there.watched(export.lines(target, report.workspace, wanted)):
        pass
    if (there.sha256, there.vectors) != (original.sha256, original.vectors):
        raise Different(
            f"the copy of {workspace!r} differs from the original. Everything was stored; if the original was written to meanwhile, "
            f"stop its servers and workers and copy again"
        )
    return replace(report, sha256=original.sha256)


class Rows:
    """What two exports of equal workspaces agree on."""

    def __init__(self) -> None:
        self._sum = Sum()
        self.vectors = 0

    def watched(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            kind = parsed(line, 0)["type"]
            if kind == VECTOR:
                self.vectors += 1
            elif kind not in (HEADER, END):
                self._sum.add(line)
            yield line

    @property
    def sha256(self) -> str:
        return self._sum.sha256
