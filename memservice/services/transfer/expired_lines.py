"""Lines of messages and conclusions that retention erased here. Its receipts name no rows, but the
time before which it erased them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memservice.domain import configuration
from memservice.domain import records as r
from memservice.services.erasure import receipts
from memservice.services.transfer.lines import Line, parse_time
from memservice.services.transfer.record_formats import RecordFormat
from memservice.spi.storage import Transaction


class ExpiredLines:
    """Recognises lines of one file that are older than what retention erased here."""

    def __init__(self) -> None:
        self._messages: dict[str | None, datetime] = {}
        """By slug of a session."""
        self._conclusions: dict[str | None, datetime] = {}
        """By slug of a session that has its own retention; None: for the others."""
        self._with_own_days: set[str] = set()
        """Slugs of sessions with their own retention of conclusions."""

    def begin(self, tx: Transaction, workspace_uids: Sequence[str]) -> bool:
        """Read the receipts of a workspace. Whether retention erased anything."""
        for erasure in tx.erasures.of_retention(workspace_uids):
            before = erasure.options.get(receipts.BEFORE)
            if before is None:  # of a release that did not record it
                continue
            times = self._messages if erasure.kind == receipts.MESSAGES else self._conclusions
            time = parse_time(before)
            times[erasure.session] = max(time, times.get(erasure.session, time))
        return bool(self._messages or self._conclusions)

    def read(self, record_format: RecordFormat, lines: Sequence[Line]) -> None:
        """Read the sessions of the file, which come before their messages."""
        if record_format.record is r.Session:
            self._with_own_days |= {
                line["slug"]
                for line in lines
                if configuration.retention(line["configuration"]).conclusions_days is not None
            }

    def messages_before(self, session: str) -> datetime | None:
        """Retention erased the messages of this session that are older; None: it erased none."""
        return self._messages.get(session)

    def has(self, record_format: RecordFormat, line: Line) -> bool:
        if record_format.record is r.Message:
            before = self.messages_before(line["session"])
        elif record_format.record is r.Conclusion:
            session = line["session"]
            before = self._conclusions.get(session)
            if before is None and session not in self._with_own_days:
                before = self._conclusions.get(None)
        else:
            return False
        # Like `retention`: a message also counts from the time at which it was stored.
        times = (line["created_at"], line.get("stored_at"))
        return before is not None and any(
            parse_time(time) < before for time in times if time is not None
        )
