"""Import of a history into a workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct

from memservice.domain.errors import InvalidInput
from memservice.domain.values import shown
from memservice.runtime import Runtime
from memservice.services.transfer import checks, importing
from memservice.services.transfer.histories import sources
from memservice.services.transfer.histories.conversion import KINDS, Conversion
from memservice.services.transfer.histories.formats import FORMATS
from memservice.services.transfer.histories.target import Target
from memservice.services.transfer.importing import Report
from memservice.services.transfer.lines import UnreadableExport

OF_FILE = ("peers", "sessions", "messages", "conclusions")
LEFT_OUT = ("outdated", "refused", "changed", "expired", "repeated")
StoreProgress = Callable[[Iterator[bytes], int], AbstractContextManager[Iterator[bytes]]]


class HistoryReport(Struct, frozen=True):
    """The result of an import of a history."""

    read: Mapping[str, int]
    """Rows that the file makes, by kind; peers and sessions only if they are new."""
    left_out: Mapping[str, int]
    """Number of items that are not stored, by reason (`conversion.Conversion.counts`)."""
    report: Report | None
    """What was stored; None for a dry run."""


class HistoryRequest(Struct, frozen=True, kw_only=True):
    """What to import."""

    file: Path
    format_name: str
    """One of `formats.FORMATS`."""
    workspace_id: str
    user: str = "user"
    """The peer of the user, where the file does not name it."""
    derive: bool = True
    """Whether tasks derive conclusions from the new messages."""
    respect_erasures: bool = True
    dry_run: bool = False
    """Read and check the file, and store nothing."""


def load(
    rt: Runtime,
    request: HistoryRequest,
    read_progress: sources.Progress,
    store_progress: StoreProgress,
) -> HistoryReport:
    """Import a file. Nothing of a damaged one is stored; existing rows do not change, so it can be
    repeated, also with a newer file of the same system.

    Raises `UnreadableExport`, which names the place and the field, and what `importing.load`
    raises.
    """
    checks.require_name(request.workspace_id)
    reader = FORMATS[request.format_name]
    target = Target(rt, request.workspace_id, respect_erasures=request.respect_erasures)
    with Conversion(rt, target, request.format_name) as conversion:
        try:
            with sources.opened(request.file, read_progress) as files:
                for file in files:
                    conversion.add(reader(file, request.user))
        except (UnreadableExport, InvalidInput) as error:
            raise UnreadableExport(f"{shown(request.file)}: {error}; nothing was stored") from error
        counts = conversion.counts
        report = None
        if not request.dry_run:
            number = sum(counts[kind] for kind in KINDS)
            with store_progress(conversion.lines(), number) as lines:
                report = importing.load(
                    rt,
                    lines,
                    respect_erasures=request.respect_erasures,
                    derive=request.derive,
                )
        return HistoryReport(
            {kind: counts[kind] for kind in OF_FILE},
            {reason: counts[reason] for reason in LEFT_OUT if counts[reason]},
            report,
        )
