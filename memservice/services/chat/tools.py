"""The tools of a reasoner that works in steps: retrieval and reads of the store within the caller's
bounds.

Each opens its own read transaction, so none is open during a call of a model. Results are recorded
for the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from memservice.domain.filters import TRUE, Condition, all_of, equals, matches
from memservice.domain.filters.ast import Compare, Substring
from memservice.domain.records import LIVE, SUPERSEDED, Conclusion, Message
from memservice.domain.sizes import MAX_QUERY
from memservice.runtime import Runtime
from memservice.services import visibility
from memservice.services.auth.bounds import Bounds
from memservice.services.chat import evidence
from memservice.services.retrieval.search import Search
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction
from memservice.spi.toolbox import Chain, Evidence, Passage, ToolRefused

AROUND_A_HIT = 2
"""Number of messages shown before and after a hit."""
AROUND_A_SOURCE = 1
AROUND_A_MESSAGE = 5
MAX_SOURCES = 20
"""Maximum number of source messages of one conclusion that are shown, newest first."""
MAX_LINKED = 50
"""Maximum number of sources, and of dependent conclusions, that are shown."""
MAX_SCANNED = 20_000
"""Number of the newest messages that are scanned for a substring; older ones are searched by
words."""

NEWEST_SENT = (Order("created_at", descending=True), Order("key", descending=True))
OLDEST_SENT = (Order("created_at"), Order("key"))


class Tools:
    """The bounds are fixed when the question is asked; `memservice.spi.toolbox.Toolbox` describes
    each result."""

    def __init__(
        self, rt: Runtime, workspace_id: str, bounds: Bounds, *, has_cards: bool = False
    ) -> None:
        self._rt, self._workspace, self._bounds = rt, workspace_id, bounds
        self.has_chains = bounds.has_chains
        self.has_cards = has_cards and bounds.has_cards
        self.conclusions_read: dict[int, Conclusion] = {}
        """The returned conclusions by key, in order."""
        self.messages_read: dict[int, Message] = {}

    def conclusions(self, query: str, limit: int) -> Sequence[Evidence]:
        if self._bounds.no_conclusions:
            return []
        search = Search.begin(self._rt, self._workspace, query[:MAX_QUERY], "search_memory")
        with self._rt.storage.read() as tx:
            # Twice as many, since several observers may have the same one.
            hits = search.conclusions(tx, self._bounds, limit * 2)
            return self._shown(tx, evidence.distinct([item.conclusion for item in hits])[:limit])

    def messages(
        self, query: str, limit: int, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[Passage]:
        search = Search.begin(self._rt, self._workspace, query[:MAX_QUERY])
        with self._rt.storage.read() as tx:
            messages = search.messages(tx, self._bounds.with_messages(_sent(since, until)), limit)
            return self._passages(tx, messages, AROUND_A_HIT)

    def containing(self, text: str, limit: int) -> Sequence[Passage]:
        contains = Substring("content", text)
        with self._rt.storage.read() as tx:
            messages = self._scan(tx, contains, limit)
            if len(messages) < limit:
                # Older ones are searched by words.
                keys = {message.key for message in messages}
                older = Search(self._rt, text).messages(
                    tx, self._bounds.with_messages(contains), limit
                )
                messages += [message for message in older if message.key not in keys]
            newest = sorted(
                messages, key=lambda message: (message.created_at, message.key), reverse=True
            )[:limit]
            return self._passages(tx, newest, AROUND_A_SOURCE)

    def _scan(self, tx: Transaction, condition: Condition, limit: int) -> list[Message]:
        """Matches among the newest messages, the last stored first."""
        readable = self._all_messages(tx)
        newest = (Order("key", descending=True),)
        edge = tx.rows.page(Message, readable, newest, 1, MAX_SCANNED)
        recent = Compare("key", "gt", edge[0].key) if edge else TRUE
        return tx.rows.page(Message, all_of(readable, recent, condition), newest, limit)

    def between(
        self, since: datetime | None, until: datetime | None, limit: int, newest_first: bool = True
    ) -> Sequence[Passage]:
        with self._rt.storage.read() as tx:
            condition = all_of(self._all_messages(tx), _sent(since, until))
            messages = tx.rows.page(
                Message, condition, NEWEST_SENT if newest_first else OLDEST_SENT, limit
            )
        runs = [list(run) for _, run in groupby(messages, key=lambda message: message.session_key)]
        return [
            self._passage(sorted(run, key=lambda message: (message.created_at, message.key)))
            for run in runs
        ]

    def behind(self, uid: str) -> Sequence[Passage]:
        with self._rt.storage.read() as tx:
            row = self._conclusion(tx, uid)
            keys = list(row.message_keys)
            if not keys and self.has_chains:
                keys = [key for source in self._sources(tx, row) for key in source.message_keys]
            messages = tx.messages.matching(self._bounds.workspace, keys, self._all_messages(tx))
            newest = sorted(messages.values(), key=lambda message: message.key, reverse=True)[
                :MAX_SOURCES
            ]
            return self._passages(tx, newest, AROUND_A_SOURCE)

    def around(self, uid: str) -> Sequence[Passage]:
        with self._rt.storage.read() as tx:
            condition = all_of(equals(uid=uid), self._all_messages(tx))
            messages = tx.rows.page(Message, condition, limit=1)
            if not messages:
                raise ToolRefused(f"There is no message with the id {uid!r}.")
            return self._passages(tx, messages, AROUND_A_MESSAGE)

    def chain(self, uid: str) -> Chain:
        if not self.has_chains:
            raise ToolRefused(
                "Sources of conclusions are not available while only certain sessions are readable."
            )
        with self._rt.storage.read() as tx:
            row = self._conclusion(tx, uid)
            standing = self._bounds.standing
            dependents = tx.conclusions.resting_on(self._bounds.workspace, row.uid, standing)
            allowed = tx.conclusions.by_keys(
                [conclusion.key for conclusion in dependents], self._bounds.condition, standing
            )
            (first,) = self._shown(tx, [row])
            return Chain(
                first,
                self._shown(tx, self._sources(tx, row)),
                self._shown(tx, list(allowed.values())[:MAX_LINKED]),
            )

    def card(self, peer_id: str) -> Sequence[str]:
        if not self.has_cards:
            raise ToolRefused("Cards are not available here.")
        with self._rt.storage.read() as tx:
            peer = tx.peers.by_slug(self._bounds.workspace, peer_id)
            if peer is None:
                raise ToolRefused(
                    f"There is no peer {peer_id!r}. Peers are named as in the results of "
                    "the other tools."
                )
            card = tx.cards.one(peer.key, peer.slug)
        return [] if card is None else list(card.lines)

    def _conclusion(self, tx: Transaction, uid: str) -> Conclusion:
        """A live or superseded conclusion. Raises `ToolRefused` for one outside the bounds."""
        row = tx.conclusions.by_uid(self._bounds.workspace, uid)
        hidden = row is None or row.state not in (LIVE, SUPERSEDED) or self._bounds.no_conclusions
        if row is None or hidden or not self._readable(tx, [row]):
            raise ToolRefused(
                f"There is no conclusion with the id {uid!r}. Use an id exactly as in the "
                "results above."
            )
        return row

    def _readable(self, tx: Transaction, rows: Sequence[Conclusion]) -> list[Conclusion]:
        keys = tuple(row.key for row in rows)
        allowed = (
            {
                row.key
                for row in tx.rows.page(
                    Conclusion, all_of(equals(key=keys), self._bounds.condition)
                )
            }
            if keys
            else set()
        )
        return [row for row in rows if row.key in allowed]

    def _sources(self, tx: Transaction, row: Conclusion) -> list[Conclusion]:
        uids = tuple(row.source_ids or ())[:MAX_LINKED]
        if not uids:
            return []
        condition = equals(workspace_key=self._bounds.workspace, uid=uids, state=(LIVE, SUPERSEDED))
        sources = {
            source.uid: source
            for source in tx.rows.page(Conclusion, all_of(condition, self._bounds.condition))
        }
        return [sources[uid] for uid in uids if uid in sources]

    def _all_messages(self, tx: Transaction) -> Condition:
        """The condition of readable messages."""
        bounds = self._bounds
        if bounds.sessions is not None:
            return all_of(
                equals(workspace_key=bounds.workspace, session_key=bounds.sessions),
                bounds.message_condition,
            )
        return all_of(
            equals(workspace_key=bounds.workspace),
            bounds.message_condition,
            visibility.visible(tx, bounds.workspace, include_archived=True),
        )

    def _shown(self, tx: Transaction, rows: Sequence[Conclusion]) -> list[Evidence]:
        replaced = evidence.replaced_by(tx, self._bounds, rows)
        for row in rows:
            for version in (row, *replaced.get(row.key, ())):
                self.conclusions_read.setdefault(version.key, version)
        return [evidence.of_conclusion(row, replaced.get(row.key, ())) for row in rows]

    def _passages(self, tx: Transaction, hits: Sequence[Message], distance: int) -> list[Passage]:
        """Each hit with its neighbours, in the order of the hits; adjacent ranges are merged."""
        hit_keys = {message.key for message in hits}
        ranges: list[tuple[int, int, int]] = []
        for hit in hits:
            first, last = max(1, hit.seq - distance), hit.seq + distance
            position = None
            for index, (session_key, start, end) in enumerate(ranges):
                if session_key == hit.session_key and start <= last + 1 and first <= end + 1:
                    position = index if position is None else position
                    first, last = min(first, start), max(last, end)
            if position is None:
                ranges.append((hit.session_key, first, last))
            else:
                separate = [
                    part
                    for part in ranges
                    if not (part[0] == hit.session_key and first <= part[1] and part[2] <= last)
                ]
                ranges = [
                    *separate[:position],
                    (hit.session_key, first, last),
                    *separate[position:],
                ]
        # The condition applies to neighbours too: a session may be readable only in part.
        return [
            self._passage(
                [
                    row
                    for row in tx.messages.run(*bounds)
                    if matches(row, self._bounds.message_condition)
                ],
                hit_keys,
            )
            for bounds in ranges
        ]

    def _passage(self, messages: Sequence[Message], hit_keys: set[int] | None = None) -> Passage:
        self.messages_read.update(
            {message.key: message for message in messages if message.key not in self.messages_read}
        )
        return [
            evidence.of_message(message, hit_keys is None or message.key in hit_keys)
            for message in messages
        ]


def _sent(since: datetime | None, until: datetime | None) -> Condition:
    after = TRUE if since is None else Compare("created_at", "gte", since)
    return all_of(after, TRUE if until is None else Compare("created_at", "lte", until))
