"""Who may call which route: the scopes that routes declare, and the bearer of a request."""

from __future__ import annotations

from dataclasses import dataclass

from memservice.domain.errors import ConfigurationError
from memservice.services.principal import Principal
from memservice.settings import Settings


@dataclass(frozen=True, slots=True)
class RouteAccess:
    """Which keys open a route. Names are those of path parameters; a key opens the route if what it carries equals them.

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


def refuse_unavailable(settings: Settings) -> None:
    """Raise ConfigurationError if the operator asks for authentication, which this release does not have."""
    if settings.auth.use_auth:
        raise ConfigurationError(
            "AUTH_USE_AUTH is true, but authentication is not available yet in this release: every caller would be let in. "
            "Set AUTH_USE_AUTH=false and keep the server on a private address."
        )


def principal(access: RouteAccess) -> Principal:
    """Who asks. While authentication is off, everyone may do everything."""
    return Principal.all()
