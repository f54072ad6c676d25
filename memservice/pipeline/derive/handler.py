"""Deriving conclusions from what a peer said, for everybody who observes it."""

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
from memservice.pipeline.derive.context import HISTORY, Confinement, HeldSearch
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
    Spent,
    Statement,
    Utterance,
)
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
            material = _read(rt, tx, tasks, HISTORY if asks_model(reasoner) else 0)
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
        request = _request(material, shown, tasks[0].payload.get("instructions"))
        held: dict[str, Conclusion] = {}
        """What is shown of the conclusions, by uid."""
        if asks_model(reasoner):
            shown_context, held = _context(rt, material)
            request = replace(request, context=shown_context)
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
            echoes.expect(len(own))
            said = [
                statement for statement in own if not echoes.repeats(statement, material.messages)
            ]
            scopes = derive_store.scopes_of(tx, material.session)
        counts["echo"] = len(own) - len(said)
        distinct = _distinct(said)
        counts["repeated"] = len(said) - len(distinct)
        drafts = derive_store.drafts(rt, material, distinct, derived, _times(said))
        replaced = replacing.allowed(distinct, drafts, held, counts)
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
        proposal = None
        if material.creates_card and not asks_model(reasoner):
            own_marks = kept[material.observed.key]
            proposal = card.propose(
                rt, reasoner, [draft for draft in drafts if draft.fingerprint in own_marks]
            )

        def store(tx: Transaction) -> Outcome:
            outcome = derive_store.store(
                rt,
                tx,
                material,
                derive_store.Candidates(drafts, kept, vectors, alike, replaced),
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
    """Whether a reasoner reads as people do. Others take nothing from context."""
    return bool(reasoner.capabilities & {Capability.COSTLY, Capability.REMOTE})


def _derive(reasoner: Reasoner, request: DeriveRequest, session: str) -> tuple[Derived, int]:
    """What the reasoner derives. Messages whose statements contain what only other sessions say are
    derived again without that; also returns how many."""
    derived = reasoner.derive(request)
    confinement = Confinement(request, session)
    keys = confinement.broken_by(derived.statements)
    if not keys:
        return derived, 0
    again = reasoner.derive(confinement.request_for(request, keys))
    kept = [item for item in derived.statements if not keys.intersection(item.message_keys)]
    return (
        replace(
            derived,
            statements=[*kept, *again.statements],
            spent=_sum(derived.spent, again.spent),
            scaffold_tokens=derived.scaffold_tokens + again.scaffold_tokens,
            refused=(*derived.refused, *again.refused),
            unfinished=(*derived.unfinished, *again.unfinished),
        ),
        len(keys),
    )


def _sum(one: Spent, other: Spent) -> Spent:
    return Spent(
        one.model or other.model,
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        one.calls + other.calls,
    )


def _read(rt: Runtime, tx: Transaction, tasks: Sequence[Task], history: int) -> DeriveInput | None:
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
    observers = [peers[key] for key in keys if key in peers and peers[key].kind != SCOPE]
    around = context.observers_of(
        tx,
        session,
        [peer for peer in observers if peer.key != observed.key],
        derive_store.scopes_of(tx, session),
    )
    window = context.window(tx, session, messages, around, history=history)
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
        around=around,
        creates_card=resolve(
            rt.defaults, session.configuration, workspace.configuration
        ).card_create,
    )


def _context(rt: Runtime, material: DeriveInput) -> tuple[DeriveContext, dict[str, Conclusion]]:
    search = HeldSearch(rt, material.workspace, material.messages)
    with rt.storage.read() as tx:
        return context.context_of(
            rt,
            tx,
            session=material.session,
            observed=material.observed,
            observers=material.around,
            first=material.messages[0],
            search=search,
        )


def _texts(shown: DeriveContext) -> list[str]:
    """The stored texts of a context, one by one."""
    summary = [] if shown.summary is None else [shown.summary]
    return [*summary, *shown.card, *(item.content for item in shown.held)]


def _names(material: DeriveInput) -> list[str]:
    slug = material.observed.slug
    return [slug, material.names.get(slug, slug)]


def _request(
    material: DeriveInput, shown: Sequence[Message], instructions: str | None
) -> DeriveRequest:
    own = {message.key for message in material.messages}
    return DeriveRequest(
        observed=material.observed.slug,
        messages=[
            utterance(message, new=message.key in own, zone=material.zones.get(message.key))
            for message in shown
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
        replaced = dict.fromkeys((*first.replaces, *statement.replaces))
        found[fingerprint(content)] = replace(
            first, message_keys=tuple(sources), replaces=tuple(replaced)
        )
    return list(found.values())
