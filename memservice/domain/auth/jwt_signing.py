"""Signs and verifies keys with HS256 only. One secret signs; a previous one may still verify."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

from jwt import PyJWS
from jwt.algorithms import HMACAlgorithm
from jwt.exceptions import InvalidKeyError, InvalidSignatureError, PyJWTError

from memservice.domain.auth.jwt_claims import INVALID, Claims, read_claims, write_claims
from memservice.domain.errors import ConfigurationError, Unauthorised

ALGORITHM = "HS256"
SECRET_BYTES = 32
"""Recommended minimum length of a secret (RFC 7518, 3.2)."""


class WrongSignature(Unauthorised):
    """None of the secrets signed the token."""


class _Hmac(HMACAlgorithm):
    def check_key_length(self, key: bytes) -> str | None:
        """Skip the library's warning for each token: the server warns of a short secret once, at
        start."""
        return None


class Signer:
    """Signs and verifies with `secret` (its UTF-8 bytes), and verifies with the `previous` one.
    Thread-safe.

    Raises `ConfigurationError` for an unusable secret.
    """

    def __init__(self, secret: str, previous: str | None = None) -> None:
        algorithm = _Hmac(HMACAlgorithm.SHA256)
        self._key = _prepared(algorithm, "AUTH_JWT_SECRET", secret)
        self._previous = (
            _prepared(algorithm, "AUTH_JWT_SECRET_PREVIOUS", previous) if previous else None
        )
        self._jws = PyJWS(algorithms=[])
        self._jws.register_algorithm(ALGORITHM, algorithm)

    def sign(self, claims: Claims) -> str:
        payload = json.dumps(write_claims(claims), separators=(",", ":")).encode()
        return self._jws.encode(payload, self._key, ALGORITHM)

    def read(self, token: str, now: datetime) -> Claims:
        """The claims of a token signed with one of the secrets, here or by another server. Raises
        `Unauthorised`."""
        try:
            payload: Any = self._verified(token)
        except InvalidSignatureError:
            raise WrongSignature(INVALID) from None
        except (PyJWTError, ValueError, RecursionError):
            raise Unauthorised(INVALID) from None
        if not isinstance(payload, dict):
            raise Unauthorised(INVALID)
        return read_claims(payload, now)

    def _verified(self, token: str) -> Any:
        try:
            return json.loads(self._jws.decode(token, self._key, [ALGORITHM]))
        except InvalidSignatureError:
            if self._previous is None:
                raise
            return json.loads(self._jws.decode(token, self._previous, [ALGORITHM]))


def _prepared(algorithm: _Hmac, name: str, secret: str) -> bytes:
    try:
        key: bytes = algorithm.prepare_key(secret.encode())
    except InvalidKeyError as error:
        raise ConfigurationError(f"{name} cannot be used: {error}") from error
    return key


def digest(token: str) -> str:
    """SHA-256 of the signed part of a token, in hexadecimal.

    It leaves out the signature, because one signature has several spellings and some releases of
    the library accept more than one: a revoked token must stay revoked in every spelling.
    """
    return hashlib.sha256(token.rpartition(".")[0].encode("utf-8", "surrogatepass")).hexdigest()
