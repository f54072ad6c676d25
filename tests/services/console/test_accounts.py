"""Members: roles, limits, and permissions to change them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from memservice.domain.errors import Conflict, InvalidInput, NotFound, Unauthorised
from memservice.runtime import Runtime
from memservice.services import deletion, workspaces
from memservice.services.auth import permissions
from memservice.services.auth.permissions import ALL, STORE_WIDE, Permission, Role
from memservice.services.members import accounts, audit, links, sign_ins, visitors
from memservice.services.members.visitors import Browser, Visitor
from memservice.services.paging import Paging
from memservice.worker import retention
from support.services.console import COMMAND_LINE, HOME, Console


@pytest.fixture
def console_with_workspaces(console: Console) -> Console:
    for name in ("a", "b"):
        workspaces.get_or_create(console.rt, COMMAND_LINE, name, None, None)
    return console


def test_the_table_of_roles_is_the_documented_one(root: Path) -> None:
    written = [line for line in (permissions.__doc__ or "").splitlines() if line.startswith("|")]
    assert "\n".join(written) in (root / "docs" / "console.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in (permissions.__doc__ or "").splitlines()
        if line.startswith("|")
    ]
    roles = [Role(name) for name in rows[0][1:4]]
    documented = {row[0]: row[1:] for row in rows[2:]}
    assert set(documented) == {permission.value for permission in ALL}
    for permission in Permission:
        cells = documented[permission.value]
        for role, cell in zip(roles, cells, strict=False):
            assert (cell == "yes") == (permission in permissions.OF_ROLE[role])
        assert (cells[3] == "yes") == (permission in STORE_WIDE)


def test_a_limited_member_has_no_store_wide_permission(console_with_workspaces: Console) -> None:
    for role in Role:
        visitor = console_with_workspaces.visitor(
            console_with_workspaces.invite(f"m {role.value}", role.value, "a")
        )
        assert not visitor.permissions & STORE_WIDE
        assert visitor.may(Permission.VIEW, "a")
        assert not visitor.may(Permission.VIEW, "b")


def test_a_change_of_role_counts_from_the_next_request_on(console_with_workspaces: Console) -> None:
    session_id = console_with_workspaces.invite("rita", "reader", "a")
    owner = console_with_workspaces.visitor(console_with_workspaces.owner)
    accounts.change(
        console_with_workspaces.rt,
        owner,
        HOME,
        console_with_workspaces.uid(session_id),
        "operator",
        None,
    )
    visitor = console_with_workspaces.visitor(session_id)
    assert (visitor.role, visitor.workspaces) == (Role.OPERATOR, None)


def test_a_limit_is_to_the_workspace_and_not_to_its_name(console_with_workspaces: Console) -> None:
    session_id = console_with_workspaces.invite("rita", "reader", "a", "b")
    deletion.delete_workspace(console_with_workspaces.rt, COMMAND_LINE, "a", with_sessions=True)
    assert console_with_workspaces.visitor(session_id).workspaces == ("b",)
    workspaces.get_or_create(console_with_workspaces.rt, COMMAND_LINE, "a", None, None)
    visitor = console_with_workspaces.visitor(session_id)
    assert visitor.workspaces == ("b",)
    assert not visitor.principal.opens_whole("a")


def test_a_member_whose_workspaces_are_all_gone_opens_none(
    console_with_workspaces: Console,
) -> None:
    session_id = console_with_workspaces.invite("rita", "owner", "a")
    deletion.delete_workspace(console_with_workspaces.rt, COMMAND_LINE, "a", with_sessions=True)
    visitor = console_with_workspaces.visitor(session_id)
    assert visitor.workspaces == ()
    assert (
        workspaces.page(console_with_workspaces.rt, visitor.principal, None, Paging()).items == []
    )


def test_the_list_of_workspaces_shows_those_of_the_account(
    console_with_workspaces: Console,
) -> None:
    limited = console_with_workspaces.visitor(console_with_workspaces.invite("rita", "reader", "b"))
    everywhere = console_with_workspaces.visitor(console_with_workspaces.invite("rolf", "reader"))
    for visitor, expected in ((limited, ["b"]), (everywhere, ["a", "b"])):
        page = workspaces.page(console_with_workspaces.rt, visitor.principal, None, Paging())
        assert [workspace.slug for workspace in page.items] == expected


Action = Callable[[Runtime, Visitor, Browser, str], object]
MANAGING: dict[str, Action] = {
    "list": lambda rt, visitor, browser, uid: accounts.browse(rt, visitor.principal),
    "get": lambda rt, visitor, browser, uid: accounts.get(rt, visitor.principal, uid),
    "change": lambda rt, visitor, browser, uid: accounts.change(
        rt, visitor, browser, uid, "owner", None
    ),
    "deactivate": accounts.deactivate,
    "activate": accounts.activate,
    "end sessions": accounts.end_sessions,
    "invite": lambda rt, visitor, browser, uid: links.invite(rt, visitor, browser, "owner"),
    "new password": links.new_password,
    "pending": lambda rt, visitor, browser, uid: links.pending(rt, visitor.principal),
    "withdraw": links.withdraw,
    "audit log": lambda rt, visitor, browser, uid: audit.browse(rt, visitor.principal),
    "export": lambda rt, visitor, browser, uid: audit.every(rt, visitor.principal),
}


@pytest.mark.slow
@pytest.mark.parametrize("action", MANAGING)
def test_only_owners_of_all_workspaces_manage_members(
    console_with_workspaces: Console, action: str
) -> None:
    others = [
        console_with_workspaces.visitor(console_with_workspaces.invite("rita", "reader")),
        console_with_workspaces.visitor(console_with_workspaces.invite("otto", "operator")),
        console_with_workspaces.visitor(console_with_workspaces.invite("lars", "owner", "a")),
        console_with_workspaces.visitor(
            sign_ins.with_key(
                console_with_workspaces.rt, HOME, console_with_workspaces.key().token
            ).session_id
        ),
    ]
    for visitor in others:
        for uid in (
            visitor.actor_uid or "",
            console_with_workspaces.uid(console_with_workspaces.owner),
        ):
            with pytest.raises(Unauthorised):
                MANAGING[action](console_with_workspaces.rt, visitor, HOME, uid)


def test_the_last_owner_stays(console_with_workspaces: Console) -> None:
    owner, uid = (
        console_with_workspaces.visitor(console_with_workspaces.owner),
        console_with_workspaces.uid(console_with_workspaces.owner),
    )
    limited = console_with_workspaces.uid(console_with_workspaces.invite("lars", "owner", "a"))
    with pytest.raises(Conflict):
        accounts.deactivate(console_with_workspaces.rt, owner, HOME, uid)
    with pytest.raises(Conflict):
        accounts.change(console_with_workspaces.rt, owner, HOME, uid, "operator", None)
    with pytest.raises(Conflict):
        accounts.change(console_with_workspaces.rt, owner, HOME, uid, "owner", ["a"])
    accounts.change(console_with_workspaces.rt, owner, HOME, limited, "owner", None)
    accounts.deactivate(console_with_workspaces.rt, owner, HOME, uid)
    assert not console_with_workspaces.is_open(console_with_workspaces.owner)


def test_a_deactivated_member_can_be_activated_again(console: Console) -> None:
    reader = console.invite("rita", "reader")
    owner, uid = console.visitor(console.owner), console.uid(reader)
    accounts.deactivate(console.rt, owner, HOME, uid)
    accounts.activate(console.rt, owner, HOME, uid)
    assert not console.is_open(reader)
    assert console.is_open(console.sign_in("rita").session_id)


def test_an_owner_ends_the_sessions_of_a_member(console: Console) -> None:
    reader = console.invite("rita", "reader")
    assert (
        accounts.end_sessions(console.rt, console.visitor(console.owner), HOME, console.uid(reader))
        == 1
    )
    assert (console.is_open(reader), console.is_open(console.owner)) == (False, True)


def test_the_command_line_deactivates_a_member(console: Console) -> None:
    reader = console.invite("rita", "reader")
    accounts.deactivate_by_name(console.rt, COMMAND_LINE, "Rita")
    assert not console.is_open(reader)
    with pytest.raises(Conflict):
        accounts.deactivate_by_name(console.rt, COMMAND_LINE, "olga")
    with pytest.raises(NotFound):
        accounts.deactivate_by_name(console.rt, COMMAND_LINE, "unknown")


def test_unknown_members_and_roles_are_refused(console: Console) -> None:
    owner = console.visitor(console.owner)
    with pytest.raises(NotFound):
        accounts.change(console.rt, owner, HOME, "x" * 21, "reader", None)
    with pytest.raises(InvalidInput):
        accounts.change(console.rt, owner, HOME, console.uid(console.owner), "root", None)


# --- without authentication


def test_without_authentication_everything_but_members_and_keys_is_offered(
    console: Console,
) -> None:
    assert Permission.MANAGE_MEMBERS not in permissions.WITHOUT_AUTHENTICATION
    assert Permission.MANAGE_KEYS not in permissions.WITHOUT_AUTHENTICATION
    with pytest.raises(Unauthorised):
        visitors.visitor_without_authentication(console.rt, "form")


# --- the audit log


def test_the_log_says_who_did_what_from_where_and_when(console: Console) -> None:
    console.clock.advance(hours=1)
    audit.record(
        console.rt,
        console.visitor(console.owner),
        HOME,
        "webhook.delete",
        target="https://example.com",
        workspace_id="w",
        detail={"events": 3},
    )
    entry = console.log()[-1]
    assert (entry.actor, entry.actor_uid, entry.action) == (
        "olga",
        console.uid(console.owner),
        "webhook.delete",
    )
    assert (entry.target, entry.workspace, entry.address) == (
        "https://example.com",
        "w",
        "203.0.113.7",
    )
    assert (entry.created_at, entry.detail) == (console.clock(), {"events": 3})


def test_every_action_on_members_is_logged(console: Console) -> None:
    session_id = console.invite("rita", "reader")
    owner, uid = console.visitor(console.owner), console.uid(session_id)
    before = len(console.log())
    accounts.change(console.rt, owner, HOME, uid, "operator", None)
    accounts.end_sessions(console.rt, owner, HOME, uid)
    links.new_password(console.rt, owner, HOME, uid)
    accounts.deactivate(console.rt, owner, HOME, uid)
    accounts.activate(console.rt, owner, HOME, uid)
    invitation = links.invite(console.rt, owner, HOME, "reader")
    links.withdraw(console.rt, owner, HOME, invitation.link.uid)
    with pytest.raises(Unauthorised):
        console.sign_in("rita", "wrong password")
    assert [(entry.actor, entry.action, entry.target) for entry in console.log()[before:]] == [
        ("olga", "member.change", "rita"),
        ("olga", "member.end-sessions", "rita"),
        ("olga", "member.reset-password", "rita"),
        ("olga", "member.deactivate", "rita"),
        ("olga", "member.activate", "rita"),
        ("olga", "member.invite", None),
        ("olga", "link.withdraw", invitation.link.uid),
        ("rita", "session.refuse", None),
    ]


def test_the_export_has_every_entry_once(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "BATCH_SIZE", 3)
    visitor = console.visitor(console.owner)
    for number in range(7):
        audit.record(console.rt, visitor, HOME, "test", target=str(number))
        if number % 2:
            console.clock.advance(seconds=1)
    entries = list(audit.every(console.rt, visitor.principal))
    assert [entry.uid for entry in reversed(entries)] == [entry.uid for entry in console.log()]


def test_entries_are_kept_for_a_time(console: Console) -> None:
    old = console.log()[0]
    days = console.rt.settings.retention.audit_days
    moments = [console.clock() - timedelta(days=days, seconds=second) for second in (1, -1)]
    console.rt.storage.write(
        lambda tx: [
            tx.audit_log.add(replace(old, key=0, uid=f"old {moment}", created_at=moment))
            for moment in moments
        ]
    )
    before = len(console.log())
    retention.sweep(console.rt)
    assert len(console.log()) == before - 1
    assert moments[1] in {entry.created_at for entry in console.log()}


@pytest.mark.slow
def test_lists_continue_after_a_row_and_count_nothing(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is added in between: OFFSET would repeat a row."""
    for number in range(60):
        console.invite(f"member {number}", "reader")
    with console.rt.storage.read() as tx:
        rows = type(tx.rows)
    monkeypatch.setattr(rows, "count", None)
    first = accounts.browse(console.rt, COMMAND_LINE)
    entries = audit.browse(console.rt, COMMAND_LINE)
    console.invite("late", "reader")
    second = accounts.browse(console.rt, COMMAND_LINE, first.after)
    names = [member.name for member in (*first.items, *second.items)]
    assert names == [*(f"member {number}" for number in reversed(range(60))), "olga"]
    assert second.after is None
    older = audit.browse(console.rt, COMMAND_LINE, entries.after)
    assert not {entry.uid for entry in entries.items} & {entry.uid for entry in older.items}
    assert older.items[0].created_at <= entries.items[-1].created_at


def test_the_log_is_filtered_by_actor_and_action(console: Console) -> None:
    console.invite("rita", "reader")
    listing = audit.browse(console.rt, COMMAND_LINE, actor="rita", action="session.sign-in")
    assert [(entry.actor, entry.action) for entry in listing.items] == [("rita", "session.sign-in")]
    assert listing.after is None
