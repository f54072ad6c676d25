"""Authentication: the access that routes declare, and the bearer of a request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from flask import request
from msgspec import Struct

from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.errors import Unauthorised
from memservice.runtime import Runtime
from memservice.services.auth import api_keys
from memservice.services.auth import policy as rules
from memservice.services.auth.key_usage import KeyUsage
from memservice.services.auth.principal import Principal
from memservice.services.v1 import keys
from memservice.settings import SIGNING_RECIPE, Settings

if TYPE_CHECKING:
    from memservice.domain.auth.jwt_signing import Signer

log = logging.getLogger("memservice.auth")

NOT_PROVIDED = "No access token provided"
SECURITY_SCHEME = "HTTPBearer"
"""The name of the scheme in the OpenAPI document."""

UNRESTRICTED = rules.principal_of(None)
KEYLESS = rules.principal_of(Claims())
"""The principal of an open route without a key, while authentication is on: no permissions."""


class RouteAccess(Struct, frozen=True):
    """The keys that open a route. Names are those of path parameters; a key opens the route if its
    values equal theirs.

    An admin key opens every route.
    """

    open: bool = False
    """No key is required."""
    admin: bool = False
    """Only an admin key opens the route."""
    workspace: str | None = None
    peer: str | None = None
    """The peer's key opens the route too."""
    session: str | None = None
    """The session's key opens the route too."""
    member: bool = False
    """The key of an active member of the session opens the route too."""
    handler: bool = False
    """Any key of the workspace opens the route; the service decides what it may do."""
    by_uid: bool = False
    """The path names resources by uid, not by id."""
    collection: str | None = None
    """The collection's key opens the route too."""
    of_collections: bool = False
    """Among the keys of peers, only those with the claim `us` open the route."""
    collections: bool = False
    """Keys of a collection are accepted here; on other routes they open nothing."""


class Application(Protocol):
    """The parts of the application that authentication uses."""

    guard: Guard | None
    """None while authentication is off."""

    @property
    def runtime(self) -> Runtime: ...


class Guard:
    """Authenticates the bearer of each request, and rejects one that may not use its route, before
    the rest of the request is read."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._usage = KeyUsage()
        self._has_warned = False
        """Whether the log says that a key had a wrong signature."""

    def admit(
        self, rt: Runtime, access: RouteAccess, path: Mapping[str, str], authorization: str | None
    ) -> Principal:
        """The principal of the request. Raises `Unauthorised` for every refusal."""
        token = _bearer(authorization)
        now = rt.clock()
        claims = self._read(token, now)
        if keys.names_by_uid(claims):
            with rt.storage.read_committed() as tx:
                claims = keys.translate(tx, claims, access.collections)
        principal = rules.principal_of(claims)
        names = _names(rt, access, path)
        workspace_id = (
            names.workspace if access.workspace is not None else principal.workspace_id
        ) or ""
        if not principal.admin:
            if access.admin:
                rules.require_admin(principal)
            rules.require_key_of(principal, workspace_id)
        with rt.storage.read_committed() as tx:
            key = api_keys.recognise(tx, claims, token)
            if access.member and access.session is not None:
                principal = rules.as_member(tx, principal, path[access.session])
        if not (access.admin or access.handler):
            rules.require(
                principal,
                workspace_id,
                peer_id=names.peer,
                session_id=names.session,
                member=access.member,
                collection=names.collection,
            )
        if access.of_collections:
            rules.require_collections(principal)
        if key is not None:
            self._usage.note(rt, key, now)
        return principal

    def _read(self, token: str, now: datetime) -> Claims:
        from memservice.domain.auth.jwt_signing import WrongSignature

        try:
            return self._signer.read(token, now)
        except WrongSignature:
            if not self._has_warned:
                self._has_warned = True
                log.warning(
                    "refused a key that another secret signed: AUTH_JWT_SECRET was changed, or the "
                    "key was created by another server. See "
                    "docs/operations.md#changing-the-secret; further ones are answered with 401 "
                    "without this warning"
                )
            raise

    def close(self) -> None:
        self._usage.close()


def _names(rt: Runtime, access: RouteAccess, path: Mapping[str, str]) -> rules.Names:
    """The names of the path that keys are compared with."""
    values = [
        None if name is None else path[name]
        for name in (access.workspace, access.peer, access.session, access.collection)
    ]
    if not access.by_uid:
        return rules.Names(*values)
    if any(name is not None and "\0" in name for name in values):
        return rules.Names()  # no id contains NUL, and some stores cannot search for it
    with rt.storage.read() as tx:
        return keys.names_of(tx, *values)


def guard_of(settings: Settings) -> Guard | None:
    """None while authentication is off. Raises `ConfigurationError` if it is on without a
    secret."""
    if not settings.auth.use_auth:
        return None
    guard = Guard(api_keys.signer_of(settings))
    _warn_of_short("AUTH_JWT_SECRET", settings.auth.jwt_secret)
    _warn_of_short("AUTH_JWT_SECRET_PREVIOUS", settings.auth.jwt_secret_previous)
    return guard


def _warn_of_short(name: str, secret: str | None) -> None:
    from memservice.domain.auth.jwt_signing import SECRET_BYTES

    length = len((secret or "").encode())
    if 0 < length < SECRET_BYTES:
        log.warning(
            "%s has only %d bytes: use %d or more, so that it cannot be guessed. %s",
            name,
            length,
            SECRET_BYTES,
            SIGNING_RECIPE,
        )


def principal(app: Application, access: RouteAccess, path: Mapping[str, str]) -> Principal:
    """The principal of the current request. While authentication is off, without restrictions."""
    if app.guard is None or access.open:
        return UNRESTRICTED
    return app.guard.admit(app.runtime, access, path, request.headers.get("Authorization"))


def optional_principal(app: Application) -> Principal:
    """The principal of an open route of a plugin: the bearer of the request's key, if it has one.
    Raises `Unauthorised` for an invalid key."""
    if app.guard is None:
        return UNRESTRICTED
    authorization = request.headers.get("Authorization")
    if authorization is None:
        return KEYLESS
    return app.guard.admit(app.runtime, RouteAccess(handler=True), {}, authorization)


def _bearer(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthorised(NOT_PROVIDED)
    return token
