"""Chapter: what the store knows about itself."""

from __future__ import annotations

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
