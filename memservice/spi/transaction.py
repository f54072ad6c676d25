"""One transaction over rows, with the repositories that services use."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from memservice.domain.filters.ast import equals
from memservice.spi import repositories
from memservice.spi.rows import Rows

R = TypeVar("R", bound=Struct)


class Transaction:
    """One transaction, with a repository per entity. A storage with faster repositories returns
    them from a subclass.

    In `Storage.read()` the methods that write raise `ReadOnly`. Do not share it between threads, or
    keep it after the transaction.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def released(self) -> AbstractContextManager[None]:
        """Release the connection and all locks of a reading transaction while the block runs. Use
        it to wait for something outside the storage. Later reads may see a later state. In
        `Storage.write()` it raises RuntimeError."""
        return nullcontext()

    def locked(self, record: type[R], keys: Iterable[int]) -> list[R]:
        """The rows with these keys that still exist, as they are now, locked until commit. They are
        locked in the order of their keys: so two transactions never wait for each other."""
        rows = (self.rows.get(record, equals(key=key), lock=True) for key in sorted(set(keys)))
        return [row for row in rows if row is not None]

    @cached_property
    def workspaces(self) -> repositories.Workspaces:
        return repositories.Workspaces(self.rows)

    @cached_property
    def peers(self) -> repositories.Peers:
        return repositories.Peers(self.rows)

    @cached_property
    def sessions(self) -> repositories.Sessions:
        return repositories.Sessions(self.rows)

    @cached_property
    def members(self) -> repositories.Members:
        return repositories.Members(self.rows)

    @cached_property
    def messages(self) -> repositories.Messages:
        return repositories.Messages(self.rows)

    @cached_property
    def summaries(self) -> repositories.Summaries:
        return repositories.Summaries(self.rows)

    @cached_property
    def cards(self) -> repositories.Cards:
        return repositories.Cards(self.rows)

    @cached_property
    def conclusions(self) -> repositories.Conclusions:
        return repositories.Conclusions(self.rows)

    @cached_property
    def tasks(self) -> repositories.Tasks:
        return repositories.Tasks(self.rows)

    @cached_property
    def spaces(self) -> repositories.Spaces:
        return repositories.Spaces(self.rows)

    @cached_property
    def webhooks(self) -> repositories.Webhooks:
        return repositories.Webhooks(self.rows)

    @cached_property
    def keys(self) -> repositories.Keys:
        return repositories.Keys(self.rows)

    @cached_property
    def usage(self) -> repositories.Ledger:
        return repositories.Ledger(self.rows)

    @cached_property
    def console_members(self) -> repositories.ConsoleMembers:
        return repositories.ConsoleMembers(self.rows)

    @cached_property
    def console_links(self) -> repositories.ConsoleLinks:
        return repositories.ConsoleLinks(self.rows)

    @cached_property
    def sign_ins(self) -> repositories.SignIns:
        return repositories.SignIns(self.rows)

    @cached_property
    def audit_log(self) -> repositories.AuditLog:
        return repositories.AuditLog(self.rows)

    @cached_property
    def erasures(self) -> repositories.Erasures:
        return repositories.Erasures(self.rows)

    @cached_property
    def facts(self) -> repositories.Facts:
        return repositories.Facts(self.rows)
