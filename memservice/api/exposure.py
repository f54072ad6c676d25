"""Checks whether other machines can reach the service without a key."""

from __future__ import annotations

import ipaddress

from memservice.domain.errors import ConfigurationError
from memservice.settings import Settings

REMEDY = (
    "Set AUTH_USE_AUTH=true and AUTH_JWT_SECRET, or HOST=127.0.0.1; "
    "set AUTH_USE_AUTH=false to let everyone who reaches that address read and change everything"
)


def warnings(settings: Settings, host: str) -> list[str]:
    """Warnings about listening on this host with these settings, even if the operator chose
    them."""
    if settings.auth.use_auth or _is_loopback(host):
        return []
    return [
        (
            f"authentication is off and the server listens on {host}: everyone who reaches it "
            "can read and change everything"
        )
    ]


def require_decision(settings: Settings, host: str) -> None:
    """Raises `ConfigurationError` if authentication is off only by default and the host is not
    loopback."""
    if not settings.is_set("AUTH_USE_AUTH"):
        for warning in warnings(settings, host):
            raise ConfigurationError(f"{warning}. {REMEDY}.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
