"""Peers, their cards, and what is known about them."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.fields import (
    Flag,
    FromPath,
    ListOf,
    Moment,
    Name,
    Number,
    Object,
    OneOrMore,
    Text,
    Whole,
)
from memservice.api.schema import (
    Aliased,
    NewName,
    Shape,
)
from memservice.api.validators import (
    Length,
    Range,
)
from memservice.domain.sizes import MAX_CARD_LINE, MAX_QUERY


class PeerCreate(Aliased):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name"}

    id = NewName()
    metadata = Object(allow_none=True, load_default=None)
    configuration = Object(allow_none=True, load_default=None)


class PeerUpdate(Shape):
    metadata = Object(allow_none=True, load_default=None)
    configuration = Object(allow_none=True, load_default=None)


class Peer(Shape):
    id = Text(attribute="slug", required=True)
    uid = Text(required=True)
    workspace_id = FromPath("workspace_id", required=True)
    created_at = Moment(required=True)
    metadata = Object(required=True)
    configuration = Object(required=True)


class PeerCardSet(Shape):
    peer_card = ListOf(Text(validate=Length(max=MAX_CARD_LINE)), required=True)


class PeerCardResponse(Shape):
    peer_card = ListOf(Text(), allow_none=True)


class PeerRepresentationGet(Shape):
    session_id = Name(allow_none=True, load_default=None)
    filters = Object(allow_none=True, load_default=None)
    scope = OneOrMore(100, allow_none=True, load_default=None)
    target = Name(allow_none=True, load_default=None)
    search_query = Text(allow_none=True, load_default=None, validate=Length(max=MAX_QUERY))
    search_top_k = Whole(allow_none=True, load_default=None, validate=Range(1, 100))
    search_max_distance = Number(allow_none=True, load_default=None, validate=Range(0, 1))
    include_most_frequent = Flag(allow_none=True, load_default=None)
    max_conclusions = Whole(allow_none=True, load_default=25, validate=Range(1, 100))


class RepresentationResponse(Shape):
    representation = Text(required=True)


class PeerContext(Shape):
    peer_id = Text(attribute="peer", required=True)
    target_id = Text(attribute="target", required=True)
    representation = Text(allow_none=True)
    peer_card = ListOf(Text(), attribute="card", allow_none=True)
