"""Shapes of the first generation."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import ValidationError, fields

from memservice.api.fields import (
    Coded,
    Flag,
    FromPath,
    IsActive,
    ListOf,
    Moment,
    Name,
    Object,
    Part,
    Text,
    Whole,
)
from memservice.api.schema import (
    Aliased,
    Shape,
)
from memservice.api.validators import (
    Length,
    Range,
)


class _Metadata(Object):
    """Of something new."""

    def __init__(self) -> None:
        super().__init__(load_default=dict)


class _NewName(Text):
    def __init__(self) -> None:
        super().__init__(required=True, validate=Length(1, 100))


class Filter(Shape):
    filter = Object(allow_none=True, load_default=None)


class _Update(Shape):
    name = Text(allow_none=True, load_default=None)
    metadata = Object(allow_none=True, load_default=None)


class AppCreate(Shape):
    name = _NewName()
    metadata = _Metadata()


class AppGet(Filter):
    pass


class AppUpdate(_Update):
    pass


class AppQuery(Shape):
    app_id = Name(allow_none=True, load_default=None)


class App(Shape):
    id = Text(attribute="uid", required=True)
    name = Text(attribute="v1_name", required=True)
    metadata = Object(load_default=dict)
    created_at = Moment(required=True)


class UserCreate(Shape):
    name = _NewName()
    metadata = _Metadata()


class UserGet(Filter):
    pass


class UserUpdate(_Update):
    pass


class UserQuery(Shape):
    user_id = Name(allow_none=True, load_default=None)


class User(Shape):
    id = Text(attribute="uid", required=True)
    name = Text(attribute="v1_name", required=True)
    app_id = FromPath("app_id", required=True)
    created_at = Moment(required=True)
    metadata = Object(load_default=dict)


class SessionCreate(Shape):
    metadata = _Metadata()


class SessionGet(Filter):
    is_active = Flag(load_default=False)


class SessionUpdate(Shape):
    metadata = Object(required=True)


class SessionQuery(Shape):
    session_id = Name(allow_none=True, load_default=None)


class CloneQuery(Shape):
    message_id = Name(allow_none=True, load_default=None)
    deep_copy = Flag(load_default=False)


class Session(Shape):
    id = Text(attribute="uid", required=True)
    is_active = IsActive(attribute="state", required=True)
    user_id = FromPath("user_id", required=True)
    app_id = FromPath("app_id", required=True)
    metadata = Object(load_default=dict)
    created_at = Moment(required=True)


class MessageCreate(Shape):
    content = Text(required=True, validate=Length(0, 50_000))
    is_user = Flag(required=True)
    metadata = _Metadata()


class MessageBatchCreate(Shape):
    messages = ListOf(Part(MessageCreate), required=True, validate=Length(None, 100))


class MessageGet(Filter):
    pass


class MessageUpdate(Shape):
    metadata = Object(required=True)


class Message(Shape):
    id = Text(attribute="message.uid", required=True)
    content = Text(attribute="message.content", required=True)
    is_user = Flag(required=True)
    session_id = FromPath("session_id", required=True)
    metadata = Object(attribute="message.metadata", load_default=dict)
    created_at = Moment(attribute="message.created_at", required=True)
    app_id = FromPath("app_id", required=True)
    user_id = FromPath("user_id", required=True)


class _Labelled(Aliased):
    """A label is called `metamessage_type` as well, which counts where both are given."""

    ALIASES: ClassVar[dict[str, str]] = {"metamessage_type": "label"}


class MetamessageCreate(_Labelled):
    metamessage_type = Text(required=True, validate=Length(1, 50))
    content = Text(required=True, validate=Length(0, 50_000))
    session_id = Name(allow_none=True, load_default=None)
    message_id = Name(allow_none=True, load_default=None)
    metadata = _Metadata()


class MetamessageGet(_Labelled):
    metamessage_type = Text(allow_none=True, load_default=None)
    session_id = Name(allow_none=True, load_default=None)
    message_id = Name(allow_none=True, load_default=None)
    filter = Object(allow_none=True, load_default=None)


class MetamessageUpdate(_Labelled):
    session_id = Name(allow_none=True, load_default=None)
    message_id = Name(allow_none=True, load_default=None)
    metamessage_type = Text(allow_none=True, load_default=None, validate=Length(1, 50))
    metadata = Object(allow_none=True, load_default=None)


class Metamessage(Shape):
    id = Text(attribute="row.uid", required=True)
    label = Text(attribute="row.label", required=True)
    content = Text(attribute="row.content", required=True)
    user_id = FromPath("user_id", required=True)
    app_id = FromPath("app_id", required=True)
    session_id = Text(attribute="session", required=True, allow_none=True)
    message_id = Text(attribute="message", required=True, allow_none=True)
    metadata = Object(attribute="row.metadata", load_default=dict)
    created_at = Moment(attribute="row.created_at", required=True)
    metamessage_type = Text(attribute="row.label", required=True, dump_only=True)


class CollectionCreate(Shape):
    name = _NewName()
    metadata = _Metadata()


class CollectionGet(Filter):
    pass


class CollectionUpdate(_Update):
    pass


class CollectionQuery(Shape):
    collection_id = Name(allow_none=True, load_default=None)


class Collection(Shape):
    id = Text(attribute="uid", required=True)
    name = Text(required=True)
    user_id = FromPath("user_id", required=True)
    app_id = FromPath("app_id", required=True)
    metadata = Object(load_default=dict)
    created_at = Moment(required=True)


class DocumentCreate(Shape):
    content = Text(required=True, validate=Length(1, 100_000))
    metadata = _Metadata()


class DocumentGet(Filter):
    pass


class DocumentUpdate(Shape):
    metadata = Object(allow_none=True, load_default=None)
    content = Text(allow_none=True, load_default=None, validate=Length(1, 100_000))


class DocumentQuery(Shape):
    query = Text(required=True, validate=Length(1, 1_000))
    filter = Object(allow_none=True, load_default=None)
    top_k = Whole(load_default=5, validate=Range(1, 50))


class Document(Shape):
    id = Text(attribute="uid", required=True)
    content = Text(required=True)
    metadata = Object(load_default=dict)
    created_at = Moment(required=True)
    collection_id = FromPath("collection_id", required=True)
    app_id = FromPath("app_id", required=True)
    user_id = FromPath("user_id", required=True)


QUERY_MAX = 10_000
QUERIES_MAX = 25


class Queries(fields.Raw):
    """A question, or several that make one."""

    def __init__(self) -> None:
        shapes = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        super().__init__(required=True, metadata={"anyOf": shapes}, error_messages={"required": Coded("Field required", "missing")})

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> list[str]:
        values = value if isinstance(value, list) else [value]
        given = [query for query in values if isinstance(query, str)]
        if len(given) < len(values):
            raise ValidationError(Coded("Input should be a string, or a list of strings", "string_type"))
        if not given:
            raise ValidationError(Coded("List should have at least 1 item", "too_short"))
        if len(given) > QUERIES_MAX:
            raise ValidationError(
                Coded(f"Value error, Too many queries: {len(given)}, and at most {QUERIES_MAX} are allowed", "value_error")
            )
        if any(len(query) > QUERY_MAX for query in given):
            words = "One or more queries too long" if isinstance(value, list) else "Query too long"
            raise ValidationError(Coded(f"Value error, {words}: at most {QUERY_MAX} characters are allowed", "value_error"))
        return given


class DialecticOptions(Shape):
    queries = Queries()
    stream = Flag(load_default=False)


class DialecticResponse(Shape):
    content = Text(required=True)


class Deleted(Shape):
    """What was asked for is done."""

    message = Text(required=True)


class KeyQuery(Shape):
    app_id = Name(allow_none=True, load_default=None)
    user_id = Name(allow_none=True, load_default=None)
    session_id = Name(allow_none=True, load_default=None)
    collection_id = Name(allow_none=True, load_default=None)
    expires_at = Moment(allow_none=True, load_default=None)
    workspace_id = Name(allow_none=True, load_default=None)
    peer_id = Name(allow_none=True, load_default=None)


class NewKey(Shape):
    key = Text(required=True, attribute="token")
