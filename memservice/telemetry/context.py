"""The context of a thread's work for logs and events: the request, and the purpose of embedding
calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from msgspec import Struct

from memservice.spi.llm import ModelCall

_request: ContextVar[str | None] = ContextVar("memservice_request", default=None)


class Reason(Struct, frozen=True):
    """The purpose and the workspace of embedding calls, which an embedder itself does not know."""

    purpose: str
    """One of the purposes listed at `ModelCall.purpose`."""
    workspace_key: int | None
    workspace: str | None
    run_id: str | None = None


_reason: ContextVar[Reason | None] = ContextVar("memservice_reason", default=None)


def request_id() -> str | None:
    """The id of the request that this thread answers, or for which it does background work."""
    return _request.get()


def set_request_id(value: str | None) -> None:
    """Set the request id of this thread."""
    _request.set(value)


@contextmanager
def working_for(request: str | None) -> Iterator[None]:
    """Set the request id of this thread for the block. The request may have ended."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


@contextmanager
def embedding_for(reason: Reason) -> Iterator[None]:
    """Attribute this thread's embedding calls in the block to `reason`."""
    token = _reason.set(reason)
    try:
        yield
    finally:
        _reason.reset(token)


def attributed(call: ModelCall) -> ModelCall:
    """An embedding call with the purpose and workspace of this thread's context; any other call
    unchanged."""
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
