"""Conclusions and messages as a model reads them in prompts and in results of tools, each with the
id by which it can be named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memservice.reasoning.transcript import CUT, name, stamp
from memservice.spi.reasoner import Known, Utterance
from memservice.spi.toolbox import Evidence, Passage


def text_of(content: str, maximum: int) -> str:
    """A text of at most so many characters whose further lines are indented: only our own lines
    begin at the margin."""
    whole = content.strip()
    shown = whole if len(whole) <= maximum else whole[:maximum].rstrip() + CUT
    return "\n    ".join(shown.splitlines())


def conclusion(item: Evidence, maximum: int, with_pair: bool = False) -> str:
    """`[id] time level (session s): text`, and whose memory of whom it is where that is not clear
    from elsewhere."""
    pair = f" {name(item.observer or '')} about {name(item.about or '')}" if with_pair else ""
    return (
        f"[{item.uid}] {stamp(item.said_at)} {item.level}{pair}{_session(item.session)}: "
        f"{text_of(item.content, maximum)}"
    )


def known(item: Known, maximum: int) -> str:
    times = f", said {item.times_derived} times" if item.times_derived > 1 else ""
    return (
        f"[{item.uid}] {stamp(item.said_at)} {item.level}{times}{_session(item.session)}: "
        f"{text_of(item.content, maximum)}"
    )


def message(item: Evidence, maximum: int, mark_hits: bool = False) -> str:
    mark = "> " if mark_hits and item.asked_for else ""
    return (
        f"{mark}{stamp(item.said_at)} {name(item.author or '')}{_session(item.session)}: "
        f"{text_of(item.content, maximum)}"
    )


def utterance(item: Utterance, maximum: int) -> str:
    return f"{stamp(item.sent_at)} {name(item.author)}: {text_of(item.content, maximum)}"


def passages(found: Iterable[Passage], maximum: int) -> list[str]:
    """A line a message, and a rule between what does not follow one another."""
    lines: list[str] = []
    for passage in found:
        lines += ["---"] if lines else []
        lines += [message(item, maximum, mark_hits=True) for item in passage]
    return lines


def within(lines: Sequence[str], maximum: int) -> tuple[str, int]:
    """Whole lines of at most so many characters together, and how many characters all of them have.
    What is left out is said."""
    whole = "\n".join(lines)
    if len(whole) <= maximum:
        return whole, len(whole)
    kept: list[str] = []
    remaining = maximum - 80
    for line in lines:
        if remaining < len(line) + 1:
            break
        kept.append(line)
        remaining -= len(line) + 1
    if not kept:
        return lines[0][: max(0, remaining)] + CUT, len(whole)
    return "\n".join(
        [
            *kept,
            f"({len(lines) - len(kept)} more lines were left out: ask for less, or more exactly)",
        ]
    ), len(whole)


def _session(session_id: str | None) -> str:
    return f" (session {name(session_id)})" if session_id else ""
