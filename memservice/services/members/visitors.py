"""The caller of a console page and its permissions, from the cookie of the request.

A page calls services with `Visitor.principal`, whose permissions and workspaces decide. It calls
`Visitor.may` only to hide buttons that would be refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from memservice.domain.auth.jwt_claims import Claims, read_claims
from memservice.domain.errors import Refused, Unauthorised
from memservice.domain.filters import equals
from memservice.domain.records import ACTIVE, BrowserSession, ConsoleMember, JsonObject, Workspace
from memservice.runtime import Runtime
from memservice.services.auth import api_keys, policy
from memservice.services.auth.permissions import (
    OF_ADMIN_KEY,
    OF_WORKSPACE_KEY,
    WITHOUT_AUTHENTICATION,
    Permission,
    Role,
)
from memservice.services.auth.principal import Principal
from memservice.services.members import tokens
from memservice.services.v1 import keys
from memservice.spi.storage import Transaction

LOOPBACK_ONLY = (
    "While authentication is off, the console answers only on this machine: open it at a "
    "loopback address, or set AUTH_USE_AUTH=true"
)


class Browser(Struct, frozen=True):
    """Where a request comes from, for the audit log and the list of sessions."""

    address: str
    """The IP address; behind a proxy, the one that the proxy sends."""
    name: str = ""
    """The request's `User-Agent`."""


class Visitor(Struct, frozen=True, kw_only=True):
    """The caller of a console page."""

    name: str
    """The member's name, `key …` for a sign-in with an API key, `everyone` while authentication is
    off."""
    principal: Principal
    """The principal for services. It has the permissions and the workspaces, so a service refuses
    what the role does not permit."""
    permissions: frozenset[Permission]
    role: Role | None = None
    """None: not a member."""
    workspaces: tuple[str, ...] | None = None
    """The ids of the only workspaces that the visitor may open, sorted; None: all."""
    csrf_token: str
    """In every form, as `csrf_token`."""
    actor_uid: str | None = None
    """The uid of the member or the key, for the audit log."""
    session_uid: str | None = None
    """The uid of the browser session; None while authentication is off."""
    signed_in_until: datetime | None = None

    @property
    def is_member(self) -> bool:
        return self.role is not None

    def may(self, permission: Permission, workspace_id: str | None = None) -> bool:
        """Whether pages show this action, in the workspace if one is named."""
        if permission not in self.permissions:
            return False
        return workspace_id is None or self.workspaces is None or workspace_id in self.workspaces

    def require(self, permission: Permission, workspace_id: str | None = None) -> None:
        """Raises `Unauthorised` with a message for the visitor."""
        if not self.may(permission, workspace_id):
            raise Unauthorised(policy.NOT_PERMITTED.format(needs=permission, everywhere=""))

    def principal_in(self, tx: Transaction, session_id: str) -> Principal:
        """The principal for services about one session: with the key of a peer, marked as the
        session's member if it is one."""
        return policy.as_member(tx, self.principal, session_id)


def visitor_of(rt: Runtime, session_id: str | None) -> Visitor | None:
    """The visitor whose session cookie is `session_id`, while authentication is on; None for no
    cookie, an unknown or expired session, a deactivated member, and a key that is revoked, expired
    or deleted. Reads the store at each call, so a revocation takes effect at once in every
    process."""
    if not session_id or not rt.settings.auth.use_auth:
        return None
    digests = tokens.digests(rt.settings, tokens.SESSION, session_id)
    with rt.storage.read() as tx:
        match = tx.sign_ins.recognised(digests)
        if match is None or match[0].expires_at <= rt.clock():
            return None
        session, member = match
        csrf_token = tokens.csrf_token(session_id)
        if session.claims is not None:
            return _of_key(tx, session, session.claims, csrf_token, rt.clock())
        if member is None or member.state != ACTIVE:
            return None
        return _of_member(tx, session, member, csrf_token)


def visitor_without_authentication(rt: Runtime, form_id: str) -> Visitor:
    """The visitor while authentication is off: anyone on this machine. `form_id` is the value of a
    cookie that the browser already has. Call `require_loopback` first."""
    if rt.settings.auth.use_auth:
        raise Unauthorised("Sign in")
    return Visitor(
        name="everyone",
        principal=policy.principal_of(None),
        permissions=WITHOUT_AUTHENTICATION,
        csrf_token=tokens.csrf_token(form_id),
    )


def visitor_of_bearer(rt: Runtime, token: str, principal: Principal) -> Visitor:
    """The visitor with the valid API key `token` in the header `Authorization`. No browser sends it
    automatically, so its forms need no token. `principal` is that of the key: an admin key, or a
    key of a whole workspace."""
    claims = api_keys.signer_of(rt.settings).read(token, rt.clock())
    key_uid = api_keys.uid_of(claims, token)
    return Visitor(
        name=f"key {key_uid}",
        principal=principal,
        permissions=_of_principal(principal),
        workspaces=None if principal.admin else (principal.workspace_id or "",),
        csrf_token="",
        actor_uid=key_uid,
    )


def require_loopback(addresses: Iterable[str | None]) -> None:
    """Raises `Refused` unless all addresses that a request without authentication names (of its
    sender, of the server, the host it was sent to) are loopback ones. Names of other hosts, and
    values added by a proxy, are not."""
    if not all(_is_loopback(address) for address in addresses):
        raise Refused(LOOPBACK_ONLY)


def _is_loopback(address: str | None) -> bool:
    name = (address or "").strip().removeprefix("[").removesuffix("]").lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _of_member(
    tx: Transaction, session: BrowserSession, member: ConsoleMember, csrf_token: str
) -> Visitor:
    role = Role(member.role)
    workspaces = None if member.workspaces is None else existing(tx, member.workspaces)
    principal = policy.principal_of_member(
        role, None if workspaces is None else frozenset(workspaces), member.uid
    )
    return Visitor(
        name=member.name,
        principal=principal,
        permissions=principal.permissions or frozenset(),
        role=role,
        workspaces=workspaces,
        csrf_token=csrf_token,
        actor_uid=member.uid,
        session_uid=session.uid,
        signed_in_until=session.expires_at,
    )


def existing(tx: Transaction, workspaces: Iterable[JsonObject]) -> tuple[str, ...]:
    """The ids of those workspaces that still exist, sorted. A new workspace with the id of a
    deleted one does not count."""
    uids = tuple(str(workspace["uid"]) for workspace in workspaces)
    if not uids:
        return ()
    rows = tx.rows.page(Workspace, equals(uid=uids, state=ACTIVE))
    return tuple(sorted(row.slug for row in rows))


def _of_key(
    tx: Transaction,
    session: BrowserSession,
    claim_values: JsonObject,
    csrf_token: str,
    now: datetime,
) -> Visitor | None:
    try:
        claims = read_claims(claim_values, now)
        recognised = _current_claims(tx, session, claims)
    except Unauthorised:
        return None
    principal = policy.principal_of(recognised)
    return Visitor(
        name=f"key {session.key_uid}",
        principal=principal,
        permissions=_of_principal(principal),
        workspaces=None if principal.admin else (principal.workspace_id or "",),
        csrf_token=csrf_token,
        actor_uid=session.key_uid,
        session_uid=session.uid,
        signed_in_until=session.expires_at,
    )


def _current_claims(tx: Transaction, session: BrowserSession, claims: Claims) -> Claims:
    """The claims with the current names. Raises `Unauthorised`, like a request with the key."""
    claims = keys.translate(tx, claims)
    match = tx.keys.recognised(session.key_uid or "")
    if match is None:
        if claims.id is not None:
            raise Unauthorised("JWT unknown")
    elif match[0].revoked_at is not None or not match[1]:
        raise Unauthorised("JWT revoked")
    return claims


def _of_principal(principal: Principal) -> frozenset[Permission]:
    if principal.admin:
        return OF_ADMIN_KEY
    return OF_WORKSPACE_KEY if principal.opens_whole_workspace else frozenset()
