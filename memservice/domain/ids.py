"""Identifiers: public 21-character ids, and digests of text."""

from __future__ import annotations

import hashlib
import secrets

from memservice.domain.text.normal_forms import normalize

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"


def new_uid() -> str:
    """21 random characters of `A-Za-z0-9_-` (nearly 126 bits). The first is no `-`: on a command
    line it would look like an option."""
    first, *rest = secrets.token_bytes(21)
    return _ALPHABET[first % 63] + "".join(_ALPHABET[byte & 63] for byte in rest)


def derived_uid(*parts: str) -> str:
    """The uid that belongs to these names: always the same one, of the same letters as the
    others."""
    first, *rest = hashlib.sha256("\0".join(parts).encode()).digest()[:21]
    return _ALPHABET[first % 63] + "".join(_ALPHABET[byte & 63] for byte in rest)


def fingerprint(text: str) -> str:
    """Equal for texts that differ only in surrounding and repeated white space and in case. 32
    hexadecimal digits."""
    folded = " ".join(normalize("NFC", text).casefold().split())
    return hashlib.blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
