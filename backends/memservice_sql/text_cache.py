"""Indexed texts that this process keeps in memory: of workspaces that are searched often, and of
sessions of larger workspaces.

Every write of texts gives their kind in that workspace another random revision, in the same
transaction. A search reads the state first, so it uses only what its own transaction sees: commits
of other processes, rollbacks, replicas and restored stores need no other rule. If texts were only
added since, these are read, and their number proves that none is missing; else the database
searches until reading all texts again pays.

Texts of a session are the same as long as the workspace has lost none and the session has as many.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

from memservice.spi.index_filter import IndexFilter
from memservice_sql.rows import SqlRows

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice_sql.text_blocks import TextBlock

MAX_BYTES = 40 * 2**20
MAX_DOCUMENTS = 30_000
"""Texts of a kind in a workspace that are kept. A search for common words in more of them reads a
part of the postings only, so it has little to gain."""
MAX_TERMS = 3_000_000
"""Terms of the texts of a kind in a workspace that are kept: with their related terms, they take
about `MAX_BYTES`. More are not even read, since reading takes several times as much memory."""
DOCUMENTS_PER_SEARCH = 1_000
"""Reading so many texts takes as long as one search in the database."""
MAX_ADDED = 2_000
"""Texts that may be added between two searches. If there are more, all are read again."""
IDLE_SECONDS = 300.0
"""Texts that were not searched for this time leave the memory."""


UNKNOWN = -1
"""A number of terms that nobody has added up."""


class TextState(NamedTuple):
    """The state of the texts of one kind in a workspace."""

    workspace_key: int
    kind: int
    documents: int
    length: int
    """The number of terms of all texts; `UNKNOWN` for a session."""
    revision: int
    """A random number of the last change."""
    removal: int
    """A random number of the last change that removed texts; 0 if there was none."""

    @property
    def mean_length(self) -> float:
        return self.length / self.documents if self.documents else 0.0


_Key = tuple[int, int, int | None]
"""Workspace, kind, and the session if the texts are those of one."""


class StoredTexts(Protocol):
    """The texts of one kind in a workspace, in the database and in one transaction."""

    @property
    def workspace_key(self) -> int: ...
    @property
    def kind(self) -> int: ...
    @property
    def is_reading(self) -> bool:
        """Whether the transaction writes nothing: only then are its texts kept in memory."""

    def state(self) -> TextState:
        """The state of the texts."""
        ...

    def statistics(self, terms: Collection[str]) -> tuple[TextState, dict[str, int]]:
        """The state of the texts, and the number of texts with each of these terms; terms without
        texts may be left out."""
        ...

    def read(self, newest: int | None, session: int | None = None) -> TextBlock:
        """The texts, or those of one session, that may have been added since this id was the
        greatest one; None: all."""
        ...


class _Texts(NamedTuple):
    """The texts of a workspace, or of one session, in one transaction."""

    key: _Key
    texts: StoredTexts
    documents: int | None = None
    """Of a session: the number of its texts."""

    def read(self, newest: int | None) -> tuple[TextBlock, TextState]:
        """The texts, and then their state, since outside a snapshot it may have changed."""
        return self.texts.read(newest, self.key[2]), self.state(self.texts.state())

    def state(self, of_workspace: TextState) -> TextState:
        if self.documents is None:
            return of_workspace
        return of_workspace._replace(documents=self.documents, length=UNKNOWN, revision=0)


@dataclass(slots=True)
class _Entry:
    """The texts of one kind in a workspace, as of a state."""

    state: TextState
    blocks: list[TextBlock]
    newest: int
    """The greatest id."""
    used_at: float = 0.0
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.nbytes = sum(block.nbytes for block in self.blocks)


class TextCache:
    """Safe for threads: SQL runs outside of its lock, and blocks do not change."""

    def __init__(
        self, max_bytes: int = MAX_BYTES, documents_per_search: int = DOCUMENTS_PER_SEARCH
    ) -> None:
        self._max_bytes = max_bytes
        self._documents_per_search = documents_per_search
        self._lock = Lock()
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._bytes = 0
        self._searches: dict[_Key, tuple[int, int]] = {}
        """The revision that was searched last, and the number of its searches in the database."""
        self._reading: set[_Key] = set()
        self._too_large: dict[_Key, int] = {}
        """The number of terms of texts that were read and did not fit."""

    @property
    def nbytes(self) -> int:
        return self._bytes

    def sweep(self) -> None:
        """Free the texts that were not searched lately."""
        with self._lock:
            self._drop_idle(time.monotonic())

    def prepare(
        self, texts: StoredTexts, terms: Collection[str], budget: int
    ) -> tuple[TextState, list[TextBlock] | None, dict[str, int]]:
        """The state of the texts; the texts from memory, or None if the database has to search; and
        the number of texts with each term, as `StoredTexts.statistics`.

        `budget`: a search in memory compares at most so many postings, since the database chooses
        other texts beyond.
        """
        # A snapshot reads the states of all kinds at once, and a search may be of several kinds.
        state = texts.state()
        if not state.documents:
            return state, None, {}
        blocks: list[TextBlock] | None = None
        of_workspace = _Texts((texts.workspace_key, texts.kind, None), texts)
        if of_workspace.key in self._entries:
            # The state alone is cheaper than the numbers of texts.
            blocks = self._blocks(state, of_workspace)
            if blocks is not None:
                row_counts = {term: sum(each.frequency(term) for each in blocks) for term in terms}
                if sum(row_counts.values()) <= budget:
                    return state, blocks, row_counts
            state, row_counts = texts.statistics(terms)
            return state, None, row_counts
        state, row_counts = texts.statistics(terms)
        if sum(row_counts.values()) <= budget:
            blocks = self._blocks(state, of_workspace)
        return state, blocks, row_counts

    def narrowed(
        self,
        texts: StoredTexts,
        state: TextState,
        blocks: list[TextBlock] | None,
        index_filter: IndexFilter,
        few_rows: Callable[[], int | None],
    ) -> tuple[list[TextBlock] | None, int | None]:
        """The texts from memory that a search with this filter needs, or None if the database has
        to search; then also what `few_rows` returns: the number of texts in the filter's sessions
        if the database would read all of them, else None.

        `state` and `blocks`: from `prepare`. In a workspace that is too large to be kept, the texts
        of one session are.
        """
        if blocks and can_search(index_filter):
            return blocks, None
        documents = few_rows()
        if documents is None or not can_search(index_filter):
            return None, documents
        return self._of_session(texts, state, index_filter.sessions, documents), documents

    def _of_session(
        self, texts: StoredTexts, state: TextState, sessions: Sequence[int] | None, documents: int
    ) -> list[TextBlock] | None:
        if sessions is None or len(sessions) != 1 or state.documents <= MAX_DOCUMENTS:
            return None
        if documents * state.mean_length > MAX_TERMS:
            return None
        key = texts.workspace_key, texts.kind, sessions[0]
        of_session = _Texts(key, texts, documents)
        return self._blocks(of_session.state(state), of_session)

    def _blocks(self, state: TextState, texts: _Texts) -> list[TextBlock] | None:
        key = texts.key
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.state == state:
                entry.used_at = time.monotonic()
                self._entries.move_to_end(key)
                self._drop_idle(entry.used_at)
                return entry.blocks
        if not texts.texts.is_reading or not 0 < state.documents <= MAX_DOCUMENTS:
            return None
        if entry is not None and _only_added(entry.state, state):
            with self._alone(key) as alone:
                extended = _extended(entry, state, texts) if alone else None
                if extended is not None:
                    self._store(key, extended)
                    return extended.blocks
        if self._is_too_large(key, state) or not self._pays(key, state):
            return None
        with self._alone(key) as alone:
            whole = _whole(state, texts) if alone else None
            if whole is None:
                return None
            if whole.nbytes > self._max_bytes:
                self._note_too_large(key, state)
                return None
            self._store(key, whole)
            return whole.blocks

    def _is_too_large(self, key: _Key, state: TextState) -> bool:
        """Whether the texts cannot fit: as many terms as did not fit before."""
        return state.length >= self._too_large.get(key, MAX_TERMS)

    def _note_too_large(self, key: _Key, state: TextState) -> None:
        with self._lock:
            if len(self._too_large) >= MAX_DOCUMENTS:
                self._too_large.clear()
            self._too_large[key] = state.length

    def _pays(self, key: _Key, state: TextState) -> bool:
        """Whether searches of this state have taken as long as reading all texts. Most sessions are
        searched once only, and added texts change no revision of a session."""
        with self._lock:
            revision, searches = self._searches.get(key, (state.revision, 0))
            searches = searches + 1 if revision == state.revision else 1
            if len(self._searches) >= MAX_DOCUMENTS:
                self._searches.clear()
            self._searches[key] = state.revision, searches
        counted = searches if key[2] is None else searches - 1
        return counted * self._documents_per_search > state.documents

    @contextmanager
    def _alone(self, key: _Key) -> Iterator[bool]:
        """Whether no other thread reads these texts meanwhile."""
        with self._lock:
            alone = key not in self._reading
            self._reading.add(key)
        try:
            yield alone
        finally:
            if alone:
                with self._lock:
                    self._reading.discard(key)

    def _store(self, key: _Key, entry: _Entry) -> None:
        with self._lock:
            self._discard(key)
            entry.used_at = time.monotonic()
            self._entries[key] = entry
            self._bytes += entry.nbytes
            while self._bytes > self._max_bytes:
                self._discard(next(iter(self._entries)))

    def _drop_idle(self, now: float) -> None:
        while self._entries:
            oldest, entry = next(iter(self._entries.items()))
            if now - entry.used_at < IDLE_SECONDS:
                return
            self._discard(oldest)

    def _discard(self, key: _Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.nbytes


def random_number() -> int:
    """A number for `TextState` that no other change has; never 0."""
    return secrets.randbits(62) + 1


def is_reading(tx: Transaction | None) -> bool:
    """Whether the transaction writes nothing."""
    rows = getattr(tx, "rows", None)
    return isinstance(rows, SqlRows) and rows.read_only


class States:
    """The states of the texts in one transaction. A snapshot reads those of a workspace once."""

    def __init__(
        self, tx: Transaction | None, read: Callable[[int], Iterable[tuple[int, ...]]]
    ) -> None:
        """`read`: of a workspace, the rows of its kinds: kind, documents, length, revision and
        removal."""
        rows = getattr(tx, "rows", None)
        self._rows = rows if isinstance(rows, SqlRows) else None
        self._read = read

    def of(self, workspace_key: int, kind: int) -> TextState:
        def read() -> dict[int, TextState]:
            return {row[0]: TextState(workspace_key, *row) for row in self._read(workspace_key)}

        states = read() if self._rows is None else self._rows.once(("texts", workspace_key), read)
        return states.get(kind) or TextState(workspace_key, kind, 0, 0, 0, 0)


def can_search(index_filter: IndexFilter) -> bool:
    """Whether the texts in memory have what the filter needs: they have no times."""
    return index_filter.since is None and index_filter.until is None


def _only_added(before: TextState, after: TextState) -> bool:
    added = after.documents - before.documents
    return before.removal == after.removal and 0 < added <= MAX_ADDED


def _extended(entry: _Entry, state: TextState, texts: _Texts) -> _Entry | None:
    """With the texts that were added; None if not all of them were read."""
    import numpy as np

    from memservice_sql.text_blocks import ID, merged, only

    block, after = texts.read(entry.newest)
    ids = np.concatenate([each.facts[ID] for each in entry.blocks])
    new = only(block, ~np.isin(block.facts[ID], ids))
    added = state.documents - entry.state.documents
    length = UNKNOWN if state.length == UNKNOWN else state.length - entry.state.length
    if after != state or not _are(new, added, length):
        return None
    blocks = [*entry.blocks, new]
    while len(blocks) > 1 and 2 * len(blocks[-1]) >= len(blocks[-2]):
        blocks[-2:] = [merged(blocks[-2], blocks[-1])]
    return _Entry(state, blocks, max(entry.newest, int(new.facts[ID].max())))


def _whole(state: TextState, texts: _Texts) -> _Entry | None:
    """All texts; None if they are those of another state."""
    from memservice_sql.text_blocks import ID

    block, after = texts.read(None)
    if after != state or not _are(block, state.documents, state.length):
        return None
    return _Entry(state, [block], int(block.facts[ID].max()))


def _are(block: TextBlock, documents: int, length: int) -> bool:
    return len(block) == documents and length in (UNKNOWN, int(block.lengths.sum()))
