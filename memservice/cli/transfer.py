"""`memservice export`, `import`, `copy`: a workspace as a file, and from one installation to
another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from memservice.cli import remote_workspace
from memservice.cli.options import State
from memservice.cli.stores import prepared, sound
from memservice.domain.errors import IndexUnavailable
from memservice.services.transfer import copying, export, importing
from memservice.services.transfer.export import ExportOptions
from memservice.services.transfer.importing import Report
from memservice.services.transfer.lines import STANDARD, reading, writing


class Stopped(click.ClickException):
    """By whoever waits for the command."""

    exit_code = 130  # as shells call the end by Ctrl-C


_VECTORS = click.option(
    "--without-vectors", is_flag=True, help="Leave vectors out; they are made again where they go."
)
_SECRETS = click.option(
    "--with-secrets",
    is_flag=True,
    help="Take webhook endpoints with their secrets, and the keys that name the workspace, along.",
)


_TOML = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("export")
@click.option("--workspace", "-w", required=True, help="The workspace's id.")
@_VECTORS
@_SECRETS
@click.argument("file", type=click.Path(dir_okay=False))
@click.pass_obj
def export_command(
    state: State, workspace: str, without_vectors: bool, with_secrets: bool, file: str
) -> None:
    """Write a workspace to FILE, as lines of JSON; compressed if its name ends in .gz, to standard
    output if it is `-`.

    It is read as of one moment; servers and workers may go on meanwhile.
    """
    export_options = ExportOptions(vectors=not without_vectors, secrets=with_secrets)
    lines = 0
    with _vectors_needed(), sound(state) as runtime, writing(file) as out:
        with _shown(
            export.lines(runtime, workspace, export_options),
            "exporting",
            export.size(runtime, workspace),
        ) as shown:
            for line in shown:
                out.write(line)
                lines += 1
    click.echo(f"{workspace}: {lines} lines{'' if file == STANDARD else f' in {file}'}", err=True)


@click.command("import")
@click.option(
    "--as",
    "as_slug",
    metavar="ID",
    help="Make it a new workspace of this id; its rows get ids of their own.",
)
@click.argument("file", type=click.Path(dir_okay=False))
@click.pass_obj
def import_command(state: State, as_slug: str | None, file: str) -> None:
    """Store what `memservice export` wrote to FILE. `-` is standard input.

    A file that is not whole is refused before anything is stored. What is there already is left as
    it is, so an import that broke off is simply run again. The store's schema is made if it is
    empty. No model is asked.
    """
    if file != STANDARD and not Path(file).exists():
        raise click.ClickException(f"there is no file {file}")
    with _resumable(), reading(file) as data, prepared(state) as runtime:
        report = importing.load_file(
            runtime, data, as_slug, lambda lines, number: _shown(lines, "importing", number)
        )
    click.echo(_told(report))
    _warn(report)


@click.command("copy")
@click.option(
    "--from",
    "source",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings to copy from.",
)
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings to copy to.",
)
@click.option(
    "--workspace",
    "-w",
    "named",
    multiple=True,
    help="Only this workspace; may be given again (default: all).",
)
@_VECTORS
@_SECRETS
def copy_command(
    source: Path, target: Path, named: tuple[str, ...], without_vectors: bool, with_secrets: bool
) -> None:
    """Copy workspaces from one installation to another, whatever their storages are, and compare
    them afterwards.

    Both are TOML files with settings. The target's schema is made if it is empty. Stop the servers
    and workers of both first: what is written meanwhile is seen as a difference.
    """
    export_options = ExportOptions(vectors=not without_vectors, secrets=with_secrets)
    origin, goal = State(source), State(target)
    with _resumable(), _vectors_needed(), sound(origin) as outof, prepared(goal) as into:
        copying.require_two(outof, into)
        for workspace_id in named or copying.workspaces(outof):
            lines = export.lines(outof, workspace_id, export_options)
            with _shown(lines, workspace_id, export.size(outof, workspace_id)) as shown:
                report = copying.copy(shown, into, workspace_id, export_options)
            click.echo(f"{_told(report)}; the same in both, sha256 {report.sha256}")


@click.command("import-from")
@click.option(
    "--token",
    envvar="IMPORT_FROM_TOKEN",
    help="A key of that server, if it asks for one (better in the environment).",
)
@click.option(
    "--workspace",
    "-w",
    "named",
    multiple=True,
    help="Only this workspace; may be given again (default: all).",
)
@click.argument("url")
@click.pass_obj
def import_from_command(state: State, token: str | None, named: tuple[str, ...], url: str) -> None:
    """Store the workspaces of another server that speaks /v3, read over its HTTP API at URL.

    May be run again, also to fetch what came since. No model is asked; scopes, waiting work,
    webhooks and keys do not come along.
    """
    with _resumable(), prepared(state) as runtime, remote_workspace.client(url, token) as client:
        remote = remote_workspace.Remote(client)
        for workspace_id in named or remote_workspace.names(remote):
            with _shown(
                remote_workspace.lines(remote, workspace_id, runtime.clock()), workspace_id
            ) as shown:
                report = importing.load(runtime, shown)
            click.echo(_told(report))


@contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(
            "stopped. What was stored stays; run the same command again, and it goes on from there"
        ) from None


@contextmanager
def _vectors_needed() -> Iterator[None]:
    try:
        yield
    except IndexUnavailable as error:
        raise IndexUnavailable(
            f"{error}. Run this again when the index is back, or leave the vectors out: "
            "--without-vectors"
        ) from error


@contextmanager
def _shown(
    lines: Iterator[bytes], label: str, length: int | None = None
) -> Iterator[Iterator[bytes]]:
    """The lines, with a bar on the terminal that tells how many went by."""
    with click.progressbar(
        lines, length=length, label=label, file=sys.stderr, update_min_steps=100
    ) as bar:
        yield iter(bar)


def _told(report: Report) -> str:
    new = ", ".join(f"{number} {name}" for name, number in report.stored.items() if number)
    return f"{report.workspace}: {report.lines} lines read, stored {new or 'nothing new'}"


def _warn(report: Report) -> None:
    if report.away is not None:
        click.echo(
            (
                f"memservice: the vector index is away ({report.away}): {report.later} vectors "
                "of the file could not be stored. They are made "
                "anew by tasks when it is back; to store those of the file instead, import it "
                "again then."
            ),
            err=True,
        )
    for other in report.others:
        click.echo(
            (
                f"memservice: {other.number} vectors of kind {other.kind} were not taken: they "
                f"are by the embedder {other.embedder}, "
                f"and this workspace has vectors by {other.here}, which tasks make for rows "
                "that have none. To change that: "
                f"memservice reembed --workspace {report.workspace} --to NAME, the embedder as "
                "the setting EMBEDDER names it"
            ),
            err=True,
        )
