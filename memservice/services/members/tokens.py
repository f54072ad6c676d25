"""Secrets of browsers and links: creation, hashes and comparison.

The store has only keyed hashes. Their key is `AUTH_JWT_SECRET`: a change of that setting ends
sessions and links, like API keys.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from memservice.settings import Settings

BYTES = 32

SESSION, LINK, BROWSER = "session", "link", "browser"
"""Purposes of tokens. A token of one purpose is never accepted for another."""

_CSRF = b"memservice console form"


def new_token() -> str:
    """43 random characters of `A-Za-z0-9_-`."""
    return secrets.token_urlsafe(BYTES)


def digest(secret: str, purpose: str, token: str) -> str:
    """The keyed hash of a token in the store: 64 hexadecimal digits."""
    text = f"{purpose}\0{token}".encode("utf-8", "surrogatepass")
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """The current secret, then the previous one, if they are set."""
    auth = settings.auth
    return tuple(secret for secret in (auth.jwt_secret, auth.jwt_secret_previous) if secret)


def digests(settings: Settings, purpose: str, token: str) -> tuple[str, ...]:
    """The possible hashes of a stored token: with the current secret, and with the previous one."""
    return tuple(digest(secret, purpose, token) for secret in secrets_of(settings))


def csrf_token(cookie: str) -> str:
    """The token in forms for the browser with this cookie. It is derived from the cookie's secret
    value, which no page of another origin can read."""
    mac = hmac.new(cookie.encode("utf-8", "surrogatepass"), _CSRF, hashlib.sha256)
    return base64.urlsafe_b64encode(mac.digest()).decode().rstrip("=")


def is_same(expected: str, presented: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(
        expected.encode("utf-8", "surrogatepass"), presented.encode("utf-8", "surrogatepass")
    )
