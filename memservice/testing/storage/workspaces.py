"""Chapter: workspaces and sessions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters.ast import equals
from memservice.spi.repositories import Located
from memservice.spi.rows import Order
from memservice.spi.storage import Storage
from memservice.testing.storage.base import NOW, Chapter, Dataset, new_workspace, populate


class WorkspacesChapter(Chapter):
    def test_locate_finds_what_a_path_names(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        with storage.read() as tx:
            locate = tx.workspaces.locate
            assert locate("w") == Located(dataset.workspace)
            assert locate("w", session_id="talk") == Located(dataset.workspace, dataset.session)
            assert locate("w", peer_id="bob") == Located(dataset.workspace, None, dataset.bob)
            assert locate("other", "talk", "carol") == Located(
                other.workspace, other.session, other.carol
            )
            assert locate("w", "nothing", "nobody") == Located(dataset.workspace)
            assert locate("nowhere", "talk", "bob") == Located()
            assert locate("W") == Located()

    def test_locate_tells_whether_a_peer_is_being_erased(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        erased = replace(other.carol, slug=r.ERASED_PREFIX + other.carol.uid, kind=r.ERASED)
        storage.write(lambda tx: tx.peers.put([erased]))
        with storage.read() as tx:
            located = tx.workspaces.locate("other", "talk", "bob")
            assert located == Located(other.workspace, other.session, other.bob, is_erasing=True)
            assert tx.workspaces.locate("other").is_erasing
            assert not tx.workspaces.locate("w", "talk").is_erasing

    def test_locate_does_not_mix_up_workspaces(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: tx.workspaces.save(new_workspace("empty", 1)))
        with storage.read() as tx:
            assert tx.workspaces.locate("empty", "talk", "bob") == Located(other)

    @pytest.mark.parametrize("state", [r.ARCHIVED, r.DELETING])
    def test_locate_finds_sessions_in_every_state(
        self, storage: Storage, dataset: Dataset, state: str
    ) -> None:
        session = storage.write(lambda tx: tx.sessions.save(replace(dataset.session, state=state)))
        with storage.read() as tx:
            assert tx.workspaces.locate("w", "talk").session == session
            assert tx.sessions.by_slug(dataset.workspace.key, "talk") == session
            assert tx.sessions.by_slugs(dataset.workspace.key, ["talk"]) == [session]
            assert tx.sessions.by_key(session.key) == session

    def test_the_last_message_of_several_workspaces(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        empty = storage.write(lambda tx: tx.workspaces.save(new_workspace("empty", 1)))
        times = {}
        for owner, hours in ((dataset, (1, 9, 4)), (other, (2,))):
            messages = storage.write(
                lambda tx, owner=owner, hours=hours: tx.messages.append(  # type: ignore[misc]
                    [
                        owner.message(seq, created_at=NOW + timedelta(hours=hour))
                        for seq, hour in enumerate(hours, 1)
                    ]
                )
            )
            times[owner.workspace.key] = messages[-1].created_at
        with storage.read() as tx:
            keys = [*times, empty.key, 10**9]
            assert tx.workspaces.last_messages(keys) == times
            assert tx.workspaces.last_messages([other.workspace.key]) == {
                other.workspace.key: NOW + timedelta(hours=2)
            }
            assert tx.workspaces.last_messages([]) == {}

    def test_a_deleting_workspace_is_invisible(self, storage: Storage, dataset: Dataset) -> None:
        deleting = storage.write(
            lambda tx: tx.workspaces.save(replace(dataset.workspace, state=r.DELETING))
        )
        with storage.read() as tx:
            assert tx.workspaces.locate("w", "talk", "bob") == Located()
            assert tx.workspaces.by_slug("w") is None
            assert tx.workspaces.page() == []
            assert tx.workspaces.count() == 0
            assert tx.workspaces.by_key(deleting.key) == deleting
        again = storage.write(lambda tx: tx.workspaces.save(new_workspace("w", 9)))
        with storage.read() as tx:
            assert tx.workspaces.locate("w", "talk") == Located(again)

    def test_workspaces_are_paged_oldest_first(self, storage: Storage) -> None:
        workspaces = [
            new_workspace(f"w{n}", n, created_at=NOW - timedelta(days=n // 2), metadata={"n": n})
            for n in range(5)
        ]
        rows = [storage.write(lambda tx, one=one: tx.workspaces.save(one)) for one in workspaces]  # type: ignore[misc]
        ordered = [rows[n] for n in (4, 2, 3, 0, 1)]
        with storage.read() as tx:
            assert tx.workspaces.page() == ordered
            assert tx.workspaces.page(limit=2, offset=1) == ordered[1:3]
            assert (
                tx.workspaces.page(order=(Order("created_at", True), Order("key", True)))
                == ordered[::-1]
            )
            assert tx.workspaces.page(equals(slug=("w1", "w2"))) == [rows[2], rows[1]]
            assert tx.workspaces.count(equals(slug=("w1", "w2", "x"))) == 2

    def test_sessions_stay_in_their_workspace(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        extra = storage.write(lambda tx: tx.sessions.save(other.another_session("extra", 1)))
        key = other.workspace.key
        with storage.read() as tx:
            assert tx.sessions.page(dataset.workspace.key) == [dataset.session]
            assert tx.sessions.page(key) == [other.session, extra]
            assert tx.sessions.count(key) == 2
            assert tx.sessions.page(key, equals(slug="extra")) == [extra]
            assert tx.sessions.by_slug(dataset.workspace.key, "extra") is None
            assert tx.sessions.by_slugs(dataset.workspace.key, ["extra", "talk"]) == [
                dataset.session
            ]
            assert tx.sessions.by_slugs(key, ["extra", "talk", "nothing"]) == [other.session, extra]
            assert tx.sessions.by_slugs(key, []) == []

    def test_sessions_of_a_peer(self, storage: Storage, dataset: Dataset) -> None:
        """Including those that it left, each once, ordered by age and not by time of joining."""
        rows = [dataset.another_session(f"s{n}", n) for n in range(1, 6)]
        sessions = [storage.write(lambda tx, one=one: tx.sessions.save(one)) for one in rows]  # type: ignore[misc]
        joined = [sessions[3], sessions[0], sessions[2]]
        storage.write(
            lambda tx: tx.members.put(
                [
                    dataset.member(s, dataset.carol, n, left_at=NOW if n == 1 else None)
                    for n, s in enumerate(joined)
                ]
                + [dataset.member(sessions[1], dataset.bob, 9)]
            )
        )
        sessions_of_carol = [sessions[0], sessions[2], sessions[3]]
        newest = (Order("created_at", True), Order("key", True))
        with storage.read() as tx:
            assert tx.sessions.page_of_peer(dataset.carol.key) == (sessions_of_carol, 3)
            assert tx.sessions.page_of_peer(dataset.carol.key, limit=1, offset=1) == (
                sessions_of_carol[1:2],
                3,
            )
            assert tx.sessions.page_of_peer(dataset.carol.key, order=newest, limit=2) == (
                [sessions_of_carol[2], sessions_of_carol[1]],
                3,
            )
            assert tx.sessions.page_of_peer(dataset.carol.key, equals(slug=("s1", "s2"))) == (
                [sessions[0]],
                1,
            )
            assert tx.sessions.page_of_peer(dataset.bob.key) == ([dataset.session, sessions[1]], 2)
            assert tx.sessions.page_of_peer(dataset.carol.key, offset=3) == ([], 3)

    def test_a_peer_without_sessions_has_none(self, storage: Storage, dataset: Dataset) -> None:
        with storage.read() as tx:
            assert tx.sessions.page_of_peer(dataset.carol.key) == ([], 0)
            assert tx.sessions.page_of_scope(dataset.carol.key) == ([], 0)

    def test_sessions_of_a_scope(self, storage: Storage, dataset: Dataset) -> None:
        """Sessions that are in it now, in the order in which they joined it."""
        scope = storage.write(
            lambda tx: tx.peers.put([dataset.peer("scope.all", 1, kind=r.SCOPE)])
        )[0]
        rows = [dataset.another_session(f"s{n}", n) for n in range(1, 6)]
        sessions = [storage.write(lambda tx, one=one: tx.sessions.save(one)) for one in rows]  # type: ignore[misc]
        joined = [sessions[3], sessions[0], sessions[4], sessions[2]]
        storage.write(
            lambda tx: tx.members.put(
                [
                    dataset.member(s, scope, n // 2, left_at=NOW if s is sessions[4] else None)
                    for n, s in enumerate(joined)
                ]
            )
        )
        inside = [sessions[3], sessions[0], sessions[2]]
        with storage.read() as tx:
            assert tx.sessions.page_of_scope(scope.key) == (inside, 3)
            assert tx.sessions.page_of_scope(scope.key, reverse=True) == (inside[::-1], 3)
            assert tx.sessions.page_of_scope(scope.key, limit=1, offset=1) == ([sessions[0]], 3)
            assert tx.sessions.page_of_scope(scope.key, equals(slug=("s3", "s4"))) == (
                [sessions[3], sessions[2]],
                2,
            )
            assert tx.sessions.page_of_scope(scope.key, equals(slug="s5")) == ([], 0)
