"""Identifiers: public 21-character ids, and digests of text."""

from __future__ import annotations

import hashlib
import secrets

from memservice.domain.text.normal_forms import normalize

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"


def new_uid() -> str:
    """21 random characters of `A-Za-z0-9_-` (nearly 126 bits). The first one is not `-`, which
    would look like an option on a command line."""
    first, *others = secrets.token_bytes(21)
    return _ALPHABET[first % 63] + "".join(_ALPHABET[byte & 63] for byte in others)


def derived_uid(*parts: str) -> str:
    """A uid that depends on these names only, in the alphabet of `new_uid`."""
    first, *others = hashlib.sha256("\0".join(parts).encode()).digest()[:21]
    return _ALPHABET[first % 63] + "".join(_ALPHABET[byte & 63] for byte in others)


def fingerprint(text: str) -> str:
    """32 hexadecimal digits, equal for texts that differ only in case and in surrounding and
    repeated white space."""
    folded = " ".join(normalize("NFC", text).casefold().split())
    return hashlib.blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
