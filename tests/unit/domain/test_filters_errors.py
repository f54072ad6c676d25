"""What the filter language refuses, where it points, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import (
    CONCLUSION,
    MESSAGE,
    PEER,
    SESSION,
    WORKSPACE,
    Resource,
    parse_filters,
)


def problem(filters: object, resource: Resource = MESSAGE) -> tuple[tuple[str | int, ...], str]:
    with pytest.raises(InvalidInput) as caught:
        parse_filters(filters, resource, workspace_id="w")
    (entry,) = caught.value.problems
    assert entry.kind == "value_error"
    assert entry.loc[:1] == ("filters",)
    return entry.loc[1:], entry.message


def nested(levels: int, operator: str = "AND") -> dict[str, Any]:
    filters: dict[str, Any] = {"peer_id": "a"}
    for _ in range(levels):
        filters = {operator: [filters]}
    return filters


@pytest.mark.parametrize(
    ("filters", "loc", "message"),
    [
        ([], (), "Filters must be an object, got list"),
        (
            {"id": "x"},
            ("id",),
            "Column 'id' is not allowed to be filtered on or does not exist on Message",
        ),
        (
            {"content": "x"},
            ("content",),
            "Column 'content' is not allowed to be filtered on or does not exist on Message",
        ),
        ({"AND": {"peer_id": "a"}}, ("AND",), "AND operator must contain a list, got dict"),
        ({"OR": "x"}, ("OR",), "OR operator must contain a list, got str"),
        ({"NOT": {}}, ("NOT",), "NOT operator must contain a list, got dict"),
        ({"NOT": None}, ("NOT",), "NOT operator cannot be None"),
        ({"AND": [{}, 5]}, ("AND", 1), "Invalid filter configuration"),
        (
            {"AND": [{"peer_id": 5}]},
            ("AND", 0, "peer_id"),
            "Invalid string value: 5. Expected a string, got int",
        ),
        ({"peer_id": {"like": "a"}}, ("peer_id",), None),
        ({"peer_id": {}}, ("peer_id",), None),
        (
            {"peer_id": {"ne": "a", "like": "a"}},
            ("peer_id",),
            "Unsupported comparison operator: like",
        ),
        ({"peer_id": {"gt": None}}, ("peer_id",), "Operator 'gt' does not accept null"),
        (
            {"peer_id": {"contains": 5}},
            ("peer_id",),
            "Invalid string value: 5. Expected a string, got int",
        ),
        (
            {"peer_id": ["a", 5]},
            ("peer_id",),
            "Invalid string value: 5. Expected a string, got int",
        ),
        (
            {"peer_id": True},
            ("peer_id",),
            "Invalid string value: True. Expected a string, got bool",
        ),
        (
            {"peer_id": {"in": "a"}},
            ("peer_id",),
            "Invalid value for 'in' operator: a. Expected an iterable (list, tuple, set), got str",
        ),
        ({"peer_id": "\ud800"}, ("peer_id",), "Text must not contain lone surrogates"),
        ({"created_at": "yesterday"}, ("created_at",), "Invalid datetime value: yesterday"),
        ({"created_at": 1700000000}, ("created_at",), "Invalid datetime value: 1700000000"),
        ({"created_at": {"gte": "0001-01-01T00:00:00+01:00"}}, ("created_at",), None),
        (
            {"created_at": {"contains": "2024"}},
            ("created_at",),
            "Operator 'contains' is not supported on 'created_at'",
        ),
        (
            {"token_count": "many"},
            ("token_count",),
            "Invalid numeric value: many. Expected a number, got str",
        ),
        (
            {"token_count": True},
            ("token_count",),
            "Invalid numeric value: True. Expected a number, got bool",
        ),
        (
            {"token_count": {"gt": 2**63}},
            ("token_count",),
            f"Invalid numeric value: {2**63}. Numbers must be finite doubles or 64-bit integers",
        ),
        (
            {"token_count": str(-(2**63) - 1)},
            ("token_count",),
            f"Invalid numeric value: {-(2**63) - 1}. Expected a number, got str",
        ),
        (
            {"token_count": float("nan")},
            ("token_count",),
            "Invalid numeric value: nan. Numbers must be finite doubles or 64-bit integers",
        ),
        (
            {"token_count": "1e999"},
            ("token_count",),
            "Invalid numeric value: 1e999. Expected a number, got str",
        ),
        (
            {"metadata": "x"},
            ("metadata",),
            "Invalid value for 'metadata': x. Expected an object, got str",
        ),
        (
            {"metadata": []},
            ("metadata",),
            "Invalid value for 'metadata': […]. Expected an object, got list",
        ),
        (
            {"metadata": {"ne": {"a": 1}}},
            ("metadata",),
            "Operator 'ne' is not supported on 'metadata'",
        ),
        (
            {"metadata": {"contains": "x"}},
            ("metadata",),
            "Invalid value for 'contains' on 'metadata': x. Expected an object, got str",
        ),
        (
            {"metadata": {"k": {"gt": 1, "foo": 2}}},
            ("metadata", "k"),
            "Unsupported comparison operator: foo",
        ),
        (
            {"metadata": {"k": {"gt": None}}},
            ("metadata", "k"),
            "Operator 'gt' does not accept null",
        ),
        ({"metadata": {"k": {"gt": [1]}}}, ("metadata", "k"), None),
        ({"metadata": {"k": {"in": [[1]]}}}, ("metadata", "k"), None),
        ({"metadata": {"k": {"in": {"a": 1}}}}, ("metadata", "k"), None),
        ({"metadata": {"k": float("inf")}}, ("metadata", "k"), None),
        (
            {"metadata": {"k": {"lt": 2**64}}},
            ("metadata", "k"),
            f"Invalid numeric value: {2**64}. Numbers must be finite doubles or 64-bit integers",
        ),
        (
            {"metadata": {"\udfff": 1}},
            ("metadata", "\ufffd"),
            "Text must not contain lone surrogates",
        ),
        (
            {"\ud800": 1},
            ("\ufffd",),
            "Column '\ufffd' is not allowed to be filtered on or does not exist on Message",
        ),
    ],
)
def test_invalid_filters_are_refused(
    filters: object, loc: tuple[str | int, ...], message: str | None
) -> None:
    found_loc, kind_of_problem = problem(filters)
    assert found_loc == loc
    assert message is None or kind_of_problem == message


def test_the_error_for_an_object_without_operators_lists_them() -> None:
    _, message = problem({"peer_id": {"like": "a"}})
    assert message.endswith("Allowed operators: contains, gt, gte, icontains, in, lt, lte, ne")


@pytest.mark.parametrize(
    ("resource", "filters", "message"),
    [
        (CONCLUSION, {"embedding": [1]}, "Column 'embedding' does not exist on Conclusion"),
        (CONCLUSION, {"configuration": {}}, "Column 'configuration' does not exist on Conclusion"),
        (
            CONCLUSION,
            {"level": "vague"},
            (
                "Invalid value for 'level': vague. Expected one of explicit, deductive, "
                "inductive, contradiction"
            ),
        ),
        (CONCLUSION, {"level": ["explicit", "vague"]}, None),
        (CONCLUSION, {"level": {"ne": "vague"}}, None),
        (CONCLUSION, {"sync_state": "lost"}, None),
        (CONCLUSION, {"source_ids": "x"}, None),
        (CONCLUSION, {"source_ids": ["x"]}, None),
        (
            CONCLUSION,
            {"source_ids": {"contains": 5}},
            "Invalid string value: 5. Expected a string, got int",
        ),
        (CONCLUSION, {"source_ids": {"ne": "x"}}, "Operator 'ne' is not supported on 'source_ids'"),
        (
            CONCLUSION,
            {"source_ids": {"in": ["x"]}},
            "Operator 'in' is not supported on 'source_ids'",
        ),
        (
            SESSION,
            {"is_active": "true"},
            "Invalid boolean value: true. Expected true or false, got str",
        ),
        (SESSION, {"is_active": 1}, "Invalid boolean value: 1. Expected true or false, got int"),
        (
            SESSION,
            {"is_active": {"contains": "t"}},
            "Operator 'contains' is not supported on 'is_active'",
        ),
        (
            SESSION,
            {"configuration": {}},
            "Column 'configuration' is not allowed to be filtered on or does not exist on Session",
        ),
        (
            PEER,
            {"name": "x"},
            "Column 'name' is not allowed to be filtered on or does not exist on Peer",
        ),
        (
            WORKSPACE,
            {"workspace_id": "x"},
            "Column 'workspace_id' is not allowed to be filtered on or does not exist on Workspace",
        ),
    ],
)
def test_filters_are_refused_by_resource(
    resource: Resource, filters: dict[str, Any], message: str | None
) -> None:
    loc, text = problem(filters, resource)
    assert loc == tuple(filters)
    assert message is None or text == message


@pytest.mark.parametrize("operator", ["AND", "OR", "NOT"])
def test_five_logical_levels_pass_and_six_fail(operator: str) -> None:
    parse_filters(nested(5, operator), MESSAGE, workspace_id="w")
    loc, message = problem(nested(6, operator))
    assert message == "Filter nesting exceeds maximum depth of 5"
    assert loc == (operator, 0) * 5 + (operator,)
    assert problem(nested(400, operator))[1] == message


def test_size_is_bounded() -> None:
    parse_filters({"peer_id": ["a"] * 10_000}, MESSAGE, workspace_id="w")
    assert problem({"peer_id": ["a"] * 10_001})[1] == "Filter lists more than 10000 values"
    assert problem({"OR": [{"peer_id": "a"}] * 401})[1] == "Filter has more than 400 conditions"
    assert (
        problem({"metadata": {str(number): {"gt": 1} for number in range(401)}})[1]
        == "Filter has more than 400 conditions"
    )
    assert (
        problem({"metadata": {"k": [1] * 1_001}})[1]
        == "Filter has more than 1000 values for metadata to contain"
    )
    inside = "Filter has more than 32 objects and lists inside lists for metadata to contain"
    assert problem({"metadata": {"k": [{"a": 1}] * 33}})[1] == inside
    assert (
        problem({"AND": [{"metadata": {"k": [[1]] * 16}}, {"metadata": {"k": [[{}]] * 9}}]})[1]
        == inside
    )
    parse_filters({"metadata": {"k": [{"a": {"b": {}}}] * 32}}, MESSAGE, workspace_id="w")
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    assert problem({"metadata": {"k": deep}}) == (
        ("metadata",),
        "Values for metadata to contain may be nested at most 32 levels deep",
    )
    assert (
        problem({"token_count": deep})[1]
        == "Invalid numeric value: […]. Expected a number, got list"
    )


def test_the_workspace_is_required_for_resources_with_that_column() -> None:
    with pytest.raises(TypeError, match="workspace_id="):
        parse_filters({}, MESSAGE)
    parse_filters({}, WORKSPACE)
