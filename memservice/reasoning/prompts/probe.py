"""What a model is asked in order to see whether it answers at all."""

from __future__ import annotations

QUESTION = "Answer with the word yes."
