"""Signing keys and verifying them: HS256 with one secret, and nothing else."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

from jwt import PyJWS
from jwt.algorithms import HMACAlgorithm
from jwt.exceptions import InvalidKeyError, PyJWTError

from memservice.domain.errors import ConfigurationError, Unauthorised
from memservice.domain.jwt_claims import INVALID, Claims, read_claims, write_claims

ALGORITHM = "HS256"
SECRET_BYTES = 32
"""A secret of fewer can be guessed from one token (RFC 7518, 3.2)."""


class _Hmac(HMACAlgorithm):
    def check_key_length(self, key: bytes) -> str | None:
        """Whoever starts a server is warned of a short secret once, not at each token."""
        return None


class Signer:
    """Signs and verifies with one secret (its UTF-8 bytes). Safe for threads. Raises `ConfigurationError` for an unusable secret."""

    def __init__(self, secret: str) -> None:
        algorithm = _Hmac(HMACAlgorithm.SHA256)
        try:
            self._key = algorithm.prepare_key(secret.encode())
        except InvalidKeyError as error:
            raise ConfigurationError(f"AUTH_JWT_SECRET cannot be used: {error}") from error
        self._jws = PyJWS(algorithms=[])
        self._jws.register_algorithm(ALGORITHM, algorithm)

    def sign(self, claims: Claims) -> str:
        payload = json.dumps(write_claims(claims), separators=(",", ":")).encode()
        return self._jws.encode(payload, self._key, ALGORITHM)

    def read(self, token: str, now: datetime) -> Claims:
        """The claims of a token that we, or another server with this secret, signed. Raises `Unauthorised`."""
        try:
            payload: Any = json.loads(self._jws.decode(token, self._key, [ALGORITHM]))
        except (PyJWTError, ValueError, RecursionError):
            raise Unauthorised(INVALID) from None
        if not isinstance(payload, dict):
            raise Unauthorised(INVALID)
        return read_claims(payload, now)


def digest(token: str) -> str:
    """SHA-256 of what is signed of a token, in hexadecimal.

    Without the signature: the same one can be spelt in several ways, some of which some releases of the library accept, and a
    revoked token must not come back in another spelling.
    """
    return hashlib.sha256(token.rpartition(".")[0].encode("utf-8", "surrogatepass")).hexdigest()
