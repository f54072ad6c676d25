"""Dreams."""

from __future__ import annotations

from memservice.api.fields import Boolean, DateTime, Integer, List, Name, Nested, String
from memservice.api.schema import BaseSchema
from memservice.api.validators import OneOf


class ScheduleDreamRequest(BaseSchema):
    observer = Name(required=True)
    observed = Name(allow_none=True, load_default=None)
    dream_type = String(required=True, validate=OneOf("omni", "card_refresh"))
    session_id = Name(allow_none=True, load_default=None)
    rebuild = Boolean(load_default=False)


class Dream(BaseSchema):
    id = String(attribute="uid", required=True)
    state = String(
        required=True,
        metadata={"description": "pending, done, held, failed, discarded or undone"},
    )
    dream_type = String(attribute="kind", required=True)
    observer_id = String(attribute="observer", required=True, allow_none=True)
    observed_id = String(attribute="observed", required=True, allow_none=True)
    created = Integer(required=True, metadata={"description": "Conclusions that it creates"})
    superseded = Integer(required=True, metadata={"description": "Conclusions that it replaces"})
    reason = String(
        required=True,
        allow_none=True,
        metadata={"description": "Why it is held for review, or why it failed"},
    )
    created_at = DateTime(required=True)
    finished_at = DateTime(required=True, allow_none=True)


class DreamChange(BaseSchema):
    action = String(required=True, validate=OneOf("create", "supersede"))
    conclusion_id = String(required=True, allow_none=True)
    content = String(required=True, allow_none=True)
    level = String(required=True, allow_none=True)
    successor = String(
        required=True,
        allow_none=True,
        metadata={"description": "Id of the successor, or the text of a proposed one"},
    )
    reason = String(required=True, allow_none=True)


class DreamCard(BaseSchema):
    before = List(String(), required=True)
    after = List(String(), required=True)


class DreamDetails(Dream):
    changes = List(Nested(DreamChange), required=True)
    card = Nested(DreamCard, required=True, allow_none=True)


class DreamUndone(BaseSchema):
    restored = Integer(required=True, metadata={"description": "Conclusions that are live again"})
    removed = Integer(required=True, metadata={"description": "Conclusions that are deleted"})
    kept = Integer(
        required=True,
        metadata={
            "description": "Conclusions that have changed since the dream, and are not undone"
        },
    )
    card_restored = Boolean(required=True)
