"""Limits for what a dream of a language model may supersede. A model that makes a mistake, or that
follows an instruction hidden in a message, must not be able to hide stored conclusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from memservice.domain.records import Conclusion
from memservice.pipeline.dream.store import Draft, DreamInput
from memservice.pipeline.supersede_rules import broken_rule
from memservice.spi.reasoner import Superseded

MIN_ALLOWED = 5
ALLOWED_SHARE = 0.2
"""A dream may supersede this share of the live conclusions of its pair, and always up to
MIN_ALLOWED."""
ALLOWED_WITHOUT_SUCCESSOR = 2
MIN_TIMES_CONFIRMED = 3
"""A conclusion that was derived at least this number of times needs a successor."""
BY_CALLER = "api"
"""`Conclusion.reasoner` of conclusions that a caller stored."""


class Review(Struct, frozen=True):
    superseded: Sequence[Superseded]
    """The allowed steps."""
    excess: str | None
    """The reason to hold the whole dream for review; None if it may be stored."""


def review(
    material: DreamInput,
    steps: Sequence[Superseded],
    drafts: Sequence[Draft],
    replaced: Collection[str],
    live: int,
    counts: Counter[str],
) -> Review:
    """Check the steps of a dream. `replaced`: uids of the conclusions that its new ones supersede
    as duplicates; `live`: number of live conclusions of its pair. Counts the refused steps by
    rule."""
    rows: dict[str, Conclusion] = material.by_uid() | {f"#{d.index}": d.row for d in drafts}
    allowed: dict[str, Superseded] = {}
    for step in steps:
        broken = _broken_rule(step, rows)
        if broken is None:
            allowed.setdefault(step.old, step)
        else:
            counts[broken] += 1
    steps = list(allowed.values())
    return Review(steps, _excess(steps, len({*replaced, *allowed}), live))


def _broken_rule(step: Superseded, rows: Mapping[str, Conclusion]) -> str | None:
    old = rows.get(step.old)
    new = None if step.new is None else rows.get(step.new)
    if old is None:
        return None  # not in the reasoner's input; storing leaves it out
    if step.new is None:
        if old.reasoner == BY_CALLER:
            return "kept_as_stored_by_caller"
        return "kept_as_confirmed" if old.times_derived >= MIN_TIMES_CONFIRMED else None
    if new is None:
        return None  # not a valid draft; storing leaves it out
    return broken_rule(old, new)


def _excess(steps: Sequence[Superseded], number: int, live: int) -> str | None:
    maximum = max(MIN_ALLOWED, int(live * ALLOWED_SHARE))
    if number > maximum:
        return f"it supersedes {number} of {live} conclusions; at most {maximum} are allowed"
    alone = sum(step.new is None for step in steps)
    if alone > ALLOWED_WITHOUT_SUCCESSOR:
        return (
            f"it supersedes {alone} conclusions without a successor; at most "
            f"{ALLOWED_WITHOUT_SUCCESSOR} are allowed"
        )
    return None
