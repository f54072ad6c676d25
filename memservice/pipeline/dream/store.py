"""Storing a dream: new conclusions that name their sources, and superseded old ones. None is
deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.derived_rules import (
    CONFIDENCES,
    MAX_CONTENT_LENGTH,
    MIN_SOURCES,
    PATTERNS,
    USUAL_CONFIDENCE,
)
from memservice.domain.filters import equals
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import (
    DEDUCTIVE,
    INDUCTIVE,
    LIVE,
    Card,
    Collection,
    Conclusion,
    Peer,
    Session,
    Workspace,
)
from memservice.domain.values import strip_nul
from memservice.pipeline.derive.deduplication import Duplicate
from memservice.pipeline.handler import InputErased
from memservice.runtime import Runtime
from memservice.services import indexing, supersession, write_hooks
from memservice.services.chat.tools import Tools
from memservice.services.supersession import SAID_AGAIN, Supersession
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Statement, Superseded
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


class DreamInput(Struct, frozen=True):
    """The input of a dream, read in one transaction."""

    workspace: Workspace
    observer: Peer
    collection: Collection
    session: Session | None
    conclusions: Sequence[Conclusion]
    """Live conclusions, oldest first."""
    card: Card | None
    request: ConsolidateRequest
    rebuild: bool
    tools: Tools

    def by_uid(self) -> dict[str, Conclusion]:
        """All conclusions that the reasoner read: in its input, and through its tools."""
        return {row.uid: row for row in (*self.tools.conclusions_read.values(), *self.conclusions)}


def require_input(tx: Transaction, material: DreamInput) -> None:
    """Raise InputErased if a conclusion or message that the reasoner read was erased since: its
    words can be in any part of the result. The locks keep the answer true until commit."""
    messages = material.tools.messages_read
    for key in sorted({message.session_key for message in messages.values()}):
        tx.sessions.by_key(key, lock=True)
    tx.conclusions.lock_collections([material.collection.key])
    keys = tuple(row.key for row in material.by_uid().values())
    if keys and tx.rows.count(Conclusion, equals(key=keys)) < len(keys):
        raise InputErased
    if messages and len(tx.messages.positions(sorted(messages))) < len(messages):
        raise InputErased


class Draft(Struct, frozen=True):
    """A conclusion to store, and the index of its statement."""

    index: int
    row: Conclusion


class Candidates(Struct, frozen=True):
    """New conclusions, before the transaction."""

    drafts: Sequence[Draft]
    vectors: Sequence[Vector] | None
    duplicates: Mapping[tuple[int, str], Duplicate]
    """(Key of an observer, fingerprint of a draft) → the stored conclusion with the same meaning in
    other words."""


class Stored(Struct, frozen=True):
    """The result of storing new conclusions."""

    keys: Mapping[int, int]
    """Keys of the rows, by index of the statement."""
    replaced: Sequence[tuple[Conclusion, int]]
    """Stored conclusions to be superseded by a new one that says the same and at least as much,
    each with the index of the new one's statement."""
    created: Sequence[str] = ()
    """Uids of the new rows."""


def drafts(
    rt: Runtime, reasoner: str, material: DreamInput, result: Consolidated, counts: Counter[str]
) -> list[Draft]:
    """The new conclusions that keep the rules and that no plugin refuses. `create` checks whether
    their sources still exist."""
    by_name = material.by_uid()
    drafts: list[Draft] = []
    for index, statement in enumerate(result.created):
        row = _draft(rt, reasoner, material, statement, by_name, result.spent.model)
        if row is None:
            counts["malformed"] += 1
        elif not write_hooks.allows(rt.plugins, row):
            counts["refused"] += 1
        else:
            drafts.append(Draft(index, row))
            by_name[f"#{index}"] = row
    return drafts


def _draft(
    rt: Runtime,
    reasoner: str,
    material: DreamInput,
    statement: Statement,
    by_name: Mapping[str, Conclusion],
    model: str | None,
) -> Conclusion | None:
    content = strip_nul(statement.content).strip()
    sources = [by_name[name] for name in dict.fromkeys(statement.source_ids) if name in by_name]
    minimum = MIN_SOURCES.get(statement.level)
    if (
        minimum is None
        or len(sources) < minimum
        or not content
        or len(content) > MAX_CONTENT_LENGTH
    ):
        return None
    prompt = {} if statement.prompt is None else {"prompt": statement.prompt}
    texts = [text.strip() for text in statement.premises if text.strip()] or [
        source.content for source in sources
    ]
    internal: dict[str, object] = {
        "premises" if statement.level == DEDUCTIVE else "sources": texts,
        **prompt,
    }
    if statement.level == INDUCTIVE:
        internal["confidence"] = (
            statement.confidence if statement.confidence in CONFIDENCES else USUAL_CONFIDENCE
        )
        if statement.pattern_type in PATTERNS:
            internal["pattern_type"] = statement.pattern_type
    collection, session = material.collection, material.session
    messages = {key for source in sources for key in source.message_keys}
    return Conclusion(
        uid=new_uid(),
        workspace_key=collection.workspace_key,
        collection_key=collection.key,
        observer_key=collection.observer_key,
        observed_key=collection.observed_key,
        session_key=session.key if session else None,
        observer=collection.observer,
        observed=collection.observed,
        session=session.slug if session else None,
        content=content,
        fingerprint=fingerprint(content),
        level=statement.level,
        source_ids=[source.uid for source in sources],
        message_keys=[key for key in statement.message_keys if key in messages],
        internal=internal,
        reasoner=reasoner,
        model=statement.model or model,
        said_at=max(source.said_at for source in sources),
        created_at=rt.clock(),
    )


def create(
    rt: Runtime,
    tx: Transaction,
    collection: Collection,
    candidates: Candidates,
    counts: Counter[str],
) -> Stored:
    """Store new conclusions, count repetitions of stored ones, and leave out drafts with a source
    that no longer exists."""
    chosen = _chosen(tx, collection, candidates, counts)
    repeated = sorted({row.key for row in chosen.stands_for.values() if row.key})
    tx.conclusions.reinforce(repeated)
    counts["reinforced"] += len(repeated)
    conclusions = tx.conclusions.put([row for _, row in chosen.new])
    vectors = candidates.vectors
    new_vectors = None if vectors is None else [vectors[index] for index, _ in chosen.new]
    tx.tasks.add(
        indexing.index_conclusions(rt, tx, collection.workspace_key, conclusions, new_vectors)
    )
    counts["created"] += len(conclusions)
    keys = {row.uid: row.key for row in conclusions}
    return Stored(
        {index: row.key or keys[row.uid] for index, row in chosen.stands_for.items()},
        chosen.replaced,
        tuple(row.uid for row in conclusions),
    )


class _Chosen(Struct, frozen=True):
    """The rows that the drafts of a dream become."""

    new: Sequence[tuple[int, Conclusion]]
    """Position of a draft, and its new row, without a key."""
    stands_for: Mapping[int, Conclusion]
    """Index of a statement → its row: a new one, a stored one, or the row of an earlier statement
    with the same text."""
    replaced: list[tuple[Conclusion, int]]
    """A stored conclusion that is to be superseded, and the index of the statement that replaces
    it."""


def _chosen(
    tx: Transaction, collection: Collection, candidates: Candidates, counts: Counter[str]
) -> _Chosen:
    """The rows for the drafts whose sources still exist. Counts the other drafts."""
    drafts = candidates.drafts
    same = _same(tx, collection, drafts)
    # By the uid of a draft or of a stored source: the uid of its row.
    names = {uid: uid for uid in _live_sources(tx, collection, drafts)}
    new: dict[tuple[str, str], tuple[int, Conclusion]] = {}
    stands_for: dict[int, Conclusion] = {}
    replaced: list[tuple[Conclusion, int]] = []
    for index, draft in enumerate(drafts):
        mark = (draft.row.level, draft.row.fingerprint)
        conclusion = same[draft.row.level].get(draft.row.fingerprint)
        if not names.keys() >= set(draft.row.source_ids or ()):
            counts["outdated"] += 1
            continue
        duplicate = candidates.duplicates.get((collection.observer_key, draft.row.fingerprint))
        unchanged = duplicate is not None and _is_unchanged(tx, duplicate.existing)
        if conclusion is None and duplicate is not None and unchanged and not duplicate.replaces:
            conclusion = duplicate.existing
        elif conclusion is None and mark not in new:
            sources = list(dict.fromkeys(names[uid] for uid in draft.row.source_ids or ()))
            row = replace(draft.row, source_ids=sources)
            if duplicate is not None and unchanged:
                row = replace(row, times_derived=duplicate.existing.times_derived + 1)
                replaced.append((duplicate.existing, draft.index))
            new[mark] = (index, row)
        stands_for[draft.index] = conclusion or new[mark][1]
        # Later statements may have this one as a source, by the uid of its draft.
        names[draft.row.uid] = stands_for[draft.index].uid
    return _Chosen(list(new.values()), stands_for, replaced)


def _live_sources(tx: Transaction, collection: Collection, drafts: Sequence[Draft]) -> set[str]:
    """Uids of the sources of drafts that are still live."""
    source_ids = tuple(sorted({uid for draft in drafts for uid in draft.row.source_ids or ()}))
    if not source_ids:
        return set()
    condition = equals(collection_key=collection.key, uid=source_ids, state=LIVE)
    return {row.uid for row in tx.rows.page(Conclusion, condition)}


def _same(
    tx: Transaction, collection: Collection, drafts: Sequence[Draft]
) -> dict[str, Mapping[str, Conclusion]]:
    """Level → fingerprint → the stored conclusion with that text."""
    return {
        level: tx.conclusions.same(
            collection.key, level, [d.row.fingerprint for d in drafts if d.row.level == level], None
        )
        for level in {draft.row.level for draft in drafts}
    }


def _is_unchanged(tx: Transaction, conclusion: Conclusion) -> bool:
    """Whether a conclusion is the same as at the comparison. It is locked until the transaction
    ends."""
    return (
        tx.rows.get(
            Conclusion,
            equals(key=conclusion.key, state=LIVE, fingerprint=conclusion.fingerprint),
            lock=True,
        )
        is not None
    )


def supersede(
    rt: Runtime,
    tx: Transaction,
    material: DreamInput,
    steps: Sequence[Superseded],
    stored: Stored,
    counts: Counter[str],
) -> list[tuple[str, int | None]]:
    """Supersede rows by others, except rows that changed since they were read and rows with a
    missing successor. Returns the uids of the superseded rows, each with the key of its
    successor."""
    by_uid = {old.uid: old for old, _ in stored.replaced} | material.by_uid()
    pairs: dict[int, tuple[int | None, str]] = {}
    for step in (
        *steps,
        *(Superseded(old.uid, f"#{index}", SAID_AGAIN) for old, index in stored.replaced),
    ):
        old, new = (
            by_uid.get(step.old),
            None if step.new is None else _key_of(step.new, by_uid, stored.keys),
        )
        if old is not None and (new is not None or step.new is None):
            pairs.setdefault(old.key, (new, step.reason))
    rows = {row.key: row for row in by_uid.values()}
    allowed: list[Supersession] = []
    for key, (new, reason) in sorted(pairs.items()):
        last = None if new is None else _last(key, pairs)
        if new is not None and (
            last is None or tx.rows.get(Conclusion, equals(key=last, state=LIVE), lock=True) is None
        ):
            continue
        allowed.append(Supersession(rows[key], last, reason))
    superseded = supersession.supersede(rt, tx, material.collection.workspace_key, allowed)
    counts["superseded"] += len(superseded)
    return [(step.old.uid, step.successor) for step in superseded]


def _key_of(name: str, by_uid: Mapping[str, Conclusion], keys: Mapping[int, int]) -> int | None:
    """The key of the row with this name: a uid, or `#` and the index of one of the new
    statements."""
    if name.startswith("#") and name[1:].isdecimal():
        return keys.get(int(name[1:]))
    row = by_uid.get(name)
    return None if row is None else row.key


def _last(key: int, pairs: Mapping[int, tuple[int | None, str]]) -> int | None:
    """The key of the row at the end of a chain of successors; None for a cycle, and for a chain
    whose last row has no successor."""
    visited = {key}
    while key in pairs:
        following = pairs[key][0]
        if following is None or following in visited:
            return None
        key = following
        visited.add(key)
    return key
