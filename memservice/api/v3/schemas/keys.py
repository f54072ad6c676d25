"""Keys on the wire."""

from __future__ import annotations

from memservice.api.fields import Boolean, DateTime, Name, String
from memservice.api.schema import NAME_PATTERN, BaseSchema
from memservice.api.validators import Length, Pattern
from memservice.services.auth.api_keys import MAX_LABEL


class _OptionalName(Name):
    """The name of a resource that need not exist."""

    def __init__(self) -> None:
        super().__init__(
            allow_none=True, load_default=None, validate=[Length(1, 512), Pattern(NAME_PATTERN)]
        )


class KeyQuery(BaseSchema):
    workspace_id = _OptionalName()
    peer_id = _OptionalName()
    session_id = _OptionalName()
    expires_at = DateTime(allow_none=True, load_default=None)
    label = String(allow_none=True, load_default=None, validate=Length(0, MAX_LABEL))


class Key(BaseSchema):
    """A key without its token, which only its bearer has."""

    id = String(required=True, attribute="uid")
    label = String(required=True, allow_none=True)
    admin = Boolean(required=True)
    workspace_id = String(required=True, allow_none=True, attribute="workspace")
    peer_id = String(required=True, allow_none=True, attribute="peer")
    session_id = String(required=True, allow_none=True, attribute="session")
    expires_at = DateTime(required=True, allow_none=True)
    revoked_at = DateTime(required=True, allow_none=True)
    last_used_at = DateTime(required=True, allow_none=True)
    created_at = DateTime(required=True)


class NewKey(BaseSchema):
    """A new key. Its token is shown only once."""

    key = String(required=True, attribute="token")
    id = String(required=True, attribute="key.uid")
    label = String(required=True, allow_none=True, attribute="key.label")
    admin = Boolean(required=True, attribute="key.admin")
    workspace_id = String(required=True, allow_none=True, attribute="key.workspace")
    peer_id = String(required=True, allow_none=True, attribute="key.peer")
    session_id = String(required=True, allow_none=True, attribute="key.session")
    expires_at = DateTime(required=True, allow_none=True, attribute="key.expires_at")
    created_at = DateTime(required=True, attribute="key.created_at")
