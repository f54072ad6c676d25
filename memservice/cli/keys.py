"""`memservice keys`: the API keys of callers, in the store. The server may be running or
stopped."""

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

PAGE_SIZE = 100
_OPTION = {
    "workspace_id": "--workspace",
    "peer_id": "--peer",
    "session_id": "--session",
    "expires_at": "--expires",
    "label": "--label",
}
_UNLISTED = (
    "Not listed: tokens without an id (`jti`), which another server signed with this "
    "secret. They apply to any workspace, peer or session with the names in them, now and "
    "later. Revoke one with `memservice keys revoke --token`."
)


@click.group()
def keys() -> None:
    """Create, list and revoke API keys."""


@keys.command()
@click.option("--workspace", "-w", help="The workspace that the key gives access to.")
@click.option("--peer", help="Only this peer of the workspace.")
@click.option("--session", help="Only this session of the workspace.")
@click.option("--admin", is_flag=True, help="Access to everything.")
@click.option(
    "--expires",
    type=Duration(),
    help="Lifetime of the key: 90d, 1h30m, '2 weeks' (default: until it is revoked).",
)
@click.option("--label", help="The purpose of the key, shown in the list.")
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
    """Create a key and print it as the only text on standard output. It cannot be shown again."""
    if admin == (workspace is not None or peer is not None or session is not None):
        raise click.UsageError(
            "Give the key a scope: either --admin, or --workspace, optionally with "
            "--peer or --session."
        )
    with opened(state) as rt:
        if schema_of(rt) is None:
            rt.storage.migrate()  # the first key may be created before the first start
        rt.storage.check()
        key_request = service.KeyRequest(workspace_id=workspace, peer_id=peer, session_id=session)
        try:
            expires_at = None if expires is None else rt.clock() + expires
            minted = service.mint(rt, OPERATOR, key_request, expires_at, label)
        except OverflowError:
            raise click.BadParameter(
                "the key would expire after the year 9999", param_hint="--expires"
            ) from None
        except InvalidInput as error:
            raise click.UsageError(
                "; ".join(f"{_OPTION[str(p.loc[-1])]}: {p.message}" for p in error.problems)
            ) from None
    click.echo(
        f"key {minted.key.uid}: {_scope_text(minted.key)}, {_expiry_text(minted.key)}", err=True
    )
    click.echo(minted.token)
    if not state.settings.auth.use_auth:
        click.echo("WARNING: AUTH_USE_AUTH is false, so the server requires no key", err=True)


@keys.command("list")
@click.pass_obj
def list_(state: State) -> None:
    """List the keys created here, including revoked ones. Tokens of other servers have no id, and
    are listed only after they are revoked."""
    rows = []
    with opened(state) as rt:
        rt.storage.check()
        now = rt.clock()
        for key in _all(rt):
            is_expired = key.expires_at is not None and key.expires_at <= now
            status = "revoked" if key.revoked_at else "expired" if is_expired else "works"
            last_used = wire_seconds(key.last_used_at) if key.last_used_at else "never"
            rows.append(
                (
                    key.uid,
                    _scope_text(key),
                    status,
                    _expiry_text(key),
                    wire_seconds(key.created_at),
                    last_used,
                    key.label or "",
                )
            )
    show_table(("ID", "SCOPE", "STATE", "VALID", "CREATED AT", "LAST USED", "LABEL"), rows)
    click.echo(_UNLISTED, err=True)


@keys.command()
@click.argument("id", required=False)
@click.option(
    "--token",
    "key_argument",
    help=(
        "The key itself, for a key of another server, which has no id; - reads it from standard "
        "input."
    ),
)
@click.pass_obj
def revoke(state: State, id: str | None, key_argument: str | None) -> None:
    """Revoke a key by its ID or by its token, immediately and permanently."""
    if (id is None) == (key_argument is None):
        raise click.UsageError(
            "Name the key by its ID (see `memservice keys list`) or with --token."
        )
    with opened(state) as rt:
        rt.storage.check()
        if id is not None:
            service.revoke(rt, OPERATOR, id)
        elif key_argument is not None:
            token = sys.stdin.read() if key_argument == "-" else key_argument
            id = service.revoke_token(rt, OPERATOR, token.strip()).uid
    click.echo(f"revoked {id}")


def _all(rt: Runtime) -> Iterator[ApiKey]:
    page_number = 0
    while True:
        page_number += 1
        page = service.page(rt, OPERATOR, Paging(page_number, PAGE_SIZE))
        yield from page.items
        if page_number >= page.pages:
            return


def _scope_text(key: ApiKey) -> str:
    if key.admin:
        return "everything"
    parts = [("workspace", key.workspace), ("peer", key.peer), ("session", key.session)]
    return (
        " ".join(f"{kind} {name}" for kind, name in parts if name)
        or "nothing: its target did not exist"
    )


def _expiry_text(key: ApiKey) -> str:
    return f"until {wire_seconds(key.expires_at)}" if key.expires_at else "until revoked"
