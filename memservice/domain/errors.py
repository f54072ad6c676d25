"""What can go wrong, named for the reader's decision.

One root, few classes. Services raise these; `memservice.api.errors` turns them into HTTP, the
command line into a sentence. A driver's own exception stays attached as `__cause__`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class MemserviceError(Exception):
    """Root of every error that memservice raises on purpose. The message is written for the person
    who reads it."""


class NotFound(MemserviceError):
    """The thing that was named does not exist, or is not visible. The message names it."""


class Conflict(MemserviceError):
    """The request is well-formed but the present state forbids it."""


class Refused(MemserviceError):
    """The request exceeds a limit of the operation, or asks for a feature that is switched off."""


class Disabled(MemserviceError):
    """The whole operation is switched off in this installation."""


class Unauthorised(MemserviceError):
    """The caller is unknown, or may not do this."""


class TooLarge(MemserviceError):
    """The payload is larger than the configured maximum."""


class UnsupportedMedia(MemserviceError):
    """The payload's type is not one that can be read."""


class Unavailable(MemserviceError):
    """The store could not be reached, or stayed locked, and nothing was committed: the caller may
    try again."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Busy(Unavailable):
    """This process does as much of that kind as it may at once. Unlike that of other `Unavailable`,
    which may name hosts, paths and users, the message is for whoever calls over HTTP."""


class AnswerFailed(MemserviceError):
    """A language model did not answer a question, and nothing else may. The message is for the
    caller: it names the cause, and contains no message text and no key."""


class AnswerUnavailable(AnswerFailed):
    """The same, for now: the model's provider is overloaded, or its quota is used up."""

    def __init__(self, message: str, retry_after: int) -> None:
        """`retry_after`: seconds."""
        super().__init__(message)
        self.retry_after = retry_after


class AnswerTimedOut(AnswerFailed):
    """The same: the time for the answer was over."""


class Damaged(MemserviceError):
    """What the store gave cannot be true: trying again does not help. The message is for the
    operator."""


class IndexUnavailable(MemserviceError):
    """The vector index outside the store could not be reached, or could not do what it was asked.
    The store is not concerned: a search does without it, a task tries again until the index is
    back."""


class ConfigurationError(MemserviceError):
    """A setting or a plugin makes it impossible to start. The message says what to type next."""


class SchemaVersionError(MemserviceError):
    """The database's schema is not the one this release works with. The message says what to do."""


class NoStore(SchemaVersionError):
    """There is no store at the place that is configured: it was never made, or the place is
    mistyped. Only `Storage.migrate` makes one."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: where, what (`message`) and of which kind.

    `loc` names the argument, outermost first: `("messages", 3, "peer_id")`. `memservice.api` adds
    where in the request the argument stood."""

    loc: tuple[str | int, ...]
    message: str
    kind: str = "value_error"


class InvalidInput(MemserviceError):
    """The request's content breaks a rule. Carries every problem that was found, never none."""

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            raise ValueError("InvalidInput needs at least one problem")
        super().__init__("; ".join(p.message for p in problems))
        self.problems: Sequence[Problem] = problems

    @classmethod
    def at(cls, *loc: str | int, message: str, kind: str = "value_error") -> InvalidInput:
        """One problem at `loc`, for instance `InvalidInput.at("peer_id", message="…")`."""
        return cls(Problem(loc, message, kind))
