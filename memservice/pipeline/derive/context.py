"""The context of a reasoner beside the new messages: earlier messages of the session, its summary,
the observed peer's card, and stored conclusions.

Conclusions are stored for every observer, and many are read by session. So they may contain only
information that every observer, and every reader of the session, could have learnt there:

- Earlier messages and summaries are included only if every observer was a member by then.
- If the observed peer is not the only observer, or the session is in a scope, the context has no
  card, and only the conclusions that all observers hold.
- Information that only the card or another session has is context, and does not get into new
  conclusions: `Confinement`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.filters import all_of, equals
from memservice.domain.records import EXPLICIT, LIVE, SCOPE, Conclusion, Message, Peer, Session
from memservice.domain.text.particulars import particulars
from memservice.domain.time_zones import first_known, local_stamp
from memservice.runtime import Runtime
from memservice.services.auth.bounds import Bounds, of_observer
from memservice.services.peers import display_name
from memservice.services.retrieval.search import Search
from memservice.spi.index_filter import IndexFilter
from memservice.spi.reasoner import DeriveContext, DeriveRequest, Known, Statement, Utterance
from memservice.spi.repositories.base import NEWEST
from memservice.spi.storage import Transaction

HISTORY = 10
"""Messages before the first new one."""
MAX_RELATED = 10
"""Stored conclusions in the context."""
CANDIDATES = 30
"""Conclusions per search, before the ones that not all observers hold are left out."""
MAX_FACTS = 100
"""Newest conclusions among which the facts for a reasoner without a model are looked for."""
MAX_QUERY_CHARS = 4_000
ZONE = "timezone"
"""Key in the metadata of a message or a peer."""


class Observers(Struct, frozen=True):
    """All observers of a batch except the observed peer."""

    peers: Sequence[Peer]
    scopes: Sequence[Peer]
    joined_seq: int
    """Position of the session's newest message when the last of the peers joined; 0: all joined
    before the first message."""

    @property
    def all(self) -> list[Peer]:
        return [*self.peers, *self.scopes]


def scopes_of(tx: Transaction, session: Session) -> list[Peer]:
    """The current scopes of the session."""
    keys = [
        member.peer_key for member in tx.members.of_session(session.key) if member.kind == SCOPE
    ]
    return list(tx.peers.by_keys(keys).values())


def observers_of(
    tx: Transaction, session: Session, peers: Sequence[Peer], scopes: Sequence[Peer]
) -> Observers:
    keys = {peer.key for peer in peers}
    joined = [
        member.joined_seq
        for member in tx.members.of_session(session.key, active=False)
        if member.peer_key in keys
    ]
    return Observers(peers, scopes, max(joined, default=0))


def window(
    tx: Transaction,
    session: Session,
    messages: Sequence[Message],
    observers: Observers,
    *,
    history: int,
) -> list[Message]:
    """The new messages, the messages of others between them, and up to `history` earlier messages,
    in order. The message directly before is always included if another peer wrote it, so that an
    answer is read with its question."""
    first, author = messages[0].seq, messages[0].author_key
    messages_around = tx.messages.run(session.key, first - max(history, 1), messages[-1].seq)
    return [
        message
        for message in messages_around
        if message.seq >= first
        or (history and message.seq > observers.joined_seq)
        or (message.seq == first - 1 and message.author_key != author)
    ]


def summary(tx: Transaction, session: Session, first: Message, observers: Observers) -> str | None:
    """The newest summary of the messages before the first new message."""
    if observers.joined_seq:
        return None
    summaries = tx.summaries.of_session(session.key).values()
    covered = tx.messages.by_keys([item.message_key for item in summaries])
    earlier = [
        (covered[item.message_key].seq, len(item.content), item.content)
        for item in summaries
        if item.message_key in covered and covered[item.message_key].seq < first.seq
    ]
    return max(earlier)[2] if earlier else None


def card(tx: Transaction, observed: Peer) -> list[str]:
    card = tx.cards.one(observed.key, observed.slug)
    return [] if card is None else list(card.lines)


class RelatedSearch:
    """A search for related conclusions. Create it with no transaction open: the embedder may be
    remote."""

    def __init__(self, rt: Runtime, workspace_id: str, messages: Sequence[Message]) -> None:
        text = "\n".join(message.content for message in messages)[:MAX_QUERY_CHARS]
        self._keys = {message.key for message in messages}
        self._search = Search.begin(rt, workspace_id, text, "search_memory")

    def related(
        self, tx: Transaction, observed: Peer, observers: Observers, session: Session | None
    ) -> list[Conclusion]:
        """Live conclusions of the observed peer about itself that all other observers hold too, the
        closest first; only those of `session` unless it is None."""
        pair = equals(observer_key=observed.key, observed_key=observed.key)
        index_filter = IndexFilter(observers=(observed.key,), observed=(observed.key,))
        bounds: Bounds = of_observer(tx, observed).with_conclusions(pair, index_filter)
        if session is not None:
            bounds = bounds.stated_in([session.key])
        matches = self._search.conclusions(tx, bounds, CANDIDATES)
        rows = [
            item.conclusion
            for item in matches
            if not self._keys.intersection(item.conclusion.message_keys)
        ]
        for observer in observers.all:
            rows = _also_held(tx, rows, observer, observed)
        distinct = {row.fingerprint: row for row in reversed(rows)}
        chosen = {row.key for row in distinct.values()}
        return [row for row in rows if row.key in chosen][:MAX_RELATED]


def _also_held(
    tx: Transaction, rows: Sequence[Conclusion], observer: Peer, observed: Peer
) -> list[Conclusion]:
    collection = tx.conclusions.collection(observer.key, observed.key)
    if collection is None or not rows:
        return []
    fingerprints = {row.fingerprint for row in rows}
    same_by_level = {
        level: tx.conclusions.same(collection.key, level, sorted(fingerprints), None)
        for level in {row.level for row in rows}
    }
    return [row for row in rows if row.fingerprint in same_by_level[row.level]]


def facts_of(tx: Transaction, observed: Peer, session: Session | None) -> list[Conclusion]:
    """The newest live facts that the observed peer stated about itself; only those of `session`
    unless it is None."""
    collection = tx.conclusions.collection(observed.key, observed.key)
    if collection is None:
        return []
    condition = equals(collection_key=collection.key, state=LIVE, level=EXPLICIT)
    if session is not None:
        condition = all_of(condition, equals(session_key=session.key))
    newest = tx.rows.page(Conclusion, condition, NEWEST, limit=MAX_FACTS)
    return [row for row in newest if row.kind in (None, "fact") and row.certainty is None]


def known_conclusion(row: Conclusion) -> Known:
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


def zone_of(rt: Runtime, message: Message, author: Peer | None) -> str | None:
    """The time zone in the metadata of the message, else of its author, else of the settings."""
    of_author = None if author is None else author.metadata.get(ZONE)
    return first_known(message.metadata.get(ZONE), of_author, rt.settings.deriver.timezone)


class Confinement:
    """Keeps information that only the card or another session has out of new conclusions: their
    names and numbers must occur in the session."""

    def __init__(self, request: DeriveRequest, session: str) -> None:
        context = request.context
        elsewhere = [item.content for item in context.held if item.session != session]
        own = [item.content for item in context.held if item.session == session]
        self._inside = replace(
            context, card=(), held=[item for item in context.held if item.session == session]
        )
        inside = [
            *own,
            context.summary or "",
            request.instructions or "",
            *(message.content for message in request.messages),
            *(message.author for message in request.messages),
            *(local_stamp(message.sent_at, message.zone) for message in request.messages),
            request.observed,
            *request.names.values(),
        ]
        words = {word for text in inside for word in _WORD.findall(text.casefold())}
        self._foreign = _particulars([*context.card, *elsewhere]) - words

    def broken_by(self, statements: Iterable[Statement]) -> set[int]:
        """Keys of the messages that statements with foreign names or numbers cite."""
        if not self._foreign:
            return set()
        return {
            key
            for statement in statements
            if self._foreign & _particulars([statement.content])
            for key in statement.message_keys
        }

    def request_for(self, request: DeriveRequest, keys: Collection[int]) -> DeriveRequest:
        """The same request for these new messages only, without the card and the conclusions of
        other sessions."""
        messages: list[Utterance] = [
            replace(message, new=message.new and message.key in keys)
            for message in request.messages
        ]
        return replace(request, messages=messages, context=self._inside)


_WORD = re.compile(r"\d+|[^\W\d_]+")


def _particulars(texts: Iterable[str]) -> set[str]:
    """The words of names, and numbers. `2024-05-17` is three of them."""
    named = {word for text in texts for kind, word in particulars(text) if kind != "denied"}
    return {part for word in named for part in _WORD.findall(word)}


def names_of(peers: Iterable[Peer]) -> dict[str, str]:
    """Slug → display name, of the peers with a display name."""
    return {peer.slug: name for peer in peers if (name := display_name(peer))}


def context_of(
    rt: Runtime,
    tx: Transaction,
    *,
    session: Session,
    observed: Peer,
    observers: Observers,
    first: Message,
    search: RelatedSearch,
) -> tuple[DeriveContext, dict[str, Conclusion]]:
    """The context for a reasoner that calls a model, and the conclusions in it by uid."""
    may_cross = rt.settings.deriver.context_across_sessions
    related = search.related(tx, observed, observers, None if may_cross else session)
    derive_context = DeriveContext(
        summary=summary(tx, session, first, observers),
        card=card(tx, observed) if may_cross and not observers.all else (),
        held=[known_conclusion(row) for row in related],
    )
    return derive_context, {row.uid: row for row in related}
