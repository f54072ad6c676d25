"""Import of vectors into the index of the target storage; tasks add those that cannot be
imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

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


class RejectedVectors(Struct, frozen=True):
    """Vectors of another embedder than the one that the workspace uses here."""

    number: int
    kind: str
    embedder: str
    local_embedder: str
    """The embedder that the workspace uses here."""


class Vectors:
    """Stores the vectors of one workspace, and counts the rejected ones."""

    def __init__(self, rt: Runtime, require: Callable[[Transaction], None]) -> None:
        """`require` raises if no more vectors of the file may be stored."""
        self._rt = rt
        self._require = require
        self._spaces: dict[_SpaceName, r.Space] = {}
        """Name of a space in the file → the active space here, which may have another embedder."""
        self._rejected: Counter[_SpaceName] = Counter()
        self.deferred = 0
        """Number of rows whose vectors are added by tasks, because the index was unavailable."""
        self.index_error: str | None = None
        """The error of the index; None: it was available."""

    def rejected(self) -> list[RejectedVectors]:
        """The rejected vectors."""
        return [
            RejectedVectors(number, name[0], name[1], self._spaces[name].embedder)
            for name, number in self._rejected.items()
        ]

    def store_spaces(self, spaces: Sequence[r.Space]) -> None:
        """Activate these spaces if the workspace has none of the kind."""

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
        """Store the vectors of lines, each with the uid of its row here; returns the number of new
        ones."""
        number = 0
        for name, group in groupby(lines, key=lambda item: _name(item[1])):
            space = self._spaces.get(name)
            if space is None:
                raise UnreadableExport(
                    f"vectors of a space that is not in the file: {name[0]} by {name[1]}"
                )
            vectors = {uid: read_vector(line["vector"], name[2]) for uid, line in group}
            accepted = (space.kind, space.embedder, space.dimension) == name
            if not accepted:
                self._rejected[name] += len(vectors)
            if self._rt.vectors_transactional:
                add = partial(self._add_inside, space=space, vectors=vectors, accepted=accepted)
                number += self._rt.storage.write(add)
            else:
                number += self._add_outside(space, vectors, accepted)
        return number

    def _add_inside(
        self, tx: Transaction, space: r.Space, vectors: Mapping[str, Vector], accepted: bool
    ) -> int:
        """Store the vectors of rows without one; returns their number. If they are rejected, tasks
        embed these rows."""
        self._require(tx)
        fresh = self._fresh(tx, space, vector_rows(tx, space, vectors))
        if accepted:
            self._rt.vectors.upsert(tx, space, fresh)
            return len(fresh)
        tx.tasks.add(self._embed_tasks(space, fresh))
        return 0

    def _add_outside(self, space: r.Space, vectors: Mapping[str, Vector], accepted: bool) -> int:
        """Like `_add_inside`, with an index outside the transaction. If it is unavailable, tasks
        add the vectors, and it is not called again: each call would wait for its time-out."""
        self._rt.storage.write(self._require)
        with self._rt.storage.read() as tx:
            rows = vector_rows(tx, space, vectors)
        if self.index_error is None:
            try:
                rows = self._fresh(None, space, rows)
                if accepted:
                    self._rt.vectors.upsert(None, space, rows)
                    return len(rows)
            except IndexUnavailable as error:
                self.index_error = str(error)
        if jobs := self._embed_tasks(space, rows):
            self._rt.storage.write(lambda tx: tx.tasks.add(jobs))
            self.deferred += len(rows) if accepted else 0
        return 0

    def _fresh(
        self, tx: Transaction | None, space: r.Space, rows: Sequence[VectorRow]
    ) -> list[VectorRow]:
        existing = self._rt.vectors.fetch(tx, space, [row.key for row in rows])
        return [row for row in rows if row.key not in existing]

    def _embed_tasks(self, space: r.Space, rows: Sequence[VectorRow]) -> list[r.Task]:
        """The tasks that embed these rows with the embedder of the workspace here."""
        if not rows or (
            space.kind == indexing.MESSAGE and not self._rt.settings.app.embed_messages
        ):
            return []
        return [outbox.embed(self._rt, space.kind, space.workspace_key, [row.key for row in rows])]


def _name(line: Line) -> _SpaceName:
    space = line["space"]
    return space["kind"], space["embedder"], space["dimension"]
