"""Chapter: conclusions, collections and cards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memservice.domain import records as r
from memservice.domain.filters.ast import where
from memservice.domain.records import DEDUCTIVE, DELETED, EXPLICIT, SUPERSEDED
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Storage
from memservice.testing.storage.base import NOW, Chapter, World, populate


class ConclusionsChapter(Chapter):
    def test_only_live_conclusions_are_listed(self, storage: Storage, world: World) -> None:
        """Newest first; superseded and deleted ones are found by their uid only."""
        stored = storage.write(
            lambda view: view.conclusions.put(
                [
                    world.conclusion(1),
                    world.conclusion(2, state=SUPERSEDED),
                    world.conclusion(3, state=DELETED, deleted_at=NOW),
                    world.conclusion(4),
                    world.conclusion(5, created_at=world.conclusion(4).created_at),
                ]
            )
        )
        live = [stored[4], stored[3], stored[0]]
        key = world.workspace.key
        with storage.read() as view:
            assert view.conclusions.page(key) == live
            assert view.conclusions.page(key, limit=1, offset=1) == live[1:2]
            assert view.conclusions.page(key, order=BY_KEY, limit=None) == live[::-1]
            assert view.conclusions.page(key, where(content=("conclusion 1", "conclusion 2"))) == [stored[0]]
            assert (view.conclusions.count(key), view.conclusions.count(key, where(content="conclusion 2"))) == (3, 0)
            assert view.conclusions.by_keys([c.key for c in stored]) == {c.key: c for c in live}
            assert view.conclusions.by_keys([stored[0].key, stored[3].key], where(content="conclusion 4")) == {stored[3].key: stored[3]}
            assert view.conclusions.by_keys([]) == {}
            assert [view.conclusions.by_uid(key, c.uid) for c in stored] == stored

    def test_conclusions_stay_in_their_workspace(self, storage: Storage, world: World) -> None:
        other = storage.write(lambda view: populate(view, "other"))
        mine = storage.write(lambda view: view.conclusions.put([world.conclusion(1)]))[0]
        theirs = storage.write(lambda view: view.conclusions.put([other.conclusion(1)]))[0]
        with storage.read() as view:
            assert view.conclusions.page(world.workspace.key) == [mine]
            assert view.conclusions.count(other.workspace.key) == 1
            assert view.conclusions.by_uid(world.workspace.key, theirs.uid) is None
            assert view.conclusions.by_uid(other.workspace.key, theirs.uid) == theirs
            assert view.conclusions.resting_on(world.workspace.key, "nothing") == []

    def test_putting_none(self, storage: Storage) -> None:
        assert storage.write(lambda view: view.conclusions.put([])) == []

    def test_the_same_conclusion(self, storage: Storage, world: World) -> None:
        """By fingerprint, among the live ones of a collection, a level and, where asked for, a session; the oldest where there are two."""
        elsewhere = storage.write(
            lambda view: view.conclusions.put_collection(
                replace(world.collection, key=0, observer_key=world.bob.key, observer=world.bob.slug)
            )
        )
        session = {"session_key": world.session.key, "session": world.session.slug}
        stored = storage.write(
            lambda view: view.conclusions.put(
                [
                    world.conclusion(1, fingerprint="a", state=DELETED),
                    world.conclusion(2, fingerprint="a", level=DEDUCTIVE),
                    world.conclusion(3, fingerprint="a", collection_key=elsewhere.key),
                    world.conclusion(4, fingerprint="a"),
                    world.conclusion(5, fingerprint="a", **session),
                    world.conclusion(6, fingerprint="b"),
                    world.conclusion(7, fingerprint="A"),
                ]
            )
        )
        key = world.collection.key
        with storage.read() as view:
            same = view.conclusions.same
            assert same(key, EXPLICIT, ["a", "b", "c"], None) == {"a": stored[3], "b": stored[5]}
            assert same(key, EXPLICIT, ["a", "b"], world.session.key) == {"a": stored[4]}
            assert same(key, DEDUCTIVE, ["a", "b"], None) == {"a": stored[1]}
            assert same(elsewhere.key, EXPLICIT, ["a"], None) == {"a": stored[2]}
            assert same(key, EXPLICIT, ["a"], 10**9) == {}
            assert same(key, EXPLICIT, [], None) == {}

    def test_conclusions_that_rest_on_another(self, storage: Storage, world: World) -> None:
        source, unrelated = world.uid(1), world.uid(11)
        stored = storage.write(
            lambda view: view.conclusions.put(
                [
                    world.conclusion(1, source_ids=None),
                    world.conclusion(2, source_ids=[unrelated]),
                    world.conclusion(3, source_ids=[unrelated, source], level=DEDUCTIVE),
                    world.conclusion(4, source_ids=[source], state=SUPERSEDED),
                    world.conclusion(5, source_ids=[source, source]),
                    world.conclusion(6, source_ids=[]),
                ]
            )
        )
        with storage.read() as view:
            assert view.conclusions.resting_on(world.workspace.key, source) == [stored[2], stored[4]]
            assert view.conclusions.resting_on(world.workspace.key, "nothing") == []
            assert view.conclusions.resting_on(10**9, source) == []

    def test_reinforcing_counts_one_more_derivation(self, storage: Storage, world: World) -> None:
        a, b, c = storage.write(lambda view: view.conclusions.put([world.conclusion(n) for n in (1, 2, 3)]))
        storage.write(lambda view: view.conclusions.reinforce([a.key, c.key]))
        storage.write(lambda view: view.conclusions.reinforce([c.key]))
        storage.write(lambda view: view.conclusions.reinforce([]))
        storage.write(lambda view: view.conclusions.reinforce([c.key], 3))
        with storage.read() as view:
            found = view.conclusions.by_keys([a.key, b.key, c.key])
        assert [found[one.key].times_derived for one in (a, b, c)] == [2, 1, 6]

    @pytest.mark.parametrize("lock", [False, True])
    def test_collections(self, storage: Storage, world: World, lock: bool) -> None:
        other = storage.write(lambda view: populate(view, "other"))
        about_bob = storage.write(
            lambda view: view.conclusions.put_collection(
                replace(world.collection, key=0, observed_key=world.bob.key, observed=world.bob.slug, last_dream_at=NOW)
            )
        )
        storage.write(lambda view: view.conclusions.count_explicit(about_bob.key, 3))
        storage.write(lambda view: view.conclusions.count_explicit(about_bob.key, -1))
        about_bob = replace(about_bob, explicit_count=2)
        found = storage.write(
            lambda view: (
                view.conclusions.collection(world.alice.key, world.bob.key, lock=lock),
                view.conclusions.collection(world.bob.key, world.alice.key, lock=lock),
                view.conclusions.collection(world.alice.key, world.alice.key, lock=lock),
            )
        )
        assert found == (about_bob, None, world.collection)
        with storage.read() as view:
            assert view.conclusions.collections(world.workspace.key) == [world.collection, about_bob]
            assert view.conclusions.collections(world.workspace.key, where(observed="bob")) == [about_bob]
            assert view.conclusions.collections(other.workspace.key) == [other.collection]

    def test_cards(self, storage: Storage, world: World) -> None:
        def card(observer: r.Peer, target: str, *lines: str) -> r.Card:
            return r.Card(workspace_key=world.workspace.key, observer_key=observer.key, target=target, lines=list(lines), updated_at=NOW)

        storage.write(lambda view: view.cards.save(card(world.alice, "bob", "old")))
        new = storage.write(lambda view: view.cards.save(card(world.alice, "bob", "new", "two")))
        nobody = storage.write(lambda view: view.cards.save(card(world.alice, "nobody")))
        own = storage.write(lambda view: view.cards.save(card(world.bob, "bob", "own")))
        with storage.read() as view:
            assert view.cards.one(world.alice.key, "bob") == new
            assert view.cards.one(world.alice.key, "nobody") == nobody
            assert view.cards.one(world.bob.key, "bob") == own
            assert view.cards.one(world.bob.key, "alice") is None
            assert view.rows.count(r.Card) == 3
