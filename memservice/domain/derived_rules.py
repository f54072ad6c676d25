"""Limits of conclusions that are inferred from other conclusions, not from messages."""

from __future__ import annotations

from memservice.domain.records import CONTRADICTION, DEDUCTIVE, INDUCTIVE

MIN_SOURCES = {DEDUCTIVE: 1, INDUCTIVE: 1, CONTRADICTION: 2}
"""Levels of inferred conclusions, with the minimum number of sources. Explicit conclusions come
from messages only."""

PATTERNS = ("preference", "behavior", "personality", "tendency", "correlation")
CONFIDENCES = ("high", "medium", "low")
USUAL_CONFIDENCE = "medium"

MAX_CONTENT_LENGTH = 65_535
"""Characters."""

STATEMENT_KINDS = ("fact", "preference", "event", "plan", "instruction", "opinion")
"""What an explicit conclusion is about. `plan`: an event that is intended. `instruction`: how the
peer wants to be treated. None: not known."""
CERTAIN, HEDGED, HYPOTHETICAL = "certain", "hedged", "hypothetical"
CERTAINTIES = (CERTAIN, HEDGED, HYPOTHETICAL)
"""How sure a peer is of what it states. `hypothetical`: not said to be true at all."""
