"""Deriving conclusions from what a peer said, for everybody who observes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import DELETING, EXPLICIT, Conclusion, Message, Peer, Session, Task
from memservice.pipeline.echo import EchoGuard
from memservice.pipeline.handler import Outcome, Prepared, nothing
from memservice.runtime import Runtime
from memservice.services import indexing, listeners
from memservice.services.conclusions import ensure_collection
from memservice.services.peers import display_name
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import DeriveRequest, Statement, Utterance
from memservice.spi.storage import View

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

MAX_BATCH = 200
"""Messages that a reasoner is given at once at most, whatever it costs."""
CONTEXT_BEFORE = 1
"""Messages before the first one that are shown along, so that an answer is read with its question."""


@dataclass(frozen=True, slots=True)
class _Material:
    """What a batch is about, read in one view."""

    session: Session
    observed: Peer
    observers: Sequence[Peer]
    messages: Sequence[Message]
    """The batch's own messages, by the observed peer."""
    window: Sequence[Message]
    """These and what others said around them, in order."""
    names: Mapping[str, str]


class Derive:
    """Handler of `representation` tasks: one per message of an observed peer."""

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        """Tasks with the same observers and instructions; bounded by tokens only where the reasoner's calls cost something."""
        same = 0
        for task in pending[:MAX_BATCH]:
            if task.payload != pending[0].payload:
                break
            same += 1
        if Capability.COSTLY not in rt.reasoner.capabilities:
            return same
        with rt.storage.read() as view:
            known = view.messages.by_keys([task.message_key for task in pending[:same] if task.message_key is not None])
        budget = rt.settings.deriver.representation_batch_target_input_tokens
        for number, task in enumerate(pending[:same]):
            message = known.get(task.message_key or 0)
            budget -= message.tokens if message is not None else 0
            if budget < 0 and number > 0:
                return number
        return same

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        with rt.storage.read() as view:
            material = _read(view, tasks)
        if material is None:
            return nothing(skipped="the session or its messages are gone")
        derived = rt.reasoner.derive(_request(material, tasks[0].payload.get("instructions")))
        counts: Counter[str] = Counter(statements=len(derived.statements))
        with rt.storage.read() as view:
            echoes = EchoGuard(rt, view, material.session, material.observed)
            kept = [statement for statement in derived.statements if not echoes.repeats(statement, material.messages)]
        counts["echo"] = counts["statements"] - len(kept)
        kept = _distinct(kept)
        vectors = indexing.embed_inline(rt, [statement.content.strip() for statement in kept]) if kept else []

        def store(view: View) -> Outcome:
            return _store(rt, view, material, kept, vectors, derived.spent.model, counts.copy())

        return Prepared(store)


def _read(view: View, tasks: Sequence[Task]) -> _Material | None:
    session = view.sessions.by_key(tasks[0].session_key or 0)
    found = view.messages.by_keys([task.message_key for task in tasks if task.message_key is not None])
    messages = sorted(found.values(), key=lambda message: message.seq)
    if session is None or session.state == DELETING or not messages:
        return None
    keys = [int(key) for key in tasks[0].payload.get("observers", [])]
    peers = view.peers.by_keys(sorted({messages[0].author_key, *keys}))
    observed = peers.get(messages[0].author_key)
    if observed is None:
        return None
    window = view.messages.run(session.key, messages[0].seq - CONTEXT_BEFORE, messages[-1].seq)
    authors = view.peers.by_keys(sorted({message.author_key for message in window}))
    names = {peer.slug: name for peer in authors.values() if (name := display_name(peer))}
    return _Material(session, observed, [peers[key] for key in keys if key in peers], messages, window, names)


def _request(material: _Material, instructions: str | None) -> DeriveRequest:
    own = {message.key for message in material.messages}
    return DeriveRequest(
        observed=material.observed.slug,
        messages=[utterance(message, new=message.key in own) for message in material.window],
        instructions=instructions,
        names=dict(material.names),
    )


def utterance(message: Message, new: bool = True) -> Utterance:
    return Utterance(message.key, message.uid, message.author, message.content, message.created_at, new)


def _distinct(statements: Sequence[Statement]) -> list[Statement]:
    """Each statement once, with all the messages that it comes from."""
    found: dict[str, Statement] = {}
    for statement in statements:
        content = statement.content.strip()
        if not content:
            continue
        mark = fingerprint(content)
        before = found.get(mark)
        sources = statement.message_keys if before is None else (*before.message_keys, *statement.message_keys)
        found[mark] = Statement(content, tuple(dict.fromkeys(sources)))
    return list(found.values())


def _store(
    rt: Runtime,
    view: View,
    material: _Material,
    statements: Sequence[Statement],
    vectors: Sequence[Vector] | None,
    model: str | None,
    counts: Counter[str],
) -> Outcome:
    workspace = material.session.workspace_key
    sent = {message.key: message.created_at for message in material.messages}
    marks = [fingerprint(statement.content) for statement in statements]
    for observer in material.observers:
        if not statements:
            break
        collection = ensure_collection(rt, view, observer, material.observed)
        known = view.conclusions.same(collection.key, EXPLICIT, marks, material.session.key)
        view.conclusions.reinforce([known[mark].key for mark in marks if mark in known])
        rows: list[Conclusion] = []
        places: list[int] = []
        for place, (statement, mark) in enumerate(zip(statements, marks, strict=True)):
            if mark in known:
                continue
            row = Conclusion(
                uid=new_uid(),
                workspace_key=workspace,
                collection_key=collection.key,
                observer_key=observer.key,
                observed_key=material.observed.key,
                session_key=material.session.key,
                observer=observer.slug,
                observed=material.observed.slug,
                session=material.session.slug,
                content=statement.content,
                fingerprint=mark,
                message_keys=list(statement.message_keys),
                reasoner=rt.reasoner.name,
                model=model,
                said_at=max(sent[key] for key in statement.message_keys if key in sent),
                created_at=rt.clock(),
            )
            if listeners.may_store(rt.plugins, row):
                rows.append(row)
                places.append(place)
            else:
                counts["refused"] += 1
        stored = view.conclusions.put(rows)
        chosen = None if vectors is None else [vectors[place] for place in places]
        view.tasks.add(indexing.index_conclusions(rt, view, workspace, stored, chosen))
        if stored:
            view.conclusions.count_explicit(collection.key, len(stored))
        counts["stored"] += len(stored)
        counts["reinforced"] += len(known)
    return dict(counts)
