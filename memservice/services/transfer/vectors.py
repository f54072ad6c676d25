"""The vectors of an export, into the index of the storage that it goes to; what it does not take is
made by tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from memservice.domain import records as r
from memservice.domain.errors import IndexUnavailable
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.tasks import outbox
from memservice.services.transfer.keys import vector_rows
from memservice.services.transfer.lines import Line, UnreadableExport, read_vector
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorRow

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

_SpaceName = tuple[str, str, int]
"""Kind, embedder and dimension."""


@dataclass(frozen=True, slots=True)
class Others:
    """Vectors of an embedder that is not the one by which the workspace has its vectors here."""

    number: int
    kind: str
    embedder: str
    here: str
    """The embedder that the workspace has here."""


class Vectors:
    """Stores the vectors of one workspace, and counts those that it could not."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._spaces: dict[_SpaceName, r.Space] = {}
        """By what the file calls a space: the one that is active here, which may be of another
        embedder."""
        self._others: Counter[_SpaceName] = Counter()
        self.later = 0
        """Rows whose vectors are made by tasks, because the index did not take those of the
        file."""
        self.away: str | None = None
        """Why it did not."""

    def others(self) -> list[Others]:
        """Vectors that were not taken."""
        return [
            Others(number, name[0], name[1], self._spaces[name].embedder)
            for name, number in self._others.items()
        ]

    def store_spaces(self, spaces: Sequence[r.Space]) -> None:
        """Make these spaces active where the workspace has none of the kind."""

        def change(tx: Transaction) -> dict[_SpaceName, r.Space]:
            return {
                (space.kind, space.embedder, space.dimension): tx.spaces.active(
                    space.workspace_key, space.kind
                )
                or tx.spaces.save(space)
                for space in spaces
            }

        self._spaces = self._rt.storage.write(change)

    def store(self, lines: Sequence[tuple[str, Line]]) -> int:
        """Store the vectors of lines, each given with the uid that its row has here; how many were
        not there before."""
        stored = 0
        for name, group in groupby(lines, key=lambda item: _name(item[1])):
            space = self._spaces.get(name)
            if space is None:
                raise UnreadableExport(
                    f"vectors of a space that is not in the file: {name[0]} by {name[1]}"
                )
            vectors = {uid: read_vector(line["vector"], name[2]) for uid, line in group}
            taken = (space.kind, space.embedder, space.dimension) == name
            if not taken:
                self._others[name] += len(vectors)
            if self._rt.vectors_transactional:
                add = partial(self._add_inside, space=space, vectors=vectors, taken=taken)
                stored += self._rt.storage.write(add)
            else:
                stored += self._add_outside(space, vectors, taken)
        return stored

    def _add_inside(
        self, tx: Transaction, space: r.Space, vectors: Mapping[str, Vector], taken: bool
    ) -> int:
        """Store those of rows that have none; how many. Where they are not to be taken, such rows
        are given theirs by a task."""
        fresh = self._fresh(tx, space, vector_rows(tx, space, vectors))
        if taken:
            self._rt.vectors.upsert(tx, space, fresh)
            return len(fresh)
        tx.tasks.add(self._make(space, fresh))
        return 0

    def _add_outside(self, space: r.Space, vectors: Mapping[str, Vector], taken: bool) -> int:
        """The same with an index that no transaction includes, and that may be away: then tasks
        make what it could not be given. It is not asked again, as each time would be waited for."""
        with self._rt.storage.read() as tx:
            rows = vector_rows(tx, space, vectors)
        if self.away is None:
            try:
                rows = self._fresh(None, space, rows)
                if taken:
                    self._rt.vectors.upsert(None, space, rows)
                    return len(rows)
            except IndexUnavailable as error:
                self.away = str(error)
        if jobs := self._make(space, rows):
            self._rt.storage.write(lambda tx: tx.tasks.add(jobs))
            self.later += len(rows) if taken else 0
        return 0

    def _fresh(
        self, tx: Transaction | None, space: r.Space, rows: Sequence[VectorRow]
    ) -> list[VectorRow]:
        there = self._rt.vectors.fetch(tx, space, [row.key for row in rows])
        return [row for row in rows if row.key not in there]

    def _make(self, space: r.Space, rows: Sequence[VectorRow]) -> list[r.Task]:
        """The tasks that give these rows vectors by the embedder that the workspace has here."""
        if not rows or (
            space.kind == indexing.MESSAGE and not self._rt.settings.app.embed_messages
        ):
            return []
        return [outbox.embed(self._rt, space.kind, space.workspace_key, [row.key for row in rows])]


def _name(line: Line) -> _SpaceName:
    space = line["space"]
    return space["kind"], space["embedder"], space["dimension"]
