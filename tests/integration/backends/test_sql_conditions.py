"""Conditions in SQL mean what the reference evaluator says, on rows that hold every odd value."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memservice.domain.filters import CONCLUSION, MESSAGE, SESSION, Resource, matches
from memservice.domain.filters.ast import (
    All,
    Any_,
    Compare,
    Condition,
    Contains,
    Equal,
    KeyCompare,
    KeyEqual,
    KeyOneOf,
    Not,
    OneOf,
    Ordering,
    Substring,
)
from memservice.domain.records import Conclusion, Message, Session
from memservice.spi.storage import Transaction
from memservice.testing import corpus
from memservice.testing.storage.base import NOW, Dataset, populate
from memservice.testing.strategies import nodes
from memservice_sql.storage import SqlStorage
from support.examples import examples
from support.stores.stores import DIALECTS, migrated_on

RESOURCES: dict[type[Any], Resource] = {Message: MESSAGE, Session: SESSION, Conclusion: CONCLUSION}


@pytest.fixture(scope="module", params=DIALECTS)
def storage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqlStorage]:
    with migrated_on(request.param, tmp_path_factory.mktemp("conditions")) as opened:
        yield opened


@pytest.fixture(scope="module")
def rows(storage: SqlStorage) -> dict[type[Any], list[Any]]:
    def store(tx: Transaction) -> dict[type[Any], list[Any]]:
        dataset: Dataset = populate(tx, "w")
        key, alice = dataset.workspace.key, dataset.alice.key
        messages = corpus.messages(
            workspace_key=key, session_key=dataset.session.key, author_key=alice
        )
        conclusions = corpus.conclusions(
            workspace_key=key,
            collection_key=dataset.collection.key,
            observer_key=alice,
            observed_key=alice,
        )
        other = populate(tx, "others")
        sessions = corpus.sessions(workspace_key=other.workspace.key)
        return {
            Message: tx.rows.put(messages),
            Conclusion: tx.rows.put(conclusions),
            Session: [dataset.session, other.session, *tx.rows.put(sessions)],
        }

    return storage.write(store)


def check(storage: SqlStorage, rows: list[Any], *conditions: Condition) -> None:
    """Each condition selects the rows that the evaluator selects, and its negation all others."""
    record = type(rows[0])
    with storage.read() as tx:
        for condition in conditions:
            expected = [row.key for row in rows if matches(row, condition)]
            assert [row.key for row in tx.rows.page(record, condition)] == expected, condition
            others = tx.rows.count(record, Not(condition))
            assert others == len(rows) - len(expected), Not(condition)


# By default, the contract of each storage tries every kind of condition on conclusions, and the
# next test random ones on every record.
@pytest.mark.heavy
@pytest.mark.parametrize("record", RESOURCES, ids=lambda record: record.__name__)
def test_every_condition_on_every_value(
    storage: SqlStorage, rows: dict[type[Any], list[Any]], record: type[Any]
) -> None:
    probes = list(corpus.probes(record))
    check(storage, rows[record], *probes)


@pytest.mark.parametrize("record", RESOURCES, ids=lambda record: record.__name__)
def test_any_filter_agrees_with_the_reference(
    storage: SqlStorage, rows: dict[type[Any], list[Any]], record: type[Any]
) -> None:
    @settings(
        max_examples=examples(25),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(nodes(RESOURCES[record]))
    def agrees(condition: Condition) -> None:
        check(storage, rows[record], condition)

    agrees()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_text_that_looks_like_json_equals_no_object_or_list(dialect: str, tmp_path: Path) -> None:
    texts = ('{"a":1}', '{"a": 1}', "[1,2]", "[1, 2]")

    def store(tx: Transaction) -> list[Message]:
        dataset = populate(tx, "w")
        values = ({"a": 1}, [1, 2], *texts)
        return tx.messages.append(
            [dataset.message(seq, metadata={"k": value}) for seq, value in enumerate(values, 1)]
        )

    with migrated_on(dialect, tmp_path) as storage:
        check(storage, storage.write(store), *(KeyEqual("metadata", "k", text) for text in texts))


OPERATORS: tuple[Ordering, ...] = ("gt", "gte", "lt", "lte")
EDGES = (2**53 - 1, 2**53, 2**63 - 1, -(2**63), 2.5, -0.0, 1e300, -1e300, float(2**63), 0.1, 1e-300)


@pytest.mark.parametrize("edge", EDGES, ids=repr)
def test_integers_compare_with_any_number(
    storage: SqlStorage, rows: dict[type[Any], list[Any]], edge: float
) -> None:
    leaves: list[Condition] = [Equal("tokens", edge), OneOf("tokens", (edge, 3))]
    leaves += [Compare("tokens", op, edge) for op in OPERATORS]
    leaves += [KeyCompare("metadata", "k", op, edge) for op in OPERATORS]
    leaves += [KeyCompare("metadata", "k", "eq", edge), KeyCompare("metadata", "k", "ne", edge)]
    leaves += [
        Contains("metadata", {"k": edge}),
        KeyEqual("metadata", "k", str(edge)),
        KeyOneOf("metadata", "k", (str(edge), "a")),
    ]
    check(storage, rows[Message], *leaves)


def test_values_of_another_type_match_nothing(
    storage: SqlStorage, rows: dict[type[Any], list[Any]]
) -> None:
    for value in (1, 1.0, True, "1", NOW):
        leaves: list[Condition] = [
            Equal(field, value) for field in ("content", "tokens", "created_at", "metadata")
        ]
        leaves += [OneOf(field, (value, value)) for field in ("content", "tokens", "created_at")]
        leaves += [
            Contains(field, value)
            for field in ("content", "tokens")
            if not isinstance(value, datetime)
        ]
        check(storage, rows[Message], *leaves)
    odd = (
        Substring("tokens", "1"),
        KeyEqual("content", "k", "1"),
        Contains("content", {}),
        Contains("source_ids", None),
        Contains("session", None),
    )
    check(storage, rows[Conclusion], *[node for node in odd if node.field != "tokens"])
    check(storage, rows[Message], odd[0])


@pytest.mark.parametrize("number", [8, 9, 40])
def test_many_alternatives_agree_with_the_reference(
    storage: SqlStorage, rows: dict[type[Any], list[Any]], number: int
) -> None:
    """Also where some of them differ from the others in shape."""
    session = rows[Message][0].session_key
    spans: list[Condition] = [
        All(
            (
                Equal("session_key", session + n % 3),
                Compare("created_at", "gte", NOW - timedelta(days=n)),
                Compare("tokens", "lt", n % 5),
            )
        )
        for n in range(number)
    ]
    texts: list[Condition] = [Contains("metadata", {"k": f"{n}"}) for n in range(number)]
    singles: list[Condition] = [Equal("seq", n) for n in range(0, number, 3)]
    mixed = [part for parts in zip(spans, texts, strict=True) for part in parts]
    either = [
        Any_(tuple(parts))
        for parts in (spans, texts, singles, mixed, [*singles, Not(Equal("seq", 5))])
    ]
    both = [All(tuple(Not(part) for part in parts)) for parts in (texts, singles)]
    check(
        storage,
        rows[Message],
        *either,
        *both,
        All((Equal("session_key", session), *either)),
    )


@pytest.mark.parametrize(
    "storage", ["sqlite", pytest.param("postgres", marks=pytest.mark.heavy)], indirect=True
)
def test_more_alternatives_than_an_expression_may_be_deep(
    storage: SqlStorage, rows: dict[type[Any], list[Any]]
) -> None:
    texts = tuple(Contains("metadata", {"k": f"{n}"}) for n in range(1_100))
    numbers = tuple(Not(Equal("message_count", n)) for n in range(1_100))
    check(storage, rows[Session], Any_(texts), All(numbers))


def test_changes_of_rows_among_many_alternatives_are_counted(
    storage: SqlStorage, rows: dict[type[Any], list[Any]]
) -> None:
    many = Any_(tuple(Equal("slug", f"session-{n}") for n in range(5, 25)))
    assert storage.write(lambda tx: tx.rows.change(Session, many, token_total=1)) == 20
    assert storage.write(lambda tx: tx.rows.increase(Session, many, token_total=-1)) == 20
    assert (
        storage.write(
            lambda tx: tx.rows.delete(
                Conclusion, Any_(tuple(Equal("uid", f"none-{n}") for n in range(20)))
            )
        )
        == 0
    )


def test_statements_are_compiled_once_per_shape(
    storage: SqlStorage, rows: dict[type[Any], list[Any]]
) -> None:
    def ask(numbers: range) -> None:
        with storage.read() as tx:
            for n in numbers:
                tx.rows.page(
                    Message,
                    All(
                        (
                            Equal("seq", n),
                            OneOf("tokens", tuple(range(n, 2 * n + 2))),
                            Contains("metadata", {"x": f"{n}"}),
                        )
                    ),
                )

    ask(range(1, 3))
    before = len(storage.statements.texts)
    ask(range(3, 30))
    assert len(storage.statements.texts) == before


@given(st.text(max_size=20))
@settings(max_examples=examples(15), deadline=None, derandomize=True, database=None)
def test_statement_texts_contain_no_values(text: str) -> None:
    """Whatever a caller sends, it is a value of a statement and no part of its text."""
    from memservice_sql.conditions import Filterable, shape
    from memservice_sql.tables import messages
    from memservice_sqlite.connections import ConnectionConfig
    from memservice_sqlite.dialect import SqliteDialect

    on = Filterable.of(messages, SqliteDialect(ConnectionConfig(Path("unused.db"))))
    marked = f"mark-{text}"
    leaves = (
        Equal("content", marked),
        Substring("content", marked),
        KeyEqual("metadata", marked, marked),
        Contains("metadata", {marked: marked}),
    )
    assert "mark-" not in repr(shape(on, All(leaves), []))
