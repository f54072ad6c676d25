"""Keys on the wire."""

from __future__ import annotations

from memservice.api.fields import (
    Flag,
    Moment,
    Name,
    Text,
)
from memservice.api.schema import (
    NAME_PATTERN,
    Shape,
)
from memservice.api.validators import (
    Length,
    Pattern,
)
from memservice.services.auth.api_keys import MAX_LABEL


class _Given(Name):
    """The name of something that need not exist."""

    def __init__(self) -> None:
        super().__init__(allow_none=True, load_default=None, validate=[Length(1, 512), Pattern(NAME_PATTERN)])


class KeyQuery(Shape):
    workspace_id = _Given()
    peer_id = _Given()
    session_id = _Given()
    expires_at = Moment(allow_none=True, load_default=None)
    label = Text(allow_none=True, load_default=None, validate=Length(0, MAX_LABEL))


class Key(Shape):
    """A key without its token, which nobody has but its bearer."""

    id = Text(required=True, attribute="uid")
    label = Text(required=True, allow_none=True)
    admin = Flag(required=True)
    workspace_id = Text(required=True, allow_none=True, attribute="workspace")
    peer_id = Text(required=True, allow_none=True, attribute="peer")
    session_id = Text(required=True, allow_none=True, attribute="session")
    expires_at = Moment(required=True, allow_none=True)
    revoked_at = Moment(required=True, allow_none=True)
    last_used_at = Moment(required=True, allow_none=True)
    created_at = Moment(required=True)


class NewKey(Shape):
    """A key that was made now. The token is shown this once."""

    key = Text(required=True, attribute="token")
    id = Text(required=True, attribute="key.uid")
    label = Text(required=True, allow_none=True, attribute="key.label")
    admin = Flag(required=True, attribute="key.admin")
    workspace_id = Text(required=True, allow_none=True, attribute="key.workspace")
    peer_id = Text(required=True, allow_none=True, attribute="key.peer")
    session_id = Text(required=True, allow_none=True, attribute="key.session")
    expires_at = Moment(required=True, allow_none=True, attribute="key.expires_at")
    created_at = Moment(required=True, attribute="key.created_at")
