"""Filters: from callers' JSON to a tree with one meaning (`ast`), defined by `evaluate.matches` and translated by storages."""

from memservice.domain.filters.ast import FALSE, TRUE, Node, all_of, texts_named, where
from memservice.domain.filters.evaluate import matches
from memservice.domain.filters.parse import parse_filters
from memservice.domain.filters.resources import CONCLUSION, MESSAGE, PEER, SESSION, WORKSPACE, Resource
from memservice.domain.filters.special import parse_containment, recall_allowlist

__all__ = [
    "CONCLUSION",
    "FALSE",
    "MESSAGE",
    "PEER",
    "SESSION",
    "TRUE",
    "WORKSPACE",
    "Node",
    "Resource",
    "all_of",
    "matches",
    "parse_containment",
    "parse_filters",
    "recall_allowlist",
    "texts_named",
    "where",
]
