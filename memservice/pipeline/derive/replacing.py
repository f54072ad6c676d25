"""What new statements replace: conclusions that a reasoner was shown, and that are no longer true
or were wrong."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memservice.domain.derived_rules import HYPOTHETICAL
from memservice.domain.records import Conclusion
from memservice.domain.values import storable
from memservice.pipeline.supersede_rules import broken_rule
from memservice.spi.reasoner import Statement

log = logging.getLogger("memservice.pipeline")

MAX_REPLACED = 5
"""Conclusions that the statements of one batch may replace."""
MAX_REASON = 300
UPDATED = "replaced by a newer statement"
"""The reason where the reasoner gives none."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A conclusion that a new one replaces."""

    old: Conclusion
    reason: str


def allowed(
    statements: Sequence[Statement],
    drafts: Sequence[Conclusion],
    held: Mapping[str, Conclusion],
    counts: Counter[str],
) -> dict[str, list[Replacement]]:
    """By the fingerprint of a draft, what it replaces. `drafts` are those of `statements`, in the
    same order; `held` are the conclusions that the reasoner was shown, by uid. Counts what breaks
    a rule, by rule."""
    said = {draft.fingerprint for draft in drafts}
    taken: dict[str, tuple[str, Replacement]] = {}
    for statement, draft in zip(statements, drafts, strict=True):
        for uid in statement.replaces:
            old = held.get(uid)
            if old is None or old.uid in taken:
                continue
            broken = _broken_rule(statement, draft, old, said)
            if broken is None and len(taken) >= MAX_REPLACED:
                broken = "kept_as_excess"
            if broken is None:
                reason = storable(statement.reason.strip(), MAX_REASON) or UPDATED
                taken[old.uid] = draft.fingerprint, Replacement(old, reason)
            else:
                counts[broken] += 1
    if counts["kept_as_excess"]:
        log.warning(
            "the deriver replaced more than %d conclusions of %s in one batch: %d are kept",
            MAX_REPLACED,
            drafts[0].observed,
            counts["kept_as_excess"],
        )
    by_draft: dict[str, list[Replacement]] = {}
    for mark, replacement in taken.values():
        by_draft.setdefault(mark, []).append(replacement)
    return by_draft


def _broken_rule(
    statement: Statement, draft: Conclusion, old: Conclusion, said: set[str]
) -> str | None:
    if old.fingerprint in said:
        return "kept_as_said_again"
    if statement.certainty == HYPOTHETICAL:
        return "kept_as_hypothetical"
    return broken_rule(old, draft)
