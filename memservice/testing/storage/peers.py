"""Chapter: peers and members."""

from __future__ import annotations

from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters.ast import equals
from memservice.domain.records import SCOPE
from memservice.spi.rows import Order
from memservice.spi.storage import Storage, Transaction
from memservice.testing.storage.base import NOW, Chapter, Dataset, populate


class PeersChapter(Chapter):
    def test_peers_of_another_workspace_stay_out(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        extra = storage.write(lambda tx: tx.peers.put([other.peer("dora", 30)]))[0]
        own, foreign = dataset.workspace.key, other.workspace.key
        with storage.read() as tx:
            assert tx.peers.page(own) == [dataset.alice, dataset.bob, dataset.carol]
            assert tx.peers.count(own) == 3
            assert tx.peers.page(foreign) == [other.alice, other.bob, other.carol, extra]
            assert tx.peers.by_slug(own, "dora") is None
            assert tx.peers.by_slug(foreign, "alice") == other.alice
            assert tx.peers.by_slugs(own, ["dora", "bob", "nobody", "bob"]) == {"bob": dataset.bob}
            assert tx.peers.by_slugs(own, []) == {}

    def test_peers_by_keys(self, storage: Storage, dataset: Dataset) -> None:
        with storage.read() as tx:
            assert tx.peers.by_keys([dataset.carol.key, dataset.alice.key, 10**9]) == {
                dataset.alice.key: dataset.alice,
                dataset.carol.key: dataset.carol,
            }
            assert tx.peers.by_keys([]) == {}

    def test_peers_are_paged_in_a_total_order(self, storage: Storage, dataset: Dataset) -> None:
        peers = storage.write(
            lambda tx: tx.peers.put([dataset.peer(f"p{n}", n, created_at=NOW) for n in range(7)])
        )
        everyone = [dataset.alice, *peers, dataset.bob, dataset.carol]
        key = dataset.workspace.key
        with storage.read() as tx:
            assert tx.peers.page(key) == everyone
            assert tx.peers.page(key, limit=4, offset=3) == everyone[3:7]
            assert (
                tx.peers.page(key, order=(Order("created_at", True), Order("key", True)))
                == everyone[::-1]
            )
            assert tx.peers.page(key, equals(slug=("p3", "bob"))) == [peers[3], dataset.bob]
            assert tx.peers.count(key, equals(slug=("p3", "bob"))) == 2

    def test_put_updates_a_peer(self, storage: Storage, dataset: Dataset) -> None:
        changed = replace(
            dataset.bob,
            v1_name="robert",
            metadata={"name": "Bob"},
            configuration={"observe_me": False},
        )
        assert storage.write(lambda tx: tx.peers.put([changed])) == [changed]
        with storage.read() as tx:
            assert tx.peers.by_slug(dataset.workspace.key, "bob", lock=False) == changed

    def test_peers_of_a_session_in_the_order_they_joined(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        """Without scopes and former members."""

        def join(view_peers: list[r.Peer]) -> list[r.Member]:
            scope, former, late, early = view_peers
            return [
                dataset.member(dataset.session, scope, 3),
                dataset.member(dataset.session, former, 4, left_at=NOW),
                dataset.member(dataset.session, late, 9),
                dataset.member(dataset.session, early, 0),
            ]

        peers = storage.write(
            lambda tx: tx.peers.put(
                [
                    dataset.peer("scope.x", 1, kind=SCOPE),
                    dataset.peer("gone", 2),
                    dataset.peer("late", 3),
                    dataset.peer("early", 4),
                ]
            )
        )
        storage.write(lambda tx: tx.members.put(join(peers)))
        inside = [peers[3], dataset.alice, dataset.bob, peers[2]]
        key = dataset.session.key
        with storage.read() as tx:
            assert tx.peers.page_of_session(key) == (inside, 4)
            assert tx.peers.page_of_session(key, reverse=True) == (inside[::-1], 4)
            assert tx.peers.page_of_session(key, limit=2, offset=1) == (inside[1:3], 4)
            assert tx.peers.page_of_session(10**9) == ([], 0)

    def test_members_of_a_session(self, storage: Storage, dataset: Dataset) -> None:
        former, scope = storage.write(
            lambda tx: tx.members.put(
                [
                    dataset.member(
                        dataset.session, dataset.carol, 5, left_at=NOW, observe_others=True
                    ),
                    dataset.member(
                        dataset.session,
                        tx.peers.put([dataset.peer("scope.x", 1, kind=SCOPE)])[0],
                        0,
                    ),
                ]
            )
        )
        with storage.read() as tx:
            active = tx.members.of_session(dataset.session.key)
            assert [member.peer for member in active] == ["alice", "bob", "scope.x"]
            assert tx.members.of_session(dataset.session.key, active=False) == [
                *active[:2],
                former,
                scope,
            ]
            assert tx.members.of_session(
                dataset.session.key, peer_keys=[dataset.bob.key, dataset.carol.key, 10**9]
            ) == [active[1]]
            assert tx.members.of_session(
                dataset.session.key, active=False, peer_keys=[dataset.carol.key]
            ) == [former]
            assert tx.members.of_session(dataset.session.key, peer_keys=[]) == []
            assert tx.members.one(dataset.session.key, dataset.carol.key) == former
            assert tx.members.one(dataset.session.key, 10**9) is None
            assert tx.members.of_peer(dataset.carol.key) == [former]
            assert tx.members.of_peer(dataset.carol.key, active=True) == []
            assert tx.members.of_peer(dataset.bob.key, active=True) == [active[1]]
        back = storage.write(lambda tx: tx.members.put([replace(former, left_at=None)]))[0]
        with storage.read() as tx:
            assert tx.members.of_peer(dataset.carol.key, active=True) == [back]
        assert storage.write(lambda tx: tx.members.put([])) == []

    def test_members_that_speak_or_listen(self, storage: Storage, dataset: Dataset) -> None:
        def store(tx: Transaction) -> list[r.Member]:
            dave, scope = tx.peers.put(
                [dataset.peer("dave", 1), dataset.peer("scope.x", 2, kind=SCOPE)]
            )
            former = dataset.member(
                dataset.session, dataset.carol, 5, left_at=NOW, observe_others=True
            )
            return tx.members.put(
                [
                    former,
                    dataset.member(dataset.session, dave, 6, observe_others=False),
                    dataset.member(dataset.session, scope, 7, observe_others=True),
                ]
            )

        former, quiet, scope = storage.write(store)
        with storage.read() as tx:
            listening = [
                member
                for member in tx.members.of_session(dataset.session.key)
                if member.observe_others
            ]
            assert scope in listening
            assert tx.members.listening(dataset.session.key, []) == listening
            assert quiet not in listening
            speakers = [quiet.peer_key, former.peer_key, 10**9]
            assert tx.members.listening(dataset.session.key, speakers) == sorted(
                [*listening, quiet], key=lambda member: member.key
            )
            assert tx.members.listening(10**9, speakers) == []
            assert tx.members.authors_and_observers(dataset.session.key, speakers) == sorted(
                [*listening, quiet, former], key=lambda member: member.key
            )
            assert tx.members.authors_and_observers(10**9, speakers) == []

    def test_active_sessions_of_a_peer_among_some(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        quiet = storage.write(
            lambda tx: tx.sessions.save(
                replace(dataset.session, key=0, uid=dataset.uid(77), slug="quiet")
            )
        )
        storage.write(
            lambda tx: tx.members.put(
                [
                    dataset.member(quiet, dataset.alice, 3, left_at=NOW),
                    dataset.member(quiet, dataset.bob, 4),
                ]
            )
        )
        talk = dataset.session.slug
        with storage.read() as tx:
            assert tx.members.active_among(dataset.alice.key, [talk, "quiet", "nowhere"]) == {talk}
            assert tx.members.active_among(dataset.bob.key, ["quiet", talk, "quiet"]) == {
                "quiet",
                talk,
            }
            assert tx.members.active_among(dataset.bob.key, ["quiet"]) == {"quiet"}
            assert tx.members.active_among(dataset.carol.key, [talk]) == set()
            assert tx.members.active_among(other.alice.key, ["quiet"]) == set()
            assert tx.members.active_among(dataset.alice.key, [talk.upper()]) == set()
            assert tx.members.active_among(dataset.alice.key, []) == set()

    def test_peers_are_found_by_name_tokens(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        scope = storage.write(lambda tx: tx.peers.put([dataset.peer("scope.x", 1, kind=SCOPE)]))[0]

        storage.write(lambda tx: tx.peers.set_names(dataset.alice, ["alice", "smith", "алиса"]))
        storage.write(lambda tx: tx.peers.set_names(dataset.bob, ["bob", "smith", "bob"]))
        storage.write(lambda tx: tx.peers.set_names(scope, ["smith", "scope"]))
        storage.write(lambda tx: tx.peers.set_names(other.carol, ["smith", "alice"]))
        key = dataset.workspace.key
        with storage.read() as tx:
            assert tx.peers.named(key, ["smith", "алиса", "nobody", "scope"]) == {
                "smith": [dataset.alice, dataset.bob],
                "алиса": [dataset.alice],
            }
            assert tx.peers.named(key, ["Smith", "smit", "bob smith"]) == {}
            assert tx.peers.named(other.workspace.key, ["smith", "bob"]) == {"smith": [other.carol]}
            assert tx.peers.named(key, []) == {}

    def test_new_names_replace_the_old_ones(self, storage: Storage, dataset: Dataset) -> None:
        for tokens in (["alice", "smith"], ["alice", "jones"], []):
            storage.write(lambda tx, tokens=tokens: tx.peers.set_names(dataset.alice, tokens))  # type: ignore[misc]
            with storage.read() as tx:
                assert tx.peers.named(dataset.workspace.key, ["alice", "smith", "jones"]) == {
                    t: [dataset.alice] for t in tokens
                }
