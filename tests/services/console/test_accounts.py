"""Members: roles, limits, and permissions to change them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from memservice.domain.errors import Conflict, InvalidInput, NotFound, Unauthorised
from memservice.runtime import Runtime
from memservice.services import deletion, workspaces
from memservice.services.auth import permissions
from memservice.services.auth.permissions import ALL, STORE_WIDE, Permission, Role
from memservice.services.members import accounts, audit, links, sign_ins, visitors
from memservice.services.members.visitors import Browser, Visitor
from memservice.services.paging import Paging
from memservice.worker import retention
from support.services.console import COMMAND_LINE, HOME, Club


@pytest.fixture
def places(club: Club) -> Club:
    for name in ("a", "b"):
        workspaces.get_or_create(club.rt, COMMAND_LINE, name, None, None)
    return club


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


def test_a_limited_member_has_no_store_wide_permission(places: Club) -> None:
    for role in Role:
        visitor = places.visitor(places.invite(f"m {role.value}", role.value, "a"))
        assert not visitor.permissions & STORE_WIDE
        assert visitor.may(Permission.VIEW, "a")
        assert not visitor.may(Permission.VIEW, "b")


def test_a_change_of_role_counts_from_the_next_request_on(places: Club) -> None:
    session_id = places.invite("rita", "reader", "a")
    owner = places.visitor(places.owner)
    accounts.change(places.rt, owner, HOME, places.uid(session_id), "operator", None)
    visitor = places.visitor(session_id)
    assert (visitor.role, visitor.workspaces) == (Role.OPERATOR, None)


def test_a_limit_is_to_the_workspace_and_not_to_its_name(places: Club) -> None:
    session_id = places.invite("rita", "reader", "a", "b")
    deletion.delete_workspace(places.rt, COMMAND_LINE, "a", with_sessions=True)
    assert places.visitor(session_id).workspaces == ("b",)
    workspaces.get_or_create(places.rt, COMMAND_LINE, "a", None, None)
    visitor = places.visitor(session_id)
    assert visitor.workspaces == ("b",)
    assert not visitor.principal.opens_whole("a")


def test_a_member_whose_workspaces_are_all_gone_opens_none(places: Club) -> None:
    session_id = places.invite("rita", "owner", "a")
    deletion.delete_workspace(places.rt, COMMAND_LINE, "a", with_sessions=True)
    visitor = places.visitor(session_id)
    assert visitor.workspaces == ()
    assert workspaces.page(places.rt, visitor.principal, None, Paging()).items == []


def test_the_list_of_workspaces_shows_those_of_the_account(places: Club) -> None:
    limited = places.visitor(places.invite("rita", "reader", "b"))
    everywhere = places.visitor(places.invite("rolf", "reader"))
    for visitor, expected in ((limited, ["b"]), (everywhere, ["a", "b"])):
        page = workspaces.page(places.rt, visitor.principal, None, Paging())
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


@pytest.mark.parametrize("action", MANAGING)
def test_only_owners_of_all_workspaces_manage_members(places: Club, action: str) -> None:
    others = [
        places.visitor(places.invite("rita", "reader")),
        places.visitor(places.invite("otto", "operator")),
        places.visitor(places.invite("lars", "owner", "a")),
        places.visitor(sign_ins.with_key(places.rt, HOME, places.key().token).session_id),
    ]
    for visitor in others:
        for uid in (visitor.actor_uid or "", places.uid(places.owner)):
            with pytest.raises(Unauthorised):
                MANAGING[action](places.rt, visitor, HOME, uid)


def test_the_last_owner_stays(places: Club) -> None:
    owner, uid = places.visitor(places.owner), places.uid(places.owner)
    limited = places.uid(places.invite("lars", "owner", "a"))
    with pytest.raises(Conflict):
        accounts.deactivate(places.rt, owner, HOME, uid)
    with pytest.raises(Conflict):
        accounts.change(places.rt, owner, HOME, uid, "operator", None)
    with pytest.raises(Conflict):
        accounts.change(places.rt, owner, HOME, uid, "owner", ["a"])
    accounts.change(places.rt, owner, HOME, limited, "owner", None)
    accounts.deactivate(places.rt, owner, HOME, uid)
    assert not places.is_open(places.owner)


def test_a_deactivated_member_can_be_activated_again(club: Club) -> None:
    reader = club.invite("rita", "reader")
    owner, uid = club.visitor(club.owner), club.uid(reader)
    accounts.deactivate(club.rt, owner, HOME, uid)
    accounts.activate(club.rt, owner, HOME, uid)
    assert not club.is_open(reader)
    assert club.is_open(club.sign_in("rita").session_id)


def test_an_owner_ends_the_sessions_of_a_member(club: Club) -> None:
    reader = club.invite("rita", "reader")
    assert accounts.end_sessions(club.rt, club.visitor(club.owner), HOME, club.uid(reader)) == 1
    assert (club.is_open(reader), club.is_open(club.owner)) == (False, True)


def test_the_command_line_deactivates_a_member(club: Club) -> None:
    reader = club.invite("rita", "reader")
    accounts.deactivate_by_name(club.rt, COMMAND_LINE, "Rita")
    assert not club.is_open(reader)
    with pytest.raises(Conflict):
        accounts.deactivate_by_name(club.rt, COMMAND_LINE, "olga")
    with pytest.raises(NotFound):
        accounts.deactivate_by_name(club.rt, COMMAND_LINE, "unknown")


def test_unknown_members_and_roles_are_refused(club: Club) -> None:
    owner = club.visitor(club.owner)
    with pytest.raises(NotFound):
        accounts.change(club.rt, owner, HOME, "x" * 21, "reader", None)
    with pytest.raises(InvalidInput):
        accounts.change(club.rt, owner, HOME, club.uid(club.owner), "root", None)


# --- without authentication


def test_without_authentication_everything_but_members_and_keys_is_offered(club: Club) -> None:
    assert Permission.MANAGE_MEMBERS not in permissions.WITHOUT_AUTHENTICATION
    assert Permission.MANAGE_KEYS not in permissions.WITHOUT_AUTHENTICATION
    with pytest.raises(Unauthorised):
        visitors.visitor_without_authentication(club.rt, "form")


# --- the audit log


def test_the_log_says_who_did_what_from_where_and_when(club: Club) -> None:
    club.clock.advance(hours=1)
    audit.record(
        club.rt,
        club.visitor(club.owner),
        HOME,
        "webhook.delete",
        target="https://example.com",
        workspace_id="w",
        detail={"events": 3},
    )
    entry = club.log()[-1]
    assert (entry.actor, entry.actor_uid, entry.action) == (
        "olga",
        club.uid(club.owner),
        "webhook.delete",
    )
    assert (entry.target, entry.workspace, entry.address) == (
        "https://example.com",
        "w",
        "203.0.113.7",
    )
    assert (entry.created_at, entry.detail) == (club.clock(), {"events": 3})


def test_every_action_on_members_is_logged(club: Club) -> None:
    session_id = club.invite("rita", "reader")
    owner, uid = club.visitor(club.owner), club.uid(session_id)
    before = len(club.log())
    accounts.change(club.rt, owner, HOME, uid, "operator", None)
    accounts.end_sessions(club.rt, owner, HOME, uid)
    links.new_password(club.rt, owner, HOME, uid)
    accounts.deactivate(club.rt, owner, HOME, uid)
    accounts.activate(club.rt, owner, HOME, uid)
    made = links.invite(club.rt, owner, HOME, "reader")
    links.withdraw(club.rt, owner, HOME, made.link.uid)
    with pytest.raises(Unauthorised):
        club.sign_in("rita", "wrong password")
    assert [(entry.actor, entry.action, entry.target) for entry in club.log()[before:]] == [
        ("olga", "member.change", "rita"),
        ("olga", "member.end-sessions", "rita"),
        ("olga", "member.reset-password", "rita"),
        ("olga", "member.deactivate", "rita"),
        ("olga", "member.activate", "rita"),
        ("olga", "member.invite", None),
        ("olga", "link.withdraw", made.link.uid),
        ("rita", "session.refuse", None),
    ]


def test_the_export_has_every_entry_once(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "BATCH_SIZE", 3)
    visitor = club.visitor(club.owner)
    for number in range(7):
        audit.record(club.rt, visitor, HOME, "test", target=str(number))
        if number % 2:
            club.clock.advance(seconds=1)
    entries = list(audit.every(club.rt, visitor.principal))
    assert [entry.uid for entry in reversed(entries)] == [entry.uid for entry in club.log()]


def test_entries_are_kept_for_a_time(club: Club) -> None:
    old = club.log()[0]
    days = club.rt.settings.retention.audit_days
    moments = [club.clock() - timedelta(days=days, seconds=second) for second in (1, -1)]
    club.rt.storage.write(
        lambda tx: [
            tx.audit_log.add(replace(old, key=0, uid=f"old {moment}", created_at=moment))
            for moment in moments
        ]
    )
    before = len(club.log())
    retention.sweep(club.rt)
    assert len(club.log()) == before - 1
    assert moments[1] in {entry.created_at for entry in club.log()}


def test_lists_continue_after_a_row_and_count_nothing(
    club: Club, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is added in between: OFFSET would repeat a row."""
    for number in range(60):
        club.invite(f"member {number}", "reader")
    with club.rt.storage.read() as tx:
        rows = type(tx.rows)
    monkeypatch.setattr(rows, "count", None)
    first = accounts.browse(club.rt, COMMAND_LINE)
    entries = audit.browse(club.rt, COMMAND_LINE)
    club.invite("late", "reader")
    second = accounts.browse(club.rt, COMMAND_LINE, first.after)
    names = [member.name for member in (*first.items, *second.items)]
    assert names == [*(f"member {number}" for number in reversed(range(60))), "olga"]
    assert second.after is None
    older = audit.browse(club.rt, COMMAND_LINE, entries.after)
    assert not {entry.uid for entry in entries.items} & {entry.uid for entry in older.items}
    assert older.items[0].created_at <= entries.items[-1].created_at


def test_the_log_is_filtered_by_actor_and_action(club: Club) -> None:
    club.invite("rita", "reader")
    listing = audit.browse(club.rt, COMMAND_LINE, actor="rita", action="session.sign-in")
    assert [(entry.actor, entry.action) for entry in listing.items] == [("rita", "session.sign-in")]
    assert listing.after is None
