"""What a file and the workspace that it is imported into both claim."""

from __future__ import annotations

from collections.abc import Mapping

from memservice.domain.filters import equals
from memservice.domain.values import shown
from memservice.services.transfer.record_formats import RecordFormat
from memservice.spi.storage import Transaction

MAX_SHOWN = 5


def ids_of_others(
    tx: Transaction, workspace_key: int, record_format: RecordFormat, uids: Mapping[str, str]
) -> str:
    """Says which ids other rows have here, as after an erasure, when an id is used again. `uids`:
    uid here by id in the file. Empty if there are none."""
    if "slug" not in record_format.plain or not uids:
        return ""
    same = equals(workspace_key=workspace_key, slug=tuple(uids))
    taken = [
        shown(row.slug)
        for row in tx.rows.page(record_format.record, same)
        if row.uid != uids[row.slug]
    ]
    if not taken:
        return ""
    return f"other {record_format.name} have the ids {', '.join(taken[:MAX_SHOWN])}"
