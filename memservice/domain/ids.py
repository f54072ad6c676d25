"""Identifiers: public 21-character ids, and digests of text."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"


def new_uid() -> str:
    """21 random characters of `A-Za-z0-9_-` (126 bits)."""
    return "".join(_ALPHABET[byte & 63] for byte in secrets.token_bytes(21))


def fingerprint(text: str) -> str:
    """Equal for texts that differ only in surrounding and repeated white space and in case. 32 hexadecimal digits."""
    folded = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return hashlib.blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
