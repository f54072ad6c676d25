"""Chapter: members of the console, their links and sign-ins, and the audit log."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.spi.rows import UniqueViolation
from memservice.spi.storage import Storage, Transaction
from memservice.testing.storage.base import NOW, Chapter, together, uid

HOUR = timedelta(hours=1)


def member(number: int, **values: Any) -> r.ConsoleMember:
    defaults: dict[str, Any] = {
        "uid": uid("member", number),
        "name": f"member {number}",
        "password_hash": "",
        "role": r.OWNER,
        "created_at": NOW + timedelta(seconds=number),
    }
    return r.ConsoleMember(**(defaults | values))


def link(number: int, **values: Any) -> r.ConsoleLink:
    defaults: dict[str, Any] = {
        "uid": uid("link", number),
        "digest": f"digest {number}",
        "kind": r.INVITATION,
        "expires_at": NOW + HOUR,
        "created_at": NOW + timedelta(seconds=number),
    }
    return r.ConsoleLink(**(defaults | values))


def session(number: int, member_uid: str | None, **values: Any) -> r.BrowserSession:
    defaults: dict[str, Any] = {
        "uid": uid("session", number),
        "digest": f"digest {number}",
        "member_uid": member_uid,
        "address": "192.0.2.1",
        "client": "",
        "expires_at": NOW + HOUR,
        "created_at": NOW + timedelta(seconds=number),
    }
    return r.BrowserSession(**(defaults | values))


class ConsoleChapter(Chapter):
    def test_console_members(self, storage: Storage) -> None:
        def save(number: int, **values: Any) -> r.ConsoleMember:
            return storage.write(lambda tx: tx.console_members.save(member(number, **values)))

        late = save(9)
        first = save(1)
        save(2, workspaces=[{"id": "w", "uid": uid("w", 0)}])
        save(3, role=r.READER)
        deactivated = save(4, state=r.DEACTIVATED)
        with storage.read() as tx:
            assert tx.console_members.by_uid(first.uid) == first
            assert tx.console_members.by_name("member 4") == deactivated
            assert tx.console_members.by_name("Member 1") is None
            assert tx.console_members.count() == 5
            assert tx.console_members.owners() == [first, late]
        with pytest.raises(UniqueViolation):
            save(5, name="member 1")
        changed = storage.write(lambda tx: tx.console_members.save(replace(first, role=r.READER)))
        with storage.read() as tx:
            assert tx.console_members.by_uid(first.uid) == changed

    def test_console_links(self, storage: Storage) -> None:
        links = storage.write(
            lambda tx: [
                tx.console_links.add(row)
                for row in (
                    link(1),
                    link(2, kind=r.SET_UP),
                    link(3, member_uid=uid("member", 1)),
                    link(4, expires_at=NOW),
                    link(5),
                )
            ]
        )
        with storage.read() as tx:
            assert tx.console_links.by_digest(["digest 1"]) == links[0]
            assert tx.console_links.by_digest(["other", "digest 2"]) == links[1]
            assert tx.console_links.by_digest(["Digest 1"]) is None
            assert tx.console_links.by_digest([]) is None
            assert tx.console_links.pending(NOW) == [links[0], links[1], links[2], links[4]]

        def erase(tx: Transaction) -> None:
            assert tx.console_links.erase(links[0].uid)
            assert not tx.console_links.erase(links[0].uid)
            assert tx.console_links.erase_of_kind(r.SET_UP) == 1
            assert tx.console_links.erase_of_member(uid("member", 1)) == 1
            assert tx.console_links.erase_expired(NOW) == 1

        storage.write(erase)
        with storage.read() as tx:
            assert tx.console_links.pending(NOW) == [links[4]]

    def test_of_many_transactions_one_erases_a_link(self, storage: Storage) -> None:
        row = storage.write(lambda tx: tx.console_links.add(link(1)))

        def use() -> bool:
            return storage.write(lambda tx: tx.console_links.erase(row.uid))

        assert sorted(together(*[use] * 4)) == [False] * 3 + [True]

    def test_browser_sessions(self, storage: Storage) -> None:
        signed_in = storage.write(lambda tx: tx.console_members.save(member(1)))
        sessions = storage.write(
            lambda tx: [
                tx.sign_ins.add(row)
                for row in (
                    session(1, signed_in.uid),
                    session(2, signed_in.uid),
                    session(3, signed_in.uid, expires_at=NOW),
                    session(4, uid("member", 2)),
                    session(5, None, claims={"ad": True}, key_uid="key"),
                )
            ]
        )
        with storage.read() as tx:
            assert tx.sign_ins.recognised(["digest 1"]) == (sessions[0], signed_in)
            assert tx.sign_ins.recognised(["old", "digest 3"]) == (sessions[2], signed_in)
            assert tx.sign_ins.recognised(["digest 4"]) == (sessions[3], None)
            assert tx.sign_ins.recognised(["digest 5"]) == (sessions[4], None)
            assert tx.sign_ins.recognised(["unknown"]) is None
            assert tx.sign_ins.recognised([]) is None
            assert tx.sign_ins.of_member(signed_in.uid, NOW) == [sessions[1], sessions[0]]

        def erase(tx: Transaction) -> None:
            assert not tx.sign_ins.erase(sessions[3].uid, signed_in.uid)
            assert tx.sign_ins.erase(sessions[3].uid)
            assert tx.sign_ins.erase_expired(NOW) == 1
            assert tx.sign_ins.erase_of_member(signed_in.uid, but=sessions[1].uid) == 1
            assert tx.sign_ins.erase_of_member(signed_in.uid) == 1

        storage.write(erase)
        with storage.read() as tx:
            assert tx.rows.page(r.BrowserSession) == [sessions[4]]

    def test_failures_to_sign_in(self, storage: Storage) -> None:
        def failures(subject: str, hours: int = 0, pause: int = 0) -> r.SignInFailures:
            at = NOW + hours * HOUR
            return r.SignInFailures(
                subject=subject, failures=1, paused_until=at + pause * HOUR, last_at=at
            )

        a, b, c = storage.write(
            lambda tx: tx.sign_ins.save_failures(
                [failures("a"), failures("b", pause=2), failures("c", hours=2)]
            )
        )
        with storage.read() as tx:
            assert tx.sign_ins.failures(["c", "a", "A"]) == [a, c]
            assert tx.sign_ins.failures([]) == []
        again = storage.write(
            lambda tx: tx.sign_ins.save_failures(
                [replace(row, failures=2) for row in tx.sign_ins.failures(["a"], lock=True)]
            )
        )
        assert again == [replace(a, failures=2)]
        assert storage.write(lambda tx: tx.sign_ins.forget_old_failures(NOW + HOUR)) == 1
        with storage.read() as tx:
            assert tx.rows.page(r.SignInFailures) == [b, c]
        assert storage.write(lambda tx: tx.sign_ins.forget_failures(["b", "c", "d"])) == 2

    def test_erasures(self, storage: Storage) -> None:
        def receipt(number: int, target: str | None) -> r.Erasure:
            return r.Erasure(
                uid=uid("erasure", number),
                kind="peer",
                workspace_key=number % 2,
                workspace="w",
                workspace_uid=uid("workspace", number % 2),
                target="alice",
                target_uid=target,
                requested_by="admin",
                task_uid=uid("task", number),
                created_at=NOW + timedelta(seconds=number),
            )

        first, second, third = storage.write(
            lambda tx: [
                tx.erasures.add(receipt(number, target))
                for number, target in enumerate(("a", "b", None))
            ]
        )
        ended = replace(second, state=r.FINISHED, counts={"messages": 2}, finished_at=NOW)
        assert storage.write(lambda tx: tx.erasures.save(ended)) == ended
        with storage.read() as tx:
            assert tx.erasures.page() == [third, ended, first]
            assert tx.erasures.page(equals(workspace_key=0), limit=1) == [third]
            assert tx.erasures.count(equals(workspace_key=0)) == 2
            assert tx.erasures.by_uid(first.uid) == first
            assert tx.erasures.by_uid("nope") is None
            assert tx.erasures.of_task(second.task_uid) == ended
            assert tx.erasures.of_task("nope") is None
            assert tx.erasures.erased_uids(["b", "a", "c"]) == {"a", "b"}
            assert tx.erasures.erased_uids([]) == set()

    def test_audit_log(self, storage: Storage) -> None:
        def entry(number: int, seconds: int) -> r.AuditEntry:
            return r.AuditEntry(
                uid=uid("entry", number),
                actor="a",
                action="x.y",
                created_at=NOW + timedelta(seconds=seconds),
            )

        first, same, latest, early = storage.write(
            lambda tx: [
                tx.audit_log.add(entry(n, seconds)) for n, seconds in enumerate((1, 1, 5, 0))
            ]
        )
        newest_first = [latest, same, first, early]
        with storage.read() as tx:
            assert tx.audit_log.page() == newest_first
            assert tx.audit_log.page(equals(uid=first.uid)) == [first]
            assert tx.audit_log.page(limit=2) == [latest, same]
            assert tx.audit_log.before(None, 2) == [latest, same]
            assert tx.audit_log.before(same, 10) == [first, early]
            assert tx.audit_log.before(early, 10) == []
