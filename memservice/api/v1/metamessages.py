"""Metamessages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v1 import paths, schemas
from memservice.api.v3.schemas.queries import PageQuery
from memservice.services.paging import Page
from memservice.services.v1 import metamessages
from memservice.services.v1.metamessages import Note, NoteDraft
from memservice.services.v1.resolve import Path

routes = Routes("metamessages", "Notes about a user, a session or a message.", "v1")


def _draft(body: Mapping[str, Any]) -> NoteDraft:
    return NoteDraft(
        body["metamessage_type"],
        body.get("content"),
        body["session_id"] or None,
        body["message_id"] or None,
        body.get("metadata"),
    )


@routes.operation(
    "POST",
    paths.METAMESSAGES,
    access=paths.OF_USER,
    body=schemas.MetamessageCreate,
    answer=schemas.Metamessage,
)
def create_metamessage(call: Call, app_id: str, user_id: str) -> Note:
    """Store a metamessage about the user; with `session_id` about that session, with `message_id`
    too about that message"""
    return metamessages.create(call.rt, call.principal, Path(app_id, user_id), _draft(call.body))


@routes.operation(
    "POST",
    paths.METAMESSAGES + "/list",
    reads=True,
    access=paths.OF_USER,
    query=PageQuery,
    body=schemas.MetamessageGet,
    body_optional=True,
    answer=page_of(schemas.Metamessage),
)
def get_metamessages(call: Call, app_id: str, user_id: str) -> Page[Note]:
    """List a user's metamessages: all, or those with a label, a session or a message"""
    return metamessages.page(
        call.rt,
        call.principal,
        Path(app_id, user_id),
        _draft(call.body),
        call.body["filter"],
        paging(call.query),
    )


@routes.operation(
    "GET",
    paths.METAMESSAGES + "/<metamessage_id>",
    access=paths.OF_USER,
    answer=schemas.Metamessage,
)
def get_metamessage(call: Call, app_id: str, user_id: str, metamessage_id: str) -> Note:
    """Get a metamessage"""
    return metamessages.get(call.rt, call.principal, Path(app_id, user_id), metamessage_id)


@routes.operation(
    "PUT",
    paths.METAMESSAGES + "/<metamessage_id>",
    access=paths.OF_USER,
    body=schemas.MetamessageUpdate,
    answer=schemas.Metamessage,
)
def update_metamessage(call: Call, app_id: str, user_id: str, metamessage_id: str) -> Note:
    """Change the session or message of a metamessage, its label, or its metadata"""
    return metamessages.update(
        call.rt, call.principal, Path(app_id, user_id), metamessage_id, _draft(call.body)
    )
