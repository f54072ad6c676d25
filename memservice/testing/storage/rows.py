"""Chapter: the seven operations on rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from memservice.domain import records as r
from memservice.domain.filters.ast import FALSE, TRUE, Compare, equals
from memservice.spi.rows import Order
from memservice.spi.schema import TABLES
from memservice.spi.storage import Storage, Transaction
from memservice.testing.storage.base import NOW, Chapter, Dataset, keys, new_workspace
from memservice.testing.storage.examples import bare_rows, full_rows

RECORDS = [spec.record for spec in TABLES]


def _name(record: type[Any]) -> str:
    return record.__name__


def store_examples(tx: Transaction, dataset: Dataset) -> dict[type[Any], list[Any]]:
    """Store the rows that examples refer to; return the examples, not stored yet, by record."""
    rows = tx.rows
    common: dict[str, Any] = {"workspace_key": dataset.workspace.key, "created_at": NOW}
    message = rows.put([dataset.message(1)])[0].key
    conclusion = rows.put([dataset.conclusion(1)])[0].key
    task = rows.put([dataset.task(1, "unit")])[0].key
    endpoint = rows.put(
        [r.WebhookEndpoint(**common, uid=dataset.uid(50), url="http://a", secret="s")]
    )[0].key
    named = rows.put(
        [r.NamedCollection(**common, uid=dataset.uid(51), owner_key=dataset.bob.key, name="a")]
    )[0].key
    examples: dict[type[Any], list[Any]] = {}
    for row in (
        *full_rows(dataset, message, conclusion, task, endpoint, named),
        *bare_rows(dataset, message, named, endpoint),
    ):
        examples.setdefault(type(row), []).append(row)
    return examples


def _plain(row: Any) -> str:
    """The row as text that distinguishes 1, 1.0 and true, and times in different zones."""
    return json.dumps(asdict(row), default=datetime.isoformat, sort_keys=True)


class RowsChapter(Chapter):
    @pytest.mark.parametrize("record", RECORDS, ids=_name)
    def test_round_trip(self, storage: Storage, dataset: Dataset, record: type[Any]) -> None:
        """Every field of every record is stored unchanged: text, JSON, numbers, nulls, and times to
        the microsecond."""
        for row in storage.write(lambda tx: store_examples(tx, dataset))[record]:
            returned = storage.write(lambda tx, row=row: tx.rows.put([row])[0])  # type: ignore[misc]
            with storage.read() as tx:
                reread = tx.rows.get(record, equals(key=returned.key))
            assert returned.key > 0
            assert _plain(returned) == _plain(replace(row, key=returned.key))
            assert _plain(reread) == _plain(returned)
            storage.write(lambda tx, key=returned.key: tx.rows.delete(record, equals(key=key)))  # type: ignore[misc]

    def test_every_record_has_an_example(self, storage: Storage, dataset: Dataset) -> None:
        """Checks the suite itself: it covers every record."""
        assert set(storage.write(lambda tx: store_examples(tx, dataset))) == set(RECORDS)

    def test_returned_rows_share_no_mutable_state_with_the_store(self, storage: Storage) -> None:
        metadata: dict[str, Any] = {"list": [1]}
        workspace = storage.write(
            lambda tx: tx.workspaces.save(new_workspace("a", metadata=metadata))
        )
        metadata["list"].append(2)
        workspace.metadata["list"].append(3)
        with storage.read() as tx:
            row_read = tx.rows.get(r.Workspace, TRUE)
            assert row_read is not None
            row_read.metadata["list"].append(4)
        with storage.read() as tx:
            row_read = tx.rows.get(r.Workspace, TRUE)
        assert row_read is not None
        assert row_read.metadata == {"list": [1]}

    def test_put_gives_rising_keys_in_order(self, storage: Storage) -> None:
        facts_without_keys = [r.Fact(name=f"fact {n}", value=str(n)) for n in range(50)]
        facts = storage.write(lambda tx: tx.rows.put(facts_without_keys))
        assert [replace(row, key=0) for row in facts] == facts_without_keys
        assert keys(facts) == sorted(set(keys(facts)))
        later = storage.write(lambda tx: tx.rows.put([r.Fact(name="later", value="")]))[0]
        assert later.key > facts[-1].key

    def test_put_replaces_whole_rows_and_keeps_the_order(self, storage: Storage) -> None:
        a, b = storage.write(
            lambda tx: tx.rows.put(
                [
                    r.ApiKey(uid="a", label="a", admin=True, expires_at=NOW, created_at=NOW),
                    r.ApiKey(uid="b", created_at=NOW),
                ]
            )
        )
        new_a, new_c = (
            r.ApiKey(key=a.key, uid="a2", created_at=NOW),
            r.ApiKey(uid="c", created_at=NOW),
        )
        api_keys = storage.write(lambda tx: tx.rows.put([new_c, new_a]))
        assert [row.uid for row in api_keys] == ["c", "a2"]
        with storage.read() as tx:
            assert tx.rows.page(r.ApiKey) == [new_a, b, replace(new_c, key=api_keys[0].key)]

    def test_put_of_nothing(self, storage: Storage) -> None:
        assert storage.write(lambda tx: tx.rows.put([])) == []

    def test_a_deleted_row_cannot_be_replaced(self, storage: Storage) -> None:
        """A row that was deleted is not stored again, and neither are the other rows of the
        call."""
        fact, deleted = storage.write(
            lambda tx: tx.rows.put([r.Fact(name="kept", value="1"), r.Fact(name="gone", value="1")])
        )
        storage.write(lambda tx: tx.rows.delete(r.Fact, equals(name="gone")))

        def put(tx: Transaction) -> None:
            with pytest.raises(LookupError):
                tx.rows.put([r.Fact(name="new", value=""), replace(fact, value="2"), deleted])

        storage.write(put)
        with storage.read() as tx:
            assert tx.rows.page(r.Fact) == [fact]

    def test_keys_are_never_reused(self, storage: Storage) -> None:
        for _ in range(3):
            first = storage.write(lambda tx: tx.rows.put([r.Fact(name="a", value="")]))[0].key
            storage.write(lambda tx: tx.rows.delete(r.Fact, TRUE))
            second = storage.write(lambda tx: tx.rows.put([r.Fact(name="a", value="")]))[0].key
            assert second > first
            storage.write(lambda tx: tx.rows.delete(r.Fact, TRUE))

    def test_get_takes_the_lowest_key(self, storage: Storage, dataset: Dataset) -> None:
        with storage.read() as tx:
            peer = tx.rows.get(r.Peer, equals(workspace_key=dataset.workspace.key))
            assert peer == dataset.alice
            assert tx.rows.get(r.Peer, equals(slug="nobody")) is None

    def test_change_sets_all_matching_rows_and_only_them(self, storage: Storage) -> None:
        storage.write(
            lambda tx: tx.rows.put(
                [r.ApiKey(uid=f"k{n}", admin=n % 2 == 0, created_at=NOW) for n in range(6)]
            )
        )
        changed = storage.write(
            lambda tx: tx.rows.change(
                r.ApiKey, equals(admin=True), label="new", revoked_at=NOW, expires_at=None
            )
        )
        assert changed == 3
        with storage.read() as tx:
            assert [(row.uid, row.label, row.revoked_at) for row in tx.rows.page(r.ApiKey)] == [
                (f"k{n}", "new" if n % 2 == 0 else None, NOW if n % 2 == 0 else None)
                for n in range(6)
            ]

    def test_change_is_compare_and_set(self, storage: Storage) -> None:
        storage.write(lambda tx: tx.rows.put([r.Fact(name="a", value="1")]))
        assert (
            storage.write(lambda tx: tx.rows.change(r.Fact, equals(name="a", value="1"), value="2"))
            == 1
        )
        assert (
            storage.write(lambda tx: tx.rows.change(r.Fact, equals(name="a", value="1"), value="3"))
            == 0
        )
        with storage.read() as tx:
            assert tx.facts.get("a") == "2"

    def test_change_stores_json_and_nulls(self, storage: Storage, dataset: Dataset) -> None:
        condition = equals(key=dataset.alice.key)
        metadata = {"a": [None, {"b": "ü"}]}
        storage.write(
            lambda tx: tx.rows.change(r.Peer, condition, metadata=metadata, v1_role="assistant")
        )
        with storage.read() as tx:
            assert tx.rows.get(r.Peer, condition) == replace(
                dataset.alice, metadata=metadata, v1_role="assistant"
            )
        storage.write(lambda tx: tx.rows.change(r.Peer, condition, metadata={}, v1_role=None))
        with storage.read() as tx:
            assert tx.rows.get(r.Peer, condition) == dataset.alice

    def test_increase_adds_to_all_matching_rows(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(
            lambda tx: tx.sessions.save(dataset.another_session("other", 1, message_count=5))
        )
        condition = equals(workspace_key=dataset.workspace.key)
        assert (
            storage.write(
                lambda tx: tx.rows.increase(
                    r.Session, condition, message_count=2, token_total=2**40
                )
            )
            == 2
        )
        assert (
            storage.write(
                lambda tx: tx.rows.increase(r.Session, equals(key=other.key), message_count=-1)
            )
            == 1
        )
        assert storage.write(lambda tx: tx.rows.increase(r.Session, FALSE, message_count=1)) == 0
        with storage.read() as tx:
            assert [(s.message_count, s.token_total) for s in tx.rows.page(r.Session)] == [
                (2, 2**40),
                (6, 2**40),
            ]

    def test_delete_erases_all_matching_rows_and_counts_them(self, storage: Storage) -> None:
        storage.write(
            lambda tx: tx.rows.put(
                [r.Fact(name=f"{n}", value="even" if n % 2 == 0 else "odd") for n in range(250)]
            )
        )
        assert storage.write(lambda tx: tx.rows.delete(r.Fact, equals(value="even"))) == 125
        assert storage.write(lambda tx: tx.rows.delete(r.Fact, equals(value="even"))) == 0
        with storage.read() as tx:
            assert [fact.name for fact in tx.rows.page(r.Fact)] == [
                f"{n}" for n in range(1, 250, 2)
            ]
            assert tx.rows.count(r.Fact) == 125
            assert [tx.rows.count(r.Fact, limit=n) for n in (0, 1, 124, 125, 126)] == [
                0,
                1,
                124,
                125,
                125,
            ]

    def test_one_delete_takes_many_keys(self, storage: Storage) -> None:
        facts = storage.write(
            lambda tx: tx.rows.put([r.Fact(name=f"{n}", value="") for n in range(1001)])
        )
        assert (
            storage.write(lambda tx: tx.rows.delete(r.Fact, equals(key=tuple(keys(facts)[:1000]))))
            == 1000
        )
        with storage.read() as tx:
            assert tx.rows.page(r.Fact) == facts[1000:]

    def test_strings_order_by_code_point(self, storage: Storage) -> None:
        ordered = [
            "",
            " ",
            "!",
            "10",
            "9",
            "A",
            "Z",
            "_",
            "a",
            "aa",
            "b",
            "z",
            "~",
            "É",
            "é",
            "ö",
            "Ω",
            "中",
            "\uffee",
            "\U0001f600",
        ]
        shuffled = ordered[1::2] + ordered[::2][::-1]
        storage.write(lambda tx: tx.rows.put([r.Fact(name=name, value="") for name in shuffled]))
        with storage.read() as tx:
            assert [fact.name for fact in tx.rows.page(r.Fact, TRUE, (Order("name"),))] == ordered
            assert [
                fact.name for fact in tx.rows.page(r.Fact, TRUE, (Order("name", True),))
            ] == ordered[::-1]
            facts = tx.rows.page(r.Fact, Compare("name", "gte", "Z"), (Order("name"),))
            assert [fact.name for fact in facts] == ordered[ordered.index("Z") :]

    def test_times_order_to_the_microsecond(self, storage: Storage) -> None:
        at = [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
            NOW,
            NOW + timedelta(microseconds=1),
            NOW.replace(microsecond=999999),
            NOW.replace(microsecond=0) + timedelta(seconds=1),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ]
        storage.write(
            lambda tx: tx.rows.put(
                [r.ApiKey(uid=f"k{n}", created_at=at[n]) for n in (3, 7, 0, 4, 1, 6, 2, 5)]
            )
        )
        with storage.read() as tx:
            assert [
                row.created_at
                for row in tx.rows.page(r.ApiKey, TRUE, (Order("created_at"), Order("key")))
            ] == at
            for n, moment in enumerate(at):
                assert [row.uid for row in tx.rows.page(r.ApiKey, equals(created_at=moment))] == [
                    f"k{n}"
                ]
                assert tx.rows.count(r.ApiKey, Compare("created_at", "lt", moment)) == n
                assert tx.rows.count(r.ApiKey, Compare("created_at", "lte", moment)) == n + 1
                assert (
                    tx.rows.count(r.ApiKey, Compare("created_at", "gt", moment)) == len(at) - n - 1
                )
                assert tx.rows.count(r.ApiKey, Compare("created_at", "gte", moment)) == len(at) - n

    def test_null_orders_below_every_value(self, storage: Storage) -> None:
        labels = [None, "b", "", None, "a"]
        storage.write(
            lambda tx: tx.rows.put(
                [
                    r.ApiKey(uid=f"{n}", label=label, created_at=NOW)
                    for n, label in enumerate(labels)
                ]
            )
        )
        with storage.read() as tx:
            assert [
                row.uid for row in tx.rows.page(r.ApiKey, TRUE, (Order("label"), Order("key")))
            ] == ["0", "3", "2", "4", "1"]
            api_keys = tx.rows.page(r.ApiKey, TRUE, (Order("label", True), Order("key", True)))
            assert [row.uid for row in api_keys] == ["1", "4", "2", "3", "0"]

    def test_order_by_several_fields_in_their_own_directions(self, storage: Storage) -> None:
        storage.write(
            lambda tx: tx.rows.put([r.Fact(name=f"{n:02}", value=str(n % 3)) for n in range(12)])
        )
        with storage.read() as tx:
            names = [
                fact.name
                for fact in tx.rows.page(r.Fact, TRUE, (Order("value", True), Order("name")))
            ]
            assert names == [f"{n:02}" for remainder in (2, 1, 0) for n in range(remainder, 12, 3)]

    @pytest.mark.parametrize("descending", [False, True])
    def test_pages_are_disjoint_and_complete_among_ties(
        self, storage: Storage, descending: bool
    ) -> None:
        storage.write(
            lambda tx: tx.rows.put([r.ApiKey(uid=f"k{n}", created_at=NOW) for n in range(23)])
        )
        order = (Order("created_at", descending), Order("key", descending))
        with storage.read() as tx:
            everything = keys(tx.rows.page(r.ApiKey, TRUE, order))
            pages = [
                keys(tx.rows.page(r.ApiKey, TRUE, order, limit=5, offset=offset))
                for offset in range(0, 25, 5)
            ]
        assert everything == sorted(everything, reverse=descending)
        assert [key for page in pages for key in page] == everything
        assert [len(page) for page in pages] == [5, 5, 5, 5, 3]

    def test_limit_and_offset(self, storage: Storage) -> None:
        facts = storage.write(
            lambda tx: tx.rows.put([r.Fact(name=f"{n}", value="") for n in range(10)])
        )
        with storage.read() as tx:
            assert tx.rows.page(r.Fact) == facts
            assert tx.rows.page(r.Fact, limit=3) == facts[:3]
            assert tx.rows.page(r.Fact, limit=3, offset=8) == facts[8:]
            assert tx.rows.page(r.Fact, offset=4) == facts[4:]
            assert tx.rows.page(r.Fact, limit=0) == []
            assert tx.rows.page(r.Fact, limit=5, offset=10) == []
            assert tx.rows.page(r.Fact, limit=2**31) == facts

    def test_count_is_of_all_matching_rows(self, storage: Storage, dataset: Dataset) -> None:
        with storage.read() as tx:
            assert tx.rows.count(r.Peer) == 3
            assert tx.rows.count(r.Peer, equals(slug=("alice", "carol", "nobody"))) == 2
            assert tx.rows.count(r.Peer, FALSE) == 0
            assert tx.rows.count(r.Card) == 0
