"""Texts in what dreams propose or changed: they name others as conclusions and cards do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memservice.services.dream_changes import CHANGES, GIVEN, PROPOSAL

_FIELDS: Mapping[str, Mapping[str, Any]] = {
    PROPOSAL: {
        "reason": None,
        "created": {"content": None, "premises": None},
        "superseded": {"reason": None},
        "card": None,
        GIVEN: None,
    },
    CHANGES: {"card": {"before": None, GIVEN: None, "after": None}},
}
"""The fields of a payload that are texts, lists of texts, or have such fields. All others are uids,
keys, and names of models: a name that happens to be in a uid stays."""


def texts(payload: Mapping[str, Any]) -> Iterator[str]:
    """All texts of the payload of a dream's task."""
    parts: list[str] = []

    def keep(text: str) -> str:
        parts.append(text)
        return text

    changed(payload, keep)
    yield from parts


def changed(payload: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """The payload with every text changed."""
    changed_payload: dict[str, Any] = _changed(payload, _FIELDS, change)
    return changed_payload


def _changed(value: Any, fields: Mapping[str, Any] | None, change: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [_changed(item, fields, change) for item in value]
    if fields is None:
        return change(value) if isinstance(value, str) else value
    if not isinstance(value, dict):
        return value
    return {
        name: _changed(item, fields[name], change) if name in fields else item
        for name, item in value.items()
    }
