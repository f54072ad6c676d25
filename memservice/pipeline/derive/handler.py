"""Deriving conclusions from what a peer said, for everybody who observes it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memservice.domain.ids import fingerprint
from memservice.domain.records import DELETING, SCOPE, Message, Task
from memservice.pipeline.derive import deduplication
from memservice.pipeline.derive import store as derive_store
from memservice.pipeline.derive.attribution import attributed
from memservice.pipeline.derive.echo import EchoGuard
from memservice.pipeline.derive.events import DeriveRun, completed
from memservice.pipeline.derive.store import DeriveInput
from memservice.pipeline.handler import Handler, Outcome, Prepared, nothing
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services.peers import display_name
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import DeriveRequest, Origin, Statement, Utterance
from memservice.spi.storage import Transaction
from memservice.telemetry.events import Event

MAX_BATCH = 200
"""Messages that a reasoner is given at once at most, whatever it costs."""


class Derive(Handler):
    """Handler of `representation` tasks: one per message of an observed peer."""

    kind = kinds.REPRESENTATION

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        """Tasks with the same observers and instructions; bounded by tokens, of all speakers, only
        where the reasoner's calls cost something."""
        same = 0
        for task in pending[:MAX_BATCH]:
            if task.payload != pending[0].payload:
                break
            same += 1
        if not rt.reasoner_can(choice.DERIVE, Capability.COSTLY):
            return same
        with rt.storage.read() as tx:
            known = tx.messages.by_keys(
                [task.message_key for task in pending[:same] if task.message_key is not None]
            )
        first = known.get(pending[0].message_key or 0)
        maximum = rt.settings.deriver.representation_batch_target_input_tokens
        for number, task in enumerate(pending[:same]):
            message = known.get(task.message_key or 0)
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
            material = _read(tx, tasks)
            if material is None:
                return nothing(skipped="the session or its messages are gone")
            echoes = EchoGuard(rt, tx, material.session, material.observed)
            shown = material.window
            if Capability.COSTLY in reasoner.capabilities:
                # What a model makes of an echo has other words: it must not see it. Elsewhere
                # echoes are known by their words.
                shown = [
                    echoes.without(message) if message in material.messages else message
                    for message in material.window
                ]
        prepared = time.monotonic()
        derived = reasoner.derive(_request(material, shown, tasks[0].payload.get("instructions")))
        called = time.monotonic()
        counts: Counter[str] = Counter(statements=len(derived.statements), stored=0, reinforced=0)
        if not derived.statements:
            counts["derived_nothing"] = 1
        if derived.refused:
            counts["refused"] = len(derived.refused)
        if derived.unfinished:
            counts["unfinished"] = len(derived.unfinished)
        own, counts["misattributed"] = attributed(
            derived.statements, material.messages, material.window, _names(material)
        )
        with rt.storage.read() as tx:
            echoes = EchoGuard(rt, tx, material.session, material.observed)
            echoes.expect(len(own))
            said = [
                statement for statement in own if not echoes.repeats(statement, material.messages)
            ]
            scopes = derive_store.scopes_of(tx, material.session)
        counts["echo"] = len(own) - len(said)
        distinct = _distinct(said)
        counts["repeated"] = len(said) - len(distinct)
        drafts = derive_store.drafts(rt, material, distinct, derived, _times(said))
        observers = (*material.observers, *scopes)
        kept = {
            observer.key: derive_store.allowed(rt, drafts, observer, counts)
            for observer in observers
        }
        vectors = deduplication.vectors_of(
            rt,
            material.session.workspace_key,
            material.workspace,
            [draft.content for draft in drafts],
        )
        alike = deduplication.find(rt, drafts, vectors, observers)

        def store(tx: Transaction) -> Outcome:
            return derive_store.store(
                rt,
                tx,
                material,
                derive_store.Candidates(drafts, kept, vectors, alike),
                counts.copy(),
            )

        def events(outcome: Outcome) -> Iterable[Event]:
            yield completed(
                rt,
                DeriveRun(material, derived, len(tasks), began, prepared, called, time.monotonic()),
                outcome,
            )

        return Prepared(store, events)


def _read(tx: Transaction, tasks: Sequence[Task]) -> DeriveInput | None:
    session = tx.sessions.by_key(tasks[0].session_key or 0)
    found = tx.messages.by_keys(
        [task.message_key for task in tasks if task.message_key is not None]
    )
    messages = sorted(found.values(), key=lambda message: message.seq)
    if session is None or session.state == DELETING or not messages:
        return None
    workspace = tx.workspaces.by_key(session.workspace_key)
    keys = [int(key) for key in tasks[0].payload.get("observers", [])]
    peers = tx.peers.by_keys(sorted({messages[0].author_key, *keys}))
    observed = peers.get(messages[0].author_key)
    if observed is None or workspace is None:
        return None
    # The message before the first one is shown if somebody else wrote it, so that an answer is read
    # with its question.
    window = tx.messages.run(session.key, messages[0].seq - 1, messages[-1].seq)
    if window[0].seq < messages[0].seq and window[0].author_key == observed.key:
        window = window[1:]
    authors = tx.peers.by_keys(sorted({message.author_key for message in window}))
    names = {peer.slug: name for peer in authors.values() if (name := display_name(peer))}
    observers = [peers[key] for key in keys if key in peers and peers[key].kind != SCOPE]
    return DeriveInput(workspace.slug, session, observed, observers, messages, window, names)


def _names(material: DeriveInput) -> list[str]:
    slug = material.observed.slug
    return [slug, material.names.get(slug, slug)]


def _request(
    material: DeriveInput, shown: Sequence[Message], instructions: str | None
) -> DeriveRequest:
    own = {message.key for message in material.messages}
    return DeriveRequest(
        observed=material.observed.slug,
        messages=[utterance(message, new=message.key in own) for message in shown],
        instructions=instructions,
        names=dict(material.names),
        origin=Origin(material.session.workspace_key, material.workspace),
    )


def utterance(message: Message, new: bool = True) -> Utterance:
    return Utterance(
        message.key, message.uid, message.author, message.content, message.created_at, new
    )


def _times(statements: Sequence[Statement]) -> Counter[str]:
    """By fingerprint, in how many messages each was said. Messages that are derived from one by one
    count the same."""
    places = {
        (fingerprint(statement.content.strip()), statement.message_keys) for statement in statements
    }
    return Counter(said for said, _ in places)


def _distinct(statements: Sequence[Statement]) -> list[Statement]:
    """Each statement once, in its first wording, with all the messages that it comes from."""
    found: dict[str, Statement] = {}
    for statement in statements:
        content = statement.content.strip()
        if not content:
            continue
        first = found.setdefault(
            fingerprint(content), replace(statement, content=content, message_keys=())
        )
        sources = dict.fromkeys((*first.message_keys, *statement.message_keys))
        found[fingerprint(content)] = replace(first, message_keys=tuple(sources))
    return list(found.values())
