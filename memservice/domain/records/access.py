"""Keys, webhook endpoints, and members of the console."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from memservice.domain.records.conversations import ACTIVE, JsonObject

PAUSED = "paused"
"""State of a webhook endpoint that failed too often. All others are active."""

OWNER, OPERATOR, READER = "owner", "operator", "reader"
"""Roles of a member of the console; `memservice.services.auth.permissions` defines what each may
do."""

DEACTIVATED = "deactivated"
"""State of a member of the console who may not sign in. All others are active."""

SET_UP, INVITATION, NEW_PASSWORD = "set-up", "invitation", "new-password"
"""Kinds of one-time link. The first two create a member; the last one sets a new password of a
member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEndpoint:
    key: int = 0
    uid: str
    workspace_key: int
    url: str
    secret: str = field(repr=False)
    state: str = ACTIVE
    """`active`, or `paused` after too many failures."""
    failures: int = 0
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One attempt to deliver an event to an endpoint."""

    key: int = 0
    uid: str
    workspace_key: int
    endpoint_key: int
    event_uid: str
    """The same for every attempt to deliver one event; receivers detect repetitions by it."""
    event: str
    """Its type on the wire."""
    body: str
    attempt: int
    status: int | None = None
    error: str | None = None
    duration_ms: int | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key minted by this service. The token itself is not stored."""

    key: int = 0
    uid: str
    """The token's `jti`; for a revoked token without one, the digest of its signed part
    (`jwt_signing.digest`)."""
    label: str | None = None
    admin: bool = False
    workspace: str | None = None
    peer: str | None = None
    session: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    created_at: datetime
    workspace_uid: str | None = None
    """The uid of `workspace`; so with the next two. None while there is no such row: the key is
    then for the first one that gets the name."""
    peer_uid: str | None = None
    session_uid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleMember:
    """A person's account at the console. (A `Member` is a peer's membership of a session.)"""

    key: int = 0
    uid: str
    name: str
    """The name for signing in: an e-mail address or another name, NFKC and case-folded."""
    password_hash: str
    """argon2id, in the library's own notation."""
    role: str
    workspaces: list[JsonObject] | None = None
    """The only workspaces that the member may open, each `{"id": slug, "uid": uid}`; None: all."""
    state: str = ACTIVE
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleLink:
    """A one-time link. Its token is not stored."""

    key: int = 0
    uid: str
    digest: str
    """Keyed hash of the token."""
    kind: str
    role: str | None = None
    """The role of the member that the link creates."""
    workspaces: list[JsonObject] | None = None
    """The workspaces of the member that the link creates."""
    member_uid: str | None = None
    """The uid of the member whose password it sets."""
    created_by: str | None = None
    """The uid of the member who created the link; None: the command line."""
    expires_at: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """One sign-in, of a member or with an API key. Only the cookie has its id, which is not
    stored."""

    key: int = 0
    uid: str
    """Names the session on pages. It gives no access."""
    digest: str
    """Keyed hash of the id."""
    member_uid: str | None = None
    claims: JsonObject | None = None
    """The claims of the API key, as in its token; None for a member."""
    key_uid: str | None = None
    """The uid of the API key; the token's digest if it has no id."""
    address: str
    client: str
    """The browser's `User-Agent`."""
    expires_at: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInFailures:
    """Failed attempts to sign in, of one account, address or known browser."""

    key: int = 0
    subject: str
    """`account:`, `address:` or `browser:`, and a digest."""
    failures: int
    paused_until: datetime
    """Attempts before this time are rejected without a check."""
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One action in the console: actor, action, address and time. Never changed."""

    key: int = 0
    uid: str
    actor: str
    """The name of the member, `key …`, or another actor such as the command line."""
    actor_uid: str | None = None
    """The uid of the member or key."""
    action: str
    """The action as `noun.verb`: `member.invite`."""
    target: str | None = None
    """The object of the action."""
    workspace: str | None = None
    address: str | None = None
    detail: JsonObject = field(default_factory=dict)
    created_at: datetime
