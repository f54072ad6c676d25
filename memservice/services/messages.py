"""Messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from memservice.domain import tokens
from memservice.domain.errors import NotFound
from memservice.domain.filters import (
    TRUE,
    Condition,
    all_of,
    parse_filters,
    resources,
)
from memservice.domain.ids import new_uid
from memservice.domain.records import Message, Peer, Session, Workspace
from memservice.domain.text.relatives import IndexTerms
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import (
    few_matches,
    idempotency,
    indexing,
    peers,
    remembered_pages,
    sessions,
    validation,
    visibility,
    workspaces,
    write_hooks,
)
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.events import emit
from memservice.services.matching_totals import matching_total
from memservice.services.paging import Page, Paging
from memservice.services.tasks import batching, outbox
from memservice.services.visible_totals import visible_total
from memservice.spi.storage import Transaction

QUEUE_SECONDS = 5.0
"""How long a request waits for others of its process that write to the same session, before it
begins its transaction all the same: they may wait for the database."""


class Draft(Struct, frozen=True):
    """A message that is not stored yet."""

    content: str
    author: str
    metadata: Mapping[str, Any] | None = None
    configuration: Mapping[str, Any] | None = None
    created_at: datetime | None = None
    internal: Mapping[str, Any] | None = None


class Prepared(Struct, frozen=True):
    """A draft after all work that needs no transaction."""

    message: Message
    """The message without keys, names and positions, which are known only in the transaction."""
    author: str
    configuration: Mapping[str, Any] | None
    terms: IndexTerms


def create(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    session_id: str,
    drafts: Sequence[Draft],
    idempotency_key: str | None = None,
) -> list[Message]:
    """Store messages in order, all or none, with the tasks that they cause.

    Creates the workspace, the session and the authors that are missing, and makes the authors
    members. With an idempotency key that was used in this session before, returns the messages
    stored then and stores nothing; InvalidInput if the request differs.
    """
    policy.require(principal, workspace_id, session_id=session_id)
    return create_in(rt, workspace_id, session_id, drafts, idempotency_key)


def create_in(
    rt: Runtime,
    workspace_id: str,
    session_id: str,
    drafts: Sequence[Draft],
    idempotency_key: str | None = None,
) -> list[Message]:
    """Like `create`, for an authorised caller."""
    once = (
        None
        if idempotency_key is None
        else idempotency.request(idempotency_key, [_request_content(draft) for draft in drafts])
    )
    prepared = [prepare(rt, draft, ("messages", index)) for index, draft in enumerate(drafts)]

    def store(tx: Transaction) -> tuple[list[Message], bool]:
        workspace, _ = workspaces.ensure(rt, tx, workspace_id)
        authors = _authors(rt, tx, workspace.key, prepared)
        session, _ = sessions.ensure(rt, tx, workspace, session_id)
        replayed = idempotency.stored_messages(tx, session, once)
        if replayed is not None:
            return replayed, False
        messages = append(rt, tx, workspace, session, authors, prepared)
        idempotency.remember(rt, tx, session, once, messages)
        return messages, True

    # Without this queue, each request would wait for the lock of the session's row with a
    # connection of its own, and requests for other sessions would wait for connections.
    with rt.session_writers.hold((workspace_id, session_id), QUEUE_SECONDS):
        messages, is_new = rt.storage.write(store)
    if is_new:
        emit.messages_created(rt, workspace_id, messages)
    return messages


def append(
    rt: Runtime,
    tx: Transaction,
    workspace: Workspace,
    session: Session,
    authors: Mapping[str, Peer],
    prepared: Sequence[Prepared],
) -> list[Message]:
    """Store messages at the end of a session whose row is locked, with the tasks that they cause.
    Their authors become members."""
    by_key = {peer.key: peer for peer in authors.values()}
    members = tx.members.authors_and_observers(session.key, sorted(by_key))
    joined = sessions.join(rt, tx, session, authors, members=members)
    seq, through = session.message_count, session.token_total
    now = rt.clock()
    rows: list[Message] = []
    for item in prepared:
        seq, through = seq + 1, through + item.message.tokens
        author = authors[item.author]
        rows.append(
            replace(
                item.message,
                workspace_key=workspace.key,
                session_key=session.key,
                author_key=author.key,
                session=session.slug,
                author=author.slug,
                seq=seq,
                tokens_through=through,
                stored_at=now,
            )
        )
    messages = tx.messages.append(rows)
    tx.sessions.save(replace(session, message_count=seq, token_total=through))
    configurations = [item.configuration for item in prepared]
    active = sorted(
        {each.peer_key: each for each in (*members, *joined) if each.left_at is None}.values(),
        key=lambda each: each.key,
    )
    tasks = batching.delay(
        rt, outbox.after_messages(rt, workspace, session, messages, configurations, by_key, active)
    )
    tasks += indexing.index_messages(
        rt, tx, workspace.key, messages, [item.terms for item in prepared], by_key
    )
    tx.tasks.add(tasks)
    batching.after_messages(rt, tx, tasks)
    return messages


def _request_content(draft: Draft) -> dict[str, Any]:
    """The caller's part of a draft, without the service's notes."""
    return asdict(replace(draft, internal=None))


def prepare(rt: Runtime, draft: Draft, argument: validation.Argument) -> Prepared:
    """The work on a draft before the transaction; `argument` names the draft."""
    content: str = strip_nul(draft.content)
    message = Message(
        uid=new_uid(),
        workspace_key=0,
        session_key=0,
        author_key=0,
        session="",
        author=draft.author,
        seq=0,
        content=content,
        metadata=validation.metadata(draft.metadata, (*argument, "metadata")) or {},
        internal=dict(draft.internal or {}),
        tokens=0,
        tokens_through=0,
        created_at=draft.created_at or rt.clock(),
    )
    message = write_hooks.apply(rt.plugins, message)
    return Prepared(
        message=replace(message, tokens=tokens.count(message.content)),
        author=draft.author,
        configuration=validation.settings_of(rt, draft.configuration, (*argument, "configuration")),
        terms=indexing.message_terms(message.content),
    )


def _authors(
    rt: Runtime, tx: Transaction, workspace_key: int, prepared: Sequence[Prepared]
) -> dict[str, Peer]:
    slugs = [item.author for item in prepared]
    peers_by_id = tx.peers.by_slugs(workspace_key, sorted(set(slugs)))
    for index, slug in enumerate(slugs):
        validation.refuse_scope(slug, peers_by_id.get(slug), ("messages", index, "peer_id"))
    missing = [slug for slug in slugs if slug not in peers_by_id]
    for index, slug in enumerate(slugs):
        if slug not in peers_by_id:
            validation.require_name(slug, ("messages", index, "peer_id"))
    return (
        peers_by_id | peers.ensure(rt, tx, workspace_key, missing, ("messages",))
        if missing
        else peers_by_id
    )


def page(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    session_id: str,
    filters: object,
    paging: Paging,
) -> Page[Message]:
    """Messages in the order of storage, regardless of their `created_at`."""
    policy.require(
        principal, workspace_id, session_id=session_id, member=True, needs=Permission.VIEW
    )
    condition = parse_filters(filters, resources.MESSAGE, workspace_id=workspace_id)
    with rt.storage.read_committed() as tx:
        located = visibility.find(tx, workspace_id, session_id=session_id)
        session = located.session
        if session is None:
            return paging.empty()
        if not located.is_erasing:
            return (
                _page_of_all(rt, tx, session, paging)
                if condition == TRUE
                else _matching_page(rt, tx, session, filters, condition, paging)
            )
    with rt.storage.read() as tx:
        session = visibility.find(tx, workspace_id, session_id=session_id).session
        if session is None:
            return paging.empty()
        return page_without_erased(rt, tx, session, condition, paging)


def _page_of_all(rt: Runtime, tx: Transaction, session: Session, paging: Paging) -> Page[Message]:
    """Like `page_of`, with messages that this process may remember."""
    # Positions are dense, so a page is an index range and the total is known: page 90 costs what
    # page 1 costs.
    total = session.message_count
    if paging.reverse:
        last = total - paging.offset
        items = remembered_pages.page(rt, tx, session, max(1, last - paging.size + 1), last)[::-1]
    else:
        items = remembered_pages.page(
            rt, tx, session, paging.offset + 1, paging.offset + paging.size
        )
    return Page(items, total, paging.page, paging.size)


def _matching_page(
    rt: Runtime,
    tx: Transaction,
    session: Session,
    filters: object,
    condition: Condition,
    paging: Paging,
) -> Page[Message]:
    """Like `page_of`, with matches or a total that this process may remember."""
    remembered = few_matches.page_of_few(rt, tx, session, filters, condition, paging)
    if remembered is not None:
        return remembered
    items = tx.messages.page(session.key, condition, paging.reverse, paging.size, paging.offset)
    if len(items) < paging.size and (items or not paging.offset):  # nothing follows the page
        if not paging.offset:
            few_matches.remember(rt, tx, session, filters, [message.seq for message in items])
        return Page(items, paging.offset + len(items), paging.page, paging.size)
    total = matching_total(rt, tx, session, filters, condition)
    if items:  # one of them may have been added after the session was read
        total = max(total, paging.offset + len(items))
    return Page(items, total, paging.page, paging.size)


def page_without_erased(
    rt: Runtime, tx: Transaction, session: Session, condition: Condition, paging: Paging
) -> Page[Message]:
    """Like `page_of`, without the messages of peers that are being erased. `tx`: a consistent
    transaction."""
    erased = visibility.erased_peers(tx, session.workspace_key)
    if not erased:
        return page_of(tx, session, condition, paging)
    visible = visibility.not_of(erased, "author_key")
    if condition != TRUE:
        return page_of(tx, session, all_of(condition, visible), paging)
    items = tx.messages.page(session.key, visible, paging.reverse, paging.size, paging.offset)
    total = visible_total(rt, tx, session, erased)
    return Page(items, total, paging.page, paging.size)


def page_of(
    tx: Transaction, session: Session, condition: Condition, paging: Paging
) -> Page[Message]:
    """The matching messages of a session, in the order of storage."""
    if condition == TRUE:
        # Positions are dense, so a page is an index range and the total is known: page 90 costs
        # what page 1 costs.
        total, first = session.message_count, paging.offset + 1
        if paging.reverse:
            items = tx.messages.run(
                session.key,
                total - paging.offset - paging.size + 1,
                total - paging.offset,
                reverse=True,
            )
        else:
            items = tx.messages.run(session.key, first, paging.offset + paging.size)
        return Page(items, total, paging.page, paging.size)
    items, total = tx.messages.page_and_total(
        session.key, condition, paging.reverse, paging.size, paging.offset
    )
    return Page(items, total, paging.page, paging.size)


def _missing(uid: str) -> NotFound:
    return NotFound(f"Message with ID {uid} not found")


def get(rt: Runtime, principal: Principal, workspace_id: str, session_id: str, uid: str) -> Message:
    policy.require(
        principal, workspace_id, session_id=session_id, member=True, needs=Permission.VIEW
    )
    with rt.storage.read_committed() as tx:
        located = visibility.find(tx, workspace_id, session_id=session_id, message_uid=uid)
        message = located.message
        if message is not None and located.is_erasing:
            left = visibility.without_erased(tx, message.workspace_key, [message])
            message = left[0] if left else None
    if message is None:
        raise _missing(uid)
    return message


def update(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    session_id: str,
    uid: str,
    metadata: Mapping[str, Any] | None,
) -> Message:
    """Replace the metadata; None: unchanged. The content never changes, and the message is not
    derived again."""
    policy.require(principal, workspace_id, session_id=session_id)
    new_metadata = validation.metadata(metadata)

    def change(tx: Transaction) -> Message:
        # Lock the session, so that it is not deleted, and the message erased, before the write.
        _, session = sessions.require(tx, workspace_id, session_id, lock=True)
        message = tx.messages.by_uid(session.key, uid)
        if message is None:
            raise _missing(uid)
        return (
            message
            if new_metadata is None
            else tx.messages.save(replace(message, metadata=new_metadata))
        )

    return rt.storage.write(change)
