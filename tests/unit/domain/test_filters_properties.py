"""Properties of the filter language over arbitrary JSON and over a corpus of odd rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import (
    CONCLUSION,
    MESSAGE,
    PEER,
    SESSION,
    WORKSPACE,
    Condition,
    Resource,
    matches,
    parse_containment,
    parse_filters,
    recall_allowlist,
)
from memservice.testing import corpus
from memservice.testing import strategies as s
from support.examples import examples

ROWS: dict[str, list[Any]] = {
    MESSAGE.name: corpus.messages(),
    SESSION.name: corpus.sessions(),
    CONCLUSION.name: corpus.conclusions(),
}
RESOURCES = [MESSAGE, SESSION, CONCLUSION]


def parsed(filters: object, resource: Resource) -> Condition:
    return parse_filters(filters, resource, workspace_id=s.WORKSPACE_SLUG)


def chosen(resource: Resource, condition: Condition) -> list[int]:
    return [index for index, row in enumerate(ROWS[resource.name]) if matches(row, condition)]


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@given(s.any_json, st.sampled_from([WORKSPACE, PEER, *RESOURCES]))
def test_any_json_is_parsed_or_refused_with_an_encodable_error(
    given_json: Any, resource: Resource
) -> None:
    for parse in (
        parse_containment,
        lambda value: parsed(value, resource),
        lambda value: recall_allowlist(value, None),
    ):
        try:
            parse(given_json)
        except InvalidInput as error:
            for problem in error.problems:
                assert problem.message.encode()
                assert len(problem.message) < 500
                assert all(
                    isinstance(step, int) or step.encode() is not None for step in problem.loc
                )


def logical_depth(filters: dict[str, Any]) -> int:
    inside = [
        logical_depth(part)
        for operator in ("AND", "OR", "NOT")
        for part in filters.get(operator, [])
    ]
    return 1 + max(inside, default=0) if filters.keys() & {"AND", "OR", "NOT"} else 0


@pytest.mark.slow
@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.name)
@settings(max_examples=examples(50), deadline=None)
@given(data=st.data())
def test_conditions_have_two_valued_logic(resource: Resource, data: st.DataObject) -> None:
    a, b = (
        data.draw(s.filters(resource).filter(lambda part: logical_depth(part) < 5))
        for _ in range(2)
    )
    in_a, in_b = (
        set(chosen(resource, parsed(a, resource))),
        set(chosen(resource, parsed(b, resource))),
    )
    everything = set(range(len(ROWS[resource.name])))
    for operator, expected in (
        ("AND", in_a & in_b),
        ("OR", in_a | in_b),
        ("NOT", everything - in_a - in_b),
    ):
        assert set(chosen(resource, parsed({operator: [a, b]}, resource))) == expected


@settings(max_examples=examples(50), deadline=None)
@given(key=s.keys, value=s.values)
def test_a_row_with_the_value_is_found_by_it(key: str, value: Any) -> None:
    row = corpus.messages(metadata={key: value, "more": 1})[0]
    assert matches(row, parse_containment({key: value}))


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@given(operand=st.one_of(s.numbers, st.booleans(), s.texts.filter(lambda text: text != "*")))
def test_an_ordering_divides_the_rows_that_can_be_compared(operand: Any) -> None:
    def rows(**operators: Any) -> set[int]:
        return set(chosen(MESSAGE, parsed({"metadata": {"k": operators}}, MESSAGE)))

    comparable = rows(gt=operand) | rows(lte=operand)
    assert not rows(gt=operand) & rows(lte=operand)
    assert rows(gte=operand) | rows(lt=operand) == comparable
    assert not rows(gte=operand) & rows(lt=operand)
    equal = rows(gte=operand, lte=operand)
    assert comparable - equal <= rows(ne=operand)
    assert not equal & rows(ne=operand)
    present = rows(ne=None)
    assert rows(ne=operand) | comparable <= present


@pytest.mark.slow
@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.name)
def test_filters_of_the_strategies_distinguish_rows(resource: Resource) -> None:
    """The comparison of storages is worth something only if many filters match some rows and not
    others."""
    telling = [0, 0]

    @settings(max_examples=examples(50), deadline=None, derandomize=True, database=None)
    @given(s.nodes(resource))
    def draw(node: Condition) -> None:
        telling[0] += 1
        telling[1] += 0 < len(chosen(resource, node)) < len(ROWS[resource.name])

    draw()
    assert telling[1] / telling[0] > 0.3
