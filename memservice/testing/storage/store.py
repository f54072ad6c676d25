"""Chapter: what the store knows about itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from memservice.domain import records as r
from memservice.domain.records import ACTIVE
from memservice.spi.storage import Storage
from memservice.testing.storage.base import NOW, Chapter, World, populate


class StoreChapter(Chapter):
    def test_facts(self, storage: Storage) -> None:
        with storage.read() as view:
            assert view.facts.get("counter") is None
        storage.write(lambda view: view.facts.set("counter", "o200k"))
        storage.write(lambda view: view.facts.set("Counter", "another"))
        storage.write(lambda view: view.facts.set("counter", ""))
        with storage.read() as view:
            assert (view.facts.get("counter"), view.facts.get("Counter")) == ("", "another")
            assert view.rows.count(r.Fact) == 2

    def test_spaces(self, storage: Storage, world: World) -> None:
        other = storage.write(lambda view: populate(view, "other"))

        def save(of: World, kind: str, embedder: str, state: str, dimension: int = 8) -> r.Space:
            given: dict[str, Any] = {"workspace_key": of.workspace.key, "kind": kind, "embedder": embedder}
            return storage.write(lambda view: view.spaces.save(r.Space(**given, dimension=dimension, state=state, created_at=NOW)))

        retired = save(world, "conclusion", "z-old", "retired")
        active = save(world, "conclusion", "m-new", ACTIVE)
        building = save(world, "document", "z-old", "building")
        theirs = save(other, "conclusion", "a-other", ACTIVE)
        wider = save(other, "document", "a-other", ACTIVE, dimension=16)
        with storage.read() as view:
            assert view.spaces.active(world.workspace.key, "conclusion") == active
            assert view.spaces.active(world.workspace.key, "document") is None
            assert view.spaces.active(other.workspace.key, "conclusion") == theirs
            assert view.spaces.of_workspace(world.workspace.key) == [retired, active, building]
            assert view.spaces.of_workspace(other.workspace.key) == [theirs, wider]
            assert view.spaces.embedders_in_use() == ["a-other", "m-new"]

    def test_keys(self, storage: Storage) -> None:
        def add(uid: str, **values: Any) -> r.ApiKey:
            return storage.write(lambda view: view.keys.add(r.ApiKey(uid=uid, **({"created_at": NOW} | values))))

        late, first, second = add("c", created_at=NOW + timedelta(hours=1)), add("b"), add("a", admin=True, workspace="w")
        with storage.read() as view:
            assert view.keys.by_uid("a") == second
            assert view.keys.by_uid("A") is None
            assert view.keys.page() == [first, second, late]
            assert view.keys.page(limit=1, offset=1) == [second]
            assert view.keys.count() == 3
        assert storage.write(lambda view: view.keys.revoke("a", NOW)) is True
        assert storage.write(lambda view: view.keys.revoke("a", NOW + timedelta(days=1))) is True
        assert storage.write(lambda view: view.keys.revoke("nobody", NOW)) is False
        with storage.read() as view:
            assert view.keys.page() == [first, replace(second, revoked_at=NOW), late]

    def test_uses_of_keys_are_noted_if_the_last_note_is_old(self, storage: Storage) -> None:
        storage.write(lambda view: [view.keys.add(r.ApiKey(uid=uid, created_at=NOW)) for uid in "ab"])
        minute = timedelta(minutes=1)

        def used(uid: str, at: datetime) -> bool:
            return storage.write(lambda view: view.keys.used(uid, at, at - minute))

        assert used("a", NOW)
        assert not used("a", NOW)
        assert not used("a", NOW + minute)
        assert used("a", NOW + minute + timedelta(microseconds=1))
        assert not used("nobody", NOW)
        with storage.read() as view:
            assert [key.last_used_at for key in view.keys.page()] == [NOW + minute + timedelta(microseconds=1), None]
