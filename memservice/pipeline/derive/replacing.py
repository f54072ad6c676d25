"""Replacements: conclusions in the reasoner's input that new statements replace, because they are
wrong or no longer true."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from memservice.domain.derived_rules import HYPOTHETICAL
from memservice.domain.ids import fingerprint
from memservice.domain.records import Conclusion
from memservice.domain.values import storable
from memservice.pipeline.supersede_rules import broken_order, broken_rule
from memservice.services.supersession import UPDATED
from memservice.spi.reasoner import Statement

log = logging.getLogger("memservice.pipeline")

MAX_REPLACED = 5
"""Conclusions that a language model may replace with one batch."""
MAX_REASON = 300


class Replacement(Struct, frozen=True):
    """A conclusion to be replaced, and the reason."""

    old: Conclusion
    reason: str


def allowed(
    statements: Sequence[Statement],
    drafts: Sequence[Conclusion],
    context_rows: Mapping[str, Conclusion],
    counts: Counter[str],
    *,
    by_model: bool,
) -> dict[str, list[Replacement]]:
    """Fingerprint of a draft → its replacements. `drafts` has the draft of each of `statements`, in
    the same order; `context_rows` has the conclusions in the reasoner's input by uid. `by_model`: a
    language model chose them, so they are limited. Counts the refused replacements by rule."""
    new_drafts = {draft.fingerprint: draft for draft in drafts}
    taken: dict[str, tuple[str, Replacement]] = {}
    for statement, draft in zip(statements, drafts, strict=True):
        outdated = (new_drafts.get(fingerprint(content)) for content in statement.outdates)
        for old in (*(context_rows.get(uid) for uid in statement.replaces), *outdated):
            if old is None or old.uid in taken or old.uid == draft.uid:
                continue
            broken = _broken_rule(statement, draft, old, new_drafts, by_model)
            if broken is None and by_model and len(taken) >= MAX_REPLACED:
                broken = "kept_as_excess"
            if broken is None:
                reason = storable(statement.reason.strip(), MAX_REASON) or UPDATED
                taken[old.uid] = draft.fingerprint, Replacement(old, reason)
            else:
                counts[broken] += 1
    if counts["kept_as_excess"]:
        log.warning(
            "the deriver replaced more than %d conclusions of %s in one batch: %d are not replaced",
            MAX_REPLACED,
            drafts[0].observed,
            counts["kept_as_excess"],
        )
    by_draft: dict[str, list[Replacement]] = {}
    for mark, replacement in taken.values():
        by_draft.setdefault(mark, []).append(replacement)
    return by_draft


def _broken_rule(
    statement: Statement,
    draft: Conclusion,
    old: Conclusion,
    new_drafts: Mapping[str, Conclusion],
    by_model: bool,
) -> str | None:
    said_again = new_drafts.get(old.fingerprint)
    if said_again is not None and said_again.uid != old.uid:
        return "kept_as_said_again"
    if statement.certainty == HYPOTHETICAL:
        return "kept_as_hypothetical"
    return broken_rule(old, draft) if by_model else broken_order(old, draft)
