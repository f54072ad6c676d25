"""The stream of the Responses API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memservice.spi.llm import Completion
from memservice_http.chat import StreamReader
from memservice_openai.responses_items import text_of

_LAST = ("response.completed", "response.incomplete")


class ResponsesReader(StreamReader):
    def __init__(self, completion: Callable[[Any, Sequence[Any], str], Completion]) -> None:
        """`completion` makes the answer of the response, its items and their text."""
        self._completion = completion
        self._text: list[str] = []
        self._items: dict[int, dict[str, Any]] = {}
        """Items of the output by their index."""
        self._with_text: set[int] = set()
        """Indexes of the items whose text has arrived in pieces."""
        self._response: Any = None

    def take(self, event: Any) -> list[str]:
        pieces = self._pieces(event)
        self._text += pieces
        return pieces

    def _pieces(self, event: Any) -> list[str]:
        kind = event["type"]
        if kind == "response.output_text.delta":
            self._with_text.add(event["output_index"])
            return [event["delta"]] if event["delta"] else []
        if kind == "response.output_item.added":
            self._items[event["output_index"]] = dict(event["item"])
        elif kind == "response.function_call_arguments.delta":
            item = self._items[event["output_index"]]
            item["arguments"] = item.get("arguments", "") + event["delta"]
        elif kind == "response.output_item.done":
            return self._done(event["output_index"], event["item"])
        elif kind in _LAST:
            self._response = event["response"]
        return []

    def _done(self, index: int, item: dict[str, Any]) -> list[str]:
        """A whole item. Its text is a piece if none arrived before."""
        self._items[index] = item
        text = "" if index in self._with_text else text_of([item])
        return [text] if text else []

    def ended(self) -> Completion | None:
        if self._response is None:
            return None
        items = [self._items[index] for index in sorted(self._items)]
        return self._completion(self._response, items, "".join(self._text))
