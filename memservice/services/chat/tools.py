"""The look-ups of a reasoner that works in steps, over recall and the store, within what the asker
may see.

Each opens a read view of its own, so none is open while a model is asked. What was handed out is
remembered, for the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from memservice.domain.filters import TRUE, Condition, all_of, equals, matches
from memservice.domain.filters.ast import Compare, Substring
from memservice.domain.records import LIVE, SUPERSEDED, Conclusion, Message
from memservice.runtime import Runtime
from memservice.services import visibility
from memservice.services.auth.bounds import Bounds
from memservice.services.chat import evidence
from memservice.services.retrieval.search import Search
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction
from memservice.spi.toolbox import Chain, Evidence, Passage, ToolRefused

AROUND_A_HIT = 2
"""Messages shown before and after one that was searched for."""
AROUND_A_SOURCE = 1
MAX_SOURCES = 20
"""Messages behind one conclusion that are shown, the newest."""
MAX_LINKED = 50
"""Conclusions that one rests on, or that rest on it, that are shown."""
MAX_SCANNED = 20_000
"""Messages, the newest, in which a text is looked for letter by letter; in older ones it is looked
for by its words."""

NEWEST_SENT = (Order("created_at", descending=True), Order("key", descending=True))
OLDEST_SENT = (Order("created_at"), Order("key"))


class Tools:
    """What may be looked at was settled when the question was asked;
    `memservice.spi.toolbox.Toolbox` says what each look-up gives."""

    def __init__(
        self, rt: Runtime, workspace_id: str, bounds: Bounds, *, has_cards: bool = False
    ) -> None:
        self._rt, self._workspace, self._bounds = rt, workspace_id, bounds
        self.has_chains = bounds.has_chains
        self.has_cards = has_cards and bounds.has_cards
        self.conclusions_read: dict[int, Conclusion] = {}
        """What was handed out, by key, in the order in which it was."""
        self.messages_read: dict[int, Message] = {}

    def conclusions(self, query: str, limit: int) -> Sequence[Evidence]:
        if self._bounds.no_conclusions:
            return []
        search = Search.begin(self._rt, self._workspace, query, "search_memory")
        with self._rt.storage.read() as tx:
            # Twice as many, since several observers may hold the same.
            found_conclusions = search.conclusions(tx, self._bounds, limit * 2)
        return self._shown(
            evidence.distinct([item.conclusion for item in found_conclusions])[:limit]
        )

    def messages(
        self, query: str, limit: int, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[Passage]:
        search = Search.begin(self._rt, self._workspace, query)
        with self._rt.storage.read() as tx:
            messages = search.messages(tx, self._bounds.with_messages(_sent(since, until)), limit)
            return self._passages(tx, messages, AROUND_A_HIT)

    def containing(self, text: str, limit: int) -> Sequence[Passage]:
        contains = Substring("content", text)
        with self._rt.storage.read() as tx:
            messages = self._scanned(tx, contains, limit)
            if len(messages) < limit:
                # Older ones are found by their words.
                known = {message.key for message in messages}
                older = Search(self._rt, text).messages(
                    tx, self._bounds.with_messages(contains), limit
                )
                messages += [message for message in older if message.key not in known]
            newest = sorted(
                messages, key=lambda message: (message.created_at, message.key), reverse=True
            )[:limit]
            return self._passages(tx, newest, AROUND_A_SOURCE)

    def _scanned(self, tx: Transaction, condition: Condition, limit: int) -> list[Message]:
        """Matches among the newest messages, the last stored first."""
        mine = self._all_messages(tx)
        newest = (Order("key", descending=True),)
        edge = tx.rows.page(Message, mine, newest, 1, MAX_SCANNED)
        recent = Compare("key", "gt", edge[0].key) if edge else TRUE
        return tx.rows.page(Message, all_of(mine, recent, condition), newest, limit)

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
            found = tx.messages.matching(self._bounds.workspace, keys, self._all_messages(tx))
            newest = sorted(found.values(), key=lambda message: message.key, reverse=True)[
                :MAX_SOURCES
            ]
            return self._passages(tx, newest, AROUND_A_SOURCE)

    def chain(self, uid: str) -> Chain:
        if not self.has_chains:
            raise ToolRefused(
                "What rests on what is not shown while only certain sessions may be looked at."
            )
        with self._rt.storage.read() as tx:
            row = self._conclusion(tx, uid)
            resting = tx.conclusions.resting_on(self._bounds.workspace, row.uid)
            allowed = tx.conclusions.by_keys(
                [conclusion.key for conclusion in resting], self._bounds.condition
            )
            (first,) = self._shown([row])
            return Chain(
                first,
                self._shown(self._sources(tx, row)),
                self._shown(list(allowed.values())[:MAX_LINKED]),
            )

    def card(self, peer_id: str) -> Sequence[str]:
        if not self.has_cards:
            raise ToolRefused("Cards are not used here.")
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
        """One that is live or was replaced; refused for any that the asker could not have been
        shown."""
        row = tx.conclusions.by_uid(self._bounds.workspace, uid)
        hidden = row is None or row.state not in (LIVE, SUPERSEDED) or self._bounds.no_conclusions
        if row is None or hidden or not self._within(tx, [row]):
            raise ToolRefused(
                f"There is no conclusion with the id {uid!r}. Give an id exactly as it "
                "stands in the results above."
            )
        return row

    def _within(self, tx: Transaction, rows: Sequence[Conclusion]) -> list[Conclusion]:
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
        found = {
            source.uid: source
            for source in tx.rows.page(Conclusion, all_of(condition, self._bounds.condition))
        }
        return [found[uid] for uid in uids if uid in found]

    def _all_messages(self, tx: Transaction) -> Condition:
        """The messages that may be looked at."""
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

    def _shown(self, rows: Sequence[Conclusion]) -> list[Evidence]:
        self.conclusions_read.update(
            {row.key: row for row in rows if row.key not in self.conclusions_read}
        )
        return [evidence.of_conclusion(row) for row in rows]

    def _passages(self, tx: Transaction, hits: Sequence[Message], distance: int) -> list[Passage]:
        """Each hit with its neighbours, in the order of the hits; stretches that touch are one."""
        asked = {message.key for message in hits}
        stretches: list[tuple[int, int, int]] = []
        for hit in hits:
            first, last = max(1, hit.seq - distance), hit.seq + distance
            place = None
            for index, (session_key, start, end) in enumerate(stretches):
                if session_key == hit.session_key and start <= last + 1 and first <= end + 1:
                    place = index if place is None else place
                    first, last = min(first, start), max(last, end)
            if place is None:
                stretches.append((hit.session_key, first, last))
            else:
                kept = [
                    part
                    for part in stretches
                    if not (part[0] == hit.session_key and first <= part[1] and part[2] <= last)
                ]
                stretches = [*kept[:place], (hit.session_key, first, last), *kept[place:]]
        # Neighbours are subject to the same condition as the hits: a session may be open in part
        # only.
        return [
            self._passage(
                [
                    row
                    for row in tx.messages.run(*stretch)
                    if matches(row, self._bounds.message_condition)
                ],
                asked,
            )
            for stretch in stretches
        ]

    def _passage(self, messages: Sequence[Message], asked: set[int] | None = None) -> Passage:
        self.messages_read.update(
            {message.key: message for message in messages if message.key not in self.messages_read}
        )
        return [
            evidence.of_message(message, asked is None or message.key in asked)
            for message in messages
        ]


def _sent(since: datetime | None, until: datetime | None) -> Condition:
    after = TRUE if since is None else Compare("created_at", "gte", since)
    return all_of(after, TRUE if until is None else Compare("created_at", "lte", until))
