"""When a language model may let one conclusion be superseded by another: in dreams and when
deriving. A model that errs, or that follows an instruction hidden in a message, must not be able to
hide what is known."""

from __future__ import annotations

from memservice.domain.records import EXPLICIT, Conclusion
from memservice.domain.text.analysis import analyse


def broken_rule(old: Conclusion, new: Conclusion) -> str | None:
    """The rule that keeps `old` from being superseded by `new`, as it is counted; None if it may
    be."""
    broken = broken_order(old, new)
    if broken is not None:
        return broken
    if old.level == EXPLICIT and not set(analyse(old.content)) & set(analyse(new.content)):
        return "kept_as_unrelated"
    return None


def broken_order(old: Conclusion, new: Conclusion) -> str | None:
    """The same for a reasoner that asks no model."""
    return "kept_as_newer" if new.said_at < old.said_at else None
