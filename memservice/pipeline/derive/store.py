"""Conclusions as they are stored for each observer: new ones, those that are counted again, and
those that give way to a fuller one."""

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
"""Why a conclusion gave way to a new one that says the same."""


@dataclass(frozen=True, slots=True)
class DeriveInput:
    """What a batch is about, read in one view."""

    workspace: str
    """Its slug."""
    session: Session
    observed: Peer
    observers: Sequence[Peer]
    """As frozen in the tasks, the observed peer first. The session's scopes are those of the moment
    of storing."""
    messages: Sequence[Message]
    """The batch's own messages, by the observed peer."""
    window: Sequence[Message]
    """These, what others said around them, and earlier messages, in order."""
    names: Mapping[str, str]
    zones: Mapping[int, str]
    """Time zones by message, where one is known."""
    around: Observers
    creates_card: bool
    """Whether cards may be written here."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What came of a batch, before the transaction."""

    drafts: Sequence[Conclusion]
    """As the observed peer itself will hold them."""
    kept: Mapping[int, set[str]]
    """By the key of an observer, fingerprints of what it may hold."""
    vectors: Sequence[Vector] | None
    alike: Mapping[tuple[int, str], Duplicate]
    """By observer and fingerprint, what is held already and says the same in other words."""
    replaced: Mapping[str, Sequence[Replacement]]
    """By fingerprint, what the reasoner found to be replaced."""


def scopes_of(tx: Transaction, session: Session) -> list[Peer]:
    """The scopes that the session is in now."""
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
    """The conclusions as the observed peer itself will hold them, without keys. `times`: by
    fingerprint, how often each was said."""
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
    """What generation 1 shows of a fact: the message that it comes from."""
    known = [key for key in statement.message_keys if key in uids]
    return {"message_id": uids[max(known)]} if known else {}


def _internal(statement: Statement, derived: Derived) -> JsonObject:
    """What is known of a statement beside its text, as far as it is valid; filters call it
    `metadata`."""
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


def _held_by(draft: Conclusion, observer: Peer) -> Conclusion:
    return (
        draft
        if draft.observer_key == observer.key
        else replace(draft, uid=new_uid(), observer_key=observer.key, observer=observer.slug)
    )


def allowed(
    rt: Runtime, drafts: Sequence[Conclusion], observer: Peer, counts: Counter[str]
) -> set[str]:
    """Fingerprints of what the plugins let this observer hold."""
    allowed = {
        draft.fingerprint
        for draft in drafts
        if write_hooks.allows(rt.plugins, _held_by(draft, observer))
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
    # Held until commit: a scope that takes the session in either sees these conclusions, or is seen
    # here.
    session = tx.sessions.by_key(material.session.key, lock=True)
    if session is None or session.state == DELETING:
        return {"skipped": "the session is gone"}
    for observer in (*material.observers, *scopes_of(tx, session)) if candidates.drafts else ():
        # A scope that came only now is treated as the observed peer is.
        wanted = candidates.kept.get(observer.key, candidates.kept[material.observed.key])
        indexes = [
            index for index, draft in enumerate(candidates.drafts) if draft.fingerprint in wanted
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
    known = tx.conclusions.same(
        collection.key, EXPLICIT, [drafts[index].fingerprint for index in indexes], session.key
    )
    again: dict[int, list[int]] = {}
    for index in indexes:
        if (conclusion := known.get(drafts[index].fingerprint)) is not None:
            again.setdefault(drafts[index].times_derived, []).append(conclusion.key)
    for times, keys in again.items():
        tx.conclusions.reinforce(keys, times)
    counts["reinforced"] += len(known)
    rows: list[Conclusion] = []
    chosen: list[int] = []
    gone: list[tuple[Conclusion, int]] = []
    """Held ones that give way, with the place of the row that they give way to."""
    successors = {mark: conclusion.key for mark, conclusion in known.items()}
    """By fingerprint of a draft, the key of the row that stands for it."""
    for index in indexes:
        draft = drafts[index]
        alike = candidates.alike.get((observer.key, draft.fingerprint))
        if draft.fingerprint in known:
            continue
        row = replace(_held_by(draft, observer), collection_key=collection.key)
        if alike is not None and not alike.replaces and _again(tx, alike.held, draft.times_derived):
            counts["said_already"] += 1
            successors[draft.fingerprint] = alike.held.key
            continue
        if (
            alike is not None
            and alike.replaces
            and alike.held.key not in {old.key for old, _ in gone}
        ):
            gone.append((alike.held, len(rows)))
            row = replace(row, times_derived=alike.held.times_derived + draft.times_derived)
        rows.append(row)
        chosen.append(index)
    conclusions = tx.conclusions.put(rows)
    successors |= {row.fingerprint: row.key for row in conclusions}
    tx.conclusions.count_explicit(collection.key, len(conclusions))
    merged = dream_changes.supersede(
        rt,
        tx,
        session.workspace_key,
        [Supersession(old, conclusions[index].key, SAID_AGAIN) for old, index in gone],
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
        # What the card of the observed peer about itself rests on has changed.
        changed = [*conclusions, *(step.old for step in (*merged, *replaced))]
        counts["lasting"] += sum(map(is_lasting, changed))


def _supersessions(
    tx: Transaction,
    collection: Collection,
    candidates: Candidates,
    successors: Mapping[str, int],
) -> list[Supersession]:
    """What of a collection is replaced: rows with the texts that the reasoner was shown, in
    whatever session they were said."""
    steps: list[Supersession] = []
    for mark, replacements in candidates.replaced.items():
        successor = successors.get(mark)
        for replacement in replacements if successor is not None else ():
            same = equals(
                collection_key=collection.key,
                level=replacement.old.level,
                state=LIVE,
                fingerprint=replacement.old.fingerprint,
            )
            steps += [
                Supersession(row, successor, replacement.reason)
                for row in tx.rows.page(Conclusion, same)
                if row.key != successor
            ]
    return steps


def _again(tx: Transaction, conclusion: Conclusion, times: int) -> bool:
    """Count a held conclusion so often again; False if it is not what it was when it was
    compared."""
    unchanged = tx.rows.get(
        Conclusion,
        equals(key=conclusion.key, state=LIVE, fingerprint=conclusion.fingerprint),
        lock=True,
    )
    if unchanged is None:
        return False
    tx.conclusions.reinforce([conclusion.key], times)
    return True
