"""The card of a peer about itself, refreshed after each batch that may change it.

If the reasoner calls a model, a separate task refreshes the card: a failure of the model loses no
conclusions, and one call refreshes the card for all batches stored before it. Other reasoners
refresh the card together with the batch, from the conclusions of the batch only.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec import Struct

from memservice.domain.filters import equals
from memservice.domain.filters.ast import Condition
from memservice.domain.records import (
    ERASED,
    EXPLICIT,
    LIVE,
    Card,
    Collection,
    Conclusion,
    Session,
    Task,
)
from memservice.pipeline import card_lines
from memservice.pipeline.derive.context import known_conclusion
from memservice.pipeline.handler import Handler, InputErased, Outcome, Prepared, nothing
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services import dreams
from memservice.services.tasks import kinds, outbox
from memservice.spi.reasoner import ConsolidateRequest, Origin, Reasoner
from memservice.spi.repositories.base import NEWEST
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.pipeline")

LASTING = (None, "fact", "preference", "instruction")
"""Kinds of conclusions that a card may use; None: unknown."""
MAX_KNOWN = 40
"""Conclusions in the input of a model, the newest."""
MAX_PENDING = 2
"""Pending tasks of one card: besides a running task, whose input may be outdated, one more."""


def is_lasting(row: Conclusion) -> bool:
    """Whether a card may use a conclusion."""
    return row.level == EXPLICIT and row.kind in LASTING and row.certainty is None


class Proposal(Struct, frozen=True):
    """A card from a reasoner without a model, proposed before the batch is stored."""

    card: Card | None
    """As it was read."""
    lines: Sequence[str]


def propose(rt: Runtime, reasoner: Reasoner, drafts: Sequence[Conclusion]) -> Proposal | None:
    """The card with the additions from new conclusions of a peer about itself; None if it does not
    change."""
    lasting = [draft for draft in drafts if is_lasting(draft)]
    if not lasting or not rt.settings.peer_card.refresh:
        return None
    first = lasting[0]
    with rt.storage.read() as tx:
        card = tx.cards.one(first.observer_key, first.observed)
    request = ConsolidateRequest(
        observer=first.observer,
        observed=first.observed,
        known=[known_conclusion(draft) for draft in lasting],
        card=card_lines.visible(card, rebuild=False),
        card_only=True,
        in_one_call=True,
        asked_at=rt.clock(),
        origin=Origin(first.workspace_key),
    )
    try:
        lines = reasoner.consolidate(request).card
    except Exception as error:  # of any kind: a failure here must not lose conclusions
        log.warning("the card of %s is not refreshed: %s", first.observed, type(error).__name__)
        return None
    return None if lines is None else Proposal(card, lines)


def store(rt: Runtime, tx: Transaction, collection: Collection, proposal: Proposal) -> Outcome:
    return card_lines.write(rt, tx, collection, proposal.card, proposal.lines).outcome


def enqueue(rt: Runtime, tx: Transaction, collection: Collection, session: Session) -> None:
    """Add a task that refreshes the card with a model, in the transaction that stores a batch of
    the session."""
    if not rt.settings.peer_card.refresh:
        return
    task = outbox.card(rt, collection, session)
    if len(tx.tasks.pending(task.unit, MAX_PENDING)) < MAX_PENDING:
        tx.tasks.add([task])


class CardRefresh(Handler):
    """Handler of `card` tasks."""

    kind = kinds.CARD

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        return len(pending)

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        with rt.storage.read() as tx:
            material = _read(rt, tx, tasks[-1])
        if isinstance(material, str):
            return nothing(skipped=material)
        collection, card, lasting, request = material
        lines = rt.reasoner_for(choice.DERIVE).consolidate(request).card

        def store_card(tx: Transaction) -> Outcome:
            tx.conclusions.lock_collections([collection.key])
            keys = tuple(row.key for row in lasting)
            if keys and tx.rows.count(Conclusion, equals(key=keys)) < len(keys):
                raise InputErased
            written = card_lines.write(rt, tx, collection, card, lines)
            return {"known": len(request.known), **written.outcome}

        return Prepared(store_card)


def _read(
    rt: Runtime, tx: Transaction, task: Task
) -> tuple[Collection, Card | None, Sequence[Conclusion], ConsolidateRequest] | str:
    """The input of a refresh, or the reason to skip it."""
    collection = tx.conclusions.collection(task.observer_key or 0, task.observed_key or 0)
    workspace = None if collection is None else tx.workspaces.by_key(collection.workspace_key)
    if collection is None or workspace is None:
        return "no conclusions are stored"
    peers = tx.peers.by_keys([collection.observer_key, collection.observed_key])
    if any(peer.kind == ERASED for peer in peers.values()):
        return "the peer is being erased"
    session = tx.sessions.by_key(task.session_key or 0)
    config = dreams.effective_configuration(rt, tx, collection, session)
    if not (config.card_create and rt.settings.peer_card.refresh):
        return "cards are switched off here"
    newest = tx.rows.page(Conclusion, _explicit(collection), NEWEST, limit=MAX_KNOWN)
    lasting = sorted(filter(is_lasting, newest), key=lambda row: (row.said_at, row.key))
    card = tx.cards.one(collection.observer_key, collection.observed)
    request = ConsolidateRequest(
        observer=collection.observer,
        observed=collection.observed,
        known=[known_conclusion(row) for row in lasting],
        card=card_lines.visible(card, rebuild=False),
        card_instructions=config.instructions.get("peer_card"),
        card_only=True,
        in_one_call=True,
        asked_at=rt.clock(),
        origin=Origin(workspace.key, workspace.slug),
    )
    return collection, card, lasting, request


def _explicit(collection: Collection) -> Condition:
    return equals(collection_key=collection.key, state=LIVE, level=EXPLICIT)
