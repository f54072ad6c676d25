"""The text of plain files: detection of the encoding, and JSON on one line."""

from __future__ import annotations

import codecs
import json
import unicodedata

from memservice.domain.values import loads

FILE = ("file",)

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks and their encodings. The mark of UTF-32 begins with one of UTF-16."""


def decode(data: bytes) -> str:
    """The text of a plain file: UTF-8, UTF-16 or, if it is neither, Windows-1252 as written by
    Western European editors. Never fails."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            marked = _try(data, encoding)
            if marked is not None:
                return marked
    wide = _wide(data)
    if wide is not None:
        return wide
    for encoding in ("utf-8", "cp1252"):
        text = _try(data, encoding)
        if text is not None:
            return text
    return data.decode("latin-1")


def _try(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _wide(data: bytes) -> str | None:
    """The text as UTF-16 without a mark, if it is probably that.

    Nearly any two bytes are a character of UTF-16, so successful decoding proves nothing. Latin
    text has zero bytes in one half of each pair; other text counts if it is not UTF-8, its bytes
    are not Western text, and all its characters are assigned.
    """
    if len(data) % 2 or not data:
        return None
    zeros_first, zeros_second = data[0::2].count(0), data[1::2].count(0)
    if zeros_first != zeros_second:
        text = _try(data, "utf-16-le" if zeros_second > zeros_first else "utf-16-be")
        return text if text is not None and _is_text(text) else None
    if _try(data, "utf-8") is not None or _is_text(data.decode("cp1252", "replace")):
        return None
    candidates = [
        text
        for encoding in ("utf-16-le", "utf-16-be")
        if (text := _try(data, encoding)) is not None and _is_text(text)
    ]
    return candidates[0] if candidates else None


def _is_text(text: str) -> bool:
    """Whether the text has only assigned characters, and no control characters except those of
    lines."""
    return all(
        character in "\t\n\r\f" or unicodedata.category(character) not in ("Cc", "Cn", "Co", "Cs")
        for character in text
    )


def json_text(data: bytes) -> str:
    """A JSON file on one line, with its characters unescaped. Raises InvalidInput for invalid JSON,
    with the position of the error."""
    value = loads(data.removeprefix(codecs.BOM_UTF8), FILE)
    return json.dumps(value, ensure_ascii=False)
