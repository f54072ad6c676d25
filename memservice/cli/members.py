"""`memservice console` and `memservice members`: one-time links, and the accounts of the console.
They work on the store itself, whether the server runs or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from memservice.cli.operator import OPERATOR
from memservice.cli.options import State
from memservice.cli.stores import opened, prepared
from memservice.cli.tables import show_table
from memservice.domain.errors import InvalidInput
from memservice.domain.records import ConsoleMember
from memservice.domain.times import wire_seconds
from memservice.domain.values import printable
from memservice.runtime import Runtime
from memservice.services.auth.permissions import Role
from memservice.services.members import accounts, links
from memservice.services.members.links import NewLink


@click.group()
def console() -> None:
    """Manage access to the console, the pages at /console."""


@console.command()
@click.option(
    "--member", help="Instead of a new owner, the name of a member who gets a new password."
)
@click.pass_obj
def link(state: State, member: str | None) -> None:
    """Print a link that creates an owner of the console. It works once, within an hour."""

    def make(rt: Runtime) -> NewLink:
        if member is None:
            return links.set_up(rt, OPERATOR)
        return links.for_member(rt, OPERATOR, member)

    _print(state, make)


@click.group()
def members() -> None:
    """List, invite and deactivate the members of the console."""


@members.command("list")
@click.pass_obj
def list_(state: State) -> None:
    """List the members, oldest first."""
    with opened(state) as rt:
        rt.storage.check()
        rows = [
            (
                printable(member.name),
                member.role,
                _limit(member),
                member.state,
                wire_seconds(member.created_at),
            )
            for member in _all(rt)
        ]
    show_table(("NAME", "ROLE", "WORKSPACES", "STATE", "SINCE"), rows)


@members.command()
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True)
@click.option(
    "--workspace",
    "-w",
    "workspaces",
    multiple=True,
    help="A workspace that the member may open. Repeat the option for several (default: all).",
)
@click.pass_obj
def invite(state: State, role: str, workspaces: tuple[str, ...]) -> None:
    """Print a link that creates a member with this role. It works once, within three days."""
    _print(state, lambda rt: links.invite_by_command(rt, OPERATOR, role, list(workspaces) or None))


@members.command()
@click.argument("name")
@click.pass_obj
def deactivate(state: State, name: str) -> None:
    """Deactivate the member NAME: its sessions end, and it cannot sign in."""
    with opened(state) as rt:
        rt.storage.check()
        member = accounts.deactivate_by_name(rt, OPERATOR, name)
    click.echo(f"deactivated {printable(member.name)}")


def _print(state: State, make: Callable[[Runtime], NewLink]) -> None:
    """The link alone on the standard output. The first one may be made before the first start."""
    links.require_enabled(state.settings)
    with prepared(state) as rt:
        try:
            new_link = make(rt)
        except InvalidInput as error:
            raise click.UsageError(str(error)) from None
    click.echo(f"works once, until {wire_seconds(new_link.link.expires_at)}", err=True)
    click.echo(new_link.url(state.settings))


def _all(rt: Runtime) -> Iterator[ConsoleMember]:
    """Newest first."""
    after: str | None = None
    while True:
        listing = accounts.browse(rt, OPERATOR, after)
        yield from listing.items
        after = listing.after
        if after is None:
            return


def _limit(member: ConsoleMember) -> str:
    if member.workspaces is None:
        return "all"
    return ", ".join(str(workspace["id"]) for workspace in member.workspaces)
