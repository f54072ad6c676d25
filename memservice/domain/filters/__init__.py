"""Filters: from callers' JSON to a tree with one meaning (`ast`), defined by `evaluate.matches` and
translated by storages."""

from memservice.domain.filters.ast import FALSE, TRUE, Condition, all_of, equals, texts_named
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
]
