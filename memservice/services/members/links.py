"""One-time links: for the set-up, for invitations, and for new passwords.

Opening a link changes nothing, since programs such as mail scanners open links too: only submitting
the form uses it up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.errors import Conflict, Disabled, InvalidInput, NotFound, Problem
from memservice.domain.ids import new_uid
from memservice.domain.records import (
    ACTIVE,
    INVITATION,
    NEW_PASSWORD,
    SET_UP,
    AuditEntry,
    ConsoleLink,
    ConsoleMember,
)
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission, Role, permissions_of
from memservice.services.auth.principal import Principal
from memservice.services.members import audit, names, passwords, tokens
from memservice.services.members.visitors import Browser, Visitor
from memservice.settings import Settings
from memservice.spi.storage import Transaction

LIFETIME = {
    SET_UP: timedelta(hours=1),
    INVITATION: timedelta(days=3),
    NEW_PASSWORD: timedelta(hours=1),
}
PATH = "/console/link"
WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound
"""Addresses to listen on that no browser can open."""
INVALID_LINK = (
    "This link does not work: it was used, has expired, or was withdrawn. Ask for a new one"
)
OFF = "Members exist only while authentication is on: set AUTH_USE_AUTH=true and AUTH_JWT_SECRET"
COMMAND = "memservice console"
"""The actor in the audit log for the command line."""


class NewLink(Struct, frozen=True):
    link: ConsoleLink
    token: str
    """Shown once: the store does not have it."""

    def url(self, settings: Settings) -> str:
        """The complete URL. It never depends on the host that a request names. The token is in the
        query, which request logs omit."""
        return f"{base_of(settings)}{PATH}?token={self.token}"


def base_of(settings: Settings) -> str:
    """The base URL of this server: the setting, or the address that the server is bound to."""
    if settings.console.url:
        return settings.console.url.rstrip("/")
    host = settings.server.host
    if host in WILDCARDS:
        host = "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.server.port}"


def require_enabled(settings: Settings) -> None:
    """Raises `Disabled` while authentication is off: anyone could create an account then, which
    would work once it is on."""
    if not settings.auth.use_auth:
        raise Disabled(OFF)


def set_up(rt: Runtime, principal: Principal) -> NewLink:
    """Create a link for a new owner; earlier ones stop working. For the command line."""
    policy.require_member(principal, Permission.MANAGE_MEMBERS)
    require_enabled(rt.settings)

    def store(tx: Transaction) -> NewLink:
        tx.console_links.erase_of_kind(SET_UP)
        new_link = _new(rt, tx, SET_UP, role=Role.OWNER.value)
        tx.audit_log.add(_by_command(rt, "link.create", "set-up"))
        return new_link

    return rt.storage.write(store)


def first_set_up(rt: Runtime, principal: Principal) -> NewLink | None:
    """Like `set_up`, if there is no member yet; otherwise None."""
    policy.require_member(principal, Permission.MANAGE_MEMBERS)
    with rt.storage.read() as tx:
        members = tx.console_members.count()
    return None if members else set_up(rt, principal)


def for_member(rt: Runtime, principal: Principal, name: str) -> NewLink:
    """Create a link for a member's new password. For the command line."""
    policy.require_member(principal, Permission.MANAGE_MEMBERS)
    require_enabled(rt.settings)

    def store(tx: Transaction) -> NewLink:
        member = tx.console_members.by_name(names.normal(name))
        if member is None:
            raise NotFound(f"There is no member {name!r}")
        new_link = _for_member(rt, tx, member, None)
        tx.audit_log.add(_by_command(rt, "link.create", member.name))
        return new_link

    return rt.storage.write(store)


def invite(
    rt: Runtime,
    visitor: Visitor,
    browser: Browser,
    role: str,
    workspaces: Sequence[str] | None = None,
) -> NewLink:
    """Create a link for a new member with this role, limited to the workspaces, if any are
    named."""
    policy.require_member(visitor.principal, Permission.MANAGE_MEMBERS)
    require_enabled(rt.settings)
    new_role = names.require_role(role)

    def store(tx: Transaction) -> NewLink:
        limit = names.require_workspaces(tx, workspaces)
        new_link = _new(
            rt,
            tx,
            INVITATION,
            created_by=visitor.actor_uid,
            role=new_role.value,
            workspaces=limit,
        )
        detail = {"role": new_role.value, "workspaces": workspaces and sorted(workspaces)}
        tx.audit_log.add(audit.entry_of(rt, visitor, browser, "member.invite", detail=detail))
        return new_link

    return rt.storage.write(store)


def invite_by_command(
    rt: Runtime, principal: Principal, role: str, workspaces: Sequence[str] | None = None
) -> NewLink:
    """Like `invite`, for the command line."""
    policy.require_member(principal, Permission.MANAGE_MEMBERS)
    require_enabled(rt.settings)
    new_role = names.require_role(role)

    def store(tx: Transaction) -> NewLink:
        limit = names.require_workspaces(tx, workspaces)
        tx.audit_log.add(_by_command(rt, "member.invite", new_role.value))
        return _new(rt, tx, INVITATION, role=new_role.value, workspaces=limit)

    return rt.storage.write(store)


def new_password(rt: Runtime, visitor: Visitor, browser: Browser, member_uid: str) -> NewLink:
    """Create a link for a new password of a member."""
    policy.require_member(visitor.principal, Permission.MANAGE_MEMBERS)
    require_enabled(rt.settings)

    def store(tx: Transaction) -> NewLink:
        member = tx.console_members.by_uid(member_uid) if names.can_exist(member_uid) else None
        if member is None:
            raise NotFound("There is no such member")
        new_link = _for_member(rt, tx, member, visitor.actor_uid)
        tx.audit_log.add(
            audit.entry_of(rt, visitor, browser, "member.reset-password", target=member.name)
        )
        return new_link

    return rt.storage.write(store)


def pending(rt: Runtime, principal: Principal) -> list[ConsoleLink]:
    """Valid links, oldest first."""
    policy.require_member(principal, Permission.MANAGE_MEMBERS)
    with rt.storage.read() as tx:
        return tx.console_links.pending(rt.clock())


def withdraw(rt: Runtime, visitor: Visitor, browser: Browser, uid: str) -> None:
    policy.require_member(visitor.principal, Permission.MANAGE_MEMBERS)

    def erase(tx: Transaction) -> None:
        if not (names.can_exist(uid) and tx.console_links.erase(uid)):
            raise NotFound("There is no such link: it was used or withdrawn")
        tx.audit_log.add(audit.entry_of(rt, visitor, browser, "link.withdraw", target=uid))

    rt.storage.write(erase)


class LinkContents(Struct, frozen=True):
    """The contents of a link, for its form."""

    kind: str
    role: Role | None
    name: str | None
    """The member that gets a new password."""


def read(rt: Runtime, token: str) -> LinkContents:
    """The contents of a link. Raises `NotFound` for an invalid one."""
    with rt.storage.read() as tx:
        link = _valid_link(rt, tx, token)
        member = None if link.member_uid is None else tx.console_members.by_uid(link.member_uid)
        return LinkContents(
            link.kind,
            None if link.role is None else Role(link.role),
            None if member is None else member.name,
        )


def accept(rt: Runtime, browser: Browser, token: str, name: str, password: str) -> ConsoleMember:
    """Use up a link: create the member, or set its new password and end its sessions; `name` counts
    only for a new member. Raises `NotFound` for an invalid link, `InvalidInput` for an unusable
    name or password, and `Conflict` for a name that is taken."""
    require_enabled(rt.settings)
    contents = read(rt, token)
    name = names.require_name(name) if contents.name is None else contents.name
    passwords.require_usable(password, name)
    password_hash = passwords.hash_password(password)

    def use(tx: Transaction) -> ConsoleMember:
        link = _valid_link(rt, tx, token, lock=True)
        if not tx.console_links.erase(link.uid):
            raise NotFound(INVALID_LINK)
        member = (
            _create_member(rt, tx, link, name, password_hash)
            if link.member_uid is None
            else _set_password(tx, link.member_uid, password_hash)
        )
        tx.audit_log.add(
            AuditEntry(
                uid=new_uid(),
                actor=member.name,
                actor_uid=member.uid,
                action=f"{link.kind}.accept",
                target=member.name,
                address=browser.address,
                detail={"role": member.role},
                created_at=rt.clock(),
            )
        )
        return member

    return rt.storage.write(use)


def _create_member(
    rt: Runtime, tx: Transaction, link: ConsoleLink, name: str, password_hash: str
) -> ConsoleMember:
    if tx.console_members.by_name(name) is not None:
        raise InvalidInput(Problem(("name",), "Another member has this name: choose another one"))
    return tx.console_members.save(
        ConsoleMember(
            uid=new_uid(),
            name=name,
            password_hash=password_hash,
            role=link.role or Role.READER.value,
            workspaces=link.workspaces,
            created_at=rt.clock(),
        )
    )


def _set_password(tx: Transaction, uid: str, password_hash: str) -> ConsoleMember:
    member = tx.console_members.by_uid(uid, lock=True)
    if member is None or member.state != ACTIVE:
        raise NotFound(INVALID_LINK)
    tx.sign_ins.erase_of_member(uid)
    tx.console_links.erase_of_member(uid)
    return tx.console_members.save(replace(member, password_hash=password_hash))


def _valid_link(rt: Runtime, tx: Transaction, token: str, *, lock: bool = False) -> ConsoleLink:
    """Raises `NotFound`."""
    digests = tokens.digests(rt.settings, tokens.LINK, token)
    link = tx.console_links.by_digest(digests, lock=lock)
    if link is None or link.expires_at <= rt.clock() or not _creator_may(tx, link):
        raise NotFound(INVALID_LINK)
    return link


def _creator_may(tx: Transaction, link: ConsoleLink) -> bool:
    """Whether the creator of the link may still manage members: otherwise its links are invalid."""
    if link.created_by is None:
        return True
    creator = tx.console_members.by_uid(link.created_by)
    if creator is None or creator.state != ACTIVE:
        return False
    permissions = permissions_of(Role(creator.role), creator.workspaces is not None)
    return Permission.MANAGE_MEMBERS in permissions


def _for_member(
    rt: Runtime, tx: Transaction, member: ConsoleMember, created_by: str | None
) -> NewLink:
    if member.state != ACTIVE:
        raise Conflict(f"{member.name} is deactivated: activate the account first")
    tx.console_links.erase_of_member(member.uid)
    return _new(rt, tx, NEW_PASSWORD, created_by=created_by, member_uid=member.uid)


def _new(rt: Runtime, tx: Transaction, kind: str, **fields: Any) -> NewLink:
    """Store a link of this kind."""
    now = rt.clock()
    token = tokens.new_token()
    tx.console_links.erase_expired(now)
    link = ConsoleLink(
        uid=new_uid(),
        digest=tokens.digest(tokens.secrets_of(rt.settings)[0], tokens.LINK, token),
        kind=kind,
        expires_at=now + LIFETIME[kind],
        created_at=now,
        **fields,
    )
    return NewLink(tx.console_links.add(link), token)


def _by_command(rt: Runtime, action: str, target: str) -> AuditEntry:
    return AuditEntry(
        uid=new_uid(), actor=COMMAND, action=action, target=target, created_at=rt.clock()
    )
