"""Passwords of members: argon2id, by argon2-cffi, with bounded memory."""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING

from memservice.domain.errors import Busy, InvalidInput, Problem
from memservice.domain.text.normal_forms import normalize

if TYPE_CHECKING:
    from argon2 import PasswordHasher

MIN_LENGTH, MAX_LENGTH = 12, 200
"""Characters of a password."""

MAX_CONCURRENT_HASHES = 4
"""Maximum number of passwords that a process hashes at the same time, at 19 MiB and about 30 ms
each."""
SLOT_TIMEOUT_SECONDS = 5.0
"""Maximum time that an attempt waits for a hash slot; then the response is 503."""

_slots = threading.BoundedSemaphore(MAX_CONCURRENT_HASHES)


def require_usable(password: str, name: str, field: str = "password") -> None:
    """Raises `InvalidInput` for a password that is too short, too long, or the member's name."""
    message = None
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        message = f"A password has {MIN_LENGTH} to {MAX_LENGTH} characters"
    elif normalize("NFKC", password).casefold() == name:
        message = "The password must differ from the name"
    elif len(set(password)) < 4:
        message = "Choose a password with at least 4 different characters"
    if message is not None:
        raise InvalidInput(Problem((field,), message))


def hash_password(password: str) -> str:
    """A new hash with its own salt, in the library's notation. Raises `Busy`."""
    with _HashSlot():
        return _hasher().hash(_bytes(password))


def verify(password_hash: str | None, password: str) -> bool:
    """Whether the password matches the hash. None (no such account) takes as long as a wrong
    password. Raises `Busy`."""
    from argon2.exceptions import InvalidHashError, VerificationError

    with _HashSlot():
        decoy = _decoy_hash()  # in both cases, as its first use takes time
        try:
            _hasher().verify(password_hash or decoy, _bytes(password))
        except (VerificationError, InvalidHashError):
            return False
    return password_hash is not None


def is_outdated(password_hash: str) -> bool:
    """Whether the hash has other parameters than new ones."""
    return _hasher().check_needs_rehash(password_hash)


@cache
def _hasher() -> PasswordHasher:
    """A hasher with the first recommendation of OWASP's password storage cheat sheet for
    argon2id."""
    # import the library only where passwords are used
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


@cache
def _decoy_hash() -> str:
    return _hasher().hash(b"the password of no account")


def _bytes(password: str) -> bytes:
    """The password as bytes, equal for all Unicode forms of a character. Characters beyond the
    maximum length are cut off: such a password was never accepted."""
    return normalize("NFKC", password[: MAX_LENGTH + 1]).encode("utf-8", "surrogatepass")


class _HashSlot:
    """A slot among those that may hash at the same time."""

    def __enter__(self) -> None:
        if not _slots.acquire(timeout=SLOT_TIMEOUT_SECONDS):
            raise Busy("Too many people sign in at this moment. Try again in a few seconds")

    def __exit__(self, *exception: object) -> None:
        _slots.release()
