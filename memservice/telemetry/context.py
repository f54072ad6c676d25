"""What a thread works for at present: which request, and which purpose an embedder is asked for.
Both show in what operators see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from memservice.spi.llm import ModelCall

_request: ContextVar[str | None] = ContextVar("memservice_request", default=None)


@dataclass(frozen=True, slots=True)
class Reason:
    """For whom and for what an embedder is asked, which it does not know itself."""

    purpose: str
    """As `ModelCall.purpose` lists them."""
    workspace_key: int | None
    workspace: str | None
    run_id: str | None = None


_reason: ContextVar[Reason | None] = ContextVar("memservice_reason", default=None)


def request_id() -> str | None:
    """Of the request that this thread answers, or works for in the background."""
    return _request.get()


def set_request_id(value: str | None) -> None:
    """From now on, in this thread."""
    _request.set(value)


@contextmanager
def working_for(request: str | None) -> Iterator[None]:
    """This thread works for a request that may be over."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


@contextmanager
def embedding_for(reason: Reason) -> Iterator[None]:
    """An embedder that this thread asks is asked for this reason."""
    token = _reason.set(reason)
    try:
        yield
    finally:
        _reason.reset(token)


def attributed(call: ModelCall) -> ModelCall:
    """A call of an embedder with what is known here of why it was made; any other as it is."""
    reason = _reason.get()
    if reason is None or not call.embedding or call.workspace_key is not None:
        return call
    return replace(
        call,
        purpose=reason.purpose,
        workspace_key=reason.workspace_key,
        workspace=reason.workspace,
        run_id=call.run_id or reason.run_id,
    )
