"""Deriving conclusions from the messages of a peer, for all its observers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from memservice.domain.records import Task
from memservice.pipeline.derive import candidates, card, context, inputs, statements
from memservice.pipeline.derive import store as derive_store
from memservice.pipeline.derive.candidates import Candidates
from memservice.pipeline.derive.events import DeriveRun, completed
from memservice.pipeline.derive.inputs import DeriveInput, asks_model
from memservice.pipeline.handler import Handler, Outcome, Prepared, nothing
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import Reasoner
from memservice.spi.storage import Transaction
from memservice.telemetry.events import Event

MAX_BATCH = 200
"""Messages per call of a reasoner, regardless of its cost."""


class Derive(Handler):
    """Handler of `representation` tasks: one per message of an observed peer."""

    kind = kinds.REPRESENTATION

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        """Number of the first tasks with the same observers and instructions. If the calls of the
        reasoner have a cost, the tokens of all speakers in the range are limited too."""
        same = 0
        for task in pending[:MAX_BATCH]:
            if task.payload != pending[0].payload:
                break
            same += 1
        if not rt.reasoner_can(choice.DERIVE, Capability.COSTLY):
            return same
        with rt.storage.read() as tx:
            messages = tx.messages.by_keys(
                [task.message_key for task in pending[:same] if task.message_key is not None]
            )
        first = messages.get(pending[0].message_key or 0)
        maximum = rt.settings.deriver.representation_batch_target_input_tokens
        for number, task in enumerate(pending[:same]):
            message = messages.get(task.message_key or 0)
            if message is None or first is None:
                continue
            if (
                message.tokens_through - first.tokens_through + first.tokens > maximum
                and number > 0
            ):
                return number
        return same

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        began = time.monotonic()
        reasoner = rt.reasoner_for(choice.DERIVE)
        with rt.storage.read() as tx:
            derive_input = inputs.read(rt, tx, reasoner, tasks)
        if derive_input is None:
            return nothing(skipped="the session or its messages no longer exist")
        request, context_rows = inputs.request_of(rt, reasoner, derive_input)
        prepared = time.monotonic()
        counts: Counter[str] = Counter()
        derived = statements.derive(reasoner, request, derive_input.session.slug, counts)
        called = time.monotonic()
        own = statements.of_observed(derive_input, request, derived.statements, counts)
        with rt.storage.read() as tx:
            new = statements.without_echoes(rt, tx, derive_input, own, counts)
            scopes = context.scopes_of(tx, derive_input.session)
        batch_candidates = candidates.prepare(
            rt,
            derive_input,
            replace(derived, statements=new),
            (*derive_input.observers, *scopes),
            context_rows,
            counts,
        )
        proposal = _card_proposal(rt, reasoner, derive_input, batch_candidates)

        def store(tx: Transaction) -> Outcome:
            outcome = derive_store.store(rt, tx, derive_input, batch_candidates, counts.copy())
            if derive_input.creates_card and outcome.get("lasting"):
                outcome |= _store_card(rt, tx, reasoner, derive_input, proposal)
            return outcome

        def events(outcome: Outcome) -> Iterable[Event]:
            run = DeriveRun(
                derive_input, derived, len(tasks), began, prepared, called, time.monotonic()
            )
            yield completed(rt, run, outcome)

        return Prepared(store, events)


def _card_proposal(
    rt: Runtime, reasoner: Reasoner, derive_input: DeriveInput, batch_candidates: Candidates
) -> card.Proposal | None:
    """The card of the observed peer about itself, from a reasoner that calls no model."""
    if not derive_input.creates_card or asks_model(reasoner):
        return None
    own_fingerprints = batch_candidates.allowed[derive_input.observed.key]
    return card.propose(
        rt,
        reasoner,
        [draft for draft in batch_candidates.drafts if draft.fingerprint in own_fingerprints],
    )


def _store_card(
    rt: Runtime,
    tx: Transaction,
    reasoner: Reasoner,
    derive_input: DeriveInput,
    proposal: card.Proposal | None,
) -> Outcome:
    """Store the proposal, or add a task that asks the model for a card."""
    own = derive_input.observed.key
    collection = tx.conclusions.collection(own, own)
    if collection is None:
        return {}
    if proposal is not None:
        return card.store(rt, tx, collection, proposal)
    if asks_model(reasoner):
        card.enqueue(rt, tx, collection, derive_input.session)
    return {}
