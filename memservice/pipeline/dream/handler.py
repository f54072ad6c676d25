"""Dreams: consolidating the conclusions of one peer about another. Rows are superseded, never
deleted, and every new conclusion names its sources."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.filters.ast import Condition
from memservice.domain.ids import new_uid
from memservice.domain.records import DELETING, ERASED, LIVE, Collection, Conclusion, Task
from memservice.pipeline import card_lines
from memservice.pipeline.card_lines import visible
from memservice.pipeline.derive import deduplication
from memservice.pipeline.derive.context import known_conclusion
from memservice.pipeline.dream import events as dream_events
from memservice.pipeline.dream import outliers, rules
from memservice.pipeline.dream import store as dream_store
from memservice.pipeline.dream.rules import Review
from memservice.pipeline.dream.store import Candidates, DreamInput
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services import dream_changes, dreams
from memservice.services.auth.bounds import of_observer
from memservice.services.chat.tools import Tools
from memservice.services.dream_changes import ChangeSet
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Origin
from memservice.spi.repositories.base import NEWEST
from memservice.spi.storage import Transaction
from memservice.telemetry.events import Event

log = logging.getLogger("memservice.pipeline")

MAX_KNOWN = 5_000
"""Conclusions in the input of a dream: the newest of the collection."""
MAX_KNOWN_COSTLY = 500
"""The same for a reasoner whose calls have a cost."""


class DreamTimer(Handler):
    """Handler of `dream_timer` tasks."""

    kind = kinds.DREAM_TIMER

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]

        def store(tx: Transaction) -> Outcome | Unfinished:
            result = dreams.on_timer(rt, tx, task)
            return (
                Unfinished(replace(task, not_before=result))
                if isinstance(result, datetime)
                else result
            )

        return Prepared(store)


class Dream(Handler):
    """Handler of `dream` tasks. An `omni` dream consolidates all conclusions, a `card_refresh`
    writes only the card."""

    kind = kinds.DREAM

    def needs_model(self, task: Task) -> bool:
        """Storing an approved dream calls no model."""
        return dream_changes.approved(task) is None

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        proposed = dream_changes.approved(task)
        with rt.storage.read() as tx:
            material = _read(rt, tx, task, is_approved=proposed is not None)
        if isinstance(material, str):
            return _skipped(task, material)
        if proposed is not None:
            card = dream_changes.proposed_card(task, material.card)
            result = replace(proposed[0], card=card)
            return _apply(rt, task, _with_rows(rt, material, proposed[1]), result)
        reasoner = rt.reasoner_for(choice.CONSOLIDATE)
        began = time.monotonic()
        if not material.request.card_only:
            surprising = outliers.outliers(
                rt, material.workspace.key, material.conclusions, task.uid
            )
            material = replace(material, request=replace(material.request, surprising=surprising))
        result = reasoner.consolidate(material.request)
        seconds = time.monotonic() - began

        def events(outcome: Outcome) -> list[Event]:
            return dream_events.of(rt, task, material, result, seconds)

        if material.request.card_only:
            return Prepared(lambda tx: _store_card_only(rt, tx, task, material, result), events)
        counts: Counter[str] = Counter(known=len(material.conclusions))
        candidates = _candidates(rt, reasoner.name, material, result, counts)
        if _asks_model(rt):
            review = _review(rt, material, result, candidates, counts)
            result = replace(result, superseded=review.superseded)
            if review.excess is not None:
                return _hold(rt, task, material, result, review.excess)
        return Prepared(_storing(rt, task, material, result, candidates, counts), events)


def _skipped(task: Task, reason: str) -> Prepared:
    def store(tx: Transaction) -> Outcome:
        dream_changes.drop_proposal(tx, task)
        return {"skipped": reason}

    return Prepared(store)


def _asks_model(rt: Runtime) -> bool:
    """Whether the reasoner of dreams calls a language model. Only its changes are limited."""
    capabilities = rt.reasoner_for(choice.CONSOLIDATE).capabilities
    return Capability.COSTLY in capabilities or Capability.REMOTE in capabilities


def _review(
    rt: Runtime,
    material: DreamInput,
    result: Consolidated,
    candidates: Candidates,
    counts: Counter[str],
) -> Review:
    with rt.storage.read() as tx:
        live = tx.conclusions.count(material.workspace.key, _pair(material.collection))
    replaced = [
        duplicate.existing.uid for duplicate in candidates.duplicates.values() if duplicate.replaces
    ]
    return rules.review(material, result.superseded, candidates.drafts, replaced, live, counts)


def _hold(
    rt: Runtime, task: Task, material: DreamInput, result: Consolidated, reason: str
) -> Prepared:
    by_uid = material.by_uid()
    references = [step.old for step in result.superseded] + [
        step.new for step in result.superseded if step.new in by_uid
    ]
    sources = [uid for statement in result.created for uid in statement.source_ids]
    reads = [uid for uid in dict.fromkeys([*references, *sources]) if uid in by_uid]
    caller_lines = [] if material.card is None else material.card.given

    def store(tx: Transaction) -> Outcome:
        dream_store.require_input(tx, material)
        dream_changes.hold(rt, tx, task, result, reads, caller_lines, reason)
        dreams.mark_consolidated(rt, tx, material.collection)
        return {"held": reason}

    log.warning(
        "the dream %s of workspace %s about %s is held for review: %s",
        task.uid,
        material.workspace.slug,
        material.collection.observed,
        reason,
    )
    return Prepared(store)


def _with_rows(rt: Runtime, material: DreamInput, uids: Sequence[str]) -> DreamInput:
    """The input with the live conclusions among those that the dream read."""
    with rt.storage.read() as tx:
        condition = equals(collection_key=material.collection.key, uid=tuple(uids), state=LIVE)
        rows = tx.rows.page(Conclusion, condition) if uids else []
    material.tools.conclusions_read.update({row.key: row for row in rows})
    return material


def _apply(rt: Runtime, task: Task, material: DreamInput, result: Consolidated) -> Prepared:
    """Store a dream that an operator has reviewed."""
    name = rt.reasoner_for(choice.CONSOLIDATE).name
    counts: Counter[str] = Counter(known=len(material.conclusions))
    candidates = _candidates(rt, name, material, result, counts)
    return Prepared(_storing(rt, task, material, result, candidates, counts))


def _candidates(
    rt: Runtime, reasoner: str, material: DreamInput, result: Consolidated, counts: Counter[str]
) -> Candidates:
    """The valid new conclusions, compared with the stored ones."""
    drafts = dream_store.drafts(rt, reasoner, material, result, counts)
    rows = [draft.row for draft in drafts]
    vectors = deduplication.vectors_of(
        rt, material.workspace.key, material.workspace.slug, [row.content for row in rows]
    )
    return Candidates(drafts, vectors, deduplication.find(rt, rows, vectors, [material.observer]))


def _storing(
    rt: Runtime,
    task: Task,
    material: DreamInput,
    result: Consolidated,
    candidates: Candidates,
    counts: Counter[str],
) -> Callable[[Transaction], Outcome]:
    def store(tx: Transaction) -> Outcome:
        dream_store.require_input(tx, material)
        outcome, changes = counts.copy(), ChangeSet()
        rows = dream_store.create(rt, tx, material.collection, candidates, outcome)
        changes.created += rows.created
        changes.superseded += dream_store.supersede(
            rt, tx, material, result.superseded, rows, outcome
        )
        dreams.mark_consolidated(rt, tx, material.collection)
        card = _store_card(rt, tx, material, result, changes)
        dream_changes.record(tx, task, changes)
        return dict(outcome) | card | _phases(result)

    return store


def _store_card_only(
    rt: Runtime, tx: Transaction, task: Task, material: DreamInput, result: Consolidated
) -> Outcome:
    dream_store.require_input(tx, material)
    changes = ChangeSet()
    outcome = _store_card(rt, tx, material, result, changes)
    dream_changes.record(tx, task, changes)
    return outcome | _phases(result)


def _phases(result: Consolidated) -> Outcome:
    """The failed phases, stored with the task: the results of the other phases are stored, so only
    this shows the failure."""
    failed = {phase.name: phase.error for phase in result.phases if phase.error is not None}
    return {"failed_phases": failed} if failed else {}


def _read(rt: Runtime, tx: Transaction, task: Task, *, is_approved: bool) -> DreamInput | str:
    """The input of a dream, or the reason to skip it. An operator has reviewed an approved dream:
    it is stored even if dreams are switched off."""
    collection = tx.conclusions.collection(task.observer_key or 0, task.observed_key or 0)
    workspace = None if collection is None else tx.workspaces.by_key(collection.workspace_key)
    if collection is None or workspace is None:
        return "no conclusions are stored"
    peers = tx.peers.by_keys([collection.observer_key, collection.observed_key])
    observer, observed = peers.get(collection.observer_key), peers.get(collection.observed_key)
    if observer is None or ERASED in (observer.kind, observed and observed.kind):
        return "no conclusions are stored"
    key = task.payload.get("session")
    session = tx.sessions.by_key(key) if isinstance(key, int) else None
    if session is not None and session.state == DELETING:
        session = None
    config = dreams.effective_configuration(rt, tx, collection, session)
    card_only = task.payload.get("type") == dreams.CARD_REFRESH
    if not is_approved and not (config.dream and rt.settings.dream.enabled):
        return "dreams are switched off here"
    if card_only and not config.card_create:
        return "cards are switched off here"
    maximum = (
        MAX_KNOWN_COSTLY
        if Capability.COSTLY in rt.reasoner_for(choice.CONSOLIDATE).capabilities
        else MAX_KNOWN
    )
    pair = _pair(collection)
    newest = tx.conclusions.page(collection.workspace_key, pair, NEWEST, limit=maximum)
    conclusions = sorted(newest, key=lambda row: (row.said_at, row.key))
    card = tx.cards.one(collection.observer_key, collection.observed)
    rebuild = bool(task.payload.get("rebuild")) and card_only
    index_filter = IndexFilter(
        observers=(collection.observer_key,), observed=(collection.observed_key,)
    )
    bounds = of_observer(tx, observer).with_conclusions(pair, index_filter)
    tools = Tools(rt, workspace.slug, bounds)
    request = ConsolidateRequest(
        observer=collection.observer,
        observed=collection.observed,
        known=[known_conclusion(row) for row in conclusions],
        card=visible(card, rebuild),
        write_card=config.card_create,
        instructions=config.instructions.get("dream"),
        card_instructions=config.instructions.get("peer_card"),
        card_only=card_only,
        tools=tools,
        asked_at=rt.clock(),
        origin=Origin(workspace.key, workspace.slug, new_uid()),
    )
    return DreamInput(
        workspace, observer, collection, session, conclusions, card, request, rebuild, tools
    )


def _pair(collection: Collection) -> Condition:
    return equals(observer_key=collection.observer_key, observed_key=collection.observed_key)


def _store_card(
    rt: Runtime,
    tx: Transaction,
    material: DreamInput,
    result: Consolidated,
    changes: ChangeSet,
) -> Outcome:
    """Write the card if the configuration allows it."""
    if not material.request.write_card:
        return {}
    written = card_lines.write(
        rt, tx, material.collection, material.card, result.card, material.rebuild
    )
    changes.card = written.change
    return written.outcome
