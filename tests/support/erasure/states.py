"""What a store holds, without keys, ids and times, to compare two histories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.domain.text.analysis import analyse
from memservice.services.erasure import receipts
from memservice.services.transfer.record_formats import SPACED
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.storage import Transaction
from support.erasure.histories import PROPOSED, History
from support.pipeline.pipeline import Pipeline


def state_of(history: History) -> dict[str, Any]:
    """Messages, conclusions, and the counts of sessions and pairs."""
    with history.pipeline.rt.storage.read() as tx:
        numbers = {
            history.slugs[conversation]: number
            for number, conversation in enumerate(history.plan.conversations)
            if conversation.exists and conversation in history.slugs
        }
        cards = tx.rows.page(r.Card)
        peers = tx.peers.by_keys(sorted({row.observer_key for row in cards}))
        return {
            "sessions": {
                numbers[row.slug]: (row.message_count, row.token_total, _messages(tx, row))
                for row in tx.rows.page(r.Session)
            },
            "conclusions": _conclusions(tx, numbers),
            "explicit": sorted(
                (row.observer, row.observed, row.explicit_count)
                for row in tx.rows.page(r.Collection)
                if row.explicit_count
            ),
            "lines of callers": sorted(
                (peers[row.observer_key].slug, row.target, row.given) for row in cards if row.given
            ),
        }


def _messages(tx: Transaction, session: r.Session) -> list[Any]:
    rows = tx.messages.page(session.key, limit=1_000)
    return [
        (row.author, row.seq, row.content, row.metadata, row.tokens, row.tokens_through)
        for row in rows
    ]


def _conclusions(tx: Transaction, numbers: Mapping[str, int]) -> list[Any]:
    rows = tx.rows.page(r.Conclusion)
    contents = {row.uid: row.content for row in rows}
    # Not the deductions of scopes: what they read depends on when their sessions were copied. Nor
    # those that were held for review: an erasure discards the whole proposal (`unfounded`).
    keys = sorted({key for row in rows for key in row.message_keys})
    texts = {key: message.content for key, message in tx.messages.by_keys(keys).items()}
    return sorted(
        (
            row.observer,
            row.observed,
            row.level,
            row.state,
            row.content,
            -1 if row.session is None else numbers[row.session],
            sorted(texts[key] for key in row.message_keys),
            sorted(contents[uid] for uid in row.source_ids or ()),
            sorted(row.internal.get("premises", ())),
            str(row.internal.get("superseded")),
        )
        for row in rows
        if not (row.level == r.DEDUCTIVE and row.observer.startswith("scope."))
        and not row.content.startswith(PROPOSED)
    )


def unfounded(pipeline: Pipeline) -> list[str]:
    """The service's own lines of cards that quote no stored conclusion, and deductions without a
    source or with premises that are not those sources."""
    with pipeline.rt.storage.read() as tx:
        rows = {row.uid: row for row in tx.rows.page(r.Conclusion)}
        cards = tx.rows.page(r.Card)
    contents = {row.content for row in rows.values()}
    lines = [line for card in cards for line in card.lines if line not in card.given]
    return [line for line in lines if line.partition(": ")[2] not in contents] + [
        row.content
        for row in rows.values()
        if row.level == r.DEDUCTIVE
        and (
            not row.source_ids
            or sorted(row.internal.get("premises", ()))
            != sorted(rows[uid].content if uid in rows else "" for uid in row.source_ids)
        )
    ]


def open_erasures(pipeline: Pipeline) -> list[str]:
    """Receipts that are not `done`."""
    with pipeline.rt.storage.read() as tx:
        shown = [receipts.receipt(tx, erasure) for erasure in tx.erasures.page()]
    return [f"{one.kind} {one.state}: {one.reason}" for one in shown if one.state != r.FINISHED]


def index_differences(pipeline: Pipeline) -> list[str]:
    """Where the vectors are not those of the rows."""
    rt = pipeline.rt
    with rt.storage.read() as tx:
        spaces = tx.rows.page(r.Space)
        rows = {
            "message": {row.key for row in tx.rows.page(r.Message)},
            "conclusion": {row.key for row in tx.rows.page(r.Conclusion, equals(state=r.LIVE))},
            "document": {row.key for row in tx.rows.page(r.Document)},
        }
        inside = [
            rt.vectors.keys(tx, space) if rt.vectors_transactional else [] for space in spaces
        ]
    differences = []
    for space, keys in zip(spaces, inside, strict=True):
        indexed = set(keys if rt.vectors_transactional else rt.vectors.keys(None, space))
        if indexed != rows[space.kind]:
            differences.append(f"{space.kind}: {sorted(indexed ^ rows[space.kind])}")
    return differences


def searched(pipeline: Pipeline, marker: str) -> list[str]:
    """Contents of the messages and conclusions that the text index finds for a marker."""
    contents = []
    with pipeline.rt.storage.read() as tx:
        for workspace in tx.rows.page(r.Workspace):
            for kind in ("message", "conclusion"):
                contents += _searched(pipeline, tx, workspace.key, kind, marker)
    return contents


def _searched(
    pipeline: Pipeline, tx: Transaction, workspace_key: int, kind: str, marker: str
) -> list[str]:
    search = pipeline.rt.storage.text.search
    hits = search(tx, kind, workspace_key, analyse(marker), 100, EVERYTHING).hits
    keys = tuple(hit.key for hit in hits)
    rows: list[Any] = tx.rows.page(SPACED[kind], equals(key=keys)) if keys else []
    return [row.content for row in rows] + ["no row"] * (len(hits) - len(rows))
