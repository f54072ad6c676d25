"""`memservice plugins`: a list of providers, hooks and failures, and the contract tests of one
provider."""

from __future__ import annotations

import sys
from difflib import get_close_matches

import click

from memservice.cli.options import State
from memservice.cli.plugins_check import checked
from memservice.cli.plugins_new import new
from memservice.cli.tables import show_table
from memservice.plugins import KINDS


@click.group(invoke_without_command=True)
@click.pass_context
def plugins(context: click.Context) -> None:
    """List the providers and hooks of installed plugins. Exits with 1 if a plugin failed to
    load."""
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
    metavar="URI",
    help=(
        "URI or URL for tests of a storage or an index. Each test uses its own schema or "
        "namespace there, or its own value of {path} (a file) or {unique} (a name)."
    ),
)
@click.option(
    "--kind",
    type=click.Choice([kind.words for kind in KINDS]),
    help="Only the provider of this kind.",
)
@click.option(
    "--costly", is_flag=True, help="Also run tests that call models, which may cost money."
)
@click.pass_obj
def check(state: State, name: str, scratch: str | None, kind: str | None, costly: bool) -> None:
    """Show the capabilities of the providers called NAME, and run their contract tests (needs the
    extra `testing`).

    Models, embedders and reasoners use the settings. A storage or a vector index is tested only at
    the URI of --scratch, for instance `--scratch 'sqlite:///{path}'`: the configured store is not
    touched, and the tests delete what they wrote. Exits with 1 if a test failed, or if the provider
    could not be reached.
    """
    candidates = [
        row
        for row in state.plugins.listing()
        if row.kind not in ("hook", "failed") and kind in (None, row.kind)
    ]
    rows = [row for row in candidates if row.name == name.strip().lower()]
    if not rows:
        raise click.ClickException(_unknown(state, name, sorted({row.name for row in candidates})))
    outcomes = [checked(state, row, scratch, costly) for row in rows]
    sys.exit(int(not all(outcomes)))


plugins.add_command(new)


def _unknown(state: State, name: str, names: list[str]) -> str:
    for failure in state.plugins.failures:
        if name in (failure.provider, failure.origin.name):
            return f"{name} cannot be used: {failure.reason}"
    near = get_close_matches(name, names, n=2)
    return f"no plugin offers {name!r}; known: {', '.join(names)}" + (
        f"; did you mean {' or '.join(near)}?" if near else ""
    )
