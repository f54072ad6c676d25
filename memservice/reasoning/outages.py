"""How calls of language models and the work that makes them agree on retries.

Background work has a circuit breaker for each model. While it runs, its `Attempt` decides whether a
call that failed because of the provider is repeated, so that an outage does not multiply calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from memservice.reasoning.traits import ModelTarget
from memservice.settings.values import mask_uri
from memservice.spi.llm import ModelFailure


class Attempt(Protocol):
    """One try of background work."""

    def may_retry(self, model: str) -> bool:
        """Whether to repeat a call of this model that failed because of its provider."""
        ...

    def answered(self, model: str) -> None:
        """This model has answered, or another one in its place."""
        ...


_attempt: ContextVar[Attempt | None] = ContextVar("memservice_model_attempt", default=None)


@contextmanager
def attempting(attempt: Attempt) -> Iterator[None]:
    """Calls of models in this thread belong to this attempt."""
    token = _attempt.set(attempt)
    try:
        yield
    finally:
        _attempt.reset(token)


def may_retry(target: ModelTarget, last: ModelTarget, error: ModelFailure) -> bool:
    """Whether this call may be repeated now. Notes in the error which model failed, and reports an
    answer if only the content of the request failed: the provider works."""
    error.model = model_name(target)
    attempt = _attempt.get()
    if attempt is None:
        return True
    if error.fault != "provider":
        answered(target, last)
        return True
    return attempt.may_retry(error.model)


def answered(target: ModelTarget, last: ModelTarget) -> None:
    """A model has answered. `last`: the one that would be tried last, its fallback or itself. Work
    that needs that one can go on too."""
    attempt = _attempt.get()
    if attempt is None:
        return
    for model in dict.fromkeys((model_name(target), model_name(last))):
        attempt.answered(model)


def model_name(target: ModelTarget) -> str:
    """What tells one model from another: transport, model and base URL. Contains no secret."""
    base_url = target.connection.get("base_url")
    return f"{target.transport} {target.model}" + (f" at {mask_uri(base_url)}" if base_url else "")
