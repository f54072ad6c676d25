"""Whether each session's row tells how many of its positions have no message."""

from __future__ import annotations

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.spi.storage import Transaction
from support.pipeline.pipeline import Pipeline


def check_free_positions(pipeline: Pipeline) -> None:
    with pipeline.rt.storage.read() as tx:
        counted = {
            row.uid: (row.free_positions, row.message_count - _number(tx, row))
            for row in tx.rows.page(r.Session)
            if row.state != r.DELETING
        }
    assert {uid: pair for uid, pair in counted.items() if pair[0] != pair[1]} == {}


def _number(tx: Transaction, session: r.Session) -> int:
    return tx.rows.count(r.Message, equals(session_key=session.key))
