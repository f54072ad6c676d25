"""The tools that read, over a toolbox: what a model asks for, bounded, and what it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memservice.domain.times import parse_iso
from memservice.reasoning import render
from memservice.reasoning.prompts import tools as prompt
from memservice.reasoning.tool_loop import BoundTool, ToolResult
from memservice.spi.llm import Tool
from memservice.spi.toolbox import Evidence, Passage, Toolbox, ToolRefused

Keep = Callable[[Sequence[Evidence]], list[Evidence]]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class RetrievalTools:
    """The reading tools over one toolbox. `most` is how many characters of one conclusion or
    message are shown; `keep` chooses among the conclusions that a search found."""

    def __init__(
        self, box: Toolbox, maximum: int, with_pair: bool = False, keep: Keep = list
    ) -> None:
        self._box, self._most, self._with_pair, self._keep = box, maximum, with_pair, keep

    def search_only(self) -> list[BoundTool]:
        """Searching alone."""
        return [
            BoundTool(prompt.SEARCH_MEMORY, self._search_memory),
            BoundTool(prompt.SEARCH_MESSAGES, self._search_messages),
        ]

    def all(self) -> list[BoundTool]:
        bound_tools = [
            *self.search_only(),
            BoundTool(prompt.GREP_MESSAGES, self._grep),
            BoundTool(prompt.MESSAGES_BY_DATE, self._by_date),
            BoundTool(prompt.SEARCH_MESSAGES_TEMPORAL, self._search_within),
            BoundTool(prompt.OBSERVATION_CONTEXT, self._behind),
        ]
        bound_tools += (
            [BoundTool(prompt.REASONING_CHAIN, self._chain)] if self._box.has_chains else []
        )
        return bound_tools + (
            [BoundTool(prompt.PEER_CARD, self._card)] if self._box.has_cards else []
        )

    def _search_memory(self, given: Mapping[str, Any]) -> ToolResult:
        query = _words(given, "query")
        evidence = self._keep(self._box.conclusions(query, _limit(prompt.SEARCH_MEMORY, given)))
        if evidence:
            return ToolResult(
                [render.conclusion(item, self._most, self._with_pair) for item in evidence],
                len(evidence),
            )
        said = self._box.messages(query, prompt.LIMITS[prompt.SEARCH_MESSAGES.name][0])
        if not said:
            return ToolResult((), 0)
        shown = self._passages(said)
        return ToolResult(
            ["No conclusion was found. These messages may tell:", *shown.lines], shown.results
        )

    def _search_messages(self, given: Mapping[str, Any]) -> ToolResult:
        return self._passages(
            self._box.messages(_words(given, "query"), _limit(prompt.SEARCH_MESSAGES, given))
        )

    def _grep(self, given: Mapping[str, Any]) -> ToolResult:
        return self._passages(
            self._box.containing(_words(given, "text"), _limit(prompt.GREP_MESSAGES, given))
        )

    def _by_date(self, given: Mapping[str, Any]) -> ToolResult:
        since, until = _span(given)
        if since is None and until is None:
            raise ToolRefused("Give since, until, or both.")
        newest_first = given.get("order", "newest") == "newest"
        return self._passages(
            self._box.between(since, until, _limit(prompt.MESSAGES_BY_DATE, given), newest_first)
        )

    def _search_within(self, given: Mapping[str, Any]) -> ToolResult:
        since, until = _span(given)
        return self._passages(
            self._box.messages(
                _words(given, "query"), _limit(prompt.SEARCH_MESSAGES_TEMPORAL, given), since, until
            )
        )

    def _behind(self, given: Mapping[str, Any]) -> ToolResult:
        return self._passages(self._box.behind(_id(given)))

    def _chain(self, given: Mapping[str, Any]) -> ToolResult:
        chain = self._box.chain(_id(given))
        lines = [render.conclusion(chain.conclusion, self._most, self._with_pair)]
        for heading, items in (
            ("It rests on:", chain.sources),
            ("On it rest:", chain.consequences),
        ):
            shown = [render.conclusion(item, self._most, self._with_pair) for item in items]
            lines += [heading, *(shown or ["(nothing)"])]
        return ToolResult(lines, 1 + len(chain.sources) + len(chain.consequences))

    def _card(self, given: Mapping[str, Any]) -> ToolResult:
        lines = list(self._box.card(_words(given, "peer")))
        return ToolResult([render.text_of(line, self._most) for line in lines], len(lines))

    def _passages(self, found: Sequence[Passage]) -> ToolResult:
        return ToolResult(
            render.passages(found, self._most),
            sum(item.asked_for for passage in found for item in passage),
        )


def _words(given: Mapping[str, Any], name: str) -> str:
    text: str = given[name].strip()
    if not text:
        raise ToolRefused(f"{name} is empty.")
    return text


def _id(given: Mapping[str, Any]) -> str:
    return _words(given, "conclusion_id").strip("[]")


def _limit(tool: Tool, given: Mapping[str, Any]) -> int:
    usual, maximum = prompt.LIMITS[tool.name]
    return max(1, min(int(given.get("limit") or usual), maximum))


def _span(given: Mapping[str, Any]) -> tuple[datetime | None, datetime | None]:
    """Both ends, each included. A day alone begins with its first moment and ends with its last."""
    since, until = _time(given, "since"), _time(given, "until")
    if until is not None and _DAY.fullmatch(given["until"].strip()):
        until += timedelta(days=1, microseconds=-1)
    if since is not None and until is not None and since > until:
        raise ToolRefused("since lies after until.")
    return since, until


def _time(given: Mapping[str, Any], name: str) -> datetime | None:
    text = (given.get(name) or "").strip()
    try:
        return parse_iso(text) if text else None
    except ValueError as error:
        raise ToolRefused(f"{name}: {error}") from None
