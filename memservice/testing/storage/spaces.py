"""Chapter: facts and vector spaces."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters.ast import equals
from memservice.domain.records import ACTIVE
from memservice.spi.storage import Storage
from memservice.testing.storage.base import NOW, Chapter, Dataset, new_workspace, populate


class SpacesChapter(Chapter):
    def test_facts(self, storage: Storage) -> None:
        with storage.read() as tx:
            assert tx.facts.get("counter") is None
        storage.write(lambda tx: tx.facts.set("counter", "o200k"))
        storage.write(lambda tx: tx.facts.set("Counter", "another"))
        storage.write(lambda tx: tx.facts.set("counter", ""))
        with storage.read() as tx:
            assert (tx.facts.get("counter"), tx.facts.get("Counter")) == ("", "another")
            assert tx.rows.count(r.Fact) == 2

    def test_spaces(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))

        def save(of: Dataset, kind: str, embedder: str, state: str, dimension: int = 8) -> r.Space:
            defaults: dict[str, Any] = {
                "workspace_key": of.workspace.key,
                "kind": kind,
                "embedder": embedder,
            }
            return storage.write(
                lambda tx: tx.spaces.save(
                    r.Space(**defaults, dimension=dimension, state=state, created_at=NOW)
                )
            )

        retired = save(dataset, "conclusion", "z-old", "retired")
        active = save(dataset, "conclusion", "m-new", ACTIVE)
        building = save(dataset, "document", "z-old", "building")
        of_other = save(other, "conclusion", "a-other", ACTIVE)
        wider_of_other = save(other, "document", "a-other", ACTIVE, dimension=16)
        with storage.read() as tx:
            assert tx.spaces.active(dataset.workspace.key, "conclusion") == active
            assert tx.spaces.active(dataset.workspace.key, "document") is None
            assert tx.spaces.active(other.workspace.key, "conclusion") == of_other
            assert tx.spaces.of_workspace(dataset.workspace.key) == [retired, active, building]
            assert tx.spaces.of_workspace(other.workspace.key) == [of_other, wider_of_other]
            assert tx.spaces.embedders_in_use() == ["a-other", "m-new"]
            assert tx.workspaces.with_spaces("w") == (
                dataset.workspace,
                [retired, active, building],
            )

    def test_a_workspace_without_spaces(self, storage: Storage) -> None:
        empty = storage.write(lambda tx: tx.workspaces.save(new_workspace("empty")))
        deleting = new_workspace("gone", 1, state=r.DELETING)
        storage.write(lambda tx: tx.workspaces.save(deleting))
        with storage.read() as tx:
            assert tx.workspaces.with_spaces("empty") == (empty, [])
            assert tx.workspaces.with_spaces("gone") == (None, [])
            assert tx.workspaces.with_spaces("nowhere") == (None, [])

    def test_keys(self, storage: Storage) -> None:
        def add(uid: str, **values: Any) -> r.ApiKey:
            times: dict[str, Any] = {"created_at": NOW}
            key = r.ApiKey(uid=uid, **(times | values))
            return storage.write(lambda tx: tx.keys.add(key))

        late, first, second = (
            add("c", created_at=NOW + timedelta(hours=1)),
            add("b"),
            add("a", admin=True, workspace="w"),
        )
        with storage.read() as tx:
            assert tx.keys.by_uid("a") == second
            assert tx.keys.by_uid("A") is None
            assert tx.keys.page() == [first, second, late]
            assert tx.keys.page(limit=1, offset=1) == [second]
            assert tx.keys.count() == 3
        assert storage.write(lambda tx: tx.keys.revoke("a", NOW)) is True
        assert storage.write(lambda tx: tx.keys.revoke("a", NOW + timedelta(days=1))) is True
        assert storage.write(lambda tx: tx.keys.revoke("nobody", NOW)) is False
        with storage.read() as tx:
            assert tx.keys.page() == [first, replace(second, revoked_at=NOW), late]

    def test_a_key_belongs_to_existing_rows(self, storage: Storage, dataset: Dataset) -> None:
        uids = {
            "workspace_uid": dataset.workspace.uid,
            "peer_uid": dataset.bob.uid,
            "session_uid": dataset.session.uid,
        }
        of: dict[str, dict[str, Any]] = {
            "everything": {},
            "workspace": {"workspace_uid": uids["workspace_uid"]},
            "peer": {name: uids[name] for name in ("workspace_uid", "peer_uid")},
            "session": {name: uids[name] for name in ("workspace_uid", "session_uid")},
            "all three": uids,
            "no workspace": uids | {"workspace_uid": "x" * 21},
            "no peer": uids | {"peer_uid": "x" * 21},
            "no session": uids | {"session_uid": "x" * 21},
        }
        added = storage.write(
            lambda tx: {
                uid: tx.keys.add(r.ApiKey(uid=uid, created_at=NOW, **of[uid])) for uid in of
            }
        )

        def live_keys() -> set[str]:
            with storage.read() as tx:
                recognised = {uid: tx.keys.recognised(uid) for uid in of}
                assert tx.keys.recognised("nobody") is None
            assert {uid: one[0] for uid, one in recognised.items() if one is not None} == added
            return {uid for uid, one in recognised.items() if one is not None and one[1]}

        def change(record: type[Any], key: int, state: str) -> None:
            storage.write(lambda tx: tx.rows.change(record, equals(key=key), state=state))

        assert live_keys() == {"everything", "workspace", "peer", "session", "all three"}
        change(r.Session, dataset.session.key, r.ARCHIVED)
        assert live_keys() == {"everything", "workspace", "peer", "session", "all three"}
        change(r.Session, dataset.session.key, r.DELETING)
        assert live_keys() == {"everything", "workspace", "peer"}
        change(r.Session, dataset.session.key, ACTIVE)
        change(r.Workspace, dataset.workspace.key, r.DELETING)
        assert live_keys() == {"everything"}

    def test_keys_are_revoked_with_their_workspace_or_session(self, storage: Storage) -> None:
        scopes: list[dict[str, Any]] = [
            {},
            {"workspace": "w"},
            {"workspace": "w", "peer": "p"},
            {"workspace": "w", "session": "s"},
            {"workspace": "w", "peer": "p", "session": "s"},
            {"workspace": "w", "session": "S"},
            {"workspace": "v", "session": "s"},
            {"peer": "w", "session": "s"},
        ]
        storage.write(
            lambda tx: [
                tx.keys.add(r.ApiKey(uid=f"{n}", created_at=NOW, **scope))
                for n, scope in enumerate(scopes)
            ]
        )
        storage.write(
            lambda tx: tx.keys.add(r.ApiKey(uid="8", workspace="w", revoked_at=NOW, created_at=NOW))
        )
        later = [NOW + timedelta(hours=hours) for hours in range(1, 5)]

        def revoked() -> list[datetime | None]:
            with storage.read() as tx:
                return [key.revoked_at for key in tx.keys.page()]

        assert storage.write(lambda tx: tx.keys.revoke_of(later[0], "w", "s")) == 2
        assert revoked() == [None, None, None, later[0], later[0], None, None, None, NOW]
        assert storage.write(lambda tx: tx.keys.revoke_of(later[1], "w")) == 3
        assert revoked() == [
            None,
            later[1],
            later[1],
            later[0],
            later[0],
            later[1],
            None,
            None,
            NOW,
        ]
        assert storage.write(lambda tx: tx.keys.revoke_of(later[2], "w")) == 0
        assert storage.write(lambda tx: tx.keys.revoke_of(later[3], "nowhere", "s")) == 0
        assert revoked() == [
            None,
            later[1],
            later[1],
            later[0],
            later[0],
            later[1],
            None,
            None,
            NOW,
        ]

    def test_uses_of_keys_are_noted_if_the_last_note_is_old(self, storage: Storage) -> None:
        storage.write(lambda tx: [tx.keys.add(r.ApiKey(uid=uid, created_at=NOW)) for uid in "ab"])
        minute = timedelta(minutes=1)

        def used(uid: str, at: datetime) -> bool:
            return storage.write(lambda tx: tx.keys.used(uid, at, at - minute))

        assert used("a", NOW)
        assert not used("a", NOW)
        assert not used("a", NOW + minute)
        assert used("a", NOW + minute + timedelta(microseconds=1))
        assert not used("nobody", NOW)
        with storage.read() as tx:
            assert [key.last_used_at for key in tx.keys.page()] == [
                NOW + minute + timedelta(microseconds=1),
                None,
            ]
