"""Pauses between attempts to sign in: each failure makes the next pause longer.

An attempt is counted before its password is read, so attempts at the same moment count as well. The
counts are in the store, for all server processes together.

| subject | failures without a pause | longest pause |
| --- | --- | --- |
| an account, from browsers that never signed in to it | 5 | 30 seconds |
| an address (of IPv6, its /64), regardless of the account | 20 | 15 minutes |
| a browser that signed in to the account before, with this account | 5 | 15 minutes |
| an API key that is revoked, or too narrow for the console | 5 | 15 minutes |

The third row replaces the first two: any number of attempts by others does not pause a browser that
the member uses. A member without such a browser can use a link for a new password (`memservice
console link --member NAME`), which is never paused.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.errors import MemserviceError
from memservice.domain.records import SignInFailures
from memservice.runtime import Runtime
from memservice.spi.storage import Transaction

RETENTION = timedelta(hours=24)
"""Time after the last failure when failures are forgotten."""


class Paused(MemserviceError):
    """Too many attempts failed. The message is for the person at the browser."""

    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"Too many attempts to sign in failed. Try again in {seconds} "
            f"second{'' if seconds == 1 else 's'}"
        )
        self.retry_after = seconds


class Subject(Struct, frozen=True):
    """The subject that failures are counted for."""

    name: str
    free: int
    """Number of failures without a pause."""
    longest: timedelta

    def pause(self, failures: int) -> timedelta:
        """The pause after this number of failures: one second, doubled with each further
        failure."""
        over = failures - self.free
        if over < 0:
            return timedelta()
        # 2**20 seconds are longer than any pause
        return min(timedelta(seconds=1 << min(over, 20)), self.longest)


def of_account(name: str) -> Subject:
    return Subject(f"account:{_digest(name)}", 5, timedelta(seconds=30))


def of_address(address: str) -> Subject:
    return Subject(f"address:{_digest(_network(address))}", 20, timedelta(minutes=15))


def of_browser(browser_digest: str) -> Subject:
    return Subject(f"browser:{browser_digest}", 5, timedelta(minutes=15))


def of_key(uid: str) -> Subject:
    """Of refused attempts with a genuine key: each of them writes to the audit log."""
    return Subject(f"key:{_digest(uid)}", 5, timedelta(minutes=15))


def begin(rt: Runtime, subjects: Sequence[Subject]) -> None:
    """Count an attempt as failed, until `succeed`. Raises `Paused` for an attempt during a pause;
    it is not counted."""
    names = tuple(subject.name for subject in subjects)

    def count(tx: Transaction) -> None:
        now = rt.clock()
        rows = {row.subject: row for row in tx.sign_ins.failures(names, lock=True)}
        until = max((row.paused_until for row in rows.values()), default=now)
        if until > now:
            raise Paused(math.ceil((until - now).total_seconds()))
        tx.sign_ins.save_failures(
            [_with_failure(rows.get(subject.name), subject, now) for subject in subjects]
        )
        tx.sign_ins.forget_old_failures(now - RETENTION)

    rt.storage.write(count)


def succeed(tx: Transaction, subjects: Sequence[Subject], now: datetime) -> None:
    """Record a success: undo the counted failure and end its pause. Earlier failures of an address
    still count, as they may concern other accounts."""
    names = tuple(subject.name for subject in subjects)
    rows = tx.sign_ins.failures(names, lock=True)
    of_addresses = [row for row in rows if row.subject.startswith("address:")]
    tx.sign_ins.forget_failures(
        [row.subject for row in rows if row not in of_addresses or row.failures <= 1]
    )
    remaining = [row for row in of_addresses if row.failures > 1]
    if remaining:
        tx.sign_ins.save_failures(
            [replace(row, failures=row.failures - 1, paused_until=now) for row in remaining]
        )


def _with_failure(row: SignInFailures | None, subject: Subject, now: datetime) -> SignInFailures:
    if row is None:
        row = SignInFailures(subject=subject.name, failures=0, paused_until=now, last_at=now)
    before = 0 if now - row.last_at > RETENTION else row.failures
    return replace(
        row,
        failures=before + 1,
        paused_until=now + subject.pause(before + 1),
        last_at=now,
    )


def _network(address: str) -> str:
    """The network of one subscriber: an IPv4 address, or the first 64 bits of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
