"""Chapter: conclusions, collections and cards."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters.ast import equals
from memservice.domain.records import DEDUCTIVE, DELETED, EXPLICIT, SUPERSEDED
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Storage
from memservice.testing.storage.base import NOW, Chapter, Dataset, populate


class ConclusionsChapter(Chapter):
    def test_only_live_conclusions_are_listed(self, storage: Storage, dataset: Dataset) -> None:
        """Newest first. Superseded and deleted ones are returned by their uid only."""
        conclusions = storage.write(
            lambda tx: tx.conclusions.put(
                [
                    dataset.conclusion(1),
                    dataset.conclusion(2, state=SUPERSEDED),
                    dataset.conclusion(3, state=DELETED, deleted_at=NOW),
                    dataset.conclusion(4),
                    dataset.conclusion(5, created_at=dataset.conclusion(4).created_at),
                ]
            )
        )
        live = [conclusions[4], conclusions[3], conclusions[0]]
        key = dataset.workspace.key
        with storage.read() as tx:
            assert tx.conclusions.page(key) == live
            assert tx.conclusions.page(key, limit=1, offset=1) == live[1:2]
            assert tx.conclusions.page(key, order=BY_KEY, limit=None) == live[::-1]
            assert tx.conclusions.page(key, equals(content=("conclusion 1", "conclusion 2"))) == [
                conclusions[0]
            ]
            assert (
                tx.conclusions.count(key),
                tx.conclusions.count(key, equals(content="conclusion 2")),
            ) == (3, 0)
            assert tx.conclusions.by_keys([c.key for c in conclusions]) == {c.key: c for c in live}
            assert tx.conclusions.by_keys(
                [conclusions[0].key, conclusions[3].key], equals(content="conclusion 4")
            ) == {conclusions[3].key: conclusions[3]}
            assert tx.conclusions.by_keys([]) == {}
            assert [tx.conclusions.by_uid(key, c.uid) for c in conclusions] == conclusions

    def test_conclusions_by_their_sources(self, storage: Storage, dataset: Dataset) -> None:
        """In every state, in key order, each once."""
        other = storage.write(lambda tx: populate(tx, "other"))
        key = dataset.workspace.key
        first, second, third, fourth = storage.write(
            lambda tx: tx.conclusions.put(
                [
                    dataset.conclusion(1, message_keys=[7, 8], source_ids=None),
                    dataset.conclusion(
                        2, message_keys=[8], source_ids=["a", "b"], state=SUPERSEDED
                    ),
                    dataset.conclusion(
                        3, message_keys=[9], source_ids=["b"], state=DELETED, deleted_at=NOW
                    ),
                    dataset.conclusion(4, message_keys=[], source_ids=[]),
                ]
            )
        )
        storage.write(
            lambda tx: tx.conclusions.put(
                [other.conclusion(1, message_keys=[7, 8], source_ids=["a", "b"])]
            )
        )
        with storage.read() as tx:
            assert tx.conclusions.of_messages(key, [8, 7]) == [first, second]
            assert tx.conclusions.of_messages(key, [9, 10**9]) == [third]
            assert tx.conclusions.based_on(key, ["a", "b"]) == [second, third]
            assert tx.conclusions.based_on(key, ["nothing"]) == []
            assert tx.conclusions.of_messages(key, []) == tx.conclusions.based_on(key, []) == []
            assert fourth in tx.conclusions.page(key)

    def test_conclusions_stay_in_their_workspace(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        own = storage.write(lambda tx: tx.conclusions.put([dataset.conclusion(1)]))[0]
        foreign = storage.write(lambda tx: tx.conclusions.put([other.conclusion(1)]))[0]
        with storage.read() as tx:
            assert tx.conclusions.page(dataset.workspace.key) == [own]
            assert tx.conclusions.count(other.workspace.key) == 1
            assert tx.conclusions.by_uid(dataset.workspace.key, foreign.uid) is None
            assert tx.conclusions.by_uid(other.workspace.key, foreign.uid) == foreign
            assert tx.conclusions.resting_on(dataset.workspace.key, "nothing") == []

    def test_putting_none(self, storage: Storage) -> None:
        assert storage.write(lambda tx: tx.conclusions.put([])) == []

    def test_the_same_conclusion(self, storage: Storage, dataset: Dataset) -> None:
        """By fingerprint, among the live ones of a collection, a level and optionally a session; of
        two, the oldest."""
        elsewhere = storage.write(
            lambda tx: tx.conclusions.put_collection(
                replace(
                    dataset.collection,
                    key=0,
                    observer_key=dataset.bob.key,
                    observer=dataset.bob.slug,
                )
            )
        )
        session = {"session_key": dataset.session.key, "session": dataset.session.slug}
        conclusions = storage.write(
            lambda tx: tx.conclusions.put(
                [
                    dataset.conclusion(1, fingerprint="a", state=DELETED),
                    dataset.conclusion(2, fingerprint="a", level=DEDUCTIVE),
                    dataset.conclusion(3, fingerprint="a", collection_key=elsewhere.key),
                    dataset.conclusion(4, fingerprint="a"),
                    dataset.conclusion(5, fingerprint="a", **session),
                    dataset.conclusion(6, fingerprint="b"),
                    dataset.conclusion(7, fingerprint="A"),
                ]
            )
        )
        key = dataset.collection.key
        with storage.read() as tx:
            same = tx.conclusions.same
            assert same(key, EXPLICIT, ["a", "b", "c"], None) == {
                "a": conclusions[3],
                "b": conclusions[5],
            }
            assert same(key, EXPLICIT, ["a", "b"], dataset.session.key) == {"a": conclusions[4]}
            assert same(key, DEDUCTIVE, ["a", "b"], None) == {"a": conclusions[1]}
            assert same(elsewhere.key, EXPLICIT, ["a"], None) == {"a": conclusions[2]}
            assert same(key, EXPLICIT, ["a"], 10**9) == {}
            assert same(key, EXPLICIT, [], None) == {}

    def test_conclusions_based_on_another(self, storage: Storage, dataset: Dataset) -> None:
        source, unrelated = dataset.uid(1), dataset.uid(11)
        conclusions = storage.write(
            lambda tx: tx.conclusions.put(
                [
                    dataset.conclusion(1, source_ids=None),
                    dataset.conclusion(2, source_ids=[unrelated]),
                    dataset.conclusion(3, source_ids=[unrelated, source], level=DEDUCTIVE),
                    dataset.conclusion(4, source_ids=[source], state=SUPERSEDED),
                    dataset.conclusion(5, source_ids=[source, source]),
                    dataset.conclusion(6, source_ids=[]),
                ]
            )
        )
        with storage.read() as tx:
            assert tx.conclusions.resting_on(dataset.workspace.key, source) == [
                conclusions[2],
                conclusions[4],
            ]
            assert tx.conclusions.resting_on(dataset.workspace.key, "nothing") == []
            assert tx.conclusions.resting_on(10**9, source) == []

    def test_reinforcing_counts_one_more_derivation(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        a, b, c = storage.write(
            lambda tx: tx.conclusions.put([dataset.conclusion(n) for n in (1, 2, 3)])
        )
        storage.write(lambda tx: tx.conclusions.reinforce([a.key, c.key]))
        storage.write(lambda tx: tx.conclusions.reinforce([c.key]))
        storage.write(lambda tx: tx.conclusions.reinforce([]))
        storage.write(lambda tx: tx.conclusions.reinforce([c.key], 3))
        with storage.read() as tx:
            conclusions = tx.conclusions.by_keys([a.key, b.key, c.key])
        assert [conclusions[one.key].times_derived for one in (a, b, c)] == [2, 1, 6]

    @pytest.mark.parametrize("lock", [False, True])
    def test_collections(self, storage: Storage, dataset: Dataset, lock: bool) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        about_bob = storage.write(
            lambda tx: tx.conclusions.put_collection(
                replace(
                    dataset.collection,
                    key=0,
                    observed_key=dataset.bob.key,
                    observed=dataset.bob.slug,
                    last_dream_at=NOW,
                )
            )
        )
        storage.write(lambda tx: tx.conclusions.count_explicit(about_bob.key, 3))
        storage.write(lambda tx: tx.conclusions.count_explicit(about_bob.key, -1))
        about_bob = replace(about_bob, explicit_count=2)
        collections = storage.write(
            lambda tx: (
                tx.conclusions.collection(dataset.alice.key, dataset.bob.key, lock=lock),
                tx.conclusions.collection(dataset.bob.key, dataset.alice.key, lock=lock),
                tx.conclusions.collection(dataset.alice.key, dataset.alice.key, lock=lock),
            )
        )
        assert collections == (about_bob, None, dataset.collection)
        with storage.read() as tx:
            assert tx.conclusions.collections(dataset.workspace.key) == [
                dataset.collection,
                about_bob,
            ]
            assert tx.conclusions.collections(dataset.workspace.key, equals(observed="bob")) == [
                about_bob
            ]
            assert tx.conclusions.collections(other.workspace.key) == [other.collection]

    def test_cards(self, storage: Storage, dataset: Dataset) -> None:
        def card(observer: r.Peer, target: str, *lines: str) -> r.Card:
            return r.Card(
                workspace_key=dataset.workspace.key,
                observer_key=observer.key,
                target=target,
                lines=list(lines),
                updated_at=NOW,
            )

        storage.write(lambda tx: tx.cards.save(card(dataset.alice, "bob", "old")))
        new = storage.write(lambda tx: tx.cards.save(card(dataset.alice, "bob", "new", "two")))
        empty = storage.write(lambda tx: tx.cards.save(card(dataset.alice, "nobody")))
        own = storage.write(lambda tx: tx.cards.save(card(dataset.bob, "bob", "own")))
        with storage.read() as tx:
            assert tx.cards.one(dataset.alice.key, "bob") == new
            assert tx.cards.one(dataset.alice.key, "nobody") == empty
            assert tx.cards.one(dataset.bob.key, "bob") == own
            assert tx.cards.one(dataset.bob.key, "alice") is None
            assert tx.rows.count(r.Card) == 3
