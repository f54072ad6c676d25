"""Chapter: unique constraints."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters.ast import equals
from memservice.spi.rows import UniqueViolation
from memservice.spi.schema import TABLES, TableSpec, Unique
from memservice.spi.storage import Storage, Transaction
from memservice.testing.storage.base import Chapter, Dataset, new_workspace, populate, together
from memservice.testing.storage.rows import store_examples

CONSTRAINTS = [(spec, unique) for spec in TABLES for unique in spec.unique]


def _twin(spec: TableSpec, row: Any, unique: Unique) -> Any:
    """A copy of the row that violates only this constraint: fields of other constraints differ,
    except foreign keys."""
    fields = {
        name
        for other in spec.unique
        if other is not unique
        for name in other.fields
        if not name.endswith("_key")
    }
    changed: dict[str, Any] = {}
    for name in fields - set(unique.fields):
        value = getattr(row, name)
        changed[name] = (
            value[:-1] + ("y" if value[-1:] != "y" else "z")
            if isinstance(value, str)
            else value + 1
        )
    return replace(row, key=0, **changed)


class UniquenessChapter(Chapter):
    @pytest.mark.parametrize(
        ("spec", "unique"),
        CONSTRAINTS,
        ids=[f"{s.name}-{'-'.join(u.fields)}" for s, u in CONSTRAINTS],
    )
    def test_unique(
        self, storage: Storage, dataset: Dataset, spec: TableSpec, unique: Unique
    ) -> None:
        """A second row with the same values is refused, and the error names the constraint."""
        row = storage.write(lambda tx: store_examples(tx, dataset))[spec.record][-1]
        storage.write(lambda tx: tx.rows.put([row]))
        twin = _twin(spec, row, unique)
        with pytest.raises(UniqueViolation) as caught:
            storage.write(lambda tx: tx.rows.put([twin]))
        assert caught.value.table == spec.name
        assert set(caught.value.fields) == set(unique.fields)

    @pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
    def test_a_row_does_not_violate_itself(
        self, storage: Storage, dataset: Dataset, spec: TableSpec
    ) -> None:
        row = storage.write(lambda tx: store_examples(tx, dataset))[spec.record][-1]
        existing = storage.write(lambda tx: tx.rows.put([row])[0])
        assert storage.write(lambda tx: tx.rows.put([existing])) == [existing]

    def test_a_violation_stores_nothing_of_the_call_and_leaves_the_transaction_usable(
        self, storage: Storage
    ) -> None:
        def clash(tx: Transaction) -> None:
            tx.rows.put([r.Fact(name="before", value="")])
            with pytest.raises(UniqueViolation):
                tx.rows.put(
                    [
                        r.Fact(name="new", value=""),
                        r.Fact(name="before", value="again"),
                        r.Fact(name="newer", value=""),
                    ]
                )
            tx.rows.put([r.Fact(name="after", value="")])

        storage.write(clash)
        with storage.read() as tx:
            assert [fact.name for fact in tx.rows.page(r.Fact)] == ["before", "after"]

    def test_a_violation_by_replacing_leaves_both_rows(self, storage: Storage) -> None:
        a, b = storage.write(
            lambda tx: tx.rows.put([r.Fact(name="a", value="1"), r.Fact(name="b", value="2")])
        )

        def clash(tx: Transaction) -> None:
            with pytest.raises(UniqueViolation):
                tx.rows.put([replace(a, value="changed"), replace(b, name="a")])

        storage.write(clash)
        with storage.read() as tx:
            assert tx.rows.page(r.Fact) == [a, b]

    def test_change_must_not_violate(self, storage: Storage) -> None:
        rows = storage.write(
            lambda tx: tx.rows.put([r.Fact(name=name, value="") for name in "abc"])
        )

        def clash(tx: Transaction) -> None:
            with pytest.raises(UniqueViolation):
                tx.rows.change(r.Fact, equals(name=("a", "b")), name="d")
            with pytest.raises(UniqueViolation):
                tx.rows.change(r.Fact, equals(name="a"), name="c")

        storage.write(clash)
        with storage.read() as tx:
            assert tx.rows.page(r.Fact) == rows

    def test_values_are_free_after_their_row_is_deleted_or_changed(self, storage: Storage) -> None:
        a, b = storage.write(
            lambda tx: tx.rows.put([r.Fact(name="a", value=""), r.Fact(name="b", value="")])
        )
        storage.write(lambda tx: tx.rows.delete(r.Fact, equals(key=a.key)))
        storage.write(lambda tx: tx.rows.change(r.Fact, equals(key=b.key), name="c"))
        storage.write(
            lambda tx: tx.rows.put([r.Fact(name="b", value="new"), r.Fact(name="a", value="new")])
        )
        with storage.read() as tx:
            assert [fact.name for fact in tx.rows.page(r.Fact)] == ["c", "b", "a"]

    def test_names_that_differ_in_case_or_accents_are_different(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        names = ["Alice", "ALICE", "alice ", "alicé", "alice\u0301"]
        storage.write(
            lambda tx: tx.peers.put([dataset.peer(name, n) for n, name in enumerate(names)])
        )
        with storage.read() as tx:
            for name in (*names, "alice"):
                peer = tx.peers.by_slug(dataset.workspace.key, name)
                assert peer is not None
                assert peer.slug == name

    def test_another_workspace_may_use_the_same_names(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        assert (other.alice.slug, other.session.slug) == (dataset.alice.slug, dataset.session.slug)

    def test_a_deleting_workspace_frees_its_names(self, storage: Storage) -> None:
        first = storage.write(lambda tx: tx.workspaces.save(new_workspace("a", 1)))
        with pytest.raises(UniqueViolation):
            storage.write(lambda tx: tx.workspaces.save(new_workspace("a", 2)))
        storage.write(lambda tx: tx.workspaces.save(replace(first, state=r.DELETING)))
        second = storage.write(lambda tx: tx.workspaces.save(new_workspace("a", 2)))
        storage.write(
            lambda tx: tx.rows.change(r.Workspace, equals(key=second.key), state=r.DELETING)
        )
        third = storage.write(lambda tx: tx.workspaces.save(new_workspace("a", 3)))
        with pytest.raises(UniqueViolation):
            storage.write(lambda tx: tx.workspaces.save(first))
        with storage.read() as tx:
            assert tx.workspaces.by_slug("a") == third
            assert tx.rows.count(r.Workspace) == 3

    def test_of_many_threads_one_stores_the_row(self, storage: Storage) -> None:
        def attempt() -> bool:
            try:
                storage.write(lambda tx: tx.rows.put([r.Fact(name="one", value="")]))
            except UniqueViolation:
                return False
            return True

        assert sorted(together(*[attempt] * 6)) == [False] * 5 + [True]
        with storage.read() as tx:
            assert tx.rows.count(r.Fact) == 1
