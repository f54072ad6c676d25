"""Which rows match, how many are returned, and what is counted of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextIndex, TextMatches, TextRow
from memservice.testing.indexes import HOSTILE, MANY_TONGUES, Engine
from memservice.testing.text.base import OTHER, OWN, TextChapter, keys, row


class MatchingChapter(TextChapter):
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
        assert keys(self.search(engine, long)) == {2}
        assert self.search(engine, "w0").mean_length == 1_500.5
