"""Pages of messages that a process remembers.

The session's revision tells whether a message at these positions has changed, by the same rule as
for totals (`matching_totals`). A page is remembered when it is read for the second time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from memservice.domain.records import ACTIVE, Message, Session
from memservice.runtime import RememberedPage, Runtime
from memservice.services.matching_totals import SECONDS
from memservice.spi.storage import Transaction

MAX_PAGES = 100
MAX_MESSAGES = 200
"""Messages of a page that is remembered: a context can have as many as its session."""
MAX_CHARACTERS = 50_000
"""Characters of the texts and metadata of a page that is remembered. With these limits, all pages
take about 40 MB at most."""


def page(
    rt: Runtime, tx: Transaction, session: Session, first: int, last: int
) -> Sequence[Message]:
    """The messages of a session from position `first` to `last`, in order. `session`: its row as
    `tx` has read it, or as it was shortly before."""
    last = min(last, session.message_count)
    if session.state != ACTIVE or first > last:
        return tx.messages.run(session.key, first, last)
    name = session.uid, first, last
    before = rt.matches.pages.get(name)
    if before is not None and (
        before.revision != session.revision or time.monotonic() >= before.read_at + SECONDS
    ):
        before = None
    if before is not None and before.items is not None:
        return before.items
    items = tx.messages.run(session.key, first, last)
    second = before is not None and _stands(tx, session, items, last - first + 1)
    if len(rt.matches.pages) >= MAX_PAGES and name not in rt.matches.pages:
        rt.matches.pages.clear()
    now = time.monotonic()
    rt.matches.pages[name] = RememberedPage(session.revision, items if second else None, now)
    return items


def _stands(tx: Transaction, session: Session, items: Sequence[Message], size: int) -> bool:
    """Whether a page may be remembered: it is whole and not large, and no message has changed
    between the reading of the session and of the page."""
    if len(items) != size or size > MAX_MESSAGES or _characters(items) > MAX_CHARACTERS:
        return False
    now = tx.sessions.by_key(session.key)
    return now is not None and now.revision == session.revision


def _characters(items: Sequence[Message]) -> int:
    return sum(
        len(item.content) + (len(repr(item.metadata)) if item.metadata else 0) for item in items
    )
