"""Cloning sessions: messages and members are copied, nothing is derived from the copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from memservice.domain.errors import NotFound, Unavailable
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, DELETING, Member, Message, Session, Task
from memservice.domain.text.analysis import analyse
from memservice.runtime import Runtime
from memservice.services import indexing, visibility, workspaces
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.tasks import outbox
from memservice.services.tasks.kinds import unit_of
from memservice.spi.storage import Transaction

Copied = Callable[[Transaction, Session, Mapping[int, int]], None]
"""Told of a copy in its transaction: the new session, and for the key of each message that was
copied that of its copy."""

COPY_BATCH_SIZE = 1_000
"""Messages stored in one write. SQLite has one writer at a time, and all others wait for it."""
ABANDONED_AFTER = timedelta(hours=1)
"""A copy that is not whole by then is erased: the process that made it has ended."""
INDEX_BATCH_SIZE = 2_000
"""The newest messages of a clone are indexed in the write that stores it, others soon after:
indexing takes most of the time."""


@dataclass(frozen=True, slots=True)
class Original:
    """What is copied, read in one view."""

    session: Session
    members: Sequence[Member]
    messages: Sequence[Message]


def clone(
    rt: Runtime, principal: Principal, workspace_id: str, slug: str, upto: str | None = None
) -> Session:
    """A new session, named by its own uid, with the metadata, configuration, members and messages
    of an active one; with `upto` (the uid of one of its messages) only the messages up to and
    including that one.

    Messages keep their order, positions and token counts; they get new uids and the present time.
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
    """What there is to copy of a session, up to and including the message of the uid `upto`."""
    last = session.message_count
    if upto is not None:
        message = tx.messages.by_uid(session.key, upto)
        if message is None:
            raise NotFound("Session not found")
        last = message.seq
    return Original(
        session,
        tx.members.of_session(session.key, active=False),
        tx.messages.run(session.key, 1, last),
    )


def copy(rt: Runtime, original: Original, also: Copied | None = None) -> Session:
    """Store the copy, and what `also` copies. It becomes visible in one transaction, in which
    `also` is called.

    Other writers of the storage wait for a portion of it at most: the messages of a long session
    are stored before that, in a session that counts as deleted. If this ends before the copy is
    whole, a task that is due by then erases what was stored.
    """
    # takes long: not in a transaction
    terms = [analyse(message.content) for message in original.messages[-INDEX_BATCH_SIZE:]]
    through = original.messages[-1].tokens_through if original.messages else 0
    uid, now = new_uid(), rt.clock()
    session = replace(
        original.session,
        key=0,
        uid=uid,
        slug=uid,
        state=ACTIVE,
        message_count=len(original.messages),
        token_total=through,
        created_at=now,
    )

    def portion(tx: Transaction, room: Session, messages: Sequence[Message]) -> list[Message]:
        if not workspaces.hold(tx, session.workspace_key):
            raise NotFound("Original session not found")
        copies = [
            replace(
                message,
                key=0,
                uid=new_uid(),
                session_key=room.key,
                session=room.slug,
                created_at=now,
            )
            for message in messages
        ]
        return list(tx.messages.append(copies)) if copies else []

    def begin(tx: Transaction) -> Session:
        if not workspaces.hold(tx, session.workspace_key):
            raise NotFound("Original session not found")
        hidden = tx.sessions.save(replace(session, state=DELETING))
        tx.tasks.add([replace(outbox.erase_session(rt, hidden), not_before=now + ABANDONED_AFTER)])
        return hidden

    stored: list[Message] = []
    hidden: Session | None = None
    last = original.messages
    while len(last) > COPY_BATCH_SIZE:
        room = hidden = hidden or rt.storage.write(begin)
        first, last = last[:COPY_BATCH_SIZE], last[COPY_BATCH_SIZE:]
        stored += rt.storage.write(partial(portion, room=room, messages=first))

    def complete(tx: Transaction) -> Session:
        if hidden is None:
            if not workspaces.hold(tx, session.workspace_key):
                raise NotFound("Original session not found")
            room = tx.sessions.save(session)
        else:
            _require_whole(tx, hidden, len(stored))
            room = tx.sessions.save(replace(hidden, state=ACTIVE))
            tx.rows.delete(Task, equals(unit=unit_of(outbox.erase_session(rt, room))))
        tx.members.put([_member_of(room, member) for member in original.members])
        messages = [*stored, *portion(tx, room, last)]
        like = {new.key: old.key for new, old in zip(messages, original.messages, strict=True)}
        if messages:
            newest, older = messages[-INDEX_BATCH_SIZE:], messages[:-INDEX_BATCH_SIZE]
            authors = tx.peers.by_keys(sorted({message.author_key for message in newest}))
            tasks = indexing.index_messages(
                rt, tx, room.workspace_key, newest, terms, authors, like
            )
            tx.tasks.add(
                [*indexing.index_messages_later(rt, tx, room.workspace_key, older, like), *tasks]
            )
        if also is not None:
            also(tx, room, {old: new for new, old in like.items()})
        return room

    return rt.storage.write(complete)


def _require_whole(tx: Transaction, hidden: Session, messages: int) -> None:
    """What was stored of a copy is still there: it took less time than after which it counts as
    abandoned."""
    session = tx.sessions.by_key(hidden.key, lock=True)
    if session is None or tx.rows.count(Message, equals(session_key=hidden.key)) != messages:
        raise Unavailable("copying the session took too long and was given up: try again")


def _member_of(copied: Session, member: Member) -> Member:
    """As in the original, whose later messages the copy may not have."""
    last = copied.message_count
    return replace(
        member,
        key=0,
        session_key=copied.key,
        session=copied.slug,
        joined_seq=min(member.joined_seq, last),
        left_seq=None if member.left_seq is None else min(member.left_seq, last),
    )
