"""Hypothesis strategies for filters, so that a storage's translation can be compared with
`filters.matches`. Needs hypothesis.

They fit the rows of `memservice.testing.corpus`: most operands are values of those rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from hypothesis import strategies as st

from memservice.domain.filters import Condition, Resource, parse_filters
from memservice.domain.filters.ast import KeyEqual
from memservice.domain.filters.jsontext import value_text
from memservice.domain.filters.resources import Column, Fixed, Flag, Kind, Stored
from memservice.domain.times import wire
from memservice.testing import corpus

WORKSPACE_SLUG = "w"
"""The workspace that `nodes` are parsed for."""


def mostly(
    usual: st.SearchStrategy[Any], *alternatives: st.SearchStrategy[Any], odds: int = 6
) -> st.SearchStrategy[Any]:
    """`usual` in `odds` cases for one case of each of `alternatives`, whatever their structure
    (`one_of` would count their parts)."""
    return st.sampled_from([usual] * odds + list(alternatives)).flatmap(lambda chosen: chosen)


texts = mostly(st.sampled_from(corpus.WORDS), st.text("abAB zéÉßσΣς我😀%_*\\\"'10.-\n", max_size=6))
times = mostly(st.sampled_from(corpus.TIMES), st.datetimes(timezones=st.just(UTC)))
numbers = mostly(
    st.sampled_from((*corpus.INTEGERS, *corpus.FLOATS)),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
keys = mostly(st.just("k"), st.sampled_from(corpus.KEYS), odds=3)
values = mostly(
    st.sampled_from(corpus.VALUES),
    st.recursive(
        numbers | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=2),
        max_leaves=6,
    ),
)
metadata = st.dictionaries(keys, values, max_size=3)
"""JSON objects that can be stored, for use as metadata."""

any_json = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters(), max_size=8),
        st.sampled_from(("*", *corpus.NAMES)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(
                st.sampled_from(
                    (
                        "AND",
                        "OR",
                        "NOT",
                        "gt",
                        "ne",
                        "in",
                        "contains",
                        "metadata",
                        "id",
                        "created_at",
                        "peer_id",
                        "source_ids",
                    )
                ),
                st.text(st.characters(), max_size=4),
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)
"""Any decoded JSON, including NaN, lone surrogates and giant integers, with words of the filter
language among its keys."""


def filters(resource: Resource) -> st.SearchStrategy[dict[str, Any]]:
    """Filters that `parse_filters` accepts for `resource`, logic up to the allowed depth of 5
    included."""
    leaves = {name: _conditions(name, column) for name, column in resource.columns.items()}
    one, plain = _objects(leaves, 1), _objects(leaves)
    nested = plain
    for _ in range(5):
        lists = st.lists(nested, max_size=2)
        nested = mostly(
            one,
            st.builds(dict.__or__, plain, _objects({"AND": lists, "OR": lists, "NOT": lists})),
            odds=1,
        )
    # Deep filters mostly match all rows or none, so few of them are useful.
    return mostly(one, plain, nested, odds=3)


def nodes(resource: Resource) -> st.SearchStrategy[Condition]:
    """Trees of `filters`, and leaves that only our own code creates."""
    fields = [
        column.field
        for column in resource.columns.values()
        if isinstance(column, Stored) and column.kind is Kind.JSON
    ]
    parsed = filters(resource).map(
        lambda parsed_filters: parse_filters(parsed_filters, resource, workspace_id=WORKSPACE_SLUG)
    )
    return mostly(parsed, st.builds(KeyEqual, st.sampled_from(fields), keys, _key_texts))


_scalars = st.sampled_from(
    [value for value in corpus.VALUES if value is not None and not isinstance(value, dict | list)]
)
_key_texts = mostly(_scalars.map(lambda value: value_text(value) or ""), texts)


def _objects(
    entries: Mapping[str, st.SearchStrategy[Any]], size: int = 0
) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with `size` of `entries`; 0 means up to two."""
    # Metadata is where translations differ, so it is drawn as often as all other columns together.
    names = sorted(entries) + ["metadata"] * (len(entries) if "metadata" in entries else 0)
    chosen = st.lists(st.sampled_from(names), min_size=size, max_size=size or 2, unique=True)
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries({name: entries[name] for name in names})
    )


def _conditions(name: str, column: Column) -> st.SearchStrategy[Any]:
    match column:
        case Stored(kind=Kind.JSON):
            return _on_metadata()
        case Stored(kind=Kind.LIST):
            ids = st.sampled_from(("src-a", "src-b", "SRC-A", "src", "unknown"))
            return mostly(
                st.builds(lambda uid: {"contains": uid}, ids),
                st.none(),
                st.just({"ne": None}),
                odds=2,
            )
        case Stored(kind=Kind.NUMBER):
            return _on_column(
                st.sampled_from((-1, 0, 1, 2, 3, 6, 1.0, 1.5, "2", "2.5", 1e300, 2**63 - 1))
            )
        case Stored(kind=Kind.TIME):
            spelled = st.sampled_from(
                ("2024-05-01", "2024-05-01 00:00:00.000001", "2024-05-01T12:00+02:00")
            )
            return _on_column(mostly(times.map(wire), spelled, odds=2))
        case Stored(choices=choices) | Fixed(choices=choices) if choices:
            return _on_column(st.sampled_from(choices), substrings=texts)
        case Flag():
            return _on_column(st.booleans())
        case _:
            pool = {
                "id": ("conclusion-0000000001", "conclusion-0000000007", *corpus.NAMES),
                "content": corpus.WORDS,
            }
            stored_words = st.sampled_from(
                [word for word in pool.get(name, (*corpus.NAMES, WORKSPACE_SLUG)) if word != "*"]
            )
            return _on_column(
                stored_words, substrings=mostly(texts, st.sampled_from(("B", "O", "_", "1")))
            )


def _on_column(
    operands: st.SearchStrategy[Any], substrings: st.SearchStrategy[str] | None = None
) -> st.SearchStrategy[Any]:
    nullable = mostly(operands, st.none())
    value_lists = st.lists(nullable, max_size=3)
    operators = dict.fromkeys(("gt", "gte", "lt", "lte"), operands)
    operators |= {
        "ne": nullable,
        "in": mostly(value_lists, value_lists.map(lambda some: [*some, "*"])),
    }
    if substrings is not None:
        operators |= {"contains": substrings, "icontains": substrings}
    return mostly(
        st.one_of(operands, value_lists, _objects(operators, 1)),
        _objects(operators).filter(bool),
        st.none(),
        st.just("*"),
    )


def _on_metadata() -> st.SearchStrategy[Any]:
    operands = mostly(_scalars, numbers, _key_texts)
    operators = dict.fromkeys(("gt", "gte", "lt", "lte"), operands)
    operators |= {
        "ne": mostly(operands, st.none()),
        "in": st.lists(mostly(operands.filter(lambda value: value != "*"), st.none()), max_size=3),
        "contains": mostly(operands, st.lists(_scalars, max_size=2)),
        "icontains": operands,
    }
    condition = mostly(
        _objects(operators, 1), values, _objects(operators).filter(bool), odds=2
    ).filter(_clear)
    by_key = st.dictionaries(
        keys.filter(lambda key: key != "in"), condition, min_size=1, max_size=2
    )
    return mostly(
        by_key, st.builds(lambda operand: {"contains": operand}, metadata), st.just("*"), st.none()
    )


def _clear(condition: Any) -> bool:
    """Whether the condition is no literal value that the language would refuse as an object of
    operators."""
    if not isinstance(condition, dict) or "in" not in condition:
        return True
    values = condition["in"]
    return (
        isinstance(values, list)
        and not any(isinstance(item, list | dict) for item in values)
        and not condition.keys() & set(corpus.KEYS) - {"in"}
    )
