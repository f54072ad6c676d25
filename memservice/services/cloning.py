"""Cloning sessions: messages and members are copied; the copy causes no derivation."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.errors import MemserviceError, NotFound, Unavailable
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.domain.records import (
    ACTIVE,
    DELETING,
    ERASED,
    IMMEDIATELY,
    PENDING,
    Erasure,
    Member,
    Message,
    Session,
    Task,
)
from memservice.runtime import Runtime
from memservice.services import indexing, visibility, workspaces
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.erasure import mentions
from memservice.services.tasks import outbox
from memservice.services.tasks.kinds import unit_of
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

CopyHook = Callable[[Transaction, Session, Mapping[int, int]], None]
"""Called in the transaction of the copy with the new session, and the keys of the copied messages →
those of their copies."""

COPY_BATCH_SIZE = 1_000
"""Number of messages per write. SQLite has a single writer, and all others wait for it."""
ABANDONED_AFTER = timedelta(hours=1)
"""Time after which an incomplete copy is erased: its process has ended."""
INDEX_BATCH_SIZE = 2_000
"""Number of the newest messages that are indexed in the write that stores the clone; tasks index
the others, since indexing takes most of the time."""


class Original(Struct, frozen=True):
    """The source of a copy, read in one transaction."""

    session: Session
    members: Sequence[Member]
    messages: Sequence[Message]
    """In order, with dense positions; the marks of members count them."""
    newest_erasure: int
    """Key of the workspace's newest receipt."""
    erased_peers: tuple[int, ...]
    """Keys of the peers of the session that are being erased."""


def clone(
    rt: Runtime, principal: Principal, workspace_id: str, slug: str, upto: str | None = None
) -> Session:
    """Create a session, named by its own uid, with the metadata, configuration, members and
    messages of an active one; with `upto` (the uid of one of its messages) only the messages up to
    and including that one.

    Messages keep their order and token counts; they get new uids and the current time. Positions
    that erased messages left are closed.
    It becomes visible as a whole.
    """
    policy.require(principal, workspace_id, session_id=slug)
    with rt.storage.read() as tx:
        session = visibility.find(tx, workspace_id, session_id=slug).session
        if session is None or session.state != ACTIVE:
            raise NotFound("Original session not found")
        original = original_of(tx, session, upto)
    return copy(rt, original)


def original_of(tx: Transaction, session: Session, upto: str | None = None) -> Original:
    """The contents of a session to copy, up to and including the message with the uid `upto`.
    Messages of a peer that is being erased are copied too, and erased with the others. Raises
    Unavailable while the mentions of a peer of the session are replaced."""
    last = session.message_count
    if upto is not None:
        message = tx.messages.by_uid(session.key, upto)
        if message is None:
            raise NotFound("Session not found")
        last = message.seq
    messages = tx.messages.run(session.key, 1, last)
    members = tx.members.of_session(session.key, active=False)
    peers = {*(message.author_key for message in messages), *(row.peer_key for row in members)}
    erased = [peer for peer in tx.peers.by_keys(sorted(peers)).values() if peer.kind == ERASED]
    uids = tuple(peer.uid for peer in erased)
    receipts = tx.rows.page(Erasure, equals(target_uid=uids)) if uids else []
    if any(receipt.options.get("mentions") == mentions.REDACT for receipt in receipts):
        raise Unavailable(
            "a peer of this session is being erased, with its mentions: try again when the receipt "
            "says `done`"
        )
    seqs = [message.seq for message in messages]
    return Original(
        session,
        [_with_marks_in(member, seqs) for member in members],
        _without_gaps(messages),
        _newest_erasure(tx, session.workspace_key),
        tuple(peer.key for peer in erased),
    )


def _without_gaps(messages: Sequence[Message]) -> list[Message]:
    """The messages with dense positions and sums of tokens. A task closes the gaps of the session
    itself, and none those of a copy."""
    sums = itertools.accumulate(message.tokens for message in messages)
    return [
        replace(message, seq=number, tokens_through=tokens)
        for number, (message, tokens) in enumerate(zip(messages, sums, strict=True), 1)
    ]


def _with_marks_in(member: Member, seqs: Sequence[int]) -> Member:
    """The member with marks that count the messages with these positions, in rising order."""
    return replace(
        member,
        joined_seq=bisect_right(seqs, member.joined_seq),
        left_seq=None if member.left_seq is None else bisect_right(seqs, member.left_seq),
    )


def _newest_erasure(tx: Transaction, workspace_key: int) -> int:
    own = equals(workspace_key=workspace_key)
    newest = tx.rows.page(Erasure, own, (Order("created_at", True), Order("key", True)), 1)
    return newest[0].key if newest else 0


def copy(rt: Runtime, original: Original, also: CopyHook | None = None) -> Session:
    """Store the copy. It becomes visible in one transaction, which also calls `also`.

    Other writers wait for one batch of it at most: the messages of a long session are stored before
    that transaction, in a session with the state of a deleted one. If the process ends before the
    copy is complete, a task erases it after `ABANDONED_AFTER`.

    Raises Unavailable if something in the workspace was erased since the original was read: the
    copy must not bring it back. What was stored of the copy is erased.
    """
    return _Copy(rt, original).store(also)


class _Copy:
    """One copy of a session. Functions with a transaction may run again, so they change only the
    store."""

    def __init__(self, rt: Runtime, original: Original) -> None:
        self._rt = rt
        self._original = original
        messages = original.messages
        # slow, so before the transaction
        self._terms = [
            indexing.message_terms(message.content) for message in messages[-INDEX_BATCH_SIZE:]
        ]
        uid = new_uid()
        self._session = replace(
            original.session,
            key=0,
            uid=uid,
            slug=uid,
            state=ACTIVE,
            message_count=len(messages),
            token_total=messages[-1].tokens_through if messages else 0,
            revision=0,
            free_positions=0,
            created_at=rt.clock(),
        )

    def store(self, also: CopyHook | None) -> Session:
        if len(self._original.messages) <= COPY_BATCH_SIZE:
            return self._store(also, None)
        hidden = self._rt.storage.write(self._begin)
        try:
            return self._store(also, hidden)
        except MemserviceError:
            self._rt.storage.write(partial(self._abandon, hidden=hidden))
            raise

    def _store(self, also: CopyHook | None, hidden: Session | None) -> Session:
        write = self._rt.storage.write
        last, copies = self._original.messages, list[Message]()
        while hidden is not None and len(last) > COPY_BATCH_SIZE:
            batch, last = last[:COPY_BATCH_SIZE], last[COPY_BATCH_SIZE:]
            copies += write(partial(self._store_batch, target=hidden, messages=batch))

        def complete(tx: Transaction) -> Session:
            self._require_unchanged(tx)
            # No message of it is deleted until the commit: the next check is final.
            tx.sessions.by_key(self._original.session.key, lock=True)
            target = self._visible(tx, hidden, len(copies))
            tx.members.put(
                [
                    replace(member, key=0, session_key=target.key, session=target.slug)
                    for member in self._original.members
                ]
            )
            messages = [*copies, *self._store_batch(tx, target, last)]
            copied_from = {
                new.key: old.key for new, old in zip(messages, self._original.messages, strict=True)
            }
            self._index(tx, target, messages, copied_from)
            if also is not None:
                also(tx, target, {old: new for new, old in copied_from.items()})
            return target

        return write(complete)

    def _begin(self, tx: Transaction) -> Session:
        """A hidden session, with the task that erases it unless the copy is completed."""
        self._require_unchanged(tx)
        hidden = tx.sessions.save(replace(self._session, state=DELETING))
        erasure = outbox.erase_session(self._rt, hidden)
        tx.tasks.add([replace(erasure, not_before=self._session.created_at + ABANDONED_AFTER)])
        return hidden

    def _abandon(self, tx: Transaction, hidden: Session) -> None:
        """Let a worker erase an incomplete copy now."""
        task = outbox.erase_session(self._rt, hidden)
        tx.rows.change(Task, equals(unit=unit_of(task), state=PENDING), not_before=IMMEDIATELY)
        tx.tasks.units_with_work.add(unit_of(task))

    def _store_batch(
        self, tx: Transaction, target: Session, messages: Sequence[Message]
    ) -> list[Message]:
        self._require_unchanged(tx)
        copies = [
            replace(
                message,
                key=0,
                uid=new_uid(),
                session_key=target.key,
                session=target.slug,
                created_at=self._session.created_at,
                stored_at=self._session.created_at,
            )
            for message in messages
        ]
        return list(tx.messages.append(copies)) if copies else []

    def _visible(self, tx: Transaction, hidden: Session | None, message_count: int) -> Session:
        """The session of the copy, in its final state."""
        self._require_unchanged(tx)
        if hidden is None:
            return tx.sessions.save(self._session)
        _require_complete(tx, hidden, message_count)
        target = tx.sessions.save(replace(hidden, state=ACTIVE))
        tx.rows.delete(Task, equals(unit=unit_of(outbox.erase_session(self._rt, target))))
        return target

    def _index(
        self,
        tx: Transaction,
        target: Session,
        messages: Sequence[Message],
        copied_from: Mapping[int, int],
    ) -> None:
        if not messages:
            return
        rt, workspace_key = self._rt, target.workspace_key
        newest, older = messages[-INDEX_BATCH_SIZE:], messages[:-INDEX_BATCH_SIZE]
        authors = tx.peers.by_keys(sorted({message.author_key for message in newest}))
        tasks = indexing.index_messages(
            rt, tx, workspace_key, newest, self._terms, authors, copied_from
        )
        later = indexing.index_messages_later(rt, tx, workspace_key, older, copied_from)
        tx.tasks.add([*later, *tasks])

    def _require_unchanged(self, tx: Transaction) -> None:
        """Check that the workspace exists, and that nothing in it was erased meanwhile."""
        workspace_key = self._session.workspace_key
        if not workspaces.lock_active(tx, workspace_key):
            raise NotFound("Original session not found")
        original = self._original
        is_erased = len(tx.peers.by_keys(original.erased_peers)) < len(original.erased_peers)
        if is_erased or _newest_erasure(tx, workspace_key) != original.newest_erasure:
            raise Unavailable(
                "something was erased in this workspace while the session was copied: try again"
            )


def _require_complete(tx: Transaction, hidden: Session, messages: int) -> None:
    """Check that the stored batches still exist: the copy took less than `ABANDONED_AFTER`."""
    session = tx.sessions.by_key(hidden.key, lock=True)
    if session is None or tx.rows.count(Message, equals(session_key=hidden.key)) != messages:
        raise Unavailable("copying the session took too long and was cancelled: try again")
