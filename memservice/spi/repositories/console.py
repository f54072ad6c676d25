"""Members of the console: their accounts, one-time links, sign-ins, failed attempts and the audit
log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memservice.domain.filters.ast import TRUE, Any_, Compare, Condition, Not, all_of, equals
from memservice.domain.records import (
    ACTIVE,
    OWNER,
    AuditEntry,
    BrowserSession,
    ConsoleLink,
    ConsoleMember,
    SignInFailures,
)
from memservice.spi.repositories.base import CREATED, NEWEST, Repository


class ConsoleMembers(Repository):
    def by_uid(self, uid: str, *, lock: bool = False) -> ConsoleMember | None:
        """In any state."""
        return self.rows.get(ConsoleMember, equals(uid=uid), lock=lock)

    def by_name(self, name: str, *, lock: bool = False) -> ConsoleMember | None:
        """In any state."""
        return self.rows.get(ConsoleMember, equals(name=name), lock=lock)

    def count(self) -> int:
        return self.rows.count(ConsoleMember)

    def owners(self) -> list[ConsoleMember]:
        """Active owners of all workspaces, oldest first."""
        owners = self.rows.page(ConsoleMember, equals(role=OWNER, state=ACTIVE), CREATED)
        return [owner for owner in owners if owner.workspaces is None]

    def save(self, member: ConsoleMember) -> ConsoleMember:
        """Store a new member, or replace one. Raises `UniqueViolation` for a name that another
        member has."""
        return self.rows.put([member])[0]


class ConsoleLinks(Repository):
    def add(self, link: ConsoleLink) -> ConsoleLink:
        return self.rows.put([link])[0]

    def by_digest(self, digests: Sequence[str], *, lock: bool = False) -> ConsoleLink | None:
        """Used and expired links may be erased already; the caller compares `expires_at`."""
        return self.rows.get(ConsoleLink, equals(digest=tuple(digests)), lock=lock)

    def pending(self, now: datetime) -> list[ConsoleLink]:
        """Links that still work, oldest first."""
        return self.rows.page(ConsoleLink, Compare("expires_at", "gt", now), CREATED)

    def erase(self, uid: str) -> bool:
        """True if the link existed: of several transactions that use a link, one gets True."""
        return self.rows.delete(ConsoleLink, equals(uid=uid)) > 0

    def erase_of_kind(self, kind: str) -> int:
        return self.rows.delete(ConsoleLink, equals(kind=kind))

    def erase_of_member(self, member_uid: str) -> int:
        return self.rows.delete(ConsoleLink, equals(member_uid=member_uid))

    def erase_expired(self, now: datetime) -> int:
        return self.rows.delete(ConsoleLink, Compare("expires_at", "lte", now))


class SignIns(Repository):
    """Browser sessions, and the attempts that failed."""

    def by_digest(self, digests: Sequence[str]) -> BrowserSession | None:
        """The session may have expired; the caller compares `expires_at`."""
        return self.rows.get(BrowserSession, equals(digest=tuple(digests)))

    def recognised(
        self, digests: Sequence[str]
    ) -> tuple[BrowserSession, ConsoleMember | None] | None:
        """The session, which may have expired, and its member in any state; None for a session with
        an API key."""
        session = self.by_digest(digests)
        if session is None:
            return None
        member = (
            None
            if session.member_uid is None
            else self.rows.get(ConsoleMember, equals(uid=session.member_uid))
        )
        return session, member

    def add(self, session: BrowserSession) -> BrowserSession:
        return self.rows.put([session])[0]

    def of_member(self, member_uid: str, now: datetime) -> list[BrowserSession]:
        """Sessions that have not expired, newest first."""
        unexpired = all_of(equals(member_uid=member_uid), Compare("expires_at", "gt", now))
        return self.rows.page(BrowserSession, unexpired, NEWEST)

    def erase(self, uid: str, member_uid: str | None = None) -> bool:
        """End a session; with `member_uid`, only if it is that member's. False if there is none."""
        condition = equals(uid=uid)
        if member_uid is not None:
            condition = all_of(condition, equals(member_uid=member_uid))
        return self.rows.delete(BrowserSession, condition) > 0

    def erase_of_member(self, member_uid: str, but: str | None = None) -> int:
        """End all sessions of a member, except the one with the uid `but`; returns how many."""
        condition = equals(member_uid=member_uid)
        if but is not None:
            condition = all_of(condition, Not(equals(uid=but)))
        return self.rows.delete(BrowserSession, condition)

    def erase_expired(self, now: datetime) -> int:
        return self.rows.delete(BrowserSession, Compare("expires_at", "lte", now))

    def failures(self, subjects: Sequence[str], *, lock: bool = False) -> list[SignInFailures]:
        """The failures of these subjects, by key; with `lock`, the rows are locked until commit."""
        if not lock:
            return self.rows.page(SignInFailures, equals(subject=tuple(subjects)))
        rows = (
            self.rows.get(SignInFailures, equals(subject=subject), lock=True)
            for subject in sorted(subjects)
        )
        return [row for row in rows if row is not None]

    def save_failures(self, failures: Sequence[SignInFailures]) -> list[SignInFailures]:
        return self.rows.put(list(failures))

    def forget_failures(self, subjects: Sequence[str]) -> int:
        return self.rows.delete(SignInFailures, equals(subject=tuple(subjects)))

    def forget_old_failures(self, before: datetime) -> int:
        """Failures whose latest attempt is older than `before` and whose pause is over by then."""
        return self.rows.delete(
            SignInFailures,
            all_of(Compare("last_at", "lt", before), Compare("paused_until", "lt", before)),
        )


class AuditLog(Repository):
    def add(self, entry: AuditEntry) -> AuditEntry:
        return self.rows.put([entry])[0]

    def page(self, condition: Condition = TRUE, limit: int = 50) -> list[AuditEntry]:
        """Newest first."""
        return self.rows.page(AuditEntry, condition, NEWEST, limit)

    def before(self, entry: AuditEntry | None, limit: int) -> list[AuditEntry]:
        """The newest entries that are older than this one, newest first; with None, the newest of
        all."""
        older: Condition = TRUE
        if entry is not None:
            older = Any_(
                (
                    Compare("created_at", "lt", entry.created_at),
                    all_of(equals(created_at=entry.created_at), Compare("key", "lt", entry.key)),
                )
            )
        return self.rows.page(AuditEntry, older, NEWEST, limit)
