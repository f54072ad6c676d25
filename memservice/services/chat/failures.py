"""Chat questions that a language model did not answer."""

from __future__ import annotations

import logging
import math

from memservice.domain.errors import AnswerFailed, AnswerTimedOut, AnswerUnavailable
from memservice.reasoning.limits import ClientDisconnected, OutOfTime
from memservice.spi.llm import ModelFailure, Refusal

log = logging.getLogger("memservice.chat")

UNAVAILABLE = (429, 503, 529)
"""HTTP statuses of providers that are overloaded, or whose quota is used up."""
RETRY_AFTER_SECONDS = 30
"""Used if the provider sends no time."""


def notice(error: ModelFailure) -> str:
    """The reason for the kind of answer, for the caller."""
    if isinstance(error, Refusal):
        return f"the language model refused to answer: {error}"
    return f"the language model did not answer: {error}; answered without it"


def note(error: ModelFailure) -> None:
    """One line in the log. The text of a ModelFailure contains no message text and no key."""
    if isinstance(error, ClientDisconnected):
        log.info("chat: %s before the answer", error)
    else:
        log.warning("chat: the language model did not answer: %s", error)


def as_error(error: ModelFailure) -> AnswerFailed:
    """The error for the caller if no other reasoner may answer."""
    text = f"the language model did not answer: {error}"
    if isinstance(error, OutOfTime):
        return AnswerTimedOut(text)
    if error.status in UNAVAILABLE or error.retry_after is not None:
        return AnswerUnavailable(text, math.ceil(error.retry_after or RETRY_AFTER_SECONDS))
    return AnswerFailed(text)
