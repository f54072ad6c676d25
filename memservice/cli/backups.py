"""`memservice backup` and `restore`: the whole store as a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from memservice.cli.operator import OPERATOR
from memservice.cli.options import State
from memservice.cli.stores import opened, place_explained
from memservice.domain.errors import MemserviceError, NoStore
from memservice.operations import backups as service
from memservice.services.erasure import receipts
from memservice.services.private_files import replacing
from memservice.settings import data_directory
from memservice.spi.backups import BackupReport, Progress

_FILE = click.Path(dir_okay=False, path_type=Path)
_SHOWN = ("workspaces", "peers", "sessions", "messages", "conclusions")


@click.command()
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.argument("file", type=_FILE)
@click.pass_obj
def backup(state: State, force: bool, file: Path) -> None:
    """Write a backup of the whole store to FILE: every workspace, all keys and pending work.

    Servers and workers may keep running: the backup is the state at its beginning. It is verified
    before FILE gets its name. Vectors outside the storage are not in it; workers create them again
    after a restore.
    """
    with _progress() as progress, place_explained(state.settings):
        report = service.save(state.settings, state.plugins, file, progress, replace=force)
    click.echo(f"{file}: {_summary(report)}, {file.stat().st_size:,} bytes; verified")


@click.command()
@click.option("--force", is_flag=True, help="Replace the store that the settings name.")
@click.argument("file", type=_FILE)
@click.pass_obj
def restore(state: State, force: bool, file: Path) -> None:
    """Restore the store from FILE, which `memservice backup` wrote.

    The backup is verified before anything changes. A store that exists is replaced with --force
    only; stop its servers and workers first. What was erased after the backup is back: the receipts
    of these erasures are saved in the working directory. Repeat them with `memservice erasures
    repeat`.
    """
    data_directory.create(state.settings.data_directory)
    with _receipts_saved(state, Path(f"{file.name}.erasures"), replaces=force):
        with _progress() as progress:
            report = service.restore(state.settings, state.plugins, file, progress, replace=force)
        click.echo(f"restored from {file}: {_summary(report)}; verified")


@contextmanager
def _receipts_saved(state: State, file: Path, *, replaces: bool) -> Iterator[None]:
    """Save the receipts of erasures of a store that is replaced. Afterwards the file has those that
    the restored store does not have: what they erased is back."""
    before = _receipts(state) if replaces else []
    if not before:
        yield
        return
    _save(before, file)
    try:
        yield
    except BaseException:
        file.unlink()
        raise
    restored = {receipt["id"] for receipt in _receipts(state)}
    missing = [receipt for receipt in before if receipt["id"] not in restored]
    if not missing:
        file.unlink()
        return
    _save(missing, file)
    click.echo(
        f"WARNING: {len(missing)} erasures of the replaced store are not in the backup, so what "
        f"they erased is back. Repeat them with: memservice erasures repeat {file}",
        err=True,
    )


def _receipts(state: State) -> list[dict[str, Any]]:
    """The receipts of the store; empty if there is none. It may also be damaged, or need an
    upgrade."""
    try:
        with opened(state) as runtime:
            runtime.storage.check()
            return list(receipts.export(runtime, OPERATOR))
    except NoStore:
        return []
    except MemserviceError as error:
        click.echo(f"WARNING: receipts of erasures cannot be read: {error}", err=True)
        return []


def _save(lines: Sequence[dict[str, Any]], file: Path) -> None:
    with replacing(file) as new:
        for line in lines:
            new.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def _summary(report: BackupReport) -> str:
    rows = ", ".join(f"{report.rows[name]:,} {name}" for name in _SHOWN if name in report.rows)
    return f"{rows}, schema {report.schema_version}"


@contextmanager
def _progress() -> Iterator[Progress]:
    """A progress bar for each step, on the terminal."""
    with ExitStack() as bars:
        bar_by_step: dict[str, Any] = {}

        def progress(step: str, position: int, total: int) -> None:
            if step not in bar_by_step:
                bars.close()
                bar_by_step.clear()
                bar_by_step[step] = bars.enter_context(
                    click.progressbar(length=total, label=step, file=sys.stderr)
                )
            bar = bar_by_step[step]
            bar.update(position - bar.pos)

        yield progress
