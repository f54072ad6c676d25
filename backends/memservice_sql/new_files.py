"""Files that programs and libraries write by their name, complete or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memservice.domain.errors import ConfigurationError


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new private file, which replaces `target` at the end of the block if that succeeds, and is
    on the disk then. Raises `ConfigurationError` if it cannot be created."""
    part = target.with_name(f".memservice-{secrets.token_hex(8)}.part")
    try:
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise ConfigurationError(f"{target} cannot be written: {error.strerror}") from error
    try:
        yield part
        _sync(part, os.O_RDWR)
        part.replace(target)
        _sync(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        for name in (part, part.with_name(f"{part.name}-journal")):
            name.unlink(missing_ok=True)


def _sync(path: Path, flags: int) -> None:
    opened = os.open(path, flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
