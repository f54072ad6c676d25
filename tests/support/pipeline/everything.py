"""Something in every table, and how much is left of it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from memservice.domain import records as r
from memservice.domain.filters import where
from memservice.domain.ids import new_uid
from memservice.services import (
    cards,
    conclusions,
    messages,
    sessions,
)
from memservice.services.conclusions import ConclusionDraft
from memservice.services.messages import Draft
from memservice.services.tasks import outbox
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.schema import TABLES
from memservice.spi.storage import View
from memservice.spi.text import TextRow
from support.pipeline.place import WHO, Place


def fill(place: Place, workspace: str, session: str) -> int:
    """Put something into every table, from this session. Returns the session's key."""
    rt = place.rt
    said = {"alice": "I own {} apples.", "bob": "My sister paints {} boats."}
    drafts = [Draft(text.format(n), peer) for n in range(25) for peer, text in said.items()]
    sessions.get_or_create(rt, WHO, workspace, session, scope_names=["team"])
    stored = messages.create(rt, WHO, workspace, session, drafts, idempotency_key=f"key-{session}")
    place.work()
    conclusions.create(rt, WHO, workspace, [ConclusionDraft("likes pears", "alice", "bob", session)])
    cards.put(rt, WHO, workspace, "alice", None, ["has apples"])
    rt.storage.write(lambda view: _more(place, view, stored))
    return stored[0].session_key


def _more(place: Place, view: View, messages: list[r.Message]) -> None:
    """What no service of this generation writes, and what is there only for a moment."""
    now, workspace, session = place.clock(), messages[0].workspace_key, view.sessions.by_key(messages[0].session_key)
    scope = view.peers.by_slug(workspace, "scope.team")
    assert session is not None
    assert scope is not None
    about: dict[str, Any] = {"workspace_key": workspace, "created_at": now}
    owner = messages[0].author_key
    (named,) = view.rows.put([r.NamedCollection(uid=new_uid(), owner_key=owner, name=new_uid(), **about)])
    (document,) = view.rows.put([r.Document(uid=new_uid(), owner_key=owner, collection_key=named.key, content="a document", **about)])
    place.rt.storage.text.add(view, "document", workspace, [TextRow(document.key, ["document"])])
    note = r.Metamessage(uid=new_uid(), owner_key=owner, label="note", content="x", **about)
    view.rows.put(
        [
            note,
            replace(note, uid=new_uid(), session_key=session.key),
            replace(note, uid=new_uid(), session_key=session.key, message_key=messages[3].key),
            replace(note, uid=new_uid(), message_key=messages[4].key),
        ]
    )
    (hook,) = view.rows.put([r.WebhookEndpoint(uid=new_uid(), url=f"https://example.org/{new_uid()}", secret="s", **about)])
    view.rows.put([r.Delivery(uid=new_uid(), event_uid=new_uid(), endpoint_key=hook.key, event="test", body="{}", attempt=1, **about)])
    view.rows.put([r.Usage(day="2024-03-01", task="derive", provider="p", model="m", outcome="ok", **about)])
    entry = r.ScopeSession(
        workspace_key=workspace, scope_key=scope.key, session_key=session.key, session=session.slug, state="completed", updated_at=now
    )
    view.rows.put([entry])
    task = outbox.scope_backfill(place.rt, scope, session)
    view.tasks.add([replace(task, not_before=r.NEVER)])
    view.rows.put([r.Lease(unit=task.unit, owner="somebody", number=1, expires_at=now)])


def rows(place: Place, **condition: int) -> dict[str, int]:
    """How many rows have these fields with these values, by table, without tables that have none."""
    found: dict[str, int] = {}
    with place.rt.storage.read() as view:
        for spec in TABLES:
            names = {field.name for field in fields(spec.record)}
            number = view.rows.count(spec.record, where(**condition)) if condition.keys() <= names else 0
            if number:
                found[spec.name] = number
    return found


def indexed(place: Place, workspace: int) -> tuple[int, int]:
    """Texts and vectors of a workspace."""
    with place.rt.storage.read() as view:
        texts = sum(
            place.rt.storage.text.search(view, kind, workspace, ["x"], 1, EVERYTHING).documents
            for kind in ("message", "conclusion", "document")
        )
        spaces = view.spaces.of_workspace(workspace)
        return texts, sum(place.rt.vectors.count(place.rt.beside(view), space) for space in spaces)
