"""Dreams: consolidating what one peer holds about another. Rows are superseded, never destroyed, and everything new names its sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from memservice.domain.filters import where
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import (
    CONTRADICTION,
    DEDUCTIVE,
    DELETING,
    EXPLICIT,
    INDUCTIVE,
    LIVE,
    SUPERSEDED,
    Card,
    Collection,
    Conclusion,
    Session,
    Task,
)
from memservice.domain.values import strip_nul
from memservice.pipeline.card_lines import rewritten, visible
from memservice.pipeline.handler import Outcome, Prepared, Unfinished, nothing
from memservice.runtime import Runtime
from memservice.services import dreams, indexing, listeners
from memservice.spi.capabilities import Capability
from memservice.spi.nouns.base import NEWEST
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Known, Statement, Superseded
from memservice.spi.storage import View

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

MAX_KNOWN = 5_000
"""Conclusions that a dream looks at, the newest of the collection."""
MAX_KNOWN_COSTLY = 500
"""The same for a reasoner whose calls cost something."""
LONGEST_CONTENT = 65_535

LEAST_SOURCES = {DEDUCTIVE: 1, INDUCTIVE: 1, CONTRADICTION: 2}
"""Levels that a dream may create, with how many conclusions such a row rests on at least."""
PATTERNS = frozenset({"preference", "behavior", "personality", "tendency", "correlation"})
CONFIDENCES = frozenset({"high", "medium", "low"})


class DreamTimer:
    """Handler of `dream_timer` tasks."""

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        return 1

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]

        def store(view: View) -> Outcome | Unfinished:
            result = dreams.went_off(rt, view, task)
            return Unfinished(replace(task, not_before=result)) if isinstance(result, datetime) else result

        return Prepared(store)


@dataclass(frozen=True, slots=True)
class _Material:
    """What a dream is about, read in one view."""

    collection: Collection
    session: Session | None
    known: Sequence[Conclusion]
    """Live conclusions, oldest first."""
    card: Card | None
    request: ConsolidateRequest
    rebuild: bool


@dataclass(frozen=True, slots=True)
class _Draft:
    """A conclusion to be stored, and the index of its statement."""

    index: int
    row: Conclusion


class Dream:
    """Handler of `dream` tasks. An `omni` dream consolidates everything, a `card_refresh` writes the card only."""

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        return 1

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        with rt.storage.read() as view:
            material = _read(rt, view, task)
        if isinstance(material, str):
            return nothing(skipped=material)
        result = rt.reasoner.consolidate(material.request)
        if material.request.card_only:
            return Prepared(lambda view: _store_card(rt, view, material, result))
        counts: Counter[str] = Counter(known=len(material.known))
        drafts = _drafts(rt, material, result, counts)
        vectors = indexing.embed_inline(rt, [draft.row.content for draft in drafts]) if drafts else []

        def store(view: View) -> Outcome:
            outcome = counts.copy()
            made = _create(rt, view, material.collection, drafts, vectors, outcome)
            _supersede(rt, view, material, result.superseded, made, outcome)
            dreams.dreamt(rt, view, material.collection)
            return dict(outcome) | _store_card(rt, view, material, result)

        return Prepared(store)


def _read(rt: Runtime, view: View, task: Task) -> _Material | str:
    """What there is to work on, or why there is nothing."""
    collection = view.conclusions.collection(task.observer_key or 0, task.observed_key or 0)
    if collection is None:
        return "nothing is held"
    key = task.payload.get("session")
    session = view.sessions.by_key(key) if isinstance(key, int) else None
    if session is not None and session.state == DELETING:
        session = None
    config = dreams.configured(rt, view, collection, session)
    card_only = task.payload.get("type") == dreams.CARD_REFRESH
    if not config.dream or not rt.settings.dream.enabled:
        return "dreams are switched off here"
    if card_only and not config.card_create:
        return "cards are switched off here"
    most = MAX_KNOWN_COSTLY if Capability.COSTLY in rt.reasoner.capabilities else MAX_KNOWN
    pair = where(observer_key=collection.observer_key, observed_key=collection.observed_key)
    found = view.conclusions.page(collection.workspace_key, pair, NEWEST, limit=most)
    known = sorted(found, key=lambda row: (row.said_at, row.key))
    card = view.cards.one(collection.observer_key, collection.observed)
    rebuild = bool(task.payload.get("rebuild")) and card_only
    request = ConsolidateRequest(
        observer=collection.observer,
        observed=collection.observed,
        known=[_known(row) for row in known],
        card=visible(card, rebuild),
        write_card=config.card_create,
        instructions=config.instructions.get("dream"),
        card_instructions=config.instructions.get("peer_card"),
        card_only=card_only,
    )
    return _Material(collection, session, known, card, request, rebuild)


def _known(row: Conclusion) -> Known:
    return Known(
        uid=row.uid,
        content=row.content,
        level=row.level,
        said_at=row.said_at,
        times_derived=row.times_derived,
        observer=row.observer,
        observed=row.observed,
        session=row.session,
        source_ids=tuple(row.source_ids or ()),
    )


def _drafts(rt: Runtime, material: _Material, result: Consolidated, counts: Counter[str]) -> list[_Draft]:
    """The new conclusions that keep the rules and that no plugin refuses, without the keys of their sources' states."""
    by_uid = {row.uid: row for row in material.known}
    found: list[_Draft] = []
    for index, statement in enumerate(result.created):
        row = _draft(rt, material, statement, by_uid, result.spent.model)
        if row is None:
            counts["malformed"] += 1
        elif not listeners.may_store(rt.plugins, row):
            counts["refused"] += 1
        else:
            found.append(_Draft(index, row))
    return found


def _draft(
    rt: Runtime, material: _Material, statement: Statement, by_uid: Mapping[str, Conclusion], model: str | None
) -> Conclusion | None:
    content = strip_nul(statement.content).strip()
    sources = [by_uid[uid] for uid in dict.fromkeys(statement.source_ids) if uid in by_uid]
    least = LEAST_SOURCES.get(statement.level)
    # What was said is learnt from messages only, so nothing explicit may come from here.
    if least is None or len(sources) < least or not content or len(content) > LONGEST_CONTENT:
        return None
    texts = [text.strip() for text in statement.premises if text.strip()] or [source.content for source in sources]
    internal: dict[str, object] = {"premises" if statement.level == DEDUCTIVE else "sources": texts}
    if statement.level == INDUCTIVE:
        internal["confidence"] = statement.confidence if statement.confidence in CONFIDENCES else "medium"
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
        reasoner=rt.reasoner.name,
        model=model,
        said_at=max(source.said_at for source in sources),
        created_at=rt.clock(),
    )


def _create(
    rt: Runtime, view: View, collection: Collection, drafts: Sequence[_Draft], vectors: Sequence[Vector] | None, counts: Counter[str]
) -> dict[int, int]:
    """Store what is new, count again what is held already, and leave what rests on something that went in the meantime. Returns the
    keys of the rows, by index of the statement."""
    wanted = sorted({uid for draft in drafts for uid in draft.row.source_ids or ()})
    alive = view.rows.page(Conclusion, where(collection_key=collection.key, uid=tuple(wanted), state=LIVE)) if wanted else []
    live = {row.uid for row in alive}
    made: dict[int, int] = {}
    fresh: dict[tuple[str, str], tuple[int, _Draft]] = {}
    repeated: list[tuple[int, tuple[str, str]]] = []
    same = {
        level: view.conclusions.same(collection.key, level, [d.row.fingerprint for d in drafts if d.row.level == level], None)
        for level in {draft.row.level for draft in drafts}
    }
    for place, draft in enumerate(drafts):
        mark = (draft.row.level, draft.row.fingerprint)
        held = same[draft.row.level].get(draft.row.fingerprint)
        if not live.issuperset(draft.row.source_ids or ()):
            counts["outdated"] += 1
        elif held is not None:
            made[draft.index] = held.key
        elif mark in fresh:
            repeated.append((draft.index, mark))
        else:
            fresh[mark] = (place, draft)
    view.conclusions.reinforce(sorted(set(made.values())))
    counts["reinforced"] += len(set(made.values()))
    stored = view.conclusions.put([draft.row for _, draft in fresh.values()])
    chosen = None if vectors is None else [vectors[place] for place, _ in fresh.values()]
    view.tasks.add(indexing.index_conclusions(rt, view, collection.workspace_key, stored, chosen))
    keys = {mark: row.key for mark, row in zip(fresh, stored, strict=True)}
    made |= {draft.index: keys[mark] for mark, (_, draft) in fresh.items()}
    made |= {index: keys[mark] for index, mark in repeated}
    counts["created"] += len(stored)
    return made


def _supersede(
    rt: Runtime, view: View, material: _Material, steps: Sequence[Superseded], made: Mapping[int, int], counts: Counter[str]
) -> None:
    """Let rows give way to others. A row that changed since it was read stays as it is, and so does one whose successor is gone."""
    by_uid = {row.uid: row for row in material.known}
    pairs: dict[int, tuple[int, str]] = {}
    for step in steps:
        old, new = by_uid.get(step.old), _key_of(step.new, by_uid, made)
        if old is not None and new is not None:
            pairs.setdefault(old.key, (new, step.reason))
    rows = {row.key: row for row in material.known}
    gone: list[Conclusion] = []
    for key, (_, reason) in sorted(pairs.items()):
        last = _last(key, pairs)
        if last is None or view.rows.get(Conclusion, where(key=last, state=LIVE), lock=True) is None:
            continue
        old = rows[key]
        unchanged = where(key=key, state=LIVE, fingerprint=old.fingerprint)
        internal = {**old.internal, "superseded": reason}
        if view.rows.change(Conclusion, unchanged, state=SUPERSEDED, superseded_by=last, internal=internal):
            gone.append(old)
    explicit = sum(row.level == EXPLICIT for row in gone)
    if explicit:
        view.conclusions.count_explicit(material.collection.key, -explicit)
    indexing.forget_conclusions(rt, view, material.collection.workspace_key, [row.key for row in gone])
    counts["superseded"] += len(gone)


def _key_of(name: str, by_uid: Mapping[str, Conclusion], made: Mapping[int, int]) -> int | None:
    """The row that a reasoner means: a uid that it was given, or `#` and the index of a statement that it made."""
    if name.startswith("#") and name[1:].isdecimal():
        return made.get(int(name[1:]))
    row = by_uid.get(name)
    return None if row is None else row.key


def _last(key: int, pairs: Mapping[int, tuple[int, str]]) -> int | None:
    """The row at the end of a chain of successors; None for a circle."""
    seen = {key}
    while key in pairs:
        key = pairs[key][0]
        if key in seen:
            return None
        seen.add(key)
    return key


def _store_card(rt: Runtime, view: View, material: _Material, result: Consolidated) -> Outcome:
    """Write the card, unless a caller wrote it while the reasoner was thinking: the newer word is theirs."""
    if not material.request.write_card:
        return {}
    present = view.cards.one(material.collection.observer_key, material.collection.observed)
    if present != material.card:
        return {"card": "changed in the meantime"}
    lines, dropped = rewritten(present, result.card, material.rebuild)
    if lines is None:
        return {"card_lines_dropped": dropped} if dropped else {}
    if not lines and present is not None:
        view.rows.delete(Card, where(key=present.key))
    elif lines:
        card = Card(
            workspace_key=material.collection.workspace_key,
            observer_key=material.collection.observer_key,
            target=material.collection.observed,
            lines=lines,
            given=list(present.given) if present else [],
            updated_at=rt.clock(),
        )
        view.cards.save(card)
    return {"card_lines": len(lines)} | ({"card_lines_dropped": dropped} if dropped else {})
