"""Deriving conclusions from what a peer said, for everybody who observes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import DELETING, EXPLICIT, SCOPE, Conclusion, Message, Peer, Session, Task
from memservice.pipeline.echo import EchoGuard
from memservice.pipeline.handler import Outcome, Prepared, nothing
from memservice.runtime import Runtime
from memservice.services import dreams, indexing, listeners
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
    """As frozen in the tasks, the observed peer first. The session's scopes are those of the moment of storing."""
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
        counts: Counter[str] = Counter(statements=len(derived.statements), stored=0, reinforced=0)
        with rt.storage.read() as view:
            echoes = EchoGuard(rt, view, material.session, material.observed)
            echoes.expect(len(derived.statements))
            said = [statement for statement in derived.statements if not echoes.repeats(statement, material.messages)]
            scopes = _scopes(view, material.session)
        counts["echo"] = counts["statements"] - len(said)
        drafts = _drafts(rt, material, _distinct(said), derived.spent.model)
        kept = {observer.key: _allowed(rt, drafts, observer, counts) for observer in (*material.observers, *scopes)}
        vectors = indexing.embed_inline(rt, [draft.content for draft in drafts]) if drafts else []

        def store(view: View) -> Outcome:
            return _store(rt, view, material, drafts, kept, vectors, counts.copy())

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
    observers = [peers[key] for key in keys if key in peers and peers[key].kind != SCOPE]
    return _Material(session, observed, observers, messages, window, names)


def _scopes(view: View, session: Session) -> list[Peer]:
    """The scopes that the session is in now."""
    keys = [member.peer_key for member in view.members.of_session(session.key) if member.kind == SCOPE]
    return list(view.peers.by_keys(keys).values())


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
    """Each statement once, in its first wording, with all the messages that it comes from."""
    found: dict[str, Statement] = {}
    for statement in statements:
        content = statement.content.strip()
        if not content:
            continue
        first = found.setdefault(fingerprint(content), Statement(content, ()))
        sources = dict.fromkeys((*first.message_keys, *statement.message_keys))
        found[fingerprint(content)] = Statement(first.content, tuple(sources))
    return list(found.values())


def _drafts(rt: Runtime, material: _Material, statements: Sequence[Statement], model: str | None) -> list[Conclusion]:
    """The conclusions as the observed peer itself will hold them, without keys."""
    sent = {message.key: message.created_at for message in material.messages}
    newest = max(sent.values())
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
            reasoner=rt.reasoner.name,
            model=model,
            said_at=max((sent[key] for key in statement.message_keys if key in sent), default=newest),
            created_at=rt.clock(),
        )
        for statement in statements
    ]


def _held_by(draft: Conclusion, observer: Peer) -> Conclusion:
    return draft if draft.observer_key == observer.key else replace(draft, uid=new_uid(), observer_key=observer.key, observer=observer.slug)


def _allowed(rt: Runtime, drafts: Sequence[Conclusion], observer: Peer, counts: Counter[str]) -> set[str]:
    """Fingerprints of what the plugins let this observer hold."""
    allowed = {draft.fingerprint for draft in drafts if listeners.may_store(rt.plugins, _held_by(draft, observer))}
    counts["refused"] += len(drafts) - len(allowed)
    return allowed


def _store(
    rt: Runtime,
    view: View,
    material: _Material,
    drafts: Sequence[Conclusion],
    kept: Mapping[int, set[str]],
    vectors: Sequence[Vector] | None,
    counts: Counter[str],
) -> Outcome:
    # Held until commit: a scope that takes the session in either sees these conclusions, or is seen here.
    session = view.sessions.by_key(material.session.key, lock=True)
    if session is None or session.state == DELETING:
        return {"skipped": "the session is gone"}
    for observer in (*material.observers, *_scopes(view, session)) if drafts else ():
        # A scope that came only now is treated as the observed peer is.
        wanted = kept.get(observer.key, kept[material.observed.key])
        places = [place for place, draft in enumerate(drafts) if draft.fingerprint in wanted]
        if not places:
            continue
        collection = ensure_collection(rt, view, observer, material.observed)
        known = view.conclusions.same(collection.key, EXPLICIT, [drafts[place].fingerprint for place in places], session.key)
        view.conclusions.reinforce([conclusion.key for conclusion in known.values()])
        places = [place for place in places if drafts[place].fingerprint not in known]
        stored = view.conclusions.put([replace(_held_by(drafts[place], observer), collection_key=collection.key) for place in places])
        chosen = None if vectors is None else [vectors[place] for place in places]
        view.tasks.add(indexing.index_conclusions(rt, view, session.workspace_key, stored, chosen))
        if stored:
            view.conclusions.count_explicit(collection.key, len(stored))
            dreams.after_save(rt, view, collection, collection.explicit_count + len(stored), session)
        counts["stored"] += len(stored)
        counts["reinforced"] += len(known)
    return dict(counts)
