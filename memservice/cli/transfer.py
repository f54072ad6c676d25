"""`memservice export`, `import`, `copy`, `import-from`: workspaces as files, and transfers between
installations."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from memservice.cli import remote_workspace
from memservice.cli.options import State, selected_workspaces
from memservice.cli.stores import checked_store, prepared
from memservice.domain.errors import IndexUnavailable
from memservice.runtime import Runtime
from memservice.services.transfer import (
    copying,
    export,
    folders,
    importing,
    installation,
    integrity,
)
from memservice.services.transfer.export import ExportOptions
from memservice.services.transfer.importing import Report
from memservice.services.transfer.lines import STANDARD, UnreadableExport, reading, writing


class Stopped(click.ClickException):
    """The user stopped the command."""

    exit_code = 130  # as shells call the end by Ctrl-C


_VECTORS = click.option(
    "--without-vectors", is_flag=True, help="Omit vectors; the target creates them again."
)
_SECRETS = click.option(
    "--with-secrets",
    is_flag=True,
    help="Include webhook endpoints with their secrets, and the API keys of the workspace.",
)


ERASURES = click.option(
    "--respect-erasures/--no-respect-erasures",
    default=True,
    show_default=True,
    help="Leave out what was erased in this store, and conclusions drawn from it. With "
    "--no-respect-erasures, it comes back.",
)


_TOML = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("export")
@click.option("--workspace", "-w", help="The workspace's id.")
@click.option(
    "--all", "everything", is_flag=True, help="Export all workspaces; FILE is then a folder."
)
@_VECTORS
@_SECRETS
@click.argument("file", type=click.Path())
@click.pass_obj
def export_command(
    state: State,
    workspace: str | None,
    everything: bool,
    without_vectors: bool,
    with_secrets: bool,
    file: str,
) -> None:
    """Write a workspace to FILE as lines of JSON. A name that ends in .gz compresses it; `-` is
    standard output. With --all, write each workspace to a file in the folder FILE.

    The export of a workspace is a consistent snapshot; servers and workers may keep running.
    """
    if everything == (workspace is not None):
        raise click.UsageError("Name a workspace with --workspace, or export --all.")
    export_options = ExportOptions(vectors=not without_vectors, secrets=with_secrets)
    with _vectors_needed(), checked_store(state) as runtime:
        if workspace is None:
            _export_all(runtime, Path(file), export_options)
            return
        lines = _export(runtime, workspace, export_options, file)
    click.echo(f"{workspace}: {lines} lines{'' if file == STANDARD else f' in {file}'}", err=True)


def _export(rt: Runtime, workspace: str, export_options: ExportOptions, file: str) -> int:
    """Returns the number of lines."""
    if Path(file).is_dir():
        raise click.ClickException(f"{file} is a folder: name a file, or export --all")
    lines = 0
    with (
        writing(file) as out,
        with_progress(
            export.lines(rt, workspace, export_options), workspace, export.size(rt, workspace)
        ) as export_lines,
    ):
        for line in export_lines:
            out.write(line)
            lines += 1
    return lines


def _export_all(rt: Runtime, folder: Path, export_options: ExportOptions) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.ClickException(f"{folder} is not an empty folder: name a new one")
    folder.mkdir(mode=0o700, exist_ok=True)
    exported = []
    for number, workspace in enumerate(copying.workspaces(rt), 1):
        name = folders.file_name(number, workspace)
        lines = _export(rt, workspace, export_options, str(folder / name))
        exported.append(folders.ExportedWorkspace(workspace, name, lines))
    folders.write_list(folder, exported)
    total = sum(one.lines for one in exported)
    click.echo(f"{len(exported)} workspaces, {total} lines in {folder}", err=True)
    _show_left_behind(rt, export_options, every_workspace=False)


@click.command("import")
@click.option(
    "--as",
    "as_slug",
    metavar="ID",
    help="Create a new workspace with this id; its rows get new ids.",
)
@ERASURES
@click.argument("file", type=click.Path())
@click.pass_obj
def import_command(state: State, as_slug: str | None, respect_erasures: bool, file: str) -> None:
    """Import a file of `memservice export`, or a folder of `memservice export --all`. `-` is
    standard input.

    An incomplete file is rejected before any row is stored. Existing rows do not change, so you can
    repeat an interrupted import. In an empty store the schema is created. No model is called.
    """
    if file != STANDARD and not Path(file).exists():
        raise click.ClickException(f"there is no file {file}")
    folder = Path(file) if Path(file).is_dir() else None
    if folder is not None and as_slug is not None:
        raise click.UsageError("--as needs the file of one workspace, not a folder of several.")
    files = [file] if folder is None else _files(folder)
    with resumable(), prepared(state) as runtime:
        for one in files:
            with reading(one) as data:
                report = importing.load_file(
                    runtime,
                    data,
                    as_slug,
                    lambda lines, number: with_progress(lines, "importing", number),
                    respect_erasures=respect_erasures,
                )
            click.echo(_summary(report))
            _warn(report)


def _files(folder: Path) -> list[str]:
    """The files of an export of all workspaces. Raises UnreadableExport if any is damaged: nothing
    is stored then."""
    files = []
    for one in folders.read_list(folder):
        path = str(folder / one.file)
        with reading(path) as data:
            try:
                integrity.check(iter(data))
            except UnreadableExport as error:
                raise UnreadableExport(f"{path}: {error}; nothing was stored") from error
        files.append(path)
    return files


@click.command("copy")
@click.option(
    "--from",
    "source",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings file of the source.",
)
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings file of the target.",
)
@selected_workspaces
@_VECTORS
@_SECRETS
@ERASURES
def copy_command(
    source: Path,
    target: Path,
    workspace_ids: tuple[str, ...],
    without_vectors: bool,
    with_secrets: bool,
    respect_erasures: bool,
) -> None:
    """Copy workspaces from one installation to another, between any storages, and compare the
    copies.

    SOURCE and TARGET are TOML files with settings. In an empty target the schema is created. Stop
    the servers and workers of both first: concurrent writes appear as differences.
    """
    export_options = ExportOptions(vectors=not without_vectors, secrets=with_secrets)
    source_state, target_state = State(source), State(target)
    with (
        resumable(),
        _vectors_needed(),
        checked_store(source_state) as source_store,
        prepared(target_state) as target_store,
    ):
        copying.require_two(source_store, target_store)
        for workspace_id in workspace_ids or copying.workspaces(source_store):
            lines = export.lines(source_store, workspace_id, export_options)
            with with_progress(
                lines, workspace_id, export.size(source_store, workspace_id)
            ) as lines_with_progress:
                report = copying.copy(
                    lines_with_progress,
                    target_store,
                    workspace_id,
                    export_options,
                    respect_erasures=respect_erasures,
                )
            click.echo(f"{_summary(report)}; the same in both, sha256 {report.sha256}")
        every_workspace = not workspace_ids
        if with_secrets and every_workspace:
            new = installation.copy_keys(source_store, target_store)
            click.echo(f"keys of no workspace: stored {new or 'nothing new'}")
        _show_left_behind(source_store, export_options, every_workspace=every_workspace)
        if with_secrets and not _same_secret(source_state, target_state):
            click.echo(
                "WARNING: the copied keys work only with the AUTH_JWT_SECRET that signed them, and "
                "the target has another one: set it there, or as AUTH_JWT_SECRET_PREVIOUS",
                err=True,
            )


def _show_left_behind(rt: Runtime, export_options: ExportOptions, *, every_workspace: bool) -> None:
    """Tell what was not transferred. Admin keys are, if all of a store is copied with secrets."""
    secrets = installation.secrets(rt)
    if export_options.secrets:
        excluded = {} if every_workspace else {"admin keys": secrets.get("admin keys", 0)}
        how = "`memservice copy --with-secrets` of all workspaces copies them"
    else:
        excluded, how = secrets, "--with-secrets includes them"
    for counts, note in ((excluded, how), (installation.never_copied(rt), "they stay here")):
        names = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
        if names:
            click.echo(f"not included: {names} ({note})", err=True)


def _same_secret(source: State, target: State) -> bool:
    auth = target.settings.auth
    return source.settings.auth.jwt_secret in (auth.jwt_secret, auth.jwt_secret_previous)


@click.command("import-from")
@click.option(
    "--token",
    envvar="IMPORT_FROM_TOKEN",
    help="API key for that server, if it requires one. Prefer the environment variable.",
)
@selected_workspaces
@ERASURES
@click.argument("url")
@click.pass_obj
def import_from_command(
    state: State,
    token: str | None,
    workspace_ids: tuple[str, ...],
    respect_erasures: bool,
    url: str,
) -> None:
    """Import the workspaces of another server with a /v3 API at URL.

    You can repeat the command, also to fetch newer rows. No model is called. Scopes, pending work,
    webhooks and keys are not imported.
    """
    with resumable(), prepared(state) as runtime, remote_workspace.client(url, token) as client:
        remote = remote_workspace.Remote(client)
        for workspace_id in workspace_ids or remote_workspace.names(remote):
            with with_progress(
                remote_workspace.lines(remote, workspace_id, runtime.clock()), workspace_id
            ) as lines:
                report = importing.load(runtime, lines, respect_erasures=respect_erasures)
            click.echo(_summary(report))


@contextmanager
def resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped("stopped. Stored rows stay: run the same command again to continue") from None


@contextmanager
def _vectors_needed() -> Iterator[None]:
    try:
        yield
    except IndexUnavailable as error:
        raise IndexUnavailable(
            f"{error}. Run this again when the index is available, or omit vectors with "
            "--without-vectors"
        ) from error


@contextmanager
def with_progress(
    lines: Iterator[bytes], label: str, length: int | None = None
) -> Iterator[Iterator[bytes]]:
    """The lines, with a progress bar on the terminal."""
    with click.progressbar(
        lines, length=length, label=label, file=sys.stderr, update_min_steps=100
    ) as bar:
        yield iter(bar)


def _summary(report: Report) -> str:
    new = ", ".join(f"{number} {name}" for name, number in report.stored.items() if number)
    left_out = sum(report.left_out.values())
    erased = (
        f"; left out {left_out} that were erased here or rest on erased rows "
        "(--no-respect-erasures imports them)"
    )
    return (
        f"{report.workspace}: {report.lines} lines read, stored {new or 'nothing new'}"
        f"{erased if left_out else ''}"
    )


def _warn(report: Report) -> None:
    if report.index_error is not None:
        click.echo(
            (
                f"memservice: the vector index is not available ({report.index_error}): "
                f"{report.deferred_vectors} vectors of the file could not be stored. Tasks create "
                "new ones when it is available; to store those of the file, import it again then."
            ),
            err=True,
        )
    for other in report.rejected_vectors:
        click.echo(
            (
                f"memservice: {other.number} vectors of kind {other.kind} were not imported: they "
                f"are by the embedder {other.embedder}, "
                f"but this workspace uses {other.local_embedder}. Tasks create the missing "
                "vectors with it. To change the embedder of the workspace: "
                f"memservice reembed --workspace {report.workspace} --to NAME, with NAME as in "
                "the setting EMBEDDER"
            ),
            err=True,
        )
