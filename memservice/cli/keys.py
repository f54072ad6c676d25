"""`memservice keys`: the keys that callers show. Works on the store itself, whether the server runs
or not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta

import click

from memservice.cli.operator import OPERATOR
from memservice.cli.options import Duration, State
from memservice.cli.stores import opened, schema_of
from memservice.cli.tables import show_table
from memservice.domain.errors import InvalidInput
from memservice.domain.records import ApiKey
from memservice.domain.times import wire_seconds
from memservice.runtime import Runtime
from memservice.services.auth import api_keys as service
from memservice.services.paging import Paging

PAGE = 100
_OPTION = {
    "workspace_id": "--workspace",
    "peer_id": "--peer",
    "session_id": "--session",
    "expires_at": "--expires",
    "label": "--label",
}
_UNLISTED = (
    "Not listed: tokens without an id (`jti`), which another server signed with this "
    "secret. They go by the names in them alone, so they "
    "open whatever bears these names now and later; `memservice keys revoke --token` "
    "revokes one."
)


@click.group()
def keys() -> None:
    """Make, list and revoke the keys that callers show."""


@keys.command()
@click.option("--workspace", "-w", help="The workspace that the key opens.")
@click.option("--peer", help="Only this peer of the workspace.")
@click.option("--session", help="Only this session of the workspace.")
@click.option("--admin", is_flag=True, help="Instead: everything.")
@click.option(
    "--expires",
    type=Duration(),
    help="How long the key works: 90d, 1h30m, '2 weeks' (default: until it is revoked).",
)
@click.option("--label", help="What the key is for, for those who read the list.")
@click.pass_obj
def create(
    state: State,
    workspace: str | None,
    peer: str | None,
    session: str | None,
    admin: bool,
    expires: timedelta | None,
    label: str | None,
) -> None:
    """Make a key and print it, alone on the standard output. It cannot be shown again."""
    if admin == (workspace is not None or peer is not None or session is not None):
        raise click.UsageError(
            "Say what the key is to open: either --admin, or --workspace and perhaps "
            "--peer or --session."
        )
    with opened(state) as rt:
        if schema_of(rt) is None:
            rt.storage.migrate()  # the first key may be made before the first start
        rt.storage.check()
        key_request = service.KeyRequest(workspace_id=workspace, peer_id=peer, session_id=session)
        try:
            expires_at = None if expires is None else rt.clock() + expires
            minted = service.mint(rt, OPERATOR, key_request, expires_at, label)
        except OverflowError:
            raise click.BadParameter(
                "that is longer than calendars go", param_hint="--expires"
            ) from None
        except InvalidInput as error:
            raise click.UsageError(
                "; ".join(f"{_OPTION[str(p.loc[-1])]}: {p.message}" for p in error.problems)
            ) from None
    click.echo(f"key {minted.key.uid}: {_opens(minted.key)}, {_until(minted.key)}", err=True)
    click.echo(minted.token)
    if not state.settings.auth.use_auth:
        click.echo("WARNING: AUTH_USE_AUTH is false, so the server asks nobody for a key", err=True)


@keys.command("list")
@click.pass_obj
def list_(state: State) -> None:
    """List the keys made here, and those that were revoked. Tokens that other servers made have no
    id: they are listed once revoked."""
    rows = []
    with opened(state) as rt:
        rt.storage.check()
        now = rt.clock()
        for key in _all(rt):
            ended = key.expires_at is not None and key.expires_at <= now
            works = "revoked" if key.revoked_at else "expired" if ended else "works"
            used = wire_seconds(key.last_used_at) if key.last_used_at else "never"
            rows.append(
                (
                    key.uid,
                    _opens(key),
                    works,
                    _until(key),
                    wire_seconds(key.created_at),
                    used,
                    key.label or "",
                )
            )
    show_table(("ID", "OPENS", "STATE", "HOW LONG", "MADE", "LAST USED", "LABEL"), rows)
    click.echo(_UNLISTED, err=True)


@keys.command()
@click.argument("id", required=False)
@click.option(
    "--token",
    "given",
    help=(
        "The key itself, for one that was made by another server and has no id; - reads it "
        "from stdin."
    ),
)
@click.pass_obj
def revoke(state: State, id: str | None, given: str | None) -> None:
    """Revoke a key, by its ID or by itself: at once, and for good."""
    if (id is None) == (given is None):
        raise click.UsageError(
            "Name the key either by its ID (see `memservice keys list`) or by --token."
        )
    with opened(state) as rt:
        rt.storage.check()
        if id is not None:
            service.revoke(rt, OPERATOR, id)
        elif given is not None:
            shown = sys.stdin.read() if given == "-" else given
            id = service.revoke_token(rt, OPERATOR, shown.strip()).uid
    click.echo(f"revoked {id}")


def _all(rt: Runtime) -> Iterator[ApiKey]:
    number = 0
    while True:
        number += 1
        page = service.page(rt, OPERATOR, Paging(number, PAGE))
        yield from page.items
        if number >= page.pages:
            return


def _opens(key: ApiKey) -> str:
    if key.admin:
        return "everything"
    parts = [("workspace", key.workspace), ("peer", key.peer), ("session", key.session)]
    return (
        " ".join(f"{noun} {name}" for noun, name in parts if name)
        or "nothing that existed when it was made"
    )


def _until(key: ApiKey) -> str:
    return f"until {wire_seconds(key.expires_at)}" if key.expires_at else "until revoked"
