"""What a conclusion may be that was drawn from other conclusions, and not from a message."""

from __future__ import annotations

from memservice.domain.records import CONTRADICTION, DEDUCTIVE, INDUCTIVE

MIN_SOURCES = {DEDUCTIVE: 1, INDUCTIVE: 1, CONTRADICTION: 2}
"""Levels that may be made so, with how many conclusions such a row rests on at least. What was said
is learnt from messages only, so nothing explicit is among them."""

PATTERNS = ("preference", "behavior", "personality", "tendency", "correlation")
CONFIDENCES = ("high", "medium", "low")
USUAL_CONFIDENCE = "medium"

MAX_CONTENT_LENGTH = 65_535
"""Characters."""
