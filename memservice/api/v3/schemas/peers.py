"""Peers, their cards, representations and contexts."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.fields import (
    Boolean,
    DateTime,
    Float,
    FromPath,
    Integer,
    JsonObject,
    List,
    Name,
    OneOrMore,
    String,
)
from memservice.api.schema import AliasedSchema, BaseSchema, NewName
from memservice.api.v3.schemas.queries import AsOf
from memservice.api.validators import Length, Range
from memservice.domain.sizes import MAX_CARD_LINE, MAX_QUERY


class PeerCreate(AliasedSchema):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name"}

    id = NewName()
    metadata = JsonObject(allow_none=True, load_default=None)
    configuration = JsonObject(allow_none=True, load_default=None)


class PeerUpdate(BaseSchema):
    metadata = JsonObject(allow_none=True, load_default=None)
    configuration = JsonObject(allow_none=True, load_default=None)


class Peer(BaseSchema):
    id = String(attribute="slug", required=True)
    uid = String(required=True)
    workspace_id = FromPath("workspace_id", required=True)
    created_at = DateTime(required=True)
    metadata = JsonObject(required=True)
    configuration = JsonObject(required=True)


class PeerCardSet(BaseSchema):
    peer_card = List(String(validate=Length(max=MAX_CARD_LINE)), required=True)


class PeerCardResponse(BaseSchema):
    peer_card = List(String(), allow_none=True)


class PeerRepresentationGet(AsOf):
    session_id = Name(allow_none=True, load_default=None)
    filters = JsonObject(allow_none=True, load_default=None)
    scope = OneOrMore(100, allow_none=True, load_default=None)
    target = Name(allow_none=True, load_default=None)
    search_query = String(allow_none=True, load_default=None, validate=Length(max=MAX_QUERY))
    search_top_k = Integer(allow_none=True, load_default=None, validate=Range(1, 100))
    search_max_distance = Float(allow_none=True, load_default=None, validate=Range(0, 1))
    include_most_frequent = Boolean(allow_none=True, load_default=None)
    max_conclusions = Integer(allow_none=True, load_default=25, validate=Range(1, 100))


class RepresentationResponse(BaseSchema):
    representation = String(required=True)


class PeerContext(BaseSchema):
    peer_id = String(attribute="peer", required=True)
    target_id = String(attribute="target", required=True)
    representation = String(allow_none=True)
    peer_card = List(String(), attribute="card", allow_none=True)
