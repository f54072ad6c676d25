"""What filters mean, condition by condition, on rows written out here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memservice.domain.filters import (
    CONCLUSION,
    FALSE,
    MESSAGE,
    PEER,
    SESSION,
    TRUE,
    WORKSPACE,
    Resource,
    matches,
    parse_filters,
)
from memservice.domain.filters.ast import Contains, Equal, KeyCompare, KeyEqual, Not, OneOf
from memservice.domain.filters.jsontext import fold, number_text, order, value_number
from memservice.domain.records import (
    ACTIVE,
    ARCHIVED,
    Conclusion,
    Message,
    Peer,
    Session,
    Workspace,
)

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def message(**fields: Any) -> Message:
    defaults: dict[str, Any] = {
        "uid": "m",
        "workspace_key": 1,
        "session_key": 1,
        "author_key": 1,
        "session": "s",
        "author": "alice",
        "seq": 1,
        "content": "",
        "tokens": 5,
        "tokens_through": 5,
        "created_at": NOON,
    }
    return Message(**(defaults | fields))


def conclusion(**fields: Any) -> Conclusion:
    defaults: dict[str, Any] = {
        "uid": "c",
        "workspace_key": 1,
        "collection_key": 1,
        "observer_key": 1,
        "observed_key": 2,
        "observer": "alice",
        "observed": "bob",
        "content": "Bob LIKES Éclairs, 100%",
        "fingerprint": "",
        "said_at": NOON,
        "created_at": NOON,
    }
    return Conclusion(**(defaults | fields))


def holds(filters: dict[str, Any], row: Any, resource: Resource) -> bool:
    return matches(row, parse_filters(filters, resource, workspace_id="w"))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, True),
        ({"peer_id": "alice"}, True),
        ({"peer_id": "Alice"}, False),
        ({"peer_id": "*"}, True),
        ({"peer_id": None}, False),
        ({"peer_id": ["bob", "alice"]}, True),
        ({"peer_id": []}, False),
        ({"peer_id": {"in": []}}, False),
        ({"peer_id": {"in": ["bob", "*"]}}, True),
        ({"peer_id": {"ne": "bob"}}, True),
        ({"peer_id": {"ne": None}}, True),
        ({"peer_id": {"gt": "Z", "lt": "b"}}, True),
        ({"peer_id": {"gt": "alice"}}, False),
        ({"peer_id": {"contains": "LIC"}}, True),
        ({"peer_id": {"icontains": "a%e"}}, False),
        ({"peer_id": "alice", "session_id": "other"}, False),
        ({"workspace_id": "w"}, True),
        ({"workspace_id": "other"}, False),
        ({"workspace_id": {"ne": "other"}}, True),
        ({"token_count": 5}, True),
        ({"token_count": 5.0}, True),
        ({"token_count": "5"}, True),
        ({"token_count": {"gt": "4.5", "lte": 5}}, True),
        ({"token_count": {"in": [4, "5"]}}, True),
        ({"created_at": "2024-05-01"}, False),
        ({"created_at": "2024-05-01 12:00:00"}, True),
        ({"created_at": "2024-05-01T14:00:00+02:00"}, True),
        ({"created_at": {"gte": "2024-05-01", "lt": "2024-05-01 12:00:00.1"}}, True),
        ({"AND": [{"peer_id": "alice"}, {"token_count": 5}]}, True),
        ({"AND": [{"peer_id": "alice"}, {"token_count": 6}]}, False),
        ({"AND": []}, True),
        ({"OR": []}, True),
        ({"NOT": []}, True),
        ({"OR": [{"peer_id": "bob"}, {"token_count": 5}]}, True),
        ({"OR": [{"peer_id": "bob"}, {"token_count": 6}]}, False),
        ({"NOT": [{"peer_id": "bob"}, {"token_count": 6}]}, True),
        ({"NOT": [{"peer_id": "bob"}, {"token_count": 5}]}, False),
        ({"OR": [{"peer_id": "*"}, {"peer_id": "bob"}]}, True),
        ({"NOT": [{"peer_id": "*"}]}, False),
    ],
)
def test_filters_on_columns(filters: dict[str, Any], expected: bool) -> None:
    assert holds(filters, message(), MESSAGE) is expected


@pytest.mark.parametrize(
    ("filters", "without", "with_session"),
    [
        ({"session_id": None}, True, False),
        ({"session_id": {"ne": None}}, False, True),
        ({"session_id": {"ne": "other"}}, True, True),
        ({"session_id": {"ne": "s"}}, True, False),
        ({"session_id": {"in": ["s", None]}}, True, True),
        ({"session_name": ["other"]}, False, False),
        ({"session_id": {"gt": ""}}, False, True),
        ({"session_id": {"contains": ""}}, False, True),
        ({"NOT": [{"session_id": "s"}]}, True, False),
        ({"NOT": [{"session_id": {"gt": "a"}}]}, True, False),
    ],
)
def test_filters_on_null_columns(
    filters: dict[str, Any], without: bool, with_session: bool
) -> None:
    assert holds(filters, conclusion(), CONCLUSION) is without
    assert holds(filters, conclusion(session="s", session_key=3), CONCLUSION) is with_session


METADATA = {
    "n": 5,
    "f": 1.0,
    "s": "Hello",
    "num": "12.5",
    "yes": True,
    "null": None,
    "tags": ["Work", {"x": 1, "y": 2}, 3],
    "o": {"a": {"b": 1, "c": 2}},
    "in": 7,
    "date": "2024-05-01",
    "id": "98765432109876543210",
}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, True),
        ("*", True),
        (None, False),
        ({"n": 5}, True),
        ({"n": 5.0, "f": 1}, True),
        ({"n": "5"}, False),
        ({"yes": True}, True),
        ({"yes": 1}, False),
        ({"f": True}, False),
        ({"s": "hello"}, False),
        ({"missing": 1}, False),
        ({"missing": "*"}, True),
        ({"null": None}, True),
        ({"missing": None}, False),
        ({"s": None}, False),
        ({"o": {"a": {"b": 1}}}, True),
        ({"o": {"a": {"b": 2}}}, False),
        ({"o": {}}, True),
        ({"s": {}}, False),
        ({"tags": ["Work"]}, True),
        ({"tags": [3, "Work", "Work"]}, True),
        ({"tags": [{"x": 1}]}, True),
        ({"tags": [{"x": 2}]}, False),
        ({"tags": "Work"}, False),
        ({"tags": []}, True),
        ({"contains": {"n": 5, "o": {"a": {"c": 2}}}}, True),
        ({"contains": {"in": 7}}, True),
        ({"contains": {"n": "*"}}, False),
        ({"n": {"gt": 4}}, True),
        ({"n": {"gt": "4"}}, True),
        ({"n": {"gt": 4, "lt": 5}}, False),
        ({"num": {"gte": 12.5}}, True),
        ({"num": {"lt": "12.6"}}, True),
        ({"num": {"ne": 12.5}}, False),
        ({"s": {"gt": 4}}, False),
        ({"s": {"ne": 4}}, False),
        ({"yes": {"ne": 1}}, False),
        ({"s": {"ne": "x"}}, True),
        ({"s": {"ne": "Hello"}}, False),
        ({"missing": {"ne": "x"}}, False),
        ({"null": {"ne": "x"}}, False),
        ({"missing": {"ne": 3}}, False),
        ({"missing": {"lt": 3}}, False),
        ({"tags": {"ne": "x"}}, True),
        ({"tags": {"gt": ""}}, False),
        ({"date": {"gte": "2024-01-01", "lt": "2025-01-01"}}, True),
        ({"date": {"lt": "2025"}}, False),
        ({"yes": {"gte": True}}, True),
        ({"yes": {"ne": True}}, False),
        ({"yes": {"ne": False}}, True),
        ({"yes": {"in": [True]}}, True),
        ({"yes": {"in": ["true"]}}, True),
        ({"n": {"in": ["5", "6"]}}, True),
        ({"n": {"in": [5.0]}}, True),
        ({"f": {"in": [1]}}, True),
        ({"n": {"in": []}}, False),
        ({"n": {"in": ["*"]}}, True),
        ({"null": {"in": [None, "x"]}}, True),
        ({"missing": {"in": [None]}}, False),
        ({"tags": {"in": ["Work"]}}, False),
        ({"s": {"contains": "ELL"}}, True),
        ({"s": {"icontains": "x"}}, False),
        ({"num": {"contains": 12.5}}, True),
        ({"yes": {"contains": "ru"}}, True),
        ({"tags": {"contains": "wor"}}, True),
        ({"tags": {"contains": ["Work"]}}, True),
        ({"tags": {"contains": "x"}}, False),
        ({"o": {"contains": "a"}}, False),
        ({"o": {"contains": {"a": {"b": 1}}}}, True),
        ({"missing": {"contains": ""}}, False),
        ({"s": {"ne": None}}, True),
        ({"tags": {"ne": None}}, True),
        ({"o": {"ne": None}}, True),
        ({"null": {"ne": None}}, False),
        ({"missing": {"ne": None}}, False),
        ({"o": {"a": {"gt": 0}}}, False),
        ({"id": {"ne": "98765432109876543210"}}, False),
        ({"id": {"ne": "98765432109876543211"}}, True),
        ({"id": {"gt": 5}}, True),
        ({"n": {"lt": "1e999"}}, False),
        ({"n\0": 5}, True),
        ({"s": "Hel\0lo"}, True),
    ],
)
def test_filters_on_metadata(metadata: Any, expected: bool) -> None:
    assert holds({"metadata": metadata}, message(metadata=METADATA), MESSAGE) is expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"observer_id": "alice", "observed_id": "bob"}, True),
        ({"observer": "alice", "observed": "alice"}, False),
        ({"id": {"in": ["x", "c"]}}, True),
        ({"content": {"contains": "likes éCLAIRS"}}, True),
        ({"content": {"contains": "100%"}}, True),
        ({"content": {"contains": "L_KES"}}, False),
        ({"level": "explicit"}, True),
        ({"level": {"ne": "explicit"}}, False),
        ({"level": {"in": ["deductive", "explicit"]}}, True),
        ({"times_derived": {"gte": 2}}, False),
        ({"deleted_at": None}, True),
        ({"deleted_at": {"gt": "2020-01-01"}}, False),
        ({"sync_state": "synced"}, True),
        ({"sync_state": ["pending", "failed"]}, False),
        ({"workspace_name": "w"}, True),
        ({"metadata": {"confidence": "high"}}, True),
        ({"internal_metadata": {"confidence": {"ne": "low"}}}, True),
        ({"metadata": {"mine": 1}}, False),
        ({"source_ids": {"contains": "a"}}, True),
        ({"source_ids": {"icontains": "a"}}, True),
        ({"source_ids": {"contains": "A"}}, False),
        ({"source_ids": "*"}, True),
        ({"source_ids": None}, False),
        ({"source_ids": {"ne": None}}, True),
    ],
)
def test_filters_on_conclusions(filters: dict[str, Any], expected: bool) -> None:
    row = conclusion(source_ids=["a", "b"], internal={"confidence": "high"}, metadata={"mine": 1})
    assert holds(filters, row, CONCLUSION) is expected


def test_filters_on_null_sources() -> None:
    assert holds({"source_ids": None}, conclusion(), CONCLUSION)
    assert not holds({"source_ids": {"contains": "a"}}, conclusion(), CONCLUSION)


@pytest.mark.parametrize(
    ("condition", "active", "archived"),
    [
        (True, True, False),
        (False, False, True),
        (None, False, False),
        ("*", True, True),
        ([True], True, False),
        ([], False, False),
        ([True, False], True, True),
        ({"ne": True}, False, True),
        ({"ne": None}, True, True),
        ({"in": [False, None]}, False, True),
        ({"gt": False}, True, False),
        ({"lte": True}, True, True),
    ],
)
def test_is_active_is_whether_the_state_is_active(
    condition: object, active: bool, archived: bool
) -> None:
    for state, expected in ((ACTIVE, active), (ARCHIVED, archived)):
        row = Session(uid="s", workspace_key=1, slug="s", state=state, created_at=NOON)
        assert holds({"is_active": condition}, row, SESSION) is expected


def test_ids_are_slugs() -> None:
    workspace = Workspace(uid="u", slug="w", v1_name="n", created_at=NOON)
    assert holds({"id": "w"}, workspace, WORKSPACE)
    assert not holds({"id": "u"}, workspace, WORKSPACE)
    assert holds(
        {"id": ["p"]}, Peer(uid="u", workspace_key=1, slug="p", v1_name="n", created_at=NOON), PEER
    )


def test_parsed_trees_are_simplified() -> None:
    assert parse_filters(None, MESSAGE, workspace_id="w") is TRUE
    assert (
        parse_filters({"peer_id": "*", "AND": [{}], "workspace_id": "w"}, MESSAGE, workspace_id="w")
        == TRUE
    )
    assert parse_filters({"workspace_id": "x"}, MESSAGE, workspace_id="w") == FALSE
    assert parse_filters({"AND": [{"peer_id": "a"}]}, MESSAGE, workspace_id="w") == Equal(
        "author", "a"
    )
    assert parse_filters({"OR": [{"peer_id": "a"}]}, MESSAGE, workspace_id="w") == Equal(
        "author", "a"
    )
    assert parse_filters({"peer_id": ["a", "a"]}, MESSAGE, workspace_id="w") == OneOf(
        "author", ("a",)
    )
    assert parse_filters({"peer_id": {"ne": "a"}}, MESSAGE, workspace_id="w") == Not(
        Equal("author", "a")
    )
    assert parse_filters({"metadata": {"a": 1, "b": [2]}}, MESSAGE, workspace_id="w") == Contains(
        "metadata", {"a": 1, "b": [2]}
    )


def test_names_that_the_route_decides_are_skipped_at_the_top_only() -> None:
    filters = {"peer_id": 5, "workspace_id": "x", "OR": [{"peer_id": "a"}]}
    assert parse_filters(
        filters, MESSAGE, workspace_id="w", ignore=("peer_id", "workspace_id")
    ) == Equal("author", "a")


def test_values_of_different_types_never_match() -> None:
    assert not matches(message(), Equal("tokens", "5"))
    assert not matches(message(tokens=1), Equal("tokens", True))
    assert not matches(message(), OneOf("created_at", ("2024-05-01", 5, True)))
    assert not matches(message(metadata={"k": True}), KeyEqual("metadata", "k", "1"))
    assert matches(message(metadata={"k": True}), KeyEqual("metadata", "k", "true"))
    assert not matches(message(metadata={"k": None}), KeyEqual("metadata", "k", "null"))
    assert matches(message(metadata={"k": "1.0"}), KeyCompare("metadata", "k", "eq", 1))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (100.0, "100"),
        (1e-7, "0.0000001"),
        (1e16, "10000000000000000"),
        (2.0**60, "1152921504606847000"),
        (-(2**63), "-9223372036854775808"),
        (0.1, "0.1"),
        (5e-324, f"0.{'0' * 323}5"),
    ],
)
def test_the_text_of_numbers(number: float, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize(
    "text",
    ["", "+1", "1.", ".5", "NaN", "inf", " 1", "1 ", "1\n", "1_0", "１", "0x1", "1e1000", "9" * 41],
)
def test_texts_that_are_not_numbers(text: str) -> None:
    assert value_number(text) is None


def test_numbers_are_compared_exactly() -> None:
    assert order(2**53 + 1, 2.0**53) == 1
    assert order(2**60, 2.0**60) == -1, (
        "a float stands for its shortest decimal, here 1152921504606847000"
    )
    nine = value_number("9007199254740993")
    assert nine is not None
    assert order(nine, 2**53) == 1
    assert order(0.1, value_number("0.10") or 0) == 0


def test_case_folds_by_character() -> None:
    assert fold("ΟΔΟΣ") == "οδοσ"
    assert holds({"content": {"contains": "Σ"}}, conclusion(content="ΟΔΟΣ"), CONCLUSION)
