"""Who may call which route: the scopes that routes declare, and the bearer of a request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from flask import request

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

NOBODY = "No access token provided"
SECURITY_SCHEME = "HTTPBearer"
"""Its name in the API's document."""

EVERYBODY = rules.principal_of(None)
KEYLESS = rules.principal_of(Claims())
"""The caller of an open route without a key, while authentication is on: may do nothing."""


@dataclass(frozen=True, slots=True)
class RouteAccess:
    """Which keys open a route. Names are those of path parameters; a key opens the route if what it
    carries equals them.

    An admin key opens every route.
    """

    open: bool = False
    """No key is needed."""
    admin: bool = False
    """Nothing else than an admin key will do."""
    workspace: str | None = None
    peer: str | None = None
    """A peer's own key will do."""
    session: str | None = None
    """The session's own key will do."""
    member: bool = False
    """The key of an active member of the session will do."""
    handler: bool = False
    """Any key of the workspace is let in; what it may do with which name, the service decides."""
    by_uid: bool = False
    """The path names resources by uid, not by id."""
    collection: str | None = None
    """The collection's own key will do."""
    of_collections: bool = False
    """Of peers' keys only those with the claim `us` will do."""
    collections: bool = False
    """Keys of a collection are known here; everywhere else they open nothing."""


class Application(Protocol):
    """The part of the application that is asked here."""

    guard: Guard | None
    """None while authentication is off."""

    @property
    def runtime(self) -> Runtime: ...


class Guard:
    """Recognises the bearer of each request, and turns away who may not use its route, before the
    rest of the request is read."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._usage = KeyUsage()

    def admit(
        self, rt: Runtime, access: RouteAccess, path: Mapping[str, str], authorization: str | None
    ) -> Principal:
        """Who asks. Raises `Unauthorised`, always."""
        token = _bearer(authorization)
        now = rt.clock()
        claims = self._signer.read(token, now)
        if keys.names_by_uid(claims):
            with rt.storage.read() as tx:
                claims = keys.translated(tx, claims, access.collections)
        principal = rules.principal_of(claims)
        names = _names(rt, access, path)
        workspace_id = (
            names.workspace if access.workspace is not None else principal.workspace_id
        ) or ""
        if not principal.admin:
            if access.admin:
                rules.require_admin(principal)
            rules.require_key_of(principal, workspace_id)
        with rt.storage.read() as tx:
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

    def close(self) -> None:
        self._usage.close()


def _names(rt: Runtime, access: RouteAccess, path: Mapping[str, str]) -> rules.Names:
    """What keys are compared with."""
    given = [
        None if name is None else path[name]
        for name in (access.workspace, access.peer, access.session, access.collection)
    ]
    if not access.by_uid:
        return rules.Names(*given)
    if any(name is not None and "\0" in name for name in given):
        return rules.Names()  # some stores cannot look for it, and nothing has it
    with rt.storage.read() as tx:
        return keys.names_of(tx, *given)


def guard_of(settings: Settings) -> Guard | None:
    """None while authentication is off. Raises `ConfigurationError` if it is on and there is
    nothing to check keys with."""
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
            "%s is only %d bytes long: %d or more are safe from being guessed. %s",
            name,
            length,
            SECRET_BYTES,
            SIGNING_RECIPE,
        )


def principal(app: Application, access: RouteAccess, path: Mapping[str, str]) -> Principal:
    """Who sends the current request. While authentication is off, everyone may do everything."""
    if app.guard is None or access.open:
        return EVERYBODY
    return app.guard.admit(app.runtime, access, path, request.headers.get("Authorization"))


def optional_principal(app: Application) -> Principal:
    """The caller of an open route of a plugin: the bearer of the key that the request carries, if
    it carries one. Raises `Unauthorised` for a key that is not valid."""
    if app.guard is None:
        return EVERYBODY
    authorization = request.headers.get("Authorization")
    if authorization is None:
        return KEYLESS
    return app.guard.admit(app.runtime, RouteAccess(handler=True), {}, authorization)


def _bearer(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthorised(NOBODY)
    return token
