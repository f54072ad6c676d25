"""Cloning sessions: messages and members are copied, nothing is derived from the copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memservice.domain.errors import NotFound
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, Member, Message, Session
from memservice.domain.text import analyse
from memservice.runtime import Runtime
from memservice.services import access, indexing, places, workspaces
from memservice.services.principal import Principal
from memservice.spi.storage import View

Copied = Callable[[View, Session, Mapping[int, int]], None]
"""Told of a copy in its transaction: the new session, and for the key of each message that was copied that of its copy."""

INDEXED_AT_ONCE = 2_000
"""The newest messages of a clone are indexed in the write that stores it, others soon after: indexing takes most of the time."""


@dataclass(frozen=True, slots=True)
class Original:
    """What is copied, read in one view."""

    session: Session
    members: Sequence[Member]
    messages: Sequence[Message]


def clone(rt: Runtime, who: Principal, workspace: str, slug: str, upto: str | None = None) -> Session:
    """A new session, named by its own uid, with the metadata, configuration, members and messages of an active one; with `upto` (the
    uid of one of its messages) only the messages up to and including that one.

    Messages keep their order, positions and token counts; they get new uids and the present time. It becomes visible as a whole.
    """
    access.require(who, workspace, session=slug)
    with rt.storage.read() as view:
        session = places.locate(view, workspace, session=slug).session
        if session is None or session.state != ACTIVE:
            raise NotFound("Original session not found")
        original = original_of(view, session, upto)
    return copy(rt, original)


def original_of(view: View, session: Session, upto: str | None = None) -> Original:
    """What there is to copy of a session, up to and including the message of the uid `upto`."""
    last = session.message_count
    if upto is not None:
        message = view.messages.by_uid(session.key, upto)
        if message is None:
            raise NotFound("Session not found")
        last = message.seq
    return Original(session, view.members.of_session(session.key, active=False), view.messages.run(session.key, 1, last))


def copy(rt: Runtime, original: Original, also: Copied | None = None) -> Session:
    """Store the copy, in one transaction, and what `also` copies."""
    # Everything that takes long is done before the transaction.
    terms = [analyse(message.content) for message in original.messages[-INDEXED_AT_ONCE:]]
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

    def store(view: View) -> Session:
        if not workspaces.hold(view, session.workspace_key):
            raise NotFound("Original session not found")
        stored = view.sessions.save(session)
        view.members.put([_member_of(stored, member) for member in original.members])
        like: dict[int, int] = {}
        if original.messages:
            copies = [
                replace(message, key=0, uid=new_uid(), session_key=stored.key, session=stored.slug, created_at=now)
                for message in original.messages
            ]
            messages = view.messages.append(copies)
            authors = view.peers.by_keys(sorted({message.author_key for message in messages}))
            like = {new.key: old.key for new, old in zip(messages, original.messages, strict=True)}
            newest, older = messages[-INDEXED_AT_ONCE:], messages[:-INDEXED_AT_ONCE]
            tasks = indexing.index_messages(rt, view, stored.workspace_key, newest, terms, authors, like)
            view.tasks.add([*indexing.index_messages_later(rt, view, stored.workspace_key, older, like), *tasks])
        if also is not None:
            also(view, stored, {old: new for new, old in like.items()})
        return stored

    return rt.storage.write(store)


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
