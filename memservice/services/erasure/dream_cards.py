"""Lines of cards in what dreams propose or changed, for pairs whose conclusions are erased.

An erasure removes these lines at once (`dream_changes.discard_citing`); this module looks for what
is left of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from memservice.domain.filters import equals
from memservice.domain.records import Collection, Task
from memservice.services.dream_changes import CHANGES, PROPOSAL
from memservice.services.erasure import cards
from memservice.services.erasure.erased import Erased
from memservice.services.tasks import kinds
from memservice.spi.storage import Transaction

_CARD = "card"
"""Entry of a proposal, and of a change set."""


def are_left(tx: Transaction, erased: Erased, before: datetime) -> bool:
    """Whether a dream about the pairs of erased conclusions, which could read them and ended before
    a time, has lines, other than those of callers, that quote no live conclusion."""
    return next(_unquoted(tx, erased, before), None) is not None


def remove_unquoted(tx: Transaction, erased: Erased, before: datetime) -> None:
    """Remove the cards of the dreams that `are_left` finds: such a dream can still be applied or
    undone, but leaves the card as it is."""
    unquoted = {task.key: names for task, names in _unquoted(tx, erased, before)}
    for task in tx.locked(Task, unquoted):
        entries: dict[str, Any] = {
            name: {**task.payload[name], _CARD: None}
            for name in unquoted[task.key]
            if name in task.payload
        }
        tx.rows.change(Task, equals(key=task.key), payload={**task.payload, **entries})


def _unquoted(
    tx: Transaction, erased: Erased, before: datetime
) -> Iterator[tuple[Task, list[str]]]:
    """The tasks, with the entries of their payload that have such lines."""
    requested = tuple(sorted(erased.collections))
    for collection in tx.rows.page(Collection, equals(key=requested)) if requested else []:
        of_pair = equals(
            workspace_key=collection.workspace_key,
            kind=kinds.DREAM,
            observer_key=collection.observer_key,
            observed_key=collection.observed_key,
        )
        for task in tx.rows.page(Task, of_pair):
            ended_at = task.finished_at or task.created_at
            if ended_at >= before or (erased.since is not None and ended_at < erased.since):
                continue
            names = [
                name for name in (PROPOSAL, CHANGES) if _is_unquoted(tx, collection, task, name)
            ]
            if names:
                yield task, names


def _is_unquoted(tx: Transaction, collection: Collection, task: Task, name: str) -> bool:
    card = task.payload.get(name, {}).get(_CARD)
    if not card:
        return False
    if name == CHANGES:
        lines, caller_lines = [*card["before"], *card["after"]], card["given"]
    else:
        present = tx.cards.one(collection.observer_key, collection.observed)
        lines, caller_lines = card, present.given if present is not None else ()
    return bool(cards.unquoted(tx, collection.key, lines, caller_lines))
