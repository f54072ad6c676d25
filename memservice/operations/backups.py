"""Backups of the whole store, without opening it: it may have an older schema, or be damaged."""

from __future__ import annotations

import logging
from pathlib import Path

from memservice.domain.errors import ConfigurationError
from memservice.plugins import Plugins
from memservice.runtime import utc_now
from memservice.settings import Settings
from memservice.spi.backups import BackupReport, Backups, Progress
from memservice.spi.providers import Context

log = logging.getLogger("memservice")


def save(
    settings: Settings, plugins: Plugins, file: Path, progress: Progress, *, replace: bool = False
) -> BackupReport:
    """Write a backup of the store to `file`. Raises `ConfigurationError` if the file exists and is
    not to be replaced, and what `Backups.save` raises."""
    if file.exists() and not replace:
        raise ConfigurationError(f"{file} exists already: name another file, or use --force")
    if not file.absolute().parent.is_dir():
        raise ConfigurationError(f"there is no folder {file.absolute().parent}")
    return _backups(settings, plugins).save(file, progress)


def restore(
    settings: Settings, plugins: Plugins, file: Path, progress: Progress, *, replace: bool = False
) -> BackupReport:
    """Make the store what it was in the backup. Raises what `Backups.restore` raises."""
    if not file.is_file():
        raise ConfigurationError(f"there is no file {file}")
    return _backups(settings, plugins).restore(file, progress, replace=replace)


def _backups(settings: Settings, plugins: Plugins) -> Backups:
    uri = settings.db.connection_uri
    options = {"uri": uri, **settings.db.as_mapping()}
    return plugins.backups(plugins.storage(uri), options, Context(utc_now, log))
