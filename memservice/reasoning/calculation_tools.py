"""Tools that calculate instead of the model: dates in order with the time between them, and items
counted once each. They read nothing."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import date
from typing import Any

from memservice.domain.text.analysis import analyse
from memservice.reasoning.prompts import tools as prompt
from memservice.reasoning.render import DAYS
from memservice.reasoning.tool_loop import BoundTool, ToolResult
from memservice.spi.toolbox import ToolRefused

_DATED = re.compile(r"\s*(\d{4}-\d{2}-\d{2})(?:[T ]\d{2}:\d{2}\S*)?[\s:,–-]*(.*)", re.DOTALL)


MAX_CLOSE = 10
"""Pairs of items that are named."""


def calculation_tools(today: date | None) -> list[BoundTool]:
    """`today`: the day of the question; None if it is not known."""
    return [
        BoundTool(prompt.CALCULATE_DATES, lambda arguments: _dates(arguments, today)),
        BoundTool(prompt.COUNT_ITEMS, _count),
    ]


def span(first: date, last: date) -> str:
    """The time between two days in words: `59 days (8 weeks 3 days; 1 month 28 days)`."""
    days = (last - first).days
    parts = []
    if days >= 7:
        parts.append(_counted((days // 7, "week"), (days % 7, "day")))
    months, rest = _months(first, last)
    if months:
        parts.append(_counted((months // 12, "year"), (months % 12, "month"), (rest, "day")))
    whole = _counted((days, "day")) or "0 days"
    return f"{whole} ({'; '.join(parts)})" if parts else whole


def _months(first: date, last: date) -> tuple[int, int]:
    """Whole months between two days, and the days that remain. The 31st counts as the last day of a
    shorter month."""
    months = (last.year - first.year) * 12 + last.month - first.month
    if _after(first, months) > last:
        months -= 1
    return months, (last - _after(first, months)).days


def _after(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _counted(*parts: tuple[int, str]) -> str:
    return " ".join(f"{n} {unit}{'' if n == 1 else 's'}" for n, unit in parts if n)


def _dates(arguments: Mapping[str, Any], today: date | None) -> ToolResult:
    entries = sorted(_entry(text) for text in _bounded(arguments["dates"], "dates"))
    if not entries:
        raise ToolRefused("dates is empty: give at least one, such as '2024-05-17 moved to Braga'.")
    lines = []
    for number, (day, label) in enumerate(entries):
        line = f"{number + 1}. {DAYS[day.weekday()]} {day}{label and ' ' + label}"
        if number:
            line += f": {span(entries[number - 1][0], day)} later"
        lines.append(line)
    first, last = entries[0][0], entries[-1][0]
    if len(entries) > 2:
        lines.append(f"From the first to the last: {span(first, last)}")
    if today is not None:
        for which, day in {"first": first, "last": last}.items():
            if which == "last" and last == first:
                continue
            where = "before" if day <= today else "after"
            pair = (day, today) if day <= today else (today, day)
            lines.append(f"The {which} is {span(*pair)} {where} today ({today})")
    return ToolResult(lines, len(entries))


def _bounded(texts: list[str], name: str) -> list[str]:
    if len(texts) > prompt.MAX_CALCULATED:
        raise ToolRefused(f"{name} has {len(texts)} entries: give at most {prompt.MAX_CALCULATED}.")
    return texts


def _entry(text: str) -> tuple[date, str]:
    match = _DATED.fullmatch(text)
    try:
        if match is not None:
            return date.fromisoformat(match[1]), " ".join(match[2].split())
    except ValueError:
        pass
    raise ToolRefused(
        f"{text!r} does not begin with a date: write 2024-05-17, then what happened on it. For a "
        "month or a year alone, give its first day."
    )


def _count(arguments: Mapping[str, Any]) -> ToolResult:
    """Items that have the same words are one. Those that share most of their words may be: the
    model has to tell."""
    groups: dict[frozenset[str], list[str]] = {}
    for text in (" ".join(item.split()) for item in _bounded(arguments["items"], "items")):
        if text:
            groups.setdefault(frozenset(analyse(text)) or frozenset([text.lower()]), []).append(
                text
            )
    if not groups:
        raise ToolRefused("items is empty: give each thing that was found as one item.")
    lines = [
        f"{number}. {texts[0]}" + (f" (named {len(texts)} times)" if len(texts) > 1 else "")
        for number, texts in enumerate(groups.values(), 1)
    ]
    lines.append(f"Different items: {len(groups)}")
    keys = list(groups)
    close = [
        f"{number + 1} and {other + 1}"
        for number, words in enumerate(keys)
        for other in range(number + 1, len(keys))
        if _are_close(words, keys[other])
    ]
    if close:
        lines.append(f"Perhaps the same: {', '.join(close[:MAX_CLOSE])}")
    return ToolResult(lines, len(groups))


def _are_close(one: frozenset[str], other: frozenset[str]) -> bool:
    return one <= other or other <= one or 2 * len(one & other) > max(len(one), len(other))
