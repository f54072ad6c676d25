"""The accounts of members: the list, roles, deactivation, and passwords."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memservice.domain.errors import Conflict, InvalidInput, NotFound, Problem
from memservice.domain.filters import TRUE
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, DEACTIVATED, AuditEntry, ConsoleMember
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission, Role
from memservice.services.auth.principal import Principal
from memservice.services.members import audit, links, names, passwords, pauses
from memservice.services.members.visitors import Browser, Visitor
from memservice.services.paging import Listing, page_after
from memservice.spi.storage import Transaction

LAST_OWNER = (
    "This is the last active owner of all workspaces: make another member such an owner first"
)
NO_MEMBER = "There is no such member"


def browse(rt: Runtime, principal: Principal, after: str | None = None) -> Listing[ConsoleMember]:
    """All members, in any state, newest first, after the member `after`."""
    policy.require_member(principal, Permission.MANAGE_MEMBERS)
    with rt.storage.read() as tx:
        return page_after(tx, ConsoleMember, TRUE, after)


def get(rt: Runtime, principal: Principal, uid: str) -> ConsoleMember:
    """Raises `NotFound`."""
    policy.require_member(principal, Permission.MANAGE_MEMBERS)
    with rt.storage.read() as tx:
        member = tx.console_members.by_uid(uid) if names.can_exist(uid) else None
    if member is None:
        raise NotFound(NO_MEMBER)
    return member


def change(
    rt: Runtime,
    visitor: Visitor,
    browser: Browser,
    uid: str,
    role: str,
    workspaces: Sequence[str] | None,
) -> ConsoleMember:
    """Change a member's role, and limit it to these workspaces (None: no limit). Effective from the
    member's next request. Raises `Conflict` for the last owner."""
    policy.require_member(visitor.principal, Permission.MANAGE_MEMBERS)
    new_role = names.require_role(role)

    def store(tx: Transaction) -> ConsoleMember:
        owners = _lock_owners(tx)
        member = _lock_member(tx, uid)
        limit = names.require_workspaces(tx, workspaces)
        if new_role is not Role.OWNER or limit is not None:
            _require_another_owner(owners, member)
        saved = tx.console_members.save(replace(member, role=new_role.value, workspaces=limit))
        detail = {
            "role": new_role.value,
            "workspaces": None if limit is None else [workspace["id"] for workspace in limit],
        }
        tx.audit_log.add(
            audit.entry_of(rt, visitor, browser, "member.change", target=member.name, detail=detail)
        )
        return saved

    return rt.storage.write(store)


def deactivate(rt: Runtime, visitor: Visitor, browser: Browser, uid: str) -> ConsoleMember:
    """Deactivate a member: end all its sessions and prevent further sign-ins. Raises `Conflict` for
    the last owner."""
    policy.require_member(visitor.principal, Permission.MANAGE_MEMBERS)

    def store(tx: Transaction) -> ConsoleMember:
        owners = _lock_owners(tx)
        member = _lock_member(tx, uid)
        saved = _deactivate(tx, owners, member)
        tx.audit_log.add(
            audit.entry_of(rt, visitor, browser, "member.deactivate", target=member.name)
        )
        return saved

    return rt.storage.write(store)


def deactivate_by_name(rt: Runtime, principal: Principal, name: str) -> ConsoleMember:
    """Like `deactivate`, for the command line."""
    policy.require_member(principal, Permission.MANAGE_MEMBERS)

    def store(tx: Transaction) -> ConsoleMember:
        owners = _lock_owners(tx)
        member = tx.console_members.by_name(names.normal(name), lock=True)
        if member is None:
            raise NotFound(f"There is no member {name!r}")
        saved = _deactivate(tx, owners, member)
        tx.audit_log.add(
            AuditEntry(
                uid=new_uid(),
                actor=links.COMMAND,
                action="member.deactivate",
                target=member.name,
                created_at=rt.clock(),
            )
        )
        return saved

    return rt.storage.write(store)


def activate(rt: Runtime, visitor: Visitor, browser: Browser, uid: str) -> ConsoleMember:
    """Reactivate a member, with its previous password."""
    policy.require_member(visitor.principal, Permission.MANAGE_MEMBERS)

    def store(tx: Transaction) -> ConsoleMember:
        member = _lock_member(tx, uid)
        saved = tx.console_members.save(replace(member, state=ACTIVE))
        tx.audit_log.add(
            audit.entry_of(rt, visitor, browser, "member.activate", target=member.name)
        )
        return saved

    return rt.storage.write(store)


def end_sessions(rt: Runtime, visitor: Visitor, browser: Browser, uid: str) -> int:
    """End all sessions of a member; returns their number."""
    policy.require_member(visitor.principal, Permission.MANAGE_MEMBERS)

    def erase(tx: Transaction) -> int:
        member = _lock_member(tx, uid)
        number = tx.sign_ins.erase_of_member(uid)
        tx.audit_log.add(
            audit.entry_of(
                rt,
                visitor,
                browser,
                "member.end-sessions",
                target=member.name,
                detail={"sessions": number},
            )
        )
        return number

    return rt.storage.write(erase)


def change_password(
    rt: Runtime, visitor: Visitor, browser: Browser, present: str, new: str
) -> None:
    """Change the visitor's own password, and end all its other sessions. Raises `InvalidInput` for
    a wrong current password or an unusable new one, and `Paused`."""
    if not visitor.is_member or visitor.actor_uid is None:
        raise NotFound("Only members have a password")
    uid = visitor.actor_uid
    with rt.storage.read() as tx:
        member = tx.console_members.by_uid(uid)
    if member is None:
        raise NotFound(NO_MEMBER)
    passwords.require_usable(new, member.name, "new_password")
    subjects = (pauses.of_browser(f"change:{visitor.session_uid}"),)
    pauses.begin(rt, subjects)
    if not passwords.verify(member.password_hash, present):
        raise InvalidInput(Problem(("password",), "This is not your current password"))
    password_hash = passwords.hash_password(new)

    def store(tx: Transaction) -> None:
        locked = _lock_member(tx, uid)
        if locked.password_hash != member.password_hash:
            raise Conflict("The password was changed by another request at the same time")
        pauses.succeed(tx, subjects, rt.clock())
        tx.console_members.save(replace(locked, password_hash=password_hash))
        tx.console_links.erase_of_member(uid)
        tx.sign_ins.erase_of_member(uid, but=visitor.session_uid)
        tx.audit_log.add(audit.entry_of(rt, visitor, browser, "member.change-password"))

    rt.storage.write(store)


def _deactivate(
    tx: Transaction, owners: Sequence[ConsoleMember], member: ConsoleMember
) -> ConsoleMember:
    _require_another_owner(owners, member)
    tx.sign_ins.erase_of_member(member.uid)
    tx.console_links.erase_of_member(member.uid)
    return tx.console_members.save(replace(member, state=DEACTIVATED))


def _lock_member(tx: Transaction, uid: str) -> ConsoleMember:
    member = tx.console_members.by_uid(uid, lock=True) if names.can_exist(uid) else None
    if member is None:
        raise NotFound(NO_MEMBER)
    return member


def _lock_owners(tx: Transaction) -> list[ConsoleMember]:
    """Active owners of all workspaces, locked until commit: of two owners that deactivate each
    other at the same moment, one must remain."""
    locked = (
        tx.console_members.by_uid(owner.uid, lock=True) for owner in tx.console_members.owners()
    )
    return [
        owner
        for owner in locked
        if owner is not None
        and owner.state == ACTIVE
        and owner.role == Role.OWNER
        and owner.workspaces is None
    ]


def _require_another_owner(owners: Sequence[ConsoleMember], member: ConsoleMember) -> None:
    uids = {owner.uid for owner in owners}
    if member.uid in uids and len(uids) == 1:
        raise Conflict(LAST_OWNER)
