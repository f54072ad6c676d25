"""Query strings, and the bodies of listings."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, pre_load

from memservice.api.fields import Boolean, Float, Integer, JsonObject, List, Name, String
from memservice.api.schema import BaseSchema
from memservice.api.validators import Length, OneOf, Range, RangeOfSetting
from memservice.domain.sizes import MAX_QUERY
from memservice.domain.values import INT_MAX
from memservice.services.erasure.mentions import CHOICES, KEEP

_PAGE_MAX = INT_MAX // 100
"""Maximum page number: beyond it, the offset of a page's first row would not fit into 64 bits."""
_AS_OF_IN_QUERY = "Here it is a query parameter: send `?as_of=…`, as `page` and `size`"


class AsOf(BaseSchema):
    """A read of what was known at a time."""

    as_of = String(
        allow_none=True,
        load_default=None,
        metadata={
            "description": "Only what was known at this time: ISO 8601 with a zone, or a date, "
            "which means its end in UTC"
        },
    )


class PageQuery(BaseSchema):
    reverse = Boolean(load_default=False)
    page = Integer(load_default=1, validate=Range(1, _PAGE_MAX))
    size = Integer(load_default=50, validate=Range(1, 100))


class Filters(BaseSchema):
    filters = JsonObject(allow_none=True, load_default=None)


class WorkspaceGet(Filters):
    pass


class SessionGet(Filters):
    pass


class MessageGet(Filters):
    pass


class ConclusionGet(Filters):
    @pre_load
    def _refuse_as_of(self, data: Any, **kwargs: Any) -> Any:
        """Other routes have it in the body. Ignored, it would answer with what is known today."""
        if isinstance(data, dict) and "as_of" in data:
            raise ValidationError({"as_of": [_AS_OF_IN_QUERY]})
        return data


class PeerGet(Filters):
    kind = String(allow_none=True, load_default=None, validate=OneOf("scope", "all"))


class TargetQuery(BaseSchema):
    target = Name(allow_none=True, load_default=None)


class AnyWorkspaceTargetQuery(TargetQuery):
    workspace_id = Name(allow_none=True, load_default=None)


class PeerErasureQuery(BaseSchema):
    dry_run = Boolean(
        load_default=False, metadata={"description": "Count what would be erased, change nothing"}
    )
    mentions = String(
        load_default=KEEP,
        validate=OneOf(*CHOICES),
        metadata={
            "description": "The id and the names of the peer in what others said: `keep` them, or "
            "`redact` them to `[erased]`"
        },
    )


class CloneQuery(BaseSchema):
    message_id = Name(allow_none=True, load_default=None)


class ConclusionsQuery(PageQuery, AsOf):
    include = String(
        allow_none=True,
        load_default=None,
        validate=OneOf("superseded"),
        metadata={"description": "`superseded`: also superseded conclusions"},
    )
    include_messages = Boolean(
        load_default=False,
        metadata={"description": "With `message_ids`, the source messages of each conclusion"},
    )


class QueueFailuresQuery(PageQuery):
    include = String(
        allow_none=True,
        load_default=None,
        validate=OneOf("retrying"),
        metadata={"description": "`retrying`: also tasks that will be tried again"},
    )


class QueueStatusQuery(BaseSchema):
    observer_id = Name(allow_none=True, load_default=None)
    sender_id = Name(allow_none=True, load_default=None)
    session_id = Name(allow_none=True, load_default=None)


class _Selection(BaseSchema):
    """Options for the contents of a representation."""

    search_query = String(allow_none=True, load_default=None, validate=Length(max=MAX_QUERY))
    search_top_k = Integer(allow_none=True, load_default=None, validate=Range(1, 100))
    search_max_distance = Float(allow_none=True, load_default=None, validate=Range(0, 1))
    max_conclusions = Integer(allow_none=True, load_default=None, validate=Range(1, 100))


class PeerContextQuery(_Selection, AsOf):
    target = Name(allow_none=True, load_default=None)
    include_most_frequent = Boolean(load_default=True)


class SessionContextQuery(_Selection, AsOf):
    tokens = Integer(
        allow_none=True,
        load_default=None,
        validate=RangeOfSetting("get_context_max_tokens", 100_000),
    )
    summary = Boolean(load_default=True)
    peer_target = Name(allow_none=True, load_default=None)
    peer_perspective = Name(allow_none=True, load_default=None)
    scope = Name(allow_none=True, load_default=None)
    sessions = List(Name(), allow_none=True, load_default=None)
    limit_to_session = Boolean(load_default=False)
    include_most_frequent = Boolean(load_default=False)
