"""Deriving conclusions from the messages of a peer, for all its observers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memservice.domain.configuration import resolve
from memservice.domain.ids import fingerprint
from memservice.domain.records import DELETING, SCOPE, Conclusion, Message, Task
from memservice.pipeline.derive import card, context, deduplication, replacing
from memservice.pipeline.derive import store as derive_store
from memservice.pipeline.derive.attribution import attributed
from memservice.pipeline.derive.context import HISTORY, Confinement, RelatedSearch
from memservice.pipeline.derive.echo import EchoGuard
from memservice.pipeline.derive.events import DeriveRun, completed
from memservice.pipeline.derive.store import DeriveInput
from memservice.pipeline.handler import Handler, Outcome, Prepared, nothing
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import (
    DeriveContext,
    Derived,
    DeriveRequest,
    Origin,
    Reasoner,
    Statement,
    Utterance,
)
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
            material = _read(rt, tx, tasks, HISTORY if asks_model(reasoner) else 0)
            if material is None:
                return nothing(skipped="the session or its messages no longer exist")
            echoes = EchoGuard(rt, tx, material.session, material.observed)
            visible = material.window
            if Capability.COSTLY in reasoner.capabilities:
                # A model rephrases an echo, so its input must not contain echoes. Statements of
                # other reasoners keep the words, which show the echo below.
                visible = [
                    echoes.without(message) if message in material.messages else message
                    for message in material.window
                ]
        request = _request(material, visible, tasks[0].payload.get("instructions"))
        context_rows: dict[str, Conclusion] = {}
        """The conclusions in the request, by uid."""
        if asks_model(reasoner):
            derive_context, context_rows = _context(rt, material)
            request = replace(request, context=derive_context)
        prepared = time.monotonic()
        derived, again = _derive(reasoner, request, material.session.slug)
        called = time.monotonic()
        counts: Counter[str] = Counter(statements=len(derived.statements), stored=0, reinforced=0)
        if not derived.statements:
            counts["derived_nothing"] = 1
        if derived.refused:
            counts["refused"] = len(derived.refused)
        if derived.unfinished:
            counts["unfinished"] = len(derived.unfinished)
        if again:
            counts["derived_again"] = again
        own, counts["misattributed"] = attributed(
            derived.statements,
            material.messages,
            material.window,
            _names(material),
            _texts(request.context),
        )
        with rt.storage.read() as tx:
            echoes = EchoGuard(rt, tx, material.session, material.observed)
            echoes.prepare(len(own))
            statements = [
                statement for statement in own if not echoes.repeats(statement, material.messages)
            ]
            scopes = derive_store.scopes_of(tx, material.session)
        counts["echo"] = len(own) - len(statements)
        distinct = _distinct(statements)
        counts["repeated"] = len(statements) - len(distinct)
        drafts = derive_store.drafts(rt, material, distinct, derived, _times(statements))
        replaced = replacing.allowed(distinct, drafts, context_rows, counts)
        observers = (*material.observers, *scopes)
        allowed = {
            observer.key: derive_store.allowed(rt, drafts, observer, counts)
            for observer in observers
        }
        vectors = deduplication.vectors_of(
            rt,
            material.session.workspace_key,
            material.workspace,
            [draft.content for draft in drafts],
        )
        duplicates = deduplication.find(rt, drafts, vectors, observers)
        proposal = None
        if material.creates_card and not asks_model(reasoner):
            own_marks = allowed[material.observed.key]
            proposal = card.propose(
                rt, reasoner, [draft for draft in drafts if draft.fingerprint in own_marks]
            )

        def store(tx: Transaction) -> Outcome:
            outcome = derive_store.store(
                rt,
                tx,
                material,
                derive_store.Candidates(drafts, allowed, vectors, duplicates, replaced),
                counts.copy(),
            )
            own = material.observed.key
            collection = tx.conclusions.collection(own, own)
            if material.creates_card and outcome.get("lasting") and collection is not None:
                if proposal is not None:
                    outcome |= card.store(rt, tx, collection, proposal)
                elif asks_model(reasoner):
                    card.enqueue(rt, tx, collection, material.session)
            return outcome

        def events(outcome: Outcome) -> Iterable[Event]:
            yield completed(
                rt,
                DeriveRun(material, derived, len(tasks), began, prepared, called, time.monotonic()),
                outcome,
            )

        return Prepared(store, events)


def asks_model(reasoner: Reasoner) -> bool:
    """Whether a reasoner calls a language model. Other reasoners do not use the context."""
    return bool(reasoner.capabilities & {Capability.COSTLY, Capability.REMOTE})


def _derive(reasoner: Reasoner, request: DeriveRequest, session: str) -> tuple[Derived, int]:
    """The derived statements. If a statement contains information that only the card or another
    session has, its messages are derived again without that context; also returns their number."""
    derived = reasoner.derive(request)
    confinement = Confinement(request, session)
    keys = confinement.broken_by(derived.statements)
    if not keys:
        return derived, 0
    again = reasoner.derive(confinement.request_for(request, keys))
    unaffected = [item for item in derived.statements if not keys.intersection(item.message_keys)]
    return (
        replace(
            derived,
            statements=[*unaffected, *again.statements],
            spent=derived.spent + again.spent,
            scaffold_tokens=derived.scaffold_tokens + again.scaffold_tokens,
            refused=(*derived.refused, *again.refused),
            unfinished=(*derived.unfinished, *again.unfinished),
        ),
        len(keys),
    )


def _read(rt: Runtime, tx: Transaction, tasks: Sequence[Task], history: int) -> DeriveInput | None:
    session = tx.sessions.by_key(tasks[0].session_key or 0)
    messages_by_key = tx.messages.by_keys(
        [task.message_key for task in tasks if task.message_key is not None]
    )
    messages = sorted(messages_by_key.values(), key=lambda message: message.seq)
    if session is None or session.state == DELETING or not messages:
        return None
    workspace = tx.workspaces.by_key(session.workspace_key)
    keys = [int(key) for key in tasks[0].payload.get("observers", [])]
    peers = tx.peers.by_keys(sorted({messages[0].author_key, *keys}))
    observed = peers.get(messages[0].author_key)
    if observed is None or workspace is None:
        return None
    observers = [peers[key] for key in keys if key in peers and peers[key].kind != SCOPE]
    other_observers = context.observers_of(
        tx,
        session,
        [peer for peer in observers if peer.key != observed.key],
        derive_store.scopes_of(tx, session),
    )
    window = context.window(tx, session, messages, other_observers, history=history)
    authors = tx.peers.by_keys(sorted({message.author_key for message in window}))
    zones = {
        message.key: zone
        for message in window
        if (zone := context.zone_of(rt, message, authors.get(message.author_key)))
    }
    return DeriveInput(
        workspace=workspace.slug,
        session=session,
        observed=observed,
        observers=observers,
        messages=messages,
        window=window,
        names=context.names_of(authors.values()),
        zones=zones,
        other_observers=other_observers,
        creates_card=resolve(
            rt.defaults, session.configuration, workspace.configuration
        ).card_create,
    )


def _context(rt: Runtime, material: DeriveInput) -> tuple[DeriveContext, dict[str, Conclusion]]:
    search = RelatedSearch(rt, material.workspace, material.messages)
    with rt.storage.read() as tx:
        return context.context_of(
            rt,
            tx,
            session=material.session,
            observed=material.observed,
            observers=material.other_observers,
            first=material.messages[0],
            search=search,
        )


def _texts(derive_context: DeriveContext) -> list[str]:
    """All stored texts of a context."""
    summary = [] if derive_context.summary is None else [derive_context.summary]
    return [*summary, *derive_context.card, *(item.content for item in derive_context.held)]


def _names(material: DeriveInput) -> list[str]:
    slug = material.observed.slug
    return [slug, material.names.get(slug, slug)]


def _request(
    material: DeriveInput, messages: Sequence[Message], instructions: str | None
) -> DeriveRequest:
    own = {message.key for message in material.messages}
    return DeriveRequest(
        observed=material.observed.slug,
        messages=[
            utterance(message, new=message.key in own, zone=material.zones.get(message.key))
            for message in messages
        ],
        instructions=instructions,
        names=dict(material.names),
        origin=Origin(material.session.workspace_key, material.workspace),
    )


def utterance(message: Message, new: bool = True, zone: str | None = None) -> Utterance:
    return Utterance(
        message.key, message.uid, message.author, message.content, message.created_at, new, zone
    )


def _times(statements: Sequence[Statement]) -> Counter[str]:
    """Fingerprint → number of messages, or groups of messages, with that statement. The size of a
    batch does not change it."""
    occurrences = {
        (fingerprint(statement.content.strip()), statement.message_keys) for statement in statements
    }
    return Counter(mark for mark, _ in occurrences)


def _distinct(statements: Sequence[Statement]) -> list[Statement]:
    """Each statement once, in its first wording, with all its messages."""
    distinct: dict[str, Statement] = {}
    for statement in statements:
        content = statement.content.strip()
        if not content:
            continue
        first = distinct.setdefault(
            fingerprint(content), replace(statement, content=content, message_keys=())
        )
        sources = dict.fromkeys((*first.message_keys, *statement.message_keys))
        replaced = dict.fromkeys((*first.replaces, *statement.replaces))
        distinct[fingerprint(content)] = replace(
            first, message_keys=tuple(sources), replaces=tuple(replaced)
        )
    return list(distinct.values())
