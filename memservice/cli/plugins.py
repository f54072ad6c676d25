"""`memservice plugins`: what is offered, by whom, and what failed to load; and whether one provider
keeps its contract."""

from __future__ import annotations

import sys
from difflib import get_close_matches

import click

from memservice.cli.options import State
from memservice.cli.plugins_check import checked
from memservice.cli.tables import show_table
from memservice.plugins import KINDS


@click.group(invoke_without_command=True)
@click.pass_context
def plugins(context: click.Context) -> None:
    """List what the installed plugins offer. Ends with 1 if one of them failed to load."""
    if context.invoked_subcommand is not None:
        return
    state: State = context.obj
    rows = state.plugins.listing()
    show_table(
        ("KIND", "NAME", "PLUGIN", "FROM", "DETAIL"),
        [(row.kind, row.name, row.plugin, row.distribution, row.detail) for row in rows],
    )
    if state.plugins.failures:
        sys.exit(1)


@plugins.command()
@click.argument("name")
@click.option(
    "--scratch",
    metavar="PLACE",
    help=(
        "A place to try a storage or an index in: a URI or URL. Each test has a schema or "
        "namespace of its own there, or what {path} "
        "(a file) or {unique} (a name) in it stand for."
    ),
)
@click.option(
    "--kind",
    type=click.Choice([kind.words for kind in KINDS]),
    help="Only the provider of this kind.",
)
@click.option("--costly", is_flag=True, help="Also try what asks a model that may cost something.")
@click.pass_obj
def check(state: State, name: str, scratch: str | None, kind: str | None, costly: bool) -> None:
    """Tell what the providers called NAME can do, and put them to their contract suites (needs the
    extra `testing`).

    Models, embedders and reasoners are opened as the settings say. A storage or a vector index is
    tried only in the place that --scratch names, for instance `--scratch 'sqlite:///{path}'`; what
    the settings name is left alone, and what the tests wrote is taken away. Ends with 1 if
    something failed, or could not be reached.
    """
    offered = [
        row
        for row in state.plugins.listing()
        if row.kind not in ("hook", "failed") and kind in (None, row.kind)
    ]
    rows = [row for row in offered if row.name == name.strip().lower()]
    if not rows:
        raise click.ClickException(_unknown(state, name, sorted({row.name for row in offered})))
    outcomes = [checked(state, row, scratch, costly) for row in rows]
    sys.exit(int(not all(outcomes)))


def _unknown(state: State, name: str, known: list[str]) -> str:
    for failure in state.plugins.failures:
        if name in (failure.provider, failure.origin.name):
            return f"{name} cannot be used: {failure.reason}"
    near = get_close_matches(name, known, n=2)
    return f"no plugin offers {name!r}; known: {', '.join(known)}" + (
        f"; did you mean {' or '.join(near)}?" if near else ""
    )
