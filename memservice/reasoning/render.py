"""Conclusions and messages as text in prompts and in results of tools, each with a short id that a
model can cite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from memservice.domain.records import EXPLICIT
from memservice.reasoning.short_ids import ShortIds
from memservice.reasoning.transcript import CUT, name
from memservice.spi.reasoner import Known, Utterance
from memservice.spi.toolbox import Evidence, Passage

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MAX_EARLIER = 2
"""Replaced conclusions that the line of their successor shows, the newest."""
MAX_EARLIER_CHARS = 200


def day(at: datetime) -> str:
    """`Fri 2024-05-17`, in UTC."""
    moment = at.astimezone(UTC)
    return f"{DAYS[moment.weekday()]} {moment.date().isoformat()}"


def minute(at: datetime) -> str:
    """`Fri 2024-05-17 12:30`, in UTC."""
    return f"{day(at)} {at.astimezone(UTC):%H:%M}"


def text_of(content: str, maximum: int) -> str:
    """A text of at most `maximum` characters. Its further lines are indented: only lines of the
    prompt itself begin at the margin."""
    whole = content.strip()
    text = whole if len(whole) <= maximum else whole[:maximum].rstrip() + CUT
    return "\n    ".join(text.splitlines())


class Renderer(Struct, frozen=True):
    """Lines for one answer or one dream."""

    ids: ShortIds
    maximum: int
    """Characters of one conclusion or message."""
    with_pair: bool = False
    """Whether each conclusion names its observer and its observed peer."""

    def conclusion(self, item: Evidence) -> str:
        """`[c1] Fri 2024-05-17 deductive: text (replaced: Mon 2024-03-04: text)`; without a level
        for an explicit one."""
        pair = (
            f" {name(item.observer or '')} about {name(item.about or '')}" if self.with_pair else ""
        )
        level = "" if item.level == EXPLICIT else f" {item.level}"
        before = "".join(
            f" (replaced: {day(earlier.said_at)}: "
            f"{text_of(' '.join(earlier.content.split()), MAX_EARLIER_CHARS)})"
            for earlier in item.replaced[:MAX_EARLIER]
        )
        return (
            f"[{self.ids.conclusion(item.uid)}] {day(item.said_at)}{level}{pair}: "
            f"{text_of(item.content, self.maximum)}{before}"
        )

    def known_line(self, item: Known, maximum: int | None = None) -> str:
        """`[c1] Fri 2024-05-17 deductive, said 3 times: text`"""
        return f"[{self.ids.conclusion(item.uid)}] {self.known_text(item, maximum)}"

    def known_text(self, item: Known, maximum: int | None = None) -> str:
        level = "" if item.level == EXPLICIT else f" {item.level}"
        times = f", said {item.times_derived} times" if item.times_derived > 1 else ""
        text = text_of(item.content, maximum or self.maximum)
        return f"{day(item.said_at)}{level}{times}: {text}"

    def message(self, item: Evidence, *, mark_hits: bool = False) -> str:
        """`[m1] Fri 2024-05-17 12:30 alice (session s): text`"""
        mark = "> " if mark_hits and item.asked_for else ""
        session = f" (session {name(item.session)})" if item.session else ""
        return (
            f"{mark}[{self.ids.message(item.uid)}] {minute(item.said_at)} "
            f"{name(item.author or '')}{session}: {text_of(item.content, self.maximum)}"
        )

    def utterance(self, item: Utterance) -> str:
        return (
            f"[{self.ids.message(item.uid)}] {minute(item.sent_at)} {name(item.author)}: "
            f"{text_of(item.content, self.maximum)}"
        )

    def passages(self, passages: Iterable[Passage]) -> list[str]:
        """A line for each message, and a rule between messages that do not follow one another."""
        lines: list[str] = []
        for passage in passages:
            lines += ["---"] if lines else []
            lines += [self.message(item, mark_hits=True) for item in passage]
        return lines


def within(lines: Sequence[str], maximum: int) -> tuple[str, int]:
    """Whole lines of at most so many characters together, and how many characters all of them have.
    What is left out is said."""
    whole = "\n".join(lines)
    if len(whole) <= maximum:
        return whole, len(whole)
    fitting: list[str] = []
    remaining = maximum - 80
    for line in lines:
        if remaining < len(line) + 1:
            break
        fitting.append(line)
        remaining -= len(line) + 1
    if not fitting:
        return lines[0][: max(0, remaining)] + CUT, len(whole)
    return "\n".join(
        [
            *fitting,
            f"({len(lines) - len(fitting)} more lines were left out: "
            "ask for less, or more exactly)",
        ]
    ), len(whole)
