"""Create, list, revoke and verify API keys.

A key belongs to the workspace, peer and session that have its names, by uid. Their deletion revokes
it in the same transaction. A key that is created during such a deletion is rejected when it is
used, because its resource no longer exists. A key therefore never opens another workspace, peer or
session of the same name.

A key can also name a resource that does not exist yet, since clients create resources when they
first use a name. It then belongs to the first resource that gets the name, and the deletion of that
resource revokes it. The store does not know a token without an id, so only its names count.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.auth.jwt_claims import Claims, claims_for
from memservice.domain.errors import (
    ConfigurationError,
    Disabled,
    InvalidInput,
    NotFound,
    Problem,
    Unauthorised,
)
from memservice.domain.filters import TRUE
from memservice.domain.ids import new_uid
from memservice.domain.records import DELETING, ApiKey
from memservice.domain.values import name_problem
from memservice.runtime import Runtime
from memservice.services.auth import policy, signing_record
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.paging import Listing, Page, Paging, listing, page_after
from memservice.services.v1 import keys
from memservice.settings import SIGNING_RECIPE, Settings
from memservice.spi.repositories import Located
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from memservice.domain.auth.jwt_signing import Signer

log = logging.getLogger("memservice.keys")

REVOKED = "JWT revoked"
UNKNOWN = "JWT unknown"
"""The token has an id of this service that the store does not have: it was created for another
store, or the store was restored from an older backup."""

MAX_LABEL = 200


class Minted(Struct, frozen=True):
    key: ApiKey
    token: str
    """Shown once: the store does not have it."""


class KeyRequest(Struct, frozen=True, kw_only=True):
    """The resource that a key opens: a workspace, or one peer or session in it; without a name,
    everything."""

    workspace_id: str | None = None
    peer_id: str | None = None
    session_id: str | None = None


def signer_of(settings: Settings) -> Signer:
    """Raises `ConfigurationError`, with instructions for a secret, if there is none or one is too
    short."""
    # import the library only where keys are used
    from memservice.domain.auth.jwt_signing import Signer

    auth = settings.auth
    if not auth.jwt_secret:
        raise ConfigurationError(
            f"AUTH_JWT_SECRET is not set, and keys are signed with it. {SIGNING_RECIPE}"
        )
    for problem in auth.short_secrets():
        raise ConfigurationError(problem)
    return Signer(auth.jwt_secret, auth.jwt_secret_previous)


def require_enabled(rt: Runtime) -> None:
    """Raises `Disabled` while authentication is off. No key is necessary then, and anyone could
    create keys that work once it is on."""
    if not rt.settings.auth.use_auth:
        raise Disabled("Feature is disabled")


def mint(
    rt: Runtime,
    principal: Principal,
    key_request: KeyRequest,
    expires_at: datetime | None = None,
    label: str | None = None,
) -> Minted:
    """Create a key. Its resource need not exist yet. A key without any name is an admin key, and
    `admin` is its default label."""
    policy.require_admin(principal, needs=Permission.MANAGE_KEYS)
    now = rt.clock()
    expires_at = None if expires_at is None else expires_at.replace(microsecond=0)
    validate(key_request, expires_at, label, now)
    signer = signer_of(rt.settings)
    admin = key_request.workspace_id is None
    uid = new_id()
    key = ApiKey(
        uid=uid,
        label=label or ("admin" if admin else None),
        admin=admin,
        workspace=key_request.workspace_id,
        peer=key_request.peer_id,
        session=key_request.session_id,
        expires_at=expires_at,
        created_at=now,
    )
    token = signer.sign(
        claims_for(
            uid,
            now,
            expires_at,
            key_request.workspace_id,
            key_request.peer_id,
            key_request.session_id,
        )
    )

    def store(tx: Transaction) -> ApiKey:
        signing_record.note(tx, rt.settings.auth.jwt_secret or "")
        return tx.keys.add(bound(tx, key))

    api_key = rt.storage.write(store)
    if admin:
        log.warning("created the admin key %s, which gives access to everything", uid)
    else:
        log.info("created the key %s", uid)
    return Minted(api_key, token)


def bound(tx: Transaction, key: ApiKey) -> ApiKey:
    """The key with the uids of the resources that have its names now. A session that is being
    deleted does not count: the key is for the next one."""
    located = (
        Located()
        if key.workspace is None
        else tx.workspaces.locate(key.workspace, key.session, key.peer)
    )
    session = (
        None if located.session is None or located.session.state == DELETING else located.session
    )
    return replace(
        key,
        workspace_uid=None if located.workspace is None else located.workspace.uid,
        peer_uid=None if located.peer is None else located.peer.uid,
        session_uid=None if session is None else session.uid,
    )


def new_id() -> str:
    """A new key's id."""
    # an id that begins with a dash would be read as an option on the command line
    return new_uid().replace("-", "_")


def validate(
    key_request: KeyRequest, expires_at: datetime | None, label: str | None, now: datetime
) -> None:
    """Raise InvalidInput unless a key can have these names, this expiry and this label."""
    problems = []
    for field, name in (
        ("workspace_id", key_request.workspace_id),
        ("peer_id", key_request.peer_id),
        ("session_id", key_request.session_id),
    ):
        problem = None if name is None else name_problem(name)
        if problem is not None:
            problems.append(Problem((field,), problem, "string_pattern_mismatch"))
    if key_request.workspace_id is None and (
        key_request.peer_id is not None or key_request.session_id is not None
    ):
        problems.append(
            Problem(
                ("workspace_id",),
                "workspace_id must be provided for a key of a peer or a session",
            )
        )
    if expires_at is not None and expires_at <= now:
        problems.append(Problem(("expires_at",), "expires_at must lie in the future"))
    if label is not None and (len(label) > MAX_LABEL or "\0" in label):
        problems.append(
            Problem(
                ("label",),
                f"A label has at most {MAX_LABEL} characters, and no NUL",
                "string_too_long",
            )
        )
    if problems:
        raise InvalidInput(*problems)


def page(rt: Runtime, principal: Principal, paging: Paging) -> Page[ApiKey]:
    """All keys created here and all revoked keys, oldest first."""
    policy.require_admin(principal, needs=Permission.MANAGE_KEYS)
    with rt.storage.read() as tx:
        return listing(tx.keys, paging, order=paging.order("created_at"))


def browse(rt: Runtime, principal: Principal, after: str | None = None) -> Listing[ApiKey]:
    """Like `page`, but newest first, after the key `after`."""
    policy.require_admin(principal, needs=Permission.MANAGE_KEYS)
    with rt.storage.read() as tx:
        return page_after(tx, ApiKey, TRUE, after)


def revoke(rt: Runtime, principal: Principal, uid: str) -> None:
    """Reject the key from now on, in every process. Revoking it again changes nothing. Raises
    `NotFound`."""
    policy.require_admin(principal, needs=Permission.MANAGE_KEYS)
    now = rt.clock()
    if not rt.storage.write(lambda tx: tx.keys.revoke(uid, now)):
        raise NotFound(f"Key {uid} not found")
    log.info("revoked the key %s", uid)


def revoke_token(rt: Runtime, principal: Principal, token: str) -> ApiKey:
    """Like `revoke`, for the token itself, which may come from another server and have no id.

    Raises `Unauthorised` for a token that is rejected anyway.
    """
    policy.require_admin(principal, needs=Permission.MANAGE_KEYS)
    now = rt.clock()
    claims = signer_of(rt.settings).read(token, now)
    uid = uid_of(claims, token)

    def change(tx: Transaction) -> ApiKey:
        if tx.keys.by_uid(uid) is None:
            if claims.id is not None:
                raise Unauthorised(UNKNOWN)
            translated = keys.translate(tx, claims, collections=True)
            tx.keys.add(_foreign(uid, translated, now))
        tx.keys.revoke(uid, now)
        api_key = tx.keys.by_uid(uid)
        assert api_key is not None
        return api_key

    api_key = rt.storage.write(change)
    log.info("revoked the key %s", uid)
    return api_key


def _foreign(uid: str, claims: Claims, now: datetime) -> ApiKey:
    return ApiKey(
        uid=uid,
        label="without an id, goes by its names",
        admin=claims.admin,
        workspace=claims.workspace,
        peer=claims.peer,
        session=claims.session,
        expires_at=claims.expires_at,
        created_at=now,
    )


def recognise(tx: Transaction, claims: Claims, token: str) -> ApiKey | None:
    """The stored key of a verified token; None for a token of another server. Raises `Unauthorised`
    for a token that is revoked or unknown, or whose resource is deleted.

    Called for every request, so a revocation takes effect at once in every process.
    """
    match = tx.keys.recognised(uid_of(claims, token))
    if match is None:
        if claims.id is not None:
            raise Unauthorised(UNKNOWN)
        return None
    key, exists = match
    if key.revoked_at is not None or not exists:
        raise Unauthorised(REVOKED)
    return key


def uid_of(claims: Claims, token: str) -> str:
    """The uid of a token in the store: its id, or its digest if it has none."""
    from memservice.domain.auth.jwt_signing import digest

    return claims.id or digest(token)


def secret_of(settings: Settings, token: str, now: datetime) -> str:
    """The one of the two secrets that verifies a token. The token is valid."""
    from memservice.domain.auth.jwt_signing import Signer

    secret, previous = settings.auth.jwt_secret or "", settings.auth.jwt_secret_previous
    if previous is None:
        return secret
    try:
        Signer(secret).read(token, now)
    except Unauthorised:
        return previous
    return secret
