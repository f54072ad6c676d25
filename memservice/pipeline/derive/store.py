"""Storing the conclusions of a batch for each observer: adding new ones, counting repetitions, and
superseding less complete ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memservice.domain.derived_rules import HEDGED, HYPOTHETICAL, STATEMENT_KINDS
from memservice.domain.filters import equals
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import (
    DELETING,
    EXPLICIT,
    LIVE,
    SCOPE,
    Collection,
    Conclusion,
    JsonObject,
    Message,
    Peer,
    Session,
)
from memservice.pipeline.derive.card import is_lasting
from memservice.pipeline.derive.context import Observers
from memservice.pipeline.derive.deduplication import Duplicate
from memservice.pipeline.derive.replacing import Replacement
from memservice.pipeline.handler import Outcome
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services import dream_changes, dreams, indexing, write_hooks
from memservice.services.conclusions import ensure_collection
from memservice.services.dream_changes import Supersession
from memservice.spi.reasoner import Derived, Statement
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

SAID_AGAIN = "said again, with at least as much in it"
"""The reason why a new conclusion with the same meaning superseded an old one."""


@dataclass(frozen=True, slots=True)
class DeriveInput:
    """The input of a batch, read in one transaction."""

    workspace: str
    """Its slug."""
    session: Session
    observed: Peer
    observers: Sequence[Peer]
    """As fixed in the tasks, the observed peer first. The session's scopes are read when the batch
    is stored."""
    messages: Sequence[Message]
    """The batch's own messages, by the observed peer."""
    window: Sequence[Message]
    """These, the messages of others around them, and earlier messages, in order."""
    names: Mapping[str, str]
    zones: Mapping[int, str]
    """Key of a message → its time zone, if there is one."""
    other_observers: Observers
    creates_card: bool
    """Whether the configuration allows cards."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The results of a batch, before the transaction."""

    drafts: Sequence[Conclusion]
    """For the observed peer as its own observer."""
    allowed: Mapping[int, set[str]]
    """Key of an observer → fingerprints of the drafts that plugins allow for it."""
    vectors: Sequence[Vector] | None
    duplicates: Mapping[tuple[int, str], Duplicate]
    """(Key of an observer, fingerprint of a draft) → the stored conclusion with the same meaning in
    other words."""
    replaced: Mapping[str, Sequence[Replacement]]
    """Fingerprint of a draft → the conclusions that it replaces according to the reasoner."""


def scopes_of(tx: Transaction, session: Session) -> list[Peer]:
    """The current scopes of the session."""
    keys = [
        member.peer_key for member in tx.members.of_session(session.key) if member.kind == SCOPE
    ]
    return list(tx.peers.by_keys(keys).values())


def drafts(
    rt: Runtime,
    material: DeriveInput,
    statements: Sequence[Statement],
    derived: Derived,
    times: Mapping[str, int],
) -> list[Conclusion]:
    """The conclusions for the observed peer as its own observer, without keys. `times`: fingerprint
    → number of occurrences."""
    sent = {message.key: message.created_at for message in material.messages}
    newest = max(sent.values())
    uids = {message.key: message.uid for message in material.messages}
    return [
        Conclusion(
            uid=new_uid(),
            workspace_key=material.session.workspace_key,
            collection_key=0,
            observer_key=material.observed.key,
            observed_key=material.observed.key,
            session_key=material.session.key,
            observer=material.observed.slug,
            observed=material.observed.slug,
            session=material.session.slug,
            content=statement.content,
            fingerprint=fingerprint(statement.content),
            message_keys=list(statement.message_keys),
            times_derived=times[fingerprint(statement.content)],
            metadata=_metadata(statement, uids),
            internal=_internal(statement, derived),
            reasoner=rt.reasoner_for(choice.DERIVE).name,
            model=derived.spent.model,
            said_at=max(
                (sent[key] for key in statement.message_keys if key in sent), default=newest
            ),
            created_at=rt.clock(),
        )
        for statement in statements
    ]


def _metadata(statement: Statement, uids: Mapping[int, str]) -> JsonObject:
    """The source message of a fact, for generation 1. If there are several, the newest."""
    sources = [key for key in statement.message_keys if key in uids]
    return {"message_id": uids[max(sources)]} if sources else {}


def _internal(statement: Statement, derived: Derived) -> JsonObject:
    """The valid attributes of a statement. Filters call them `metadata`."""
    internal: JsonObject = {} if derived.prompt is None else {"prompt": derived.prompt}
    if statement.kind in STATEMENT_KINDS:
        internal["kind"] = statement.kind
    if statement.when is not None:
        internal["when"] = {"start": statement.when[0], "end": statement.when[1]}
    if statement.certainty in (HEDGED, HYPOTHETICAL):
        internal["certainty"] = statement.certainty
    if statement.basis == "confirmed":
        internal["basis"] = statement.basis
    return internal


def _draft_for(draft: Conclusion, observer: Peer) -> Conclusion:
    return (
        draft
        if draft.observer_key == observer.key
        else replace(draft, uid=new_uid(), observer_key=observer.key, observer=observer.slug)
    )


def allowed(
    rt: Runtime, drafts: Sequence[Conclusion], observer: Peer, counts: Counter[str]
) -> set[str]:
    """Fingerprints of the drafts that the plugins allow for this observer."""
    allowed = {
        draft.fingerprint
        for draft in drafts
        if write_hooks.allows(rt.plugins, _draft_for(draft, observer))
    }
    counts["refused"] += len(drafts) - len(allowed)
    return allowed


def store(
    rt: Runtime,
    tx: Transaction,
    material: DeriveInput,
    candidates: Candidates,
    counts: Counter[str],
) -> Outcome:
    # Locked until commit: if the session is being added to a scope, either its backfill sees these
    # conclusions, or `scopes_of` sees the scope.
    session = tx.sessions.by_key(material.session.key, lock=True)
    if session is None or session.state == DELETING:
        return {"skipped": "the session no longer exists"}
    for observer in (*material.observers, *scopes_of(tx, session)) if candidates.drafts else ():
        # A scope that was added since then has the same allowed drafts as the observed peer.
        fingerprints = candidates.allowed.get(
            observer.key, candidates.allowed[material.observed.key]
        )
        indexes = [
            index
            for index, draft in enumerate(candidates.drafts)
            if draft.fingerprint in fingerprints
        ]
        if indexes:
            _store_for(
                rt,
                tx,
                session,
                observer,
                ensure_collection(rt, tx, observer, material.observed),
                candidates,
                indexes,
                counts,
            )
    return dict(counts)


def _store_for(
    rt: Runtime,
    tx: Transaction,
    session: Session,
    observer: Peer,
    collection: Collection,
    candidates: Candidates,
    indexes: Sequence[int],
    counts: Counter[str],
) -> None:
    drafts = candidates.drafts
    same = tx.conclusions.same(
        collection.key, EXPLICIT, [drafts[index].fingerprint for index in indexes], session.key
    )
    again: dict[int, list[int]] = {}
    for index in indexes:
        if (conclusion := same.get(drafts[index].fingerprint)) is not None:
            again.setdefault(drafts[index].times_derived, []).append(conclusion.key)
    for times, keys in again.items():
        tx.conclusions.reinforce(keys, times)
    counts["reinforced"] += len(same)
    rows: list[Conclusion] = []
    chosen: list[int] = []
    superseded: list[tuple[Conclusion, int]] = []
    """Stored conclusions to be superseded, each with the index of its successor in `rows`."""
    successors = {mark: conclusion.key for mark, conclusion in same.items()}
    """Fingerprint of a draft → the key of the row that represents it."""
    for index in indexes:
        draft = drafts[index]
        duplicate = candidates.duplicates.get((observer.key, draft.fingerprint))
        if draft.fingerprint in same:
            continue
        row = replace(_draft_for(draft, observer), collection_key=collection.key)
        if (
            duplicate is not None
            and not duplicate.replaces
            and _reinforce(tx, duplicate.existing, draft.times_derived)
        ):
            counts["said_already"] += 1
            successors[draft.fingerprint] = duplicate.existing.key
            continue
        if (
            duplicate is not None
            and duplicate.replaces
            and duplicate.existing.key not in {old.key for old, _ in superseded}
        ):
            superseded.append((duplicate.existing, len(rows)))
            row = replace(row, times_derived=duplicate.existing.times_derived + draft.times_derived)
        rows.append(row)
        chosen.append(index)
    conclusions = tx.conclusions.put(rows)
    successors |= {row.fingerprint: row.key for row in conclusions}
    tx.conclusions.count_explicit(collection.key, len(conclusions))
    merged = dream_changes.supersede(
        rt,
        tx,
        session.workspace_key,
        [Supersession(old, conclusions[index].key, SAID_AGAIN) for old, index in superseded],
    )
    replaced = dream_changes.supersede(
        rt, tx, session.workspace_key, _supersessions(tx, collection, candidates, successors)
    )
    vectors = (
        None if candidates.vectors is None else [candidates.vectors[index] for index in chosen]
    )
    tx.tasks.add(indexing.index_conclusions(rt, tx, session.workspace_key, conclusions, vectors))
    if conclusions:
        more = len(conclusions) - sum(step.old.level == EXPLICIT for step in (*merged, *replaced))
        dreams.after_save(rt, tx, collection, collection.explicit_count + more, session)
    counts["stored"] += len(conclusions)
    counts["replaced"] += len(merged)
    counts["superseded"] += len(replaced)
    if collection.observer_key == collection.observed_key:
        # These are the source of the card of the observed peer about itself.
        changed = [*conclusions, *(step.old for step in (*merged, *replaced))]
        counts["lasting"] += sum(map(is_lasting, changed))


def _supersessions(
    tx: Transaction,
    collection: Collection,
    candidates: Candidates,
    successors: Mapping[str, int],
) -> list[Supersession]:
    """The replaced rows of a collection: in any session, the rows with the texts of the replaced
    conclusions."""
    steps: list[Supersession] = []
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
                if row.key != successor
            ]
    return steps


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
