"""Query strings, and the bodies of listings."""

from __future__ import annotations

from memservice.api.fields import (
    Flag,
    ListOf,
    Name,
    Number,
    Object,
    Text,
    Whole,
)
from memservice.api.schema import Shape
from memservice.api.validators import (
    Length,
    OneOf,
    Range,
    RangeOfSetting,
)
from memservice.domain.sizes import MAX_QUERY
from memservice.domain.values import INT_MAX

_PAGE_MAX = INT_MAX // 100
"""Beyond it, the place of a page's first row would not fit 64 bits."""


class PageQuery(Shape):
    reverse = Flag(load_default=False)
    page = Whole(load_default=1, validate=Range(1, _PAGE_MAX))
    size = Whole(load_default=50, validate=Range(1, 100))


class Filters(Shape):
    filters = Object(allow_none=True, load_default=None)


class WorkspaceGet(Filters):
    pass


class SessionGet(Filters):
    pass


class MessageGet(Filters):
    pass


class ConclusionGet(Filters):
    pass


class PeerGet(Filters):
    kind = Text(allow_none=True, load_default=None, validate=OneOf("scope", "all"))


class TargetQuery(Shape):
    target = Name(allow_none=True, load_default=None)


class AnyWorkspaceTargetQuery(TargetQuery):
    workspace_id = Name(allow_none=True, load_default=None)


class CloneQuery(Shape):
    message_id = Name(allow_none=True, load_default=None)


class QueueStatusQuery(Shape):
    observer_id = Name(allow_none=True, load_default=None)
    sender_id = Name(allow_none=True, load_default=None)
    session_id = Name(allow_none=True, load_default=None)


class _Selection(Shape):
    """What goes into a representation."""

    search_query = Text(allow_none=True, load_default=None, validate=Length(max=MAX_QUERY))
    search_top_k = Whole(allow_none=True, load_default=None, validate=Range(1, 100))
    search_max_distance = Number(allow_none=True, load_default=None, validate=Range(0, 1))
    max_conclusions = Whole(allow_none=True, load_default=None, validate=Range(1, 100))


class PeerContextQuery(_Selection):
    target = Name(allow_none=True, load_default=None)
    include_most_frequent = Flag(load_default=True)


class SessionContextQuery(_Selection):
    tokens = Whole(allow_none=True, load_default=None, validate=RangeOfSetting("get_context_max_tokens", 100_000))
    summary = Flag(load_default=True)
    peer_target = Name(allow_none=True, load_default=None)
    peer_perspective = Name(allow_none=True, load_default=None)
    scope = Name(allow_none=True, load_default=None)
    sessions = ListOf(Name(), allow_none=True, load_default=None)
    limit_to_session = Flag(load_default=False)
    include_most_frequent = Flag(load_default=False)
