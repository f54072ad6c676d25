"""Whether a message ends with a question."""

from __future__ import annotations

from memservice.domain.text.late_pattern import late_pattern

CLOSING = 200
"""Characters at the end of a text that are looked at."""

_ENDS_WITH_QUESTION = late_pattern(r"[?？؟か吗嗎呢]\W*$")
"""A question mark, or the particle of a Japanese or Chinese question. Quotation marks, brackets and
emoji may follow."""


def is_question(text: str) -> bool:
    """Whether the last sentence of the text is a question."""
    return _ENDS_WITH_QUESTION.search(text[-CLOSING:]) is not None
