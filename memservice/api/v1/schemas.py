"""Schemas of generation 1."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import ValidationError, fields

from memservice.api.fields import (
    Boolean,
    DateTime,
    FromPath,
    Integer,
    IsActive,
    JsonObject,
    List,
    Name,
    Nested,
    String,
    TypedMessage,
)
from memservice.api.schema import AliasedSchema, BaseSchema
from memservice.api.validators import Length, Range
from memservice.domain.sizes import MAX_QUERY, MAX_QUESTIONS


class _Metadata(JsonObject):
    """The metadata of a new resource."""

    def __init__(self) -> None:
        super().__init__(load_default=dict)


class _NewName(String):
    def __init__(self) -> None:
        super().__init__(required=True, validate=Length(1, 100))


class Filter(BaseSchema):
    filter = JsonObject(allow_none=True, load_default=None)


class _Update(BaseSchema):
    name = String(allow_none=True, load_default=None)
    metadata = JsonObject(allow_none=True, load_default=None)


class AppCreate(BaseSchema):
    name = _NewName()
    metadata = _Metadata()


class AppGet(Filter):
    pass


class AppUpdate(_Update):
    pass


class AppQuery(BaseSchema):
    app_id = Name(allow_none=True, load_default=None)


class App(BaseSchema):
    id = String(attribute="uid", required=True)
    name = String(attribute="v1_name", required=True)
    metadata = JsonObject(load_default=dict)
    created_at = DateTime(required=True)


class UserCreate(BaseSchema):
    name = _NewName()
    metadata = _Metadata()


class UserGet(Filter):
    pass


class UserUpdate(_Update):
    pass


class UserQuery(BaseSchema):
    user_id = Name(allow_none=True, load_default=None)


class User(BaseSchema):
    id = String(attribute="uid", required=True)
    name = String(attribute="v1_name", required=True)
    app_id = FromPath("app_id", required=True)
    created_at = DateTime(required=True)
    metadata = JsonObject(load_default=dict)


class SessionCreate(BaseSchema):
    metadata = _Metadata()


class SessionGet(Filter):
    is_active = Boolean(load_default=False)


class SessionUpdate(BaseSchema):
    metadata = JsonObject(required=True)


class SessionQuery(BaseSchema):
    session_id = Name(allow_none=True, load_default=None)


class CloneQuery(BaseSchema):
    message_id = Name(allow_none=True, load_default=None)
    deep_copy = Boolean(load_default=False)


class Session(BaseSchema):
    id = String(attribute="uid", required=True)
    is_active = IsActive(attribute="state", required=True)
    user_id = FromPath("user_id", required=True)
    app_id = FromPath("app_id", required=True)
    metadata = JsonObject(load_default=dict)
    created_at = DateTime(required=True)


class MessageCreate(BaseSchema):
    content = String(required=True, validate=Length(0, 50_000))
    is_user = Boolean(required=True)
    metadata = _Metadata()


class MessageBatchCreate(BaseSchema):
    messages = List(Nested(MessageCreate), required=True, validate=Length(None, 100))


class MessageGet(Filter):
    pass


class MessageUpdate(BaseSchema):
    metadata = JsonObject(required=True)


class Message(BaseSchema):
    id = String(attribute="message.uid", required=True)
    content = String(attribute="message.content", required=True)
    is_user = Boolean(required=True)
    session_id = FromPath("session_id", required=True)
    metadata = JsonObject(attribute="message.metadata", load_default=dict)
    created_at = DateTime(attribute="message.created_at", required=True)
    app_id = FromPath("app_id", required=True)
    user_id = FromPath("user_id", required=True)


class _Labelled(AliasedSchema):
    """A label is also called `metamessage_type`, which takes precedence."""

    ALIASES: ClassVar[dict[str, str]] = {"metamessage_type": "label"}


class MetamessageCreate(_Labelled):
    metamessage_type = String(required=True, validate=Length(1, 50))
    content = String(required=True, validate=Length(0, 50_000))
    session_id = Name(allow_none=True, load_default=None)
    message_id = Name(allow_none=True, load_default=None)
    metadata = _Metadata()


class MetamessageGet(_Labelled):
    metamessage_type = String(allow_none=True, load_default=None)
    session_id = Name(allow_none=True, load_default=None)
    message_id = Name(allow_none=True, load_default=None)
    filter = JsonObject(allow_none=True, load_default=None)


class MetamessageUpdate(_Labelled):
    session_id = Name(allow_none=True, load_default=None)
    message_id = Name(allow_none=True, load_default=None)
    metamessage_type = String(allow_none=True, load_default=None, validate=Length(1, 50))
    metadata = JsonObject(allow_none=True, load_default=None)


class Metamessage(BaseSchema):
    id = String(attribute="row.uid", required=True)
    label = String(attribute="row.label", required=True)
    content = String(attribute="row.content", required=True)
    user_id = FromPath("user_id", required=True)
    app_id = FromPath("app_id", required=True)
    session_id = String(attribute="session", required=True, allow_none=True)
    message_id = String(attribute="message", required=True, allow_none=True)
    metadata = JsonObject(attribute="row.metadata", load_default=dict)
    created_at = DateTime(attribute="row.created_at", required=True)
    metamessage_type = String(attribute="row.label", required=True, dump_only=True)


class CollectionCreate(BaseSchema):
    name = _NewName()
    metadata = _Metadata()


class CollectionGet(Filter):
    pass


class CollectionUpdate(_Update):
    pass


class CollectionQuery(BaseSchema):
    collection_id = Name(allow_none=True, load_default=None)


class Collection(BaseSchema):
    id = String(attribute="uid", required=True)
    name = String(required=True)
    user_id = FromPath("user_id", required=True)
    app_id = FromPath("app_id", required=True)
    metadata = JsonObject(load_default=dict)
    created_at = DateTime(required=True)


class DocumentCreate(BaseSchema):
    content = String(required=True, validate=Length(1, 100_000))
    metadata = _Metadata()


class DocumentGet(Filter):
    pass


class DocumentUpdate(BaseSchema):
    metadata = JsonObject(allow_none=True, load_default=None)
    content = String(allow_none=True, load_default=None, validate=Length(1, 100_000))


class DocumentQuery(BaseSchema):
    query = String(required=True, validate=Length(1, 1_000))
    filter = JsonObject(allow_none=True, load_default=None)
    top_k = Integer(load_default=5, validate=Range(1, 50))


class Document(BaseSchema):
    id = String(attribute="uid", required=True)
    content = String(required=True)
    metadata = JsonObject(load_default=dict)
    created_at = DateTime(required=True)
    collection_id = FromPath("collection_id", required=True)
    app_id = FromPath("app_id", required=True)
    user_id = FromPath("user_id", required=True)


class Queries(fields.Raw):
    """A question, or several for one answer."""

    def __init__(self) -> None:
        shapes = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        super().__init__(
            required=True,
            metadata={"anyOf": shapes},
            error_messages={"required": TypedMessage("Field required", "missing")},
        )

    def _deserialize(
        self, value: object, attr: str | None, data: object, **kwargs: object
    ) -> list[str]:
        values = value if isinstance(value, list) else [value]
        queries = [query for query in values if isinstance(query, str)]
        if len(queries) < len(values):
            raise ValidationError(
                TypedMessage("Input should be a string, or a list of strings", "string_type")
            )
        if not queries:
            raise ValidationError(TypedMessage("List should have at least 1 item", "too_short"))
        if len(queries) > MAX_QUESTIONS:
            raise ValidationError(
                TypedMessage(
                    (
                        f"Value error, Too many queries: {len(queries)}, and at most "
                        f"{MAX_QUESTIONS} are allowed"
                    ),
                    "value_error",
                )
            )
        if any(len(query) > MAX_QUERY for query in queries):
            words = "One or more queries too long" if isinstance(value, list) else "Query too long"
            raise ValidationError(
                TypedMessage(
                    f"Value error, {words}: at most {MAX_QUERY} characters are allowed",
                    "value_error",
                )
            )
        return queries


class DialecticOptions(BaseSchema):
    queries = Queries()
    stream = Boolean(load_default=False)


class DialecticResponse(BaseSchema):
    content = String(required=True)


class Deleted(BaseSchema):
    """The request is done."""

    message = String(required=True)


class KeyQuery(BaseSchema):
    app_id = Name(allow_none=True, load_default=None)
    user_id = Name(allow_none=True, load_default=None)
    session_id = Name(allow_none=True, load_default=None)
    collection_id = Name(allow_none=True, load_default=None)
    expires_at = DateTime(allow_none=True, load_default=None)
    workspace_id = Name(allow_none=True, load_default=None)
    peer_id = Name(allow_none=True, load_default=None)


class NewKey(BaseSchema):
    key = String(required=True, attribute="token")
