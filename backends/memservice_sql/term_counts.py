"""How many texts have a frequent term: a process remembers it while the texts change little.

SQLite takes 5 ms of CPU to count the texts with the three terms of a query among a million. A
search uses the number for the weight of the term, a logarithm, which a change of 1 % hardly alters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from memservice_sql.text_cache import TextState

MIN_ROWS = 1_000
"""Terms of fewer texts are counted each time. Three terms of 4,000 texts each take SQLite 0.7 ms,
a tenth of a search among a million."""
MAX_CHANGE = 0.01
"""By how much the number of all texts may change."""
MAX_AGE = 300.0
"""Seconds."""
MAX_TERMS = 20_000


Statistics = tuple[TextState, dict[str, int]]


class _Counted(NamedTuple):
    rows: int
    documents: int
    """All texts, when these were counted."""
    removal: int
    at: float


class TermCounts:
    """Safe for threads."""

    def __init__(
        self, min_rows: int = MIN_ROWS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._min_rows = min_rows
        self._clock = clock
        self._counted: dict[str, _Counted] = {}

    def statistics(
        self, terms: Collection[str], count: Callable[[Collection[str]], Statistics]
    ) -> Statistics:
        """The state of the texts, and the number of texts with each term: those that may be
        remembered are not counted. `count` counts, as `StoredTexts.statistics`."""
        known_terms = self.known_terms(terms)
        state, counted = count([term for term in terms if term not in known_terms])
        remembered = self.of(known_terms, state)
        changed_terms = known_terms - remembered.keys()
        if changed_terms:
            counted |= count(changed_terms)[1]
        self.note(counted, state)
        return state, counted | remembered

    def few_of_sessions(
        self,
        sessions: Sequence[int],
        limit: int,
        state: TextState,
        count: Callable[[], int],
    ) -> int | None:
        """The number of texts of these sessions, if there are fewer than the limit. `count` counts
        them, up to the limit. That one session has as many is remembered like the number of texts
        with a term."""
        # A stored term has no space.
        name = f"session {sessions[0]} {state.kind}" if len(sessions) == 1 else None
        if name is not None and self.of(self.known_terms([name]), state).get(name, 0) >= limit:
            return None
        number = count()
        if name is not None:
            self.note({name: number}, state)
        return number if number < limit else None

    def known_terms(self, terms: Collection[str]) -> set[str]:
        """Those of these stored terms whose numbers may still hold (`of`)."""
        now = self._clock()
        counted = {term: self._counted.get(term) for term in terms}
        return {term for term, each in counted.items() if each and now - each.at <= MAX_AGE}

    def of(self, terms: Collection[str], state: TextState) -> dict[str, int]:
        """The numbers that hold in this state of the texts. None holds after texts were removed."""
        counted = {term: self._counted.get(term) for term in terms}
        return {
            term: each.rows
            for term, each in counted.items()
            if each
            and each.removal == state.removal
            and abs(state.documents - each.documents) <= MAX_CHANGE * each.documents
        }

    def note(self, row_counts: Mapping[str, int], state: TextState) -> None:
        """Remember what was counted in this state."""
        now = self._clock()
        if len(self._counted) + len(row_counts) > MAX_TERMS:
            self._counted.clear()
        for term, rows in row_counts.items():
            if rows >= self._min_rows:
                self._counted[term] = _Counted(rows, state.documents, state.removal, now)
