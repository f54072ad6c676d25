"""Storing the conclusions of a batch for each observer: adding new ones, counting repetitions, and
superseding less complete ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.records import (
    DELETING,
    EXPLICIT,
    LIVE,
    Collection,
    Conclusion,
    Peer,
    Session,
)
from memservice.pipeline.derive import context
from memservice.pipeline.derive.candidates import Candidates, draft_for
from memservice.pipeline.derive.card import is_lasting
from memservice.pipeline.derive.inputs import DeriveInput
from memservice.pipeline.handler import InputErased, Outcome
from memservice.runtime import Runtime
from memservice.services import dreams, indexing, supersession
from memservice.services.conclusions import ensure_collection
from memservice.services.supersession import SAID_AGAIN, Supersession
from memservice.spi.storage import Transaction

MAX_SOURCES = 50
"""Messages that a conclusion names as its sources: of more repetitions, the newest."""


def store(
    rt: Runtime,
    tx: Transaction,
    derive_input: DeriveInput,
    candidates: Candidates,
    counts: Counter[str],
) -> Outcome:
    """Store the candidates for each observer that still observes. Adds to `counts`."""
    # Locked until commit: if the session is being added to a scope, either its backfill sees these
    # conclusions, or `scopes_of` sees the scope.
    session = tx.sessions.by_key(derive_input.session.key, lock=True)
    if session is None or session.state == DELETING:
        return {"skipped": "the session no longer exists"}
    message_keys = {message.key for message in (*derive_input.messages, *derive_input.window)}
    if len(tx.messages.positions(sorted(message_keys))) < len(message_keys):
        raise InputErased
    if not candidates.drafts:
        return dict(counts)
    observed = derive_input.observed
    for observer in (*derive_input.observers, *context.scopes_of(tx, session)):
        # A scope that was added since then has the same allowed drafts as the observed peer.
        fingerprints = candidates.allowed.get(observer.key, candidates.allowed[observed.key])
        indexes = [
            index
            for index, draft in enumerate(candidates.drafts)
            if draft.fingerprint in fingerprints
        ]
        if indexes:
            collection = ensure_collection(rt, tx, observer, observed)
            writer = _ObserverWriter(rt, tx, session, observer, collection, candidates, counts)
            writer.store(indexes)
    return dict(counts)


class _ObserverWriter:
    """Stores the drafts of a batch for one observer."""

    def __init__(
        self,
        rt: Runtime,
        tx: Transaction,
        session: Session,
        observer: Peer,
        collection: Collection,
        candidates: Candidates,
        counts: Counter[str],
    ) -> None:
        self._rt, self._tx, self._session = rt, tx, session
        self._observer, self._collection = observer, collection
        self._candidates, self._counts = candidates, counts
        self._rows: list[Conclusion] = []
        """New conclusions, without keys until they are stored."""
        self._indexes: list[int] = []
        """Of the draft of each row."""
        self._superseded: list[tuple[Conclusion, int]] = []
        """Stored conclusions to be superseded, each with the index of its successor in `_rows`."""
        self._successors: dict[str, int] = {}
        """Fingerprint of a draft → the key of the row that represents it."""

    def store(self, indexes: Sequence[int]) -> None:
        """Store the drafts with these indexes."""
        self._tx.conclusions.lock_collections([self._collection.key])
        self._reinforce_same(indexes)
        for index in indexes:
            draft = self._candidates.drafts[index]
            if draft.fingerprint not in self._successors:
                self._add(index, draft)
        rows = self._tx.conclusions.put(self._rows)
        self._successors |= {row.fingerprint: row.key for row in rows}
        self._tx.conclusions.count_explicit(self._collection.key, len(rows))
        merged = self._supersede(
            [Supersession(old, rows[index].key, SAID_AGAIN) for old, index in self._superseded]
        )
        replaced = self._supersede(
            _supersessions(self._tx, self._collection, self._candidates, self._successors)
        )
        self._enqueue_follow_ups(rows, (*merged, *replaced))
        self._counts["stored"] += len(rows)
        self._counts["replaced"] += len(merged)
        self._counts["superseded"] += len(replaced)
        if self._collection.observer_key == self._collection.observed_key:
            # These are the source of the card of the observed peer about itself.
            changed = [*rows, *(step.old for step in (*merged, *replaced))]
            self._counts["lasting"] += sum(map(is_lasting, changed))

    def _reinforce_same(self, indexes: Sequence[int]) -> None:
        """Count the drafts that are stored already, in the same words: their messages are further
        sources."""
        drafts = [self._candidates.drafts[index] for index in indexes]
        same = self._tx.conclusions.same(
            self._collection.key,
            EXPLICIT,
            [draft.fingerprint for draft in drafts],
            self._session.key,
        )
        # In the order of keys, like all who lock several conclusions.
        for draft in sorted(drafts, key=lambda draft: _key(same.get(draft.fingerprint))):
            if (conclusion := same.get(draft.fingerprint)) is not None:
                _add_sources(self._tx, conclusion, draft)
        self._counts["reinforced"] += len(same)
        self._successors |= {mark: conclusion.key for mark, conclusion in same.items()}

    def _add(self, index: int, draft: Conclusion) -> None:
        """Add a new row for a draft, or count a stored conclusion with the same meaning."""
        row = replace(draft_for(draft, self._observer), collection_key=self._collection.key)
        duplicate = self._candidates.duplicates.get((self._observer.key, draft.fingerprint))
        if duplicate is not None:
            existing = duplicate.existing
            if not duplicate.replaces and _reinforce(self._tx, existing, draft.times_derived):
                self._counts["said_already"] += 1
                self._successors[draft.fingerprint] = existing.key
                return
            is_superseded = existing.key in {old.key for old, _ in self._superseded}
            if duplicate.replaces and not is_superseded:
                self._superseded.append((existing, len(self._rows)))
                row = replace(row, times_derived=existing.times_derived + draft.times_derived)
        self._rows.append(row)
        self._indexes.append(index)

    def _supersede(self, steps: Sequence[Supersession]) -> Sequence[Supersession]:
        """The steps that were carried out."""
        return supersession.supersede(self._rt, self._tx, self._session.workspace_key, steps)

    def _enqueue_follow_ups(
        self, rows: Sequence[Conclusion], steps: Sequence[Supersession]
    ) -> None:
        """Add the tasks that index the new rows, and the dream that they may make due. A row that
        another one of the batch replaces is in no index."""
        vectors = self._candidates.vectors
        replaced = {step.old.key for step in steps}
        positions = [position for position, row in enumerate(rows) if row.key not in replaced]
        self._tx.tasks.add(
            indexing.index_conclusions(
                self._rt,
                self._tx,
                self._session.workspace_key,
                [rows[position] for position in positions],
                None
                if vectors is None
                else [vectors[self._indexes[position]] for position in positions],
            )
        )
        if rows:
            more = len(rows) - sum(step.old.level == EXPLICIT for step in steps)
            explicit_count = self._collection.explicit_count + more
            dreams.after_save(self._rt, self._tx, self._collection, explicit_count, self._session)


def _supersessions(
    tx: Transaction,
    collection: Collection,
    candidates: Candidates,
    successors: Mapping[str, int],
) -> list[Supersession]:
    """The replaced rows of a collection: in any session, the rows with the texts of the replaced
    conclusions."""
    steps: list[Supersession] = []
    said_at = {draft.fingerprint: draft.said_at for draft in candidates.drafts}
    for mark, replacements in candidates.replaced.items():
        successor = successors.get(mark)
        for replacement in replacements if successor is not None else ():
            condition = equals(
                collection_key=collection.key,
                level=replacement.old.level,
                state=LIVE,
                fingerprint=replacement.old.fingerprint,
            )
            steps += [
                Supersession(row, successor, replacement.reason)
                for row in tx.rows.page(Conclusion, condition)
                if row.key != successor and row.said_at <= said_at[mark]
            ]
    return steps


def _key(conclusion: Conclusion | None) -> int:
    return 0 if conclusion is None else conclusion.key


def _add_sources(tx: Transaction, conclusion: Conclusion, draft: Conclusion) -> None:
    """Count a repetition in the same words. The erasure of one of its messages leaves a conclusion
    that others support."""
    row = tx.rows.get(Conclusion, equals(key=conclusion.key, state=LIVE), lock=True)
    if row is not None:
        sources = dict.fromkeys((*row.message_keys, *draft.message_keys))
        times = row.times_derived + draft.times_derived
        repeated = replace(row, message_keys=list(sources)[-MAX_SOURCES:], times_derived=times)
        tx.conclusions.put([repeated])


def _reinforce(tx: Transaction, conclusion: Conclusion, times: int) -> bool:
    """Add `times` to the count of a stored conclusion; False if it changed since the comparison."""
    unchanged = tx.rows.get(
        Conclusion,
        equals(key=conclusion.key, state=LIVE, fingerprint=conclusion.fingerprint),
        lock=True,
    )
    if unchanged is None:
        return False
    tx.conclusions.reinforce([conclusion.key], times)
    return True
