"""Which secret signed the keys of a store, so that a changed secret can be reported.

The store has two bytes of a hash: enough to notice another secret, and useless for finding it.
"""

from __future__ import annotations

import hashlib

from memservice.settings.service import Auth
from memservice.spi.storage import Transaction

FACT = "keys_signed_with"
BYTES = 2


def note(tx: Transaction, secret: str) -> None:
    """Record the secret of a new key."""
    tx.facts.set(FACT, _fingerprint(secret))


def is_unknown_to(tx: Transaction, auth: Auth) -> bool:
    """Whether a secret that these settings do not have signed the newest key."""
    fingerprint = tx.facts.get(FACT)
    secrets = (auth.jwt_secret, auth.jwt_secret_previous)
    return fingerprint is not None and fingerprint not in {
        _fingerprint(secret) for secret in secrets if secret
    }


def _fingerprint(secret: str) -> str:
    return hashlib.sha256(f"memservice keys:{secret}".encode()).digest()[:BYTES].hex()
