"""The errors of memservice, named after what the caller can do about them.

One root, few classes. Services raise these; `memservice.api.errors` turns them into HTTP answers,
the command line into a sentence. The exception of a driver is their `__cause__`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class MemserviceError(Exception):
    """Root of every error that memservice raises on purpose. The message is for people."""


class NotFound(MemserviceError):
    """The named object does not exist or is not visible. The message names it."""


class Conflict(MemserviceError):
    """The request is valid, but the present state does not allow it."""


class Refused(MemserviceError):
    """The request exceeds a limit of the operation or needs a feature that is switched off."""


class Disabled(MemserviceError):
    """The whole operation is switched off in this installation."""


class Unauthorised(MemserviceError):
    """The caller has no valid key, or the key does not allow this."""


class TooLarge(MemserviceError):
    """The payload is larger than the configured maximum."""


class UnsupportedMedia(MemserviceError):
    """The media type of the payload is not supported."""


class Unavailable(MemserviceError):
    """The store could not be reached or stayed locked. Nothing was committed: the caller may
    retry."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Busy(Unavailable):
    """This process has reached its maximum of concurrent operations of that kind. The message is
    for callers over HTTP; that of other `Unavailable` may name hosts, paths and users."""


class AnswerFailed(MemserviceError):
    """A language model did not answer a question, and there is no fallback. The message is for the
    caller: it names the cause, and contains no message text and no key."""


class AnswerUnavailable(AnswerFailed):
    """The model's provider is overloaded, or its quota is used up: a later try may succeed."""

    def __init__(self, message: str, retry_after: int) -> None:
        """`retry_after`: seconds."""
        super().__init__(message)
        self.retry_after = retry_after


class AnswerTimedOut(AnswerFailed):
    """The language model did not answer in time."""


class Damaged(MemserviceError):
    """The store returned impossible data: a retry does not help. The message is for the
    operator."""


class IndexUnavailable(MemserviceError):
    """The vector index outside the store could not be reached or failed. The store is not affected:
    searches work without the index, and tasks retry until it is back."""


class ConfigurationError(MemserviceError):
    """A setting or a plugin prevents the start. The message says what to type next."""


class SchemaVersionError(MemserviceError):
    """The schema of the database does not fit this release. The message says what to do."""


class NoStore(SchemaVersionError):
    """There is no store at the configured location: it was never created, or the location is
    mistyped. Only `Storage.migrate` creates one."""


class Problem(Struct, frozen=True):
    """One problem of an input: its location, its text (`message`) and its kind.

    `loc` names the argument, outermost first: `("messages", 3, "peer_id")`. `memservice.api` adds
    the part of the request (body, query, path) in front."""

    loc: tuple[str | int, ...]
    message: str
    kind: str = "value_error"


class InvalidInput(MemserviceError):
    """The request's content breaks a rule. `problems` has every problem, at least one."""

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            raise ValueError("InvalidInput needs at least one problem")
        super().__init__("; ".join(p.message for p in problems))
        self.problems: Sequence[Problem] = problems

    @classmethod
    def at(cls, *loc: str | int, message: str, kind: str = "value_error") -> InvalidInput:
        """One problem at `loc`, for instance `InvalidInput.at("peer_id", message="…")`."""
        return cls(Problem(loc, message, kind))
