"""The handler of each kind of task."""

from __future__ import annotations

from memservice.pipeline import summarize, webhook_delivery
from memservice.pipeline.deletion import erase, repack
from memservice.pipeline.derive import card
from memservice.pipeline.derive import handler as derive
from memservice.pipeline.dream import handler as dream
from memservice.pipeline.handler import Handler
from memservice.pipeline.indexing import delete_vectors, embed, index_text, reindex, repair
from memservice.pipeline.scopes import backfill, removal

HANDLERS: dict[str, Handler] = {
    handler.kind: handler
    for handler in (
        derive.Derive(),
        card.CardRefresh(),
        summarize.Summarize(),
        dream.Dream(),
        dream.DreamTimer(),
        embed.Embed(),
        index_text.IndexText(),
        reindex.Reindex(),
        delete_vectors.DeleteVectors(),
        repair.Repair(),
        backfill.ScopeBackfill(),
        removal.ScopeRemoval(),
        webhook_delivery.Webhook(),
        erase.Erase(),
        repack.Repack(),
    )
}
"""Handlers by the name of the kind."""


def handler_of(kind: str) -> Handler:
    """The handler of a kind. Raises LookupError for a kind that this release does not have."""
    handler = HANDLERS.get(kind)
    if handler is None:
        raise LookupError(
            f"no handler for tasks of kind {kind!r}; known: {', '.join(sorted(HANDLERS))}"
        )
    return handler
