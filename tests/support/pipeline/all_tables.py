"""Something in every table, and how much is left of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.services import cards, conclusions, messages, sessions
from memservice.services.conclusions import ConclusionDraft
from memservice.services.messages import Draft
from memservice.services.sessions import SessionFields
from memservice.services.tasks import outbox
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.schema import TABLES
from memservice.spi.storage import Storage, Transaction
from memservice.spi.text import TextRow
from memservice_memory.storage import MemoryStorage
from support.pipeline.pipeline import PRINCIPAL, Pipeline
from support.stores.stores import copy_contents


def fill(pipeline: Pipeline, workspace: str, session: str, turns: int = 25) -> int:
    """Put something into every table, from this session with so many messages of each of two
    peers. Returns the session's key."""
    rt = pipeline.rt
    sentences = {"alice": "I own {} apples.", "bob": "My sister paints {} boats."}
    drafts = [Draft(text.format(n), peer) for n in range(turns) for peer, text in sentences.items()]
    sessions.get_or_create(rt, PRINCIPAL, workspace, session, SessionFields(scopes=["team"]))
    message_rows = messages.create(
        rt, PRINCIPAL, workspace, session, drafts, idempotency_key=f"key-{session}"
    )
    pipeline.work()
    conclusions.create(
        rt, PRINCIPAL, workspace, [ConclusionDraft("likes pears", "alice", "bob", session)]
    )
    cards.put(rt, PRINCIPAL, workspace, "alice", None, ["has apples"])
    rt.storage.write(lambda tx: _more(pipeline, tx, message_rows))
    return message_rows[0].session_key


Contents = dict[str, bytes | MemoryStorage]
"""Kind of storage → what a store holds that was filled before."""


def filled_once(
    contents: Contents,
    uri: str,
    open_store: Callable[[], Pipeline],
    fill_store: Callable[[Pipeline], object],
) -> Pipeline:
    """Open the empty store at `uri` and fill it. The second store of a kind, and each after it,
    gets a copy of what the first one holds: to fill one takes a quarter of a second of CPU."""
    kind, _, file = uri.partition(":///")
    content = contents.get(kind)
    if isinstance(content, bytes):
        Path(file).write_bytes(content)
    pipeline = open_store()
    if isinstance(content, MemoryStorage):
        copy_contents(content, pipeline.rt.storage)
    if content is None:
        fill_store(pipeline)
        contents[kind] = _content(pipeline.rt.storage, file)
    return pipeline


def _content(storage: Storage, file: str) -> bytes | MemoryStorage:
    if isinstance(storage, MemoryStorage):
        copy = MemoryStorage()
        copy_contents(storage, copy)
        return copy
    with closing(sqlite3.connect(file)) as connection:
        return connection.serialize()


def _more(pipeline: Pipeline, tx: Transaction, messages: list[r.Message]) -> None:
    """What no service of this generation writes, and what is there only for a moment."""
    now, workspace, session = (
        pipeline.clock(),
        messages[0].workspace_key,
        tx.sessions.by_key(messages[0].session_key),
    )
    scope = tx.peers.by_slug(workspace, "scope.team")
    assert session is not None
    assert scope is not None
    about: dict[str, Any] = {"workspace_key": workspace, "created_at": now}
    owner = messages[0].author_key
    (named,) = tx.rows.put(
        [r.NamedCollection(uid=new_uid(), owner_key=owner, name=new_uid(), **about)]
    )
    (document,) = tx.rows.put(
        [
            r.Document(
                uid=new_uid(),
                owner_key=owner,
                collection_key=named.key,
                content="a document",
                **about,
            )
        ]
    )
    pipeline.rt.storage.text.add(tx, "document", workspace, [TextRow(document.key, ["document"])])
    note = r.Metamessage(uid=new_uid(), owner_key=owner, label="note", content="x", **about)
    tx.rows.put(
        [
            note,
            replace(note, uid=new_uid(), session_key=session.key),
            replace(note, uid=new_uid(), session_key=session.key, message_key=messages[3].key),
            replace(note, uid=new_uid(), message_key=messages[4].key),
        ]
    )
    (hook,) = tx.rows.put(
        [
            r.WebhookEndpoint(
                uid=new_uid(), url=f"https://example.org/{new_uid()}", secret="s", **about
            )
        ]
    )
    tx.rows.put(
        [
            r.Delivery(
                uid=new_uid(),
                event_uid=new_uid(),
                endpoint_key=hook.key,
                event="test",
                body="{}",
                attempt=1,
                **about,
            )
        ]
    )
    tx.rows.put(
        [r.Usage(day="2024-03-01", task="derive", provider="p", model="m", outcome="ok", **about)]
    )
    entry = r.ScopeSession(
        workspace_key=workspace,
        scope_key=scope.key,
        session_key=session.key,
        session=session.slug,
        state="completed",
        updated_at=now,
    )
    tx.rows.put([entry])
    task = outbox.scope_backfill(pipeline.rt, scope, session)
    tx.tasks.add([replace(task, not_before=r.NEVER)])
    tx.rows.put([r.Lease(unit=task.unit, owner="somebody", number=1, expires_at=now)])


def rows(pipeline: Pipeline, **condition: int) -> dict[str, int]:
    """How many rows have these fields with these values, by table, without tables that have
    none."""
    counts: dict[str, int] = {}
    with pipeline.rt.storage.read() as tx:
        for spec in TABLES:
            names = set(spec.record.__struct_fields__)
            number = (
                tx.rows.count(spec.record, equals(**condition)) if condition.keys() <= names else 0
            )
            if number:
                counts[spec.name] = number
    return counts


def indexed(pipeline: Pipeline, workspace: int) -> tuple[int, int]:
    """Texts and vectors of a workspace."""
    with pipeline.rt.storage.read() as tx:
        texts = sum(
            pipeline.rt.storage.text.search(tx, kind, workspace, ["x"], 1, EVERYTHING).documents
            for kind in ("message", "conclusion", "document")
        )
        spaces = tx.spaces.of_workspace(workspace)
        return texts, sum(
            pipeline.rt.vectors.count(pipeline.rt.beside(tx), space) for space in spaces
        )
