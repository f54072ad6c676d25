"""Backups of a whole store, for a storage that can make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

Progress = Callable[[str, int, int], None]
"""`progress(step, done, total)`: called now and then in each step, in any unit; at the end of a
step `done` equals `total`."""


class BackupReport(Struct, frozen=True):
    """What is in a backup, as counted in the backup or in the restored store itself."""

    schema_version: str
    rows: Mapping[str, int]
    """Number of rows by table."""


class Backups(Protocol):
    """Backups of the store that the settings name. Servers and workers may run while one is
    saved."""

    def save(self, file: Path, progress: Progress) -> BackupReport:
        """Write a backup to `file`, which only its owner may read and which gets its name only when
        it is complete and verified. An existing file is replaced.

        The backup is one consistent state: what was committed before the call is in it, and what is
        committed after the return is not. Raises `NoStore`, `Unavailable`, `ConfigurationError` for
        a missing program, and `Damaged` if the store or the backup is damaged.
        """
        ...

    def restore(self, file: Path, progress: Progress, *, replace: bool) -> BackupReport:
        """Make the store what it was in the backup. Until the backup was read and verified as a
        whole, nothing changes.

        Raises `Conflict` if there is a store and `replace` is False, or if processes use it;
        `Damaged` for a damaged file; `SchemaVersionError` for a backup of a newer release;
        `ConfigurationError` for a file that is no backup of this storage.
        """
        ...
