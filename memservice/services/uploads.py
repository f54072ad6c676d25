"""Upload of files as messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from memservice.domain.errors import TooLarge, UnsupportedMedia
from memservice.domain.ids import new_uid
from memservice.domain.records import Message
from memservice.domain.text.chunks import Chunk, chunks
from memservice.domain.values import shown, strip_nul
from memservice.runtime import Runtime
from memservice.services import messages
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.documents import plain
from memservice.services.messages import Draft

PDF, JSON = "application/pdf", "application/json"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SUPPORTED = (PDF, "text/*", JSON, DOCX)

_UNTYPED = ("", "application/octet-stream")
_TYPE_BY_SUFFIX = {
    ".txt": "text/plain", ".md": "text/markdown", ".markdown": "text/markdown", ".csv": "text/csv",
    ".json": JSON, ".pdf": PDF,
    ".docx": DOCX,
}  # fmt: skip
"""Suffix → type of a file that was sent without one, as browsers and simple clients do for types
that they do not know."""
MAX_NAME = 255
_TEXT = re.compile(r"text/[a-z0-9!#$&^_.+*-]{1,127}")
"""Media types of text files with the permitted length: the type is stored with every message of a
file."""


class Upload(Struct, frozen=True):
    """A file as sent."""

    data: bytes
    filename: str
    content_type: str
    """As declared, without parameters; may be empty."""


class Frame(Struct, frozen=True):
    """The common fields of all messages of a file."""

    author: str
    metadata: Mapping[str, Any] | None = None
    configuration: Mapping[str, Any] | None = None
    created_at: datetime | None = None


def create(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    session_id: str,
    file: Upload,
    frame: Frame,
    idempotency_key: str | None = None,
) -> list[Message]:
    """Store a file's text as messages, in order, all or none; a text that is too long for one
    message is split at the best boundary.

    Raises TooLarge, UnsupportedMedia, InvalidInput (a file that cannot be read), and what
    `messages.create` raises.
    """
    policy.require(principal, workspace_id, session_id=session_id)
    check_size(rt, len(file.data))
    kind = kind_of(file)
    text: str = strip_nul(_text(rt, kind, file.data))
    parts = list(chunks(text, rt.settings.app.max_message_size))
    file_fields = {
        "file_id": new_uid(),
        "filename": strip_nul(PurePath(file.filename).name)[:MAX_NAME],
        "original_file_size": len(file.data),
        "content_type": kind,
        "total_chunks": len(parts),
    }
    drafts = [_draft(part, index, frame, file_fields) for index, part in enumerate(parts)]
    return messages.create(rt, principal, workspace_id, session_id, drafts, idempotency_key)


def check_size(rt: Runtime, size: int) -> None:
    limit = rt.settings.app.max_file_size
    if size > limit:
        raise TooLarge(f"File size ({size} bytes) exceeds maximum allowed size ({limit} bytes)")


def kind_of(file: Upload) -> str:
    """The effective type of the file: the declared one or, without one, that of its suffix."""
    declared = file.content_type.strip().lower()
    kind = (
        _TYPE_BY_SUFFIX.get(PurePath(file.filename.lower()).suffix, declared)
        if declared in _UNTYPED
        else declared
    )
    if kind in SUPPORTED or _TEXT.fullmatch(kind):
        return kind
    raise UnsupportedMedia(
        f"Unsupported file type: {shown(declared) or 'none'}. Supported types: {list(SUPPORTED)}"
    )


def _text(rt: Runtime, kind: str, data: bytes) -> str:
    if kind == JSON:
        return plain.json_text(data)
    if kind.startswith("text/"):
        return plain.decode(data)
    from memservice.services.documents import formats

    return formats.text_of("pdf" if kind == PDF else "docx", data, rt.settings.app.max_file_size)


def _draft(part: Chunk, index: int, frame: Frame, file_fields: Mapping[str, Any]) -> Draft:
    return Draft(
        content=part.text,
        author=frame.author,
        metadata=frame.metadata,
        configuration=frame.configuration,
        created_at=frame.created_at,
        internal={
            **file_fields,
            "chunk_index": index,
            "chunk_character_range": [part.start, part.end],
        },
    )
