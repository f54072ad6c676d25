"""Filters: callers' JSON becomes a tree of conditions (`ast`). `evaluate.matches` defines its
meaning; storages translate it."""

from memservice.domain.filters.ast import (
    FALSE,
    TRUE,
    Condition,
    all_of,
    equals,
    texts_named,
    uses_field,
    values_named,
)
from memservice.domain.filters.evaluate import matches
from memservice.domain.filters.parse import parse_filters
from memservice.domain.filters.resources import (
    CONCLUSION,
    MESSAGE,
    PEER,
    SESSION,
    WORKSPACE,
    Resource,
)
from memservice.domain.filters.special import parse_containment, recall_allowlist

__all__ = [
    "CONCLUSION",
    "FALSE",
    "MESSAGE",
    "PEER",
    "SESSION",
    "TRUE",
    "WORKSPACE",
    "Condition",
    "Resource",
    "all_of",
    "equals",
    "matches",
    "parse_containment",
    "parse_filters",
    "recall_allowlist",
    "texts_named",
    "uses_field",
    "values_named",
]
