"""Answering questions: each holds one of the places for slow answers until its last byte was
sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flask import Response, after_this_request, current_app

from memservice.api.answers import json_answer
from memservice.api.routing import EXTENSION
from memservice.api.streaming import Slots

T = TypeVar("T")

NOTICE = "X-Memservice-Notice"
"""Header: what is to be said about an answer, for those who look."""


def answered(ask: Callable[[], T], whole: Callable[[T], Any]) -> Response:
    """The answer as JSON, made by `whole` when it is complete."""
    give_back = _slot()
    try:
        return json_answer(whole(ask()))
    finally:
        give_back()


def streamed(ask: Callable[[], T], stream: Callable[[T], Response]) -> Response:
    """The answer as it comes, sent by `stream`. It gives up its place when it is closed."""
    give_back = _slot()
    try:
        response = stream(ask())
    except BaseException:
        give_back()
        raise
    response.call_on_close(give_back)
    return response


def say(notice: str) -> None:
    """Tell the caller something about the answer to this request, beside it."""

    def mark(response: Response) -> Response:
        response.headers[NOTICE] = notice
        return response

    after_this_request(mark)


def _slot() -> Callable[[], None]:
    slots: Slots = current_app.extensions[EXTENSION].slots
    return slots.take()
