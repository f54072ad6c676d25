"""The input of a batch: what is read from the store, and the request to the reasoner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from memservice.domain.configuration import resolve
from memservice.domain.records import (
    DELETING,
    ERASED,
    SCOPE,
    Conclusion,
    Message,
    Peer,
    Session,
    Task,
)
from memservice.pipeline.derive import context
from memservice.pipeline.derive.context import HISTORY, Observers, RelatedSearch
from memservice.pipeline.derive.echo import EchoGuard
from memservice.runtime import Runtime
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import DeriveContext, DeriveRequest, Origin, Reasoner, Utterance
from memservice.spi.storage import Transaction


class DeriveInput(Struct, frozen=True):
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
    """Slug → display name, of the authors that have one."""
    zones: Mapping[int, str]
    """Key of a message → its time zone, if there is one."""
    other_observers: Observers
    instructions: str | None
    creates_card: bool
    """Whether the configuration allows cards."""

    @property
    def names_of_observed(self) -> list[str]:
        slug = self.observed.slug
        return [slug, self.names.get(slug, slug)]


def asks_model(reasoner: Reasoner) -> bool:
    """Whether a reasoner calls a language model. Of the context, others get facts only."""
    return bool(reasoner.capabilities & {Capability.COSTLY, Capability.REMOTE})


def read(
    rt: Runtime, tx: Transaction, reasoner: Reasoner, tasks: Sequence[Task]
) -> DeriveInput | None:
    """The input of the tasks; None if their session or their messages no longer exist."""
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
    if observed is None or observed.kind == ERASED or workspace is None:
        return None
    observers = [
        peers[key] for key in keys if key in peers and peers[key].kind not in (SCOPE, ERASED)
    ]
    others = [peer for peer in observers if peer.key != observed.key]
    other_observers = context.observers_of(tx, session, others, context.scopes_of(tx, session))
    history = HISTORY if asks_model(reasoner) else 0
    window = context.window(tx, session, messages, other_observers, history=history)
    authors = tx.peers.by_keys(sorted({message.author_key for message in window}))
    configuration = resolve(rt.defaults, session.configuration, workspace.configuration)
    return DeriveInput(
        workspace=workspace.slug,
        session=session,
        observed=observed,
        observers=observers,
        messages=messages,
        window=window,
        names=context.names_of(authors.values()),
        zones=_zones(rt, window, authors),
        other_observers=other_observers,
        instructions=tasks[0].payload.get("instructions"),
        creates_card=configuration.card_create,
    )


def _zones(rt: Runtime, window: Sequence[Message], authors: Mapping[int, Peer]) -> dict[int, str]:
    return {
        message.key: zone
        for message in window
        if (zone := context.zone_of(rt, message, authors.get(message.author_key)))
    }


def request_of(
    rt: Runtime, reasoner: Reasoner, derive_input: DeriveInput
) -> tuple[DeriveRequest, dict[str, Conclusion]]:
    """The request to the reasoner, and the conclusions in it by uid."""
    if not asks_model(reasoner):
        may_cross = rt.settings.deriver.context_across_sessions
        session = None if may_cross else derive_input.session
        with rt.storage.read() as tx:
            rows = context.facts_of(tx, derive_input.observed, session)
        facts = DeriveContext(facts=[context.known_conclusion(row) for row in rows])
        return _request(derive_input, derive_input.window, facts), {row.uid: row for row in rows}
    messages = derive_input.window
    search = RelatedSearch(rt, derive_input.workspace, derive_input.messages)
    with rt.storage.read() as tx:
        if Capability.COSTLY in reasoner.capabilities:
            messages = _without_echoes(rt, tx, derive_input)
        derive_context, context_rows = context.context_of(
            rt,
            tx,
            session=derive_input.session,
            observed=derive_input.observed,
            observers=derive_input.other_observers,
            first=derive_input.messages[0],
            search=search,
        )
    return _request(derive_input, messages, derive_context), context_rows


def _without_echoes(rt: Runtime, tx: Transaction, derive_input: DeriveInput) -> list[Message]:
    """The window for a model: it would rephrase an echo, which then could not be recognized. The
    statements of other reasoners keep the words of an echo, so it is found in them."""
    echoes = EchoGuard(rt, tx, derive_input.session, derive_input.observed)
    own = {message.key: message for message in echoes.without_echoes(derive_input.messages)}
    return [own.get(message.key, message) for message in derive_input.window]


def _request(
    derive_input: DeriveInput, messages: Sequence[Message], derive_context: DeriveContext
) -> DeriveRequest:
    own = {message.key for message in derive_input.messages}
    return DeriveRequest(
        observed=derive_input.observed.slug,
        messages=[
            utterance(message, new=message.key in own, zone=derive_input.zones.get(message.key))
            for message in messages
        ],
        instructions=derive_input.instructions,
        names=dict(derive_input.names),
        origin=Origin(derive_input.session.workspace_key, derive_input.workspace),
        context=derive_context,
    )


def utterance(message: Message, new: bool = True, zone: str | None = None) -> Utterance:
    return Utterance(
        message.key, message.uid, message.author, message.content, message.created_at, new, zone
    )
