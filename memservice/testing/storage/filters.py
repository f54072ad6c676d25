"""Chapter: filters agree with `memservice.domain.filters.evaluate.matches`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

from memservice.domain import records as r
from memservice.domain.filters.ast import (
    TRUE,
    All,
    Any_,
    Condition,
    Contains,
    Equal,
    IsNull,
    KeyEqual,
    Not,
    OneOf,
    Substring,
    equals,
)
from memservice.domain.filters.evaluate import matches
from memservice.domain.records import Conclusion
from memservice.spi.rows import Order
from memservice.spi.storage import Storage, Transaction
from memservice.testing.storage import tricky
from memservice.testing.storage.base import NOW, Chapter, Dataset, populate

LEAVES = (
    "Equal", "Compare", "OneOf", "IsNull", "Substring", "Holds", "Contains", "KeyEqual",
    "KeyCompare", "KeyOneOf", "KeySubstring",
)  # fmt: skip


def disagreements(
    tx: Transaction, rows: Iterable[Conclusion], conditions: Iterable[Condition]
) -> list[str]:
    """Descriptions of the differences between the storage and the reference evaluator."""
    differences: list[str] = []
    conclusions = list(rows)
    for condition in conditions:
        expected = [row.key for row in conclusions if matches(row, condition)]
        got = [row.key for row in tx.rows.page(Conclusion, condition)]
        by_key = {row.key: row for row in conclusions}
        for wrong, key in [("misses", key) for key in set(expected) - set(got)] + [
            ("adds", key) for key in set(got) - set(expected)
        ]:
            row = by_key[key]
            differences.append(
                f"{condition} {wrong} content={row.content!r} session={row.session!r} "
                f"internal={row.internal!r} {row}"
            )
        if got != expected and sorted(got) == sorted(expected):
            differences.append(f"{condition} is out of order")
        if tx.rows.count(Conclusion, condition) != len(expected):
            differences.append(f"{condition} is counted wrong")
    return differences


class FiltersChapter(Chapter):
    @pytest.mark.parametrize("kind", LEAVES)
    def test_leaf(self, storage: Storage, dataset: Dataset, kind: str) -> None:
        """Each kind of leaf, and its negation, on rows with unusual texts, numbers, keys and
        nulls."""
        rows = storage.write(lambda tx: tx.conclusions.put(tricky.rows(dataset)))
        nodes = [node for node in tricky.leaves(dataset) if type(node).__name__ == kind]
        assert nodes
        with storage.read() as tx:
            wrong = disagreements(tx, rows, [*nodes, *(Not(node) for node in nodes)])
        assert not wrong, f"{len(wrong)} differences, the first ones:\n" + "\n".join(wrong[:5])

    def test_every_leaf_is_tried(self, storage: Storage, dataset: Dataset) -> None:
        """Checks the suite itself: it covers every kind of node."""
        tried: dict[str, int] = defaultdict(int)
        for node in tricky.leaves(dataset):
            tried[type(node).__name__] += 1
        assert set(tried) == set(LEAVES)

    def test_branches(self, storage: Storage, dataset: Dataset) -> None:
        rows = storage.write(lambda tx: tx.conclusions.put(tricky.rows(dataset)))
        with storage.read() as tx:
            wrong = disagreements(tx, rows, tricky.compounds(dataset))
        assert not wrong, "\n".join(wrong[:5])

    def test_booleans(self, storage: Storage) -> None:
        storage.write(
            lambda tx: tx.rows.put(
                [r.ApiKey(uid=f"{n}", admin=n == 1, created_at=NOW) for n in range(3)]
            )
        )
        with storage.read() as tx:
            assert [row.uid for row in tx.rows.page(r.ApiKey, Equal("admin", True))] == ["1"]
            assert [row.uid for row in tx.rows.page(r.ApiKey, Equal("admin", False))] == ["0", "2"]
            assert [row.uid for row in tx.rows.page(r.ApiKey, Not(Equal("admin", True)))] == [
                "0",
                "2",
            ]

    def test_nullable_booleans(self, storage: Storage, dataset: Dataset) -> None:
        a, b = dataset.member(dataset.session, dataset.carol, 3, observe_me=False), None
        storage.write(lambda tx: tx.members.put([a]))
        with storage.read() as tx:
            assert [m.peer for m in tx.rows.page(r.Member, Equal("observe_me", False))] == ["carol"]
            assert [m.peer for m in tx.rows.page(r.Member, IsNull("observe_me"))] == [
                "alice",
                "bob",
            ]
            assert tx.rows.count(r.Member, Equal("observe_me", True)) == 0
            assert [m.peer for m in tx.rows.page(r.Member, equals(observe_me=b, left_at=None))] == [
                "alice",
                "bob",
            ]

    @pytest.mark.parametrize("size", [0, 1, 2, 1000])
    def test_one_of_many_values(self, storage: Storage, size: int) -> None:
        """An empty list matches nothing; a thousand values work like one, of every type."""
        facts = storage.write(
            lambda tx: tx.rows.put([r.Fact(name=f"name {n}", value="") for n in range(1100)])
        )
        chosen = facts[:size]
        with storage.read() as tx:
            assert (
                tx.rows.page(r.Fact, OneOf("name", tuple(fact.name for fact in chosen))) == chosen
            )
            assert tx.rows.page(r.Fact, OneOf("key", tuple(fact.key for fact in chosen))) == chosen
            assert (
                tx.rows.count(r.Fact, Not(OneOf("key", tuple(fact.key for fact in chosen))))
                == 1100 - size
            )
            assert (
                tx.rows.page(
                    r.Fact,
                    All(
                        (
                            OneOf("name", tuple(f.name for f in chosen)),
                            OneOf("key", tuple(f.key for f in facts)),
                        )
                    ),
                )
                == chosen
            )

    def test_all_parts_must_hold(self, storage: Storage, dataset: Dataset) -> None:
        storage.write(
            lambda tx: tx.rows.put(
                [dataset.message(n, content=f"{n % 2}", tokens=n % 3) for n in range(1, 13)]
            )
        )
        even, third = Equal("content", "0"), Equal("tokens", 0)
        with storage.read() as tx:
            assert [m.seq for m in tx.rows.page(r.Message, All((even, third)))] == [6, 12]
            assert [m.seq for m in tx.rows.page(r.Message, All((third, even)))] == [6, 12]
            assert [
                m.seq
                for m in tx.rows.page(r.Message, All((Equal("session", "talk"), third, Not(even))))
            ] == [3, 9]

    def test_some_part_must_hold(self, storage: Storage, dataset: Dataset) -> None:
        storage.write(lambda tx: tx.rows.put([dataset.message(n) for n in range(1, 6)]))
        with storage.read() as tx:
            assert [
                m.seq for m in tx.rows.page(r.Message, Any_((Equal("seq", 2), Equal("seq", 4))))
            ] == [2, 4]
            assert [
                m.seq for m in tx.rows.page(r.Message, Any_((Equal("seq", 9), Equal("seq", 4))))
            ] == [4]

    @pytest.mark.parametrize(
        "hostile",
        [
            "'",
            '"',
            "x' OR '1'='1",
            "'; DROP TABLE facts; --",
            "%",
            "_",
            "\\",
            "\\'",
            ":a",
            "?",
            "$1",
            "%s",
            "{}",
        ],
    )
    def test_hostile_values_are_values(self, storage: Storage, hostile: str) -> None:
        storage.write(
            lambda tx: tx.rows.put(
                [r.Fact(name=hostile, value=hostile), r.Fact(name="innocent", value="")]
            )
        )
        with storage.read() as tx:
            for condition in (
                Equal("name", hostile),
                OneOf("name", (hostile,)),
                Substring("name", hostile),
            ):
                assert [fact.name for fact in tx.rows.page(r.Fact, condition)] == [hostile]
        assert (
            storage.write(
                lambda tx: tx.rows.change(r.Fact, equals(name=hostile), value=hostile * 2)
            )
            == 1
        )
        assert (
            storage.write(
                lambda tx: tx.rows.delete(r.Fact, equals(name=hostile, value=hostile * 2))
            )
            == 1
        )
        with storage.read() as tx:
            assert [fact.name for fact in tx.rows.page(r.Fact)] == ["innocent"]

    @pytest.mark.parametrize(
        "hostile",
        [
            'name" OR 1=1 --',
            "name OR 1=1",
            "nothing",
            "name; DROP TABLE facts",
            "__class__.__name__",
        ],
    )
    def test_a_name_that_is_no_field_is_refused(self, storage: Storage, hostile: str) -> None:
        """As a field to filter, to order by or to set, it is an error and never part of a
        statement."""
        storage.write(lambda tx: tx.rows.put([r.Fact(name=name, value="kept") for name in "ab"]))
        attempts = (
            lambda tx: tx.rows.page(r.Fact, Equal(hostile, "a")),
            lambda tx: tx.rows.count(r.Fact, Not(IsNull(hostile))),
            lambda tx: tx.rows.page(r.Fact, TRUE, (Order(hostile),)),
            lambda tx: tx.rows.change(r.Fact, TRUE, **{hostile: "gone"}),
            lambda tx: tx.rows.delete(r.Fact, Equal(hostile, "a")),
            lambda tx: tx.rows.page(r.Fact, KeyEqual(hostile, "a", "b")),
            lambda tx: tx.rows.page(r.Fact, Contains(hostile, {"a": 1})),
        )
        for attempt in attempts:
            with pytest.raises(Exception):  # noqa: B017 - which error is the storage's own business
                storage.write(attempt)
        with storage.read() as tx:
            assert [(fact.name, fact.value) for fact in tx.rows.page(r.Fact)] == [
                ("a", "kept"),
                ("b", "kept"),
            ]

    def test_a_filter_confines_change_and_delete_to_its_workspace(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        own = equals(workspace_key=dataset.workspace.key, slug="carol")
        assert storage.write(lambda tx: tx.rows.change(r.Peer, own, v1_role="assistant")) == 1
        assert storage.write(lambda tx: tx.rows.delete(r.Peer, own)) == 1
        with storage.read() as tx:
            assert tx.rows.page(r.Peer, equals(workspace_key=other.workspace.key)) == [
                other.alice,
                other.bob,
                other.carol,
            ]
            assert tx.rows.page(r.Peer, equals(workspace_key=dataset.workspace.key)) == [
                dataset.alice,
                dataset.bob,
            ]
