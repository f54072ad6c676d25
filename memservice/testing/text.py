"""The contract of a text index.

Subclass `TextIndexContract`, give it the fixture `open_index`, and run pytest: a callable without
arguments that opens the index of this test and returns it as an `Engine`. A second call within a
test opens the same index again. Every test begins empty.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextIndex, TextMatches, TextRow
from memservice.testing.indexes import HOSTILE, MANY_TONGUES, NOON, SECOND, Engine, RolledBack, only

OpenTextIndex = Callable[[], Engine[TextIndex]]

OWN, OTHER = 1, 12
"""Keys of two workspaces. The digits of one are a prefix of the other."""


def row(key: int, text: str, **about: Any) -> TextRow:
    return TextRow(key=key, terms=text.split(" ") if text else [], **about)


def keys(matches: TextMatches) -> set[int]:
    hit_keys = [hit.key for hit in matches.hits]
    assert len(hit_keys) == len(set(hit_keys)), "a row was found twice"
    return set(hit_keys)


class TextIndexContract:
    """The requirements of a text index."""

    @pytest.fixture
    def open_index(self) -> OpenTextIndex:
        raise NotImplementedError(
            "give your subclass of TextIndexContract a fixture `open_index`: a callable "
            "that opens the index"
        )

    @pytest.fixture
    def engine(self, open_index: OpenTextIndex) -> Engine[TextIndex]:
        return open_index()

    def add(
        self,
        engine: Engine[TextIndex],
        rows: Sequence[TextRow],
        workspace_key: int = OWN,
        kind: str = "message",
    ) -> None:
        engine.write(lambda tx: engine.index.add(tx, kind, workspace_key, rows))

    def remove(
        self,
        engine: Engine[TextIndex],
        removed: Sequence[int],
        workspace_key: int = OWN,
        kind: str = "message",
    ) -> None:
        engine.write(lambda tx: engine.index.remove(tx, kind, workspace_key, removed))

    def search(
        self,
        engine: Engine[TextIndex],
        terms: str | Sequence[str],
        index_filter: IndexFilter = EVERYTHING,
        k: int = 100,
        workspace_key: int = OWN,
        kind: str = "message",
        ids: Sequence[int] | None = None,
    ) -> TextMatches:
        query_terms = terms.split(" ") if isinstance(terms, str) else terms
        return engine.read(
            lambda tx: engine.index.search(
                tx, kind, workspace_key, query_terms, k, index_filter, ids
            )
        )

    # Matching and counting

    def test_an_empty_index_answers(self, engine: Engine[TextIndex]) -> None:
        text_matches = self.search(engine, "axolotl")
        assert (text_matches.documents, text_matches.mean_length, list(text_matches.hits)) == (
            0,
            0.0,
            [],
        )
        assert text_matches.frequencies.get("axolotl", 0) == 0

    def test_any_term_is_enough(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "red fox"), row(2, "blue fox"), row(3, "green owl")])
        assert keys(self.search(engine, "fox owl")) == {1, 2, 3}
        assert keys(self.search(engine, "blue owl")) == {2, 3}
        assert keys(self.search(engine, "cat")) == set()

    def test_no_terms_match_nothing(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "red fox"), row(2, "")])
        text_matches = self.search(engine, [])
        assert list(text_matches.hits) == []
        assert text_matches.documents == 2

    def test_hits_count_terms_and_lengths(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "ha ha ha said the fox"), row(2, "fox")])
        hits = {hit.key: hit for hit in self.search(engine, "ha fox owl").hits}
        assert (dict(hits[1].terms), hits[1].length) == ({"ha": 3, "fox": 1}, 6)
        assert (dict(hits[2].terms), hits[2].length) == ({"fox": 1}, 1)

    def test_related_terms_are_found_and_have_no_length(self, engine: Engine[TextIndex]) -> None:
        related = ["·katz", "°kat", "°katze"]
        self.add(engine, [row(1, "zwei katzen", related=related), row(2, "fox fox katz kat")])
        text_matches = self.search(engine, ["katz", "·katz", "°kat"])
        hits = {hit.key: (dict(hit.terms), hit.length) for hit in text_matches.hits}
        assert hits == {1: ({"·katz": 1, "°kat": 1}, 2), 2: ({"katz": 1}, 4)}
        assert text_matches.mean_length == pytest.approx(3.0)
        assert dict(text_matches.frequencies) == {"katz": 1, "·katz": 1, "°kat": 1}
        self.add(engine, [row(1, "zwei katzen")])
        assert keys(self.search(engine, ["·katz", "°kat"])) == set()

    def test_a_repeated_query_term_counts_once(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "fox fox")])
        text_matches = self.search(engine, "fox fox fox")
        assert [(hit.key, dict(hit.terms)) for hit in text_matches.hits] == [(1, {"fox": 2})]
        assert dict(text_matches.frequencies) == {"fox": 1}

    def test_terms_are_matched_whole(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "cat"), row(2, "cats"), row(3, "concat")])
        assert keys(self.search(engine, "cat")) == {1}
        assert keys(self.search(engine, "ca")) == set()

    def test_statistics_describe_the_workspace(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "red fox"), row(2, "blue fox fox fox"), row(3, "")])
        text_matches = self.search(engine, "fox red owl")
        assert text_matches.documents == 3
        assert text_matches.mean_length == pytest.approx(2.0)
        assert {term: text_matches.frequencies.get(term, 0) for term in ("fox", "red", "owl")} == {
            "fox": 2,
            "red": 1,
            "owl": 0,
        }

    def test_sizes_of_several_workspaces(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "red fox"), row(2, ""), row(3, "owl")])
        self.add(engine, [row(4, "red fox")], OTHER)
        self.remove(engine, [3])

        def sizes(*workspace_keys: int, kind: str = "message") -> dict[int, int]:
            numbers = engine.read(lambda tx: engine.index.sizes(tx, kind, workspace_keys))
            return {key: number for key, number in numbers.items() if number}

        assert sizes(OWN, OTHER, 10**9) == {OWN: 2, OTHER: 1}
        assert sizes(OTHER) == {OTHER: 1}
        assert sizes() == sizes(OWN, kind="conclusion") == {}

    def test_indexed_keys(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "red fox"), row(2, ""), row(3, "owl")])
        self.add(engine, [row(4, "red fox")], OTHER)
        self.add(engine, [row(5, "red fox")], kind="conclusion")
        self.remove(engine, [3])

        def indexed(*keys: int, kind: str = "message") -> list[int]:
            return sorted(engine.read(lambda tx: engine.index.indexed(tx, kind, OWN, keys)))

        assert indexed(1, 2, 3, 4, 5, 10**9) == [1, 2]
        assert indexed(1, 5, kind="conclusion") == [5]
        assert indexed() == []

    def test_statistics_do_not_depend_on_where_or_k(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(n, "fox", session=n) for n in range(1, 6)])
        for index_filter, k in (
            (IndexFilter(sessions=(2,)), 100),
            (IndexFilter(sessions=()), 100),
            (EVERYTHING, 1),
        ):
            text_matches = self.search(engine, "fox", index_filter, k)
            assert (
                text_matches.documents,
                text_matches.mean_length,
                dict(text_matches.frequencies),
            ) == (5, 1.0, {"fox": 5})

    def test_random_rows_agree_with_a_plain_count(self, engine: Engine[TextIndex]) -> None:
        chance = random.Random(7)
        words = [f"w{n}" for n in range(40)]
        rows = {
            n: row(
                n,
                " ".join(chance.choices(words, k=chance.randint(1, 12))),
                session=n % 5,
                author=n % 3,
            )
            for n in range(1, 121)
        }
        self.add(engine, list(rows.values()))
        removed = chance.sample(sorted(rows), 20)
        self.remove(engine, removed)
        again = [
            row(n, " ".join(chance.choices(words, k=6)), session=n % 4)
            for n in chance.sample(sorted(rows), 20)
        ]
        self.add(engine, again)
        rows = {key: text_row for key, text_row in rows.items() if key not in removed} | {
            each.key: each for each in again
        }
        for _ in range(20):
            terms = chance.sample(words, 4)
            session_keys = tuple(chance.sample(range(5), 2))
            self.agree(self.search(engine, terms, k=1_000), terms, rows.values(), rows.values())
            fitting = [each for each in rows.values() if each.session in session_keys]
            self.agree(
                self.search(engine, terms, IndexFilter(sessions=session_keys), 1_000),
                terms,
                rows.values(),
                fitting,
            )

    def agree(
        self,
        text_matches: TextMatches,
        terms: Sequence[str],
        rows: Iterable[TextRow],
        fitting: Iterable[TextRow],
    ) -> None:
        counts = {
            each.key: Counter(term for term in each.terms if term in terms) for each in fitting
        }
        expected = {key: dict(term_counts) for key, term_counts in counts.items() if term_counts}
        assert {hit.key: dict(hit.terms) for hit in text_matches.hits} == expected
        everything = list(rows)
        assert text_matches.documents == len(everything)
        assert text_matches.mean_length == pytest.approx(
            sum(len(each.terms) for each in everything) / len(everything)
        )
        frequencies = {term: sum(term in each.terms for each in everything) for term in terms}
        assert {term: text_matches.frequencies.get(term, 0) for term in terms} == frequencies

    # How many

    @pytest.mark.parametrize("k", [0, 1, 3, 7])
    def test_k_limits_the_hits(self, engine: Engine[TextIndex], k: int) -> None:
        self.add(engine, [row(n, "fox common") for n in range(1, 6)])
        assert len(self.search(engine, "fox common", k=k).hits) == min(k, 5)

    def test_the_rarest_terms_come_first(self, engine: Engine[TextIndex]) -> None:
        self.add(
            engine,
            [row(n, "common") for n in range(1, 20)]
            + [row(20, "rare"), row(21, "common rare"), row(22, "common")],
        )
        assert keys(self.search(engine, "common rare", k=2)) == {20, 21}
        assert keys(self.search(engine, "rare common", k=2)) == {20, 21}

    def test_the_newest_of_equal_rows_are_returned(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(n, "fox common", session=7) for n in (3, 1, 5, 2, 4)])
        assert keys(self.search(engine, "fox common", k=2)) == {4, 5}
        assert keys(self.search(engine, "fox common", IndexFilter(sessions=(7,)), k=2)) == {4, 5}
        assert keys(self.search(engine, "fox", ids=[1, 2, 3], k=2)) == {2, 3}

    def test_k_counts_matching_rows(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(n, "fox", session=1 + n % 10) for n in range(1, 101)])
        assert len(self.search(engine, "fox", IndexFilter(sessions=(3,)), k=10).hits) == 10

    # Filters

    ABOUT: tuple[tuple[str, str, Any, Any], ...] = (
        ("session", "sessions", 1, 2),
        ("author", "authors", 1, 2),
        ("observer", "observers", 1, 2),
        ("observed", "observed", 1, 2),
        ("level", "levels", "explicit", 'it\'s "deductive" -- ü'),
    )

    @pytest.mark.parametrize(
        ("field", "condition", "one", "other"), ABOUT, ids=[each[0] for each in ABOUT]
    )
    def test_any_of(
        self, engine: Engine[TextIndex], field: str, condition: str, one: Any, other: Any
    ) -> None:
        self.add(
            engine, [row(1, "fox", **{field: one}), row(2, "fox", **{field: other}), row(3, "fox")]
        )
        assert keys(self.search(engine, "fox", only(condition, one))) == {1}
        assert keys(self.search(engine, "fox", only(condition, other))) == {2}
        assert keys(self.search(engine, "fox", only(condition, one, other))) == {1, 2}
        assert keys(self.search(engine, "fox")) == {1, 2, 3}

    @pytest.mark.parametrize("condition", [each[1] for each in ABOUT])
    def test_any_of_nothing_matches_nothing(
        self, engine: Engine[TextIndex], condition: str
    ) -> None:
        self.add(
            engine,
            [
                row(
                    1, "fox", session=1, author=1, observer=1, observed=1, level="explicit", at=NOON
                ),
                row(2, "fox"),
            ],
        )
        assert keys(self.search(engine, "fox", only(condition))) == set()

    def test_any_of_a_thousand_values(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(n, "fox", session=n) for n in (1, 500, 1_000, 1_001)])
        assert keys(self.search(engine, "fox", IndexFilter(sessions=tuple(range(1, 1_001))))) == {
            1,
            500,
            1_000,
        }

    def test_time_bounds_are_inclusive_and_exact(self, engine: Engine[TextIndex]) -> None:
        self.add(
            engine, [row(n, "fox", at=NOON + n * SECOND) for n in range(1, 5)] + [row(5, "fox")]
        )
        assert keys(self.search(engine, "fox", IndexFilter(since=NOON + 3 * SECOND))) == {3, 4}
        assert keys(self.search(engine, "fox", IndexFilter(until=NOON + 2 * SECOND))) == {1, 2}
        assert keys(
            self.search(
                engine, "fox", IndexFilter(since=NOON + 2 * SECOND, until=NOON + 3 * SECOND)
            )
        ) == {2, 3}
        assert (
            keys(
                self.search(
                    engine,
                    "fox",
                    IndexFilter(since=NOON + SECOND * 1.000001, until=NOON + SECOND * 1.999999),
                )
            )
            == set()
        )

    def test_conditions_are_anded(self, engine: Engine[TextIndex]) -> None:
        self.add(
            engine,
            [
                row(1, "fox", session=1, author=1),
                row(2, "fox", session=1, author=2),
                row(3, "fox", session=2, author=1),
            ],
        )
        assert keys(self.search(engine, "fox", IndexFilter(sessions=(1,), authors=(1,)))) == {1}
        assert keys(self.search(engine, "fox", IndexFilter(sessions=(2,), authors=(2,)))) == set()

    def test_ids_confine_the_search(self, engine: Engine[TextIndex]) -> None:
        self.add(
            engine, [row(n, "fox owl" if n == 5 else "fox", session=n % 2) for n in range(1, 9)]
        )
        self.add(engine, [row(9, "fox")], workspace_key=OTHER)
        self.add(engine, [row(10, "fox")], kind="conclusion")
        self.add(engine, [row(11, "owl")])
        text_matches = self.search(engine, "fox cat", ids=[9, 2, 5, 10, 11, 777, 2])
        assert keys(text_matches) == {2, 5}
        assert {hit.key: (dict(hit.terms), hit.length) for hit in text_matches.hits} == {
            2: ({"fox": 1}, 1),
            5: ({"fox": 1}, 2),
        }
        assert (text_matches.documents, text_matches.frequencies["fox"]) == (9, 8), (
            "statistics are the workspace's"
        )
        assert keys(self.search(engine, "fox", IndexFilter(sessions=(1,)), ids=[2, 5])) == {5}
        assert keys(self.search(engine, "fox owl", ids=[1, 2, 5], k=1)) == {5}
        assert keys(self.search(engine, "fox", ids=[])) == set()
        many = range(1, 5_001)
        assert keys(self.search(engine, "fox", ids=many)) == set(range(1, 9))

    # Changing

    def test_adding_again_replaces(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "old words here", session=1), row(2, "old")])
        self.add(engine, [row(1, "new", session=2)])
        assert keys(self.search(engine, "old words here")) == {2}
        text_matches = self.search(engine, "new old")
        assert keys(text_matches) == {1, 2}
        assert (
            text_matches.documents,
            text_matches.mean_length,
            dict(text_matches.frequencies),
        ) == (2, 1.0, {"new": 1, "old": 1})
        assert keys(self.search(engine, "new", IndexFilter(sessions=(1,)))) == set()

    def test_the_last_of_two_versions_of_a_row_counts(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "first"), row(1, "second")])
        text_matches = self.search(engine, "first second")
        assert [(hit.key, dict(hit.terms)) for hit in text_matches.hits] == [(1, {"second": 1})]
        assert text_matches.documents == 1

    def test_adding_nothing_is_nothing(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [])
        assert self.search(engine, "fox").documents == 0

    def test_remove_one_many_and_unknown(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(n, "fox fox") for n in range(1, 8)])
        self.remove(engine, [3])
        assert keys(self.search(engine, "fox")) == {1, 2, 4, 5, 6, 7}
        self.remove(engine, [1, 5, 99, 7])
        text_matches = self.search(engine, "fox")
        assert keys(text_matches) == {2, 4, 6}
        assert (
            text_matches.documents,
            text_matches.mean_length,
            dict(text_matches.frequencies),
        ) == (3, 2.0, {"fox": 3})
        self.remove(engine, [99, 3])
        self.remove(engine, [])
        assert keys(self.search(engine, "fox")) == {2, 4, 6}

    def test_remove_is_of_its_kind_and_workspace(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "fox")])
        self.add(engine, [row(2, "fox")], workspace_key=OTHER)
        self.add(engine, [row(1, "fox")], kind="conclusion")
        self.remove(engine, [2])
        self.remove(engine, [1], kind="conclusion")
        assert keys(self.search(engine, "fox")) == {1}
        assert keys(self.search(engine, "fox", workspace_key=OTHER)) == {2}
        assert keys(self.search(engine, "fox", kind="conclusion")) == set()

    def test_drop_removes_a_workspace_in_batches(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(n, "fox") for n in range(1, 6)])
        self.add(engine, [row(n, "fox") for n in range(1, 4)], kind="conclusion")
        self.add(engine, [row(99, "fox")], workspace_key=OTHER)
        dropped: list[int] = []
        while not dropped or dropped[-1]:
            dropped.append(engine.write(lambda tx: engine.index.drop(tx, OWN, 3)))
            assert len(dropped) < 9
        assert (sum(dropped), max(dropped)) == (8, 3)
        for kind in ("message", "conclusion"):
            text_matches = self.search(engine, "fox", kind=kind)
            assert (keys(text_matches), text_matches.documents) == (set(), 0)
        assert keys(self.search(engine, "fox", workspace_key=OTHER)) == {99}

    # Isolation

    def test_kinds_are_separate(self, engine: Engine[TextIndex]) -> None:
        for kind, text in (("message", "fox"), ("conclusion", "fox owl"), ("document", "owl")):
            self.add(engine, [row(1, text)], kind=kind)
        for kind, length in (("message", 1), ("conclusion", 2)):
            text_matches = self.search(engine, "fox", kind=kind)
            assert [(hit.key, hit.length) for hit in text_matches.hits] == [(1, length)]
            assert text_matches.documents == 1
        assert keys(self.search(engine, "fox", kind="document")) == set()

    def test_other_workspaces_change_nothing(self, engine: Engine[TextIndex]) -> None:
        own_rows = [
            row(n, text, session=n)
            for n, text in enumerate(
                ("red fox", "fox fox", "blue owl owl", "grey owl fox"), start=1
            )
        ]
        self.add(engine, own_rows)
        queries: list[tuple[str, IndexFilter, int]] = [
            ("fox owl", EVERYTHING, 100),
            ("fox grey", EVERYTHING, 1),
            ("owl", IndexFilter(sessions=(3,)), 9),
        ]
        before = [self.search(engine, *each) for each in queries]
        self.add(
            engine,
            [row(n, "owl grey 2_fox 1_fox m1_fox", session=3) for n in range(100, 160)],
            workspace_key=OTHER,
        )
        assert [self.search(engine, *each) for each in queries] == before
        assert keys(self.search(engine, "fox", workspace_key=OTHER)) == set()
        assert keys(self.search(engine, "red", workspace_key=999)) == set()

    # What terms may be

    @pytest.mark.parametrize("terms", [HOSTILE, MANY_TONGUES], ids=["hostile", "tongues"])
    def test_a_term_may_be_any_text(
        self, engine: Engine[TextIndex], terms: tuple[str, ...]
    ) -> None:
        self.add(
            engine, [TextRow(key=n, terms=[term, "all"]) for n, term in enumerate(terms, start=1)]
        )
        for n, term in enumerate(terms, start=1):
            text_matches = self.search(engine, [term])
            assert [(hit.key, dict(hit.terms)) for hit in text_matches.hits] == [(n, {term: 1})], (
                term
            )
            assert dict(text_matches.frequencies) == {term: 1}
        text_matches = self.search(engine, list(terms), k=1_000)
        assert keys(text_matches) == set(range(1, len(terms) + 1))
        self.remove(engine, list(range(1, len(terms) + 1)))
        text_matches = self.search(engine, [*terms, "all"])
        assert (
            keys(text_matches),
            text_matches.documents,
            set(text_matches.frequencies.values()) | {0},
        ) == (set(), 0, {0})

    def test_long_texts_and_long_terms(self, engine: Engine[TextIndex]) -> None:
        giant = "g" * 60_000
        long = [f"w{n}" for n in range(3_000)]
        self.add(engine, [TextRow(key=1, terms=[giant]), TextRow(key=2, terms=long)])
        assert keys(self.search(engine, [giant])) == {1}
        assert keys(self.search(engine, ["w2999"])) == {2}
        assert keys(self.search(engine, long[::10])) == {2}
        assert self.search(engine, "w0").mean_length == 1_500.5

    # Durability

    def test_added_rows_are_there_after_reopening(
        self, engine: Engine[TextIndex], open_index: OpenTextIndex
    ) -> None:
        self.add(engine, [row(1, "red fox"), row(2, "fox")])
        self.remove(engine, [2])
        text_matches = self.search(open_index(), "fox")
        assert (keys(text_matches), text_matches.documents) == ({1}, 1)

    def test_a_write_that_fails_leaves_nothing(self, engine: Engine[TextIndex]) -> None:
        if engine.storage is None:
            pytest.skip("this index has no transactions")
        self.add(engine, [row(1, "fox"), row(2, "fox owl")])
        before = self.search(engine, "fox owl cat")

        def fail(tx: Any) -> None:
            engine.index.add(tx, "message", OWN, [row(3, "cat"), row(1, "cat")])
            engine.index.remove(tx, "message", OWN, [2])
            inside = engine.index.search(tx, "message", OWN, ["cat", "fox"], 100, EVERYTHING)
            assert (keys(inside), inside.documents) == ({1, 3}, 2), (
                "a transaction sees its own writes"
            )
            raise RolledBack

        with pytest.raises(RolledBack):
            engine.write(fail)
        assert self.search(engine, "fox owl cat") == before
