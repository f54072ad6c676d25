"""Positions of messages in their sessions: one, and thousands as arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEY, SESSION, AUTHOR, SEQ, TOKENS = range(5)
"""Rows of `PositionTable.columns`."""


class Position(NamedTuple):
    """The position of a message, without its text: enough for ranking. A search makes
    thousands."""

    key: int
    session_key: int
    author_key: int
    seq: int
    tokens: int
    created_at: datetime | None
    """None if it was not asked for: times take as long to read as all the rest."""


class PositionTable(Mapping[int, Position]):
    """Positions without times, by key of the message: a search ranks thousands and looks at few of
    them one by one."""

    def __init__(self, columns: NDArray[np.int64]) -> None:
        """`columns`: 5 × n, see `KEY` and the others; no key twice."""
        self.columns = columns
        self._row_of = dict(zip(columns[KEY].tolist(), range(columns.shape[1]), strict=True))

    @classmethod
    def of(cls, positions: Iterable[Position]) -> PositionTable:
        import numpy as np

        rows = [position[:5] for position in positions]
        return cls(np.array(rows, np.int64).reshape(-1, 5).T)

    def only(self, fits: Callable[[int, int, int], bool]) -> PositionTable:
        """Those for whose session, author and seq this is true."""
        chosen = map(fits, *self.columns[[SESSION, AUTHOR, SEQ]].tolist())
        return PositionTable(self.columns[:, list(chosen)])

    def by_others(self, author_keys: Collection[int]) -> set[int]:
        """The keys of the messages by other authors than these."""
        import numpy as np

        is_other = ~np.isin(self.columns[AUTHOR], np.array(sorted(author_keys), np.int64))
        return set(self.columns[KEY][is_other].tolist())

    def authors(self) -> dict[int, int]:
        """By key of a message, that of its author."""
        return dict(zip(self._row_of, self.columns[AUTHOR].tolist(), strict=True))

    def rows(self, keys: Iterable[int]) -> list[list[int]]:
        """Key, session, author, seq and tokens of those of these messages that it has."""
        chosen = [self._row_of[key] for key in keys if key in self._row_of]
        rows: list[list[int]] = self.columns[:, chosen].T.tolist()
        return rows

    def at(self, pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], Position]:
        """The positions with one of these pairs of session and seq, by their pairs."""
        import numpy as np

        if not pairs:
            return {}
        # As one number, as long as no session has that many messages.
        requested = np.array(sorted((session << 32) + seq for session, seq in pairs))
        numbers = (self.columns[SESSION] << 32) + self.columns[SEQ]
        nearest = np.minimum(np.searchsorted(requested, numbers), len(requested) - 1)
        rows = np.flatnonzero(requested[nearest] == numbers)
        positions = (Position._make((*row, None)) for row in self.columns[:, rows].T.tolist())
        return {(position.session_key, position.seq): position for position in positions}

    def keys(self) -> KeysView[int]:
        return self._row_of.keys()

    def __getitem__(self, key: int) -> Position:
        return Position._make((*self.columns[:, self._row_of[key]].tolist(), None))

    def __iter__(self) -> Iterator[int]:
        return iter(self._row_of)

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, key: object) -> bool:
        return key in self._row_of

    def __or__(self, others: Mapping[int, Position]) -> PositionTable:
        """With those of these positions that it does not have."""
        import numpy as np

        table = others if isinstance(others, PositionTable) else PositionTable.of(others.values())
        added = table.columns[:, ~np.isin(table.columns[KEY], self.columns[KEY])]
        return PositionTable(np.concatenate([self.columns, added], axis=1))
