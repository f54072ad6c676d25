"""Text indexes that are wrong in one way each, as real ones have been, and the test of the kit that
has to say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

import pytest
from msgspec.structs import replace

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.text import TextHit, TextIndex, TextMatches, TextRow
from memservice.testing.indexes import Engine
from memservice.testing.text import TextIndexContract
from memservice_memory.indexes import MemoryTextIndex
from memservice_memory.storage import MemoryStorage
from support.broken.filters import empty_means_all


class BrokenText(TextIndexContract):
    """The kit on a broken index. `caught_by` names tests that have to fail."""

    broken: ClassVar[Callable[[], TextIndex]]
    caught_by: ClassVar[tuple[str, ...]]

    @pytest.fixture
    def open_index(self) -> Callable[[], Engine[TextIndex]]:
        storage, broken = MemoryStorage(), type(self).broken
        return lambda: Engine(broken(), storage)


class Query(NamedTuple):
    """The arguments of a search, and the correct search."""

    search: Callable[..., TextMatches]
    tx: Transaction | None
    kind: str
    workspace_key: int
    terms: Sequence[str]
    k: int
    index_filter: IndexFilter
    ids: Sequence[int] | None

    def run(self, **changes: Any) -> TextMatches:
        """The correct answer to this query, or to one with other arguments."""
        query = self._replace(**changes)
        return self.search(
            query.tx,
            query.kind,
            query.workspace_key,
            query.terms,
            query.k,
            query.index_filter,
            query.ids,
        )


class Altered(MemoryTextIndex):
    """An index that answers something else."""

    def search(
        self,
        tx: Transaction | None,
        kind: str,
        workspace_key: int,
        terms: Sequence[str],
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> TextMatches:
        search = super().search
        return self.answer(Query(search, tx, kind, workspace_key, terms, k, index_filter, ids))

    def answer(self, query: Query) -> TextMatches:
        raise NotImplementedError


class TestTextDropsAFilter(BrokenText):
    class broken(Altered):  # noqa: N801 - an attribute
        def answer(self, query: Query) -> TextMatches:
            return query.run(index_filter=replace(query.index_filter, authors=None))

    caught_by = ("test_any_of[author]", "test_conditions_are_anded")


class TestTextTakesAnEmptyAnyOfForNone(BrokenText):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            return query.run(index_filter=empty_means_all(query.index_filter))

    caught_by = (
        "test_any_of_nothing_matches_nothing[sessions]",
        "test_any_of_nothing_matches_nothing[levels]",
    )


class TestTextExcludesABound(BrokenText):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            since = query.index_filter.since
            later = None if since is None else since + timedelta(microseconds=1)
            return query.run(index_filter=replace(query.index_filter, since=later))

    caught_by = ("test_time_bounds_are_inclusive_and_exact",)


class TestTextIgnoresK(BrokenText):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            return query.run(k=10**9)

    caught_by = (
        "test_k_limits_the_hits[0]",
        "test_k_limits_the_hits[1]",
        "test_k_limits_the_hits[3]",
    )


class TestTextFiltersAfterK(BrokenText):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            first = {hit.key for hit in query.run(index_filter=EVERYTHING).hits}
            matches = query.run(k=10**9)
            return replace(matches, hits=[hit for hit in matches.hits if hit.key in first])

    caught_by = ("test_k_counts_matching_rows",)


class TestTextIgnoresIds(BrokenText):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            return query.run(ids=None)

    caught_by = ("test_ids_confine_the_search",)


class TestTextTakesNoIdsForAll(BrokenText):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            return query.run(ids=query.ids or None)

    caught_by = ("test_ids_confine_the_search",)


class TestTextLeaksAWorkspace(BrokenText):
    class broken(MemoryTextIndex):  # noqa: N801
        def _texts(self, tx: Transaction | None, kind: str, workspace_key: int) -> dict[int, Any]:
            return super()._texts(tx, kind, 0)

    caught_by = ("test_other_workspaces_change_nothing", "test_drop_removes_a_workspace_in_batches")


class TestTextCountsAllWorkspaces(BrokenText):
    """Its rows are apart, its statistics are not."""

    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            mine = query.run()
            theirs = query.run(workspace_key=12 if query.workspace_key == 1 else 1)
            return replace(mine, documents=mine.documents + theirs.documents)

    caught_by = ("test_other_workspaces_change_nothing",)


class TestTextCountsWhatFits(BrokenText):
    """Statistics of the filtered rows in place of the workspace's."""

    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            matches = query.run()
            return replace(
                matches,
                frequencies={
                    term: sum(term in hit.terms for hit in matches.hits) for term in query.terms
                },
            )

    caught_by = ("test_statistics_do_not_depend_on_where_or_k",)


class TestTextMixesKinds(BrokenText):
    class broken(MemoryTextIndex):  # noqa: N801
        def _texts(self, tx: Transaction | None, kind: str, workspace_key: int) -> dict[int, Any]:
            return super()._texts(tx, "message", workspace_key)

    caught_by = ("test_kinds_are_separate", "test_remove_is_of_its_kind_and_workspace")


class TestTextDeletesOnlyTheFirst(BrokenText):
    class broken(MemoryTextIndex):  # noqa: N801
        def remove(
            self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
        ) -> None:
            super().remove(tx, kind, workspace_key, keys[:1])

    caught_by = ("test_remove_one_many_and_unknown",)


class TestTextKeepsTheOldTerms(BrokenText):
    class broken(MemoryTextIndex):  # noqa: N801
        def add(
            self, tx: Transaction | None, kind: str, workspace_key: int, rows: Sequence[TextRow]
        ) -> None:
            old = {
                key: text.row.terms for key, text in self._texts(tx, kind, workspace_key).items()
            }
            super().add(
                tx,
                kind,
                workspace_key,
                [replace(row, terms=[*old.get(row.key, ()), *row.terms]) for row in rows],
            )

    caught_by = ("test_adding_again_replaces",)


class TestTextWantsAllTerms(BrokenText):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            matches = query.run()
            return replace(
                matches,
                hits=[hit for hit in matches.hits if len(hit.terms) == len(set(query.terms))],
            )

    caught_by = ("test_any_term_is_enough",)


class TestTextForgetsHowOften(BrokenText):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            matches = query.run()
            return replace(
                matches,
                hits=[
                    TextHit(hit.key, dict.fromkeys(hit.terms, 1), hit.length)
                    for hit in matches.hits
                ],
            )

    caught_by = ("test_hits_count_terms_and_lengths",)


class TestTextTreatsTermsAsSyntax(BrokenText):
    """A star at the end asks for all that begins so, as in FTS5."""

    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> TextMatches:
            return query.run(terms=[term.rstrip("*") for term in query.terms])

    caught_by = ("test_a_term_may_be_any_text[hostile]",)


class TestTextSurvivesARollback(BrokenText):
    class broken(MemoryTextIndex):  # noqa: N801
        def __init__(self) -> None:
            self._outside: dict[tuple[str, int], dict[int, Any]] = {}

        def _texts(self, tx: Transaction | None, kind: str, workspace_key: int) -> dict[int, Any]:
            return self._outside.setdefault((kind, workspace_key), {})

    caught_by = (
        "test_a_write_that_fails_leaves_nothing",
        "test_added_rows_are_there_after_reopening",
    )
