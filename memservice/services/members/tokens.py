"""Secrets that browsers and links carry: how they are made, stored and compared.

The store has keyed hashes only. Their key is `AUTH_JWT_SECRET`: changing that setting ends sessions
and links as it ends API keys.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from memservice.settings import Settings

BYTES = 32

SESSION, LINK, BROWSER = "session", "link", "browser"
"""What a token is for. One kind is never accepted as another."""

_CSRF = b"memservice console form"


def new_token() -> str:
    """43 random characters of `A-Za-z0-9_-`."""
    return secrets.token_urlsafe(BYTES)


def digest(secret: str, purpose: str, token: str) -> str:
    """The keyed hash by which the store knows a token: 64 hexadecimal digits."""
    text = f"{purpose}\0{token}".encode("utf-8", "surrogatepass")
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """The present secret, then the previous one, as far as they are set."""
    auth = settings.auth
    return tuple(secret for secret in (auth.jwt_secret, auth.jwt_secret_previous) if secret)


def digests(settings: Settings, purpose: str, token: str) -> tuple[str, ...]:
    """The hashes that a stored token may have: under the present secret, and the previous one."""
    return tuple(digest(secret, purpose, token) for secret in secrets_of(settings))


def csrf_token(cookie: str) -> str:
    """The token that forms of the browser with this cookie carry. It follows from the cookie's
    secret value, which no page of another origin can read."""
    mac = hmac.new(cookie.encode("utf-8", "surrogatepass"), _CSRF, hashlib.sha256)
    return base64.urlsafe_b64encode(mac.digest()).decode().rstrip("=")


def is_same(expected: str, presented: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(
        expected.encode("utf-8", "surrogatepass"), presented.encode("utf-8", "surrogatepass")
    )
