"""The tools that read from a toolbox: bounded arguments of a model, and results as lines of
text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memservice.domain.times import parse_iso
from memservice.reasoning.prompts import tools as prompt
from memservice.reasoning.render import Renderer, text_of
from memservice.reasoning.short_ids import CONCLUSION, MESSAGE
from memservice.reasoning.tool_loop import BoundTool, ToolResult
from memservice.spi.llm import Tool
from memservice.spi.toolbox import Evidence, Passage, Toolbox, ToolRefused

Keep = Callable[[Sequence[Evidence]], list[Evidence]]

ID_ARGUMENTS = ("id", "conclusion_id")
"""Arguments that are a short id."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class RetrievalTools:
    """The reading tools over one toolbox. `keep` chooses among the conclusions that a search
    found."""

    def __init__(self, box: Toolbox, renderer: Renderer, keep: Keep = list) -> None:
        self._box, self._renderer, self._keep = box, renderer, keep

    def search_only(self) -> list[BoundTool]:
        """Only the tools for searching."""
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
            BoundTool(prompt.OBSERVATION_CONTEXT, self._context),
        ]
        bound_tools += (
            [BoundTool(prompt.REASONING_CHAIN, self._chain)] if self._box.has_chains else []
        )
        return bound_tools + (
            [BoundTool(prompt.PEER_CARD, self._card)] if self._box.has_cards else []
        )

    def _search_memory(self, arguments: Mapping[str, Any]) -> ToolResult:
        query = _words(arguments, "query")
        evidence = self._keep(self._box.conclusions(query, _limit(prompt.SEARCH_MEMORY, arguments)))
        if evidence:
            return ToolResult(
                [self._renderer.conclusion(item) for item in evidence],
                len(evidence),
            )
        passages = self._box.messages(query, prompt.LIMITS[prompt.SEARCH_MESSAGES.name][0])
        if not passages:
            return ToolResult((), 0)
        texts = self._passages(passages)
        return ToolResult(
            ["No conclusion was found. These messages may tell:", *texts.lines], texts.results
        )

    def _search_messages(self, arguments: Mapping[str, Any]) -> ToolResult:
        return self._passages(
            self._box.messages(
                _words(arguments, "query"), _limit(prompt.SEARCH_MESSAGES, arguments)
            )
        )

    def _grep(self, arguments: Mapping[str, Any]) -> ToolResult:
        return self._passages(
            self._box.containing(_words(arguments, "text"), _limit(prompt.GREP_MESSAGES, arguments))
        )

    def _by_date(self, arguments: Mapping[str, Any]) -> ToolResult:
        since, until = _span(arguments)
        if since is None and until is None:
            raise ToolRefused("Give since, until, or both.")
        newest_first = arguments.get("order", "newest") == "newest"
        return self._passages(
            self._box.between(
                since, until, _limit(prompt.MESSAGES_BY_DATE, arguments), newest_first
            )
        )

    def _search_within(self, arguments: Mapping[str, Any]) -> ToolResult:
        since, until = _span(arguments)
        return self._passages(
            self._box.messages(
                _words(arguments, "query"),
                _limit(prompt.SEARCH_MESSAGES_TEMPORAL, arguments),
                since,
                until,
            )
        )

    def _context(self, arguments: Mapping[str, Any]) -> ToolResult:
        written, ids = _words(arguments, "id"), self._renderer.ids
        if (uid := ids.uid(written, MESSAGE)) is not None:
            return self._passages(self._box.around(uid))
        if (uid := ids.uid(written, CONCLUSION)) is not None:
            return self._passages(self._box.behind(uid))
        raise ToolRefused(
            f"There is nothing with the id {written!r}. Conclusions: {ids.range(CONCLUSION)}; "
            f"messages: {ids.range(MESSAGE)}."
        )

    def _chain(self, arguments: Mapping[str, Any]) -> ToolResult:
        written, ids = _words(arguments, "conclusion_id"), self._renderer.ids
        uid = ids.uid(written, CONCLUSION)
        if uid is None:
            raise ToolRefused(
                f"There is no conclusion with the id {written!r}. There are: "
                f"{ids.range(CONCLUSION)}."
            )
        chain = self._box.chain(uid)
        lines = [self._renderer.conclusion(chain.conclusion)]
        parts = (
            ("It rests on:", chain.sources),
            ("On it rest:", chain.consequences),
            ("It replaced:", chain.conclusion.replaced),
        )
        for heading, items in parts:
            texts = [self._renderer.conclusion(item) for item in items]
            lines += [heading, *(texts or ["(nothing)"])]
        return ToolResult(lines, 1 + sum(len(items) for _, items in parts))

    def _card(self, arguments: Mapping[str, Any]) -> ToolResult:
        lines = list(self._box.card(_words(arguments, "peer")))
        return ToolResult([text_of(line, self._renderer.maximum) for line in lines], len(lines))

    def _passages(self, passages: Sequence[Passage]) -> ToolResult:
        return ToolResult(
            self._renderer.passages(passages),
            sum(item.asked_for for passage in passages for item in passage),
        )


def _words(arguments: Mapping[str, Any], name: str) -> str:
    text: str = arguments[name].strip()
    if not text:
        raise ToolRefused(f"{name} is empty.")
    return text


def _limit(tool: Tool, arguments: Mapping[str, Any]) -> int:
    usual, maximum = prompt.LIMITS[tool.name]
    return max(1, min(int(arguments.get("limit") or usual), maximum))


def _span(arguments: Mapping[str, Any]) -> tuple[datetime | None, datetime | None]:
    """Both ends, each included. A day alone begins with its first moment and ends with its last."""
    since, until = _time(arguments, "since"), _time(arguments, "until")
    if until is not None and _DAY.fullmatch(arguments["until"].strip()):
        until += timedelta(days=1, microseconds=-1)
    if since is not None and until is not None and since > until:
        raise ToolRefused("since lies after until.")
    return since, until


def _time(arguments: Mapping[str, Any], name: str) -> datetime | None:
    text = (arguments.get(name) or "").strip()
    try:
        return parse_iso(text) if text else None
    except ValueError as error:
        raise ToolRefused(f"{name}: {error}") from None
