"""Messages as a model reads them. Whatever a message says, it cannot pass for another one: only our
own lines begin at the margin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from memservice.domain import tokens
from memservice.domain.text.folding import fold
from memservice.domain.time_zones import local_stamp
from memservice.spi.reasoner import Utterance

CUT = " […]"
"""End of a text that was cut."""


def stamp(at: datetime) -> str:
    """A time that is not a message's, as prompts show it: UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def name(slug: str) -> str:
    """A peer's name in one line."""
    return " ".join(slug.split())


def called(names: Mapping[str, str], present: Iterable[str] = ()) -> list[str]:
    """A line for each peer whose name differs from its slug. It lists the other peers of these, and
    of those `present`, that have the same name."""
    lines = []
    for slug, peer_name in names.items():
        if peer_name != slug:
            same = {
                other
                for other in {*names, *present} - {slug}
                if fold(peer_name) in (fold(other), fold(names.get(other, other)))
            }
            lines.append(
                f"{name(slug)} is called "
                f"{name(peer_name)}"
                f"{''.join(f', and is not {name(other)}' for other in sorted(same))}"
            )
    return lines


def entry(message: Utterance, mark: str = "") -> str:
    """One message with its time and author: `[mark] Fri 2024-05-17 12:30 UTC alice: text`. The time
    is local where the time zone of its author is known. Further lines of the text are indented."""
    text = "\n    ".join(message.content.strip().splitlines())
    at = local_stamp(message.sent_at, message.zone)
    return f"{f'[{mark}] ' if mark else ''}{at} {name(message.author)}: {text}"


def transcript(
    messages: Sequence[Utterance], mark: Callable[[Utterance], str] = lambda message: ""
) -> str:
    """Messages, one after the other. Blank ones are left out."""
    return "\n".join(
        entry(message, mark(message)) for message in messages if message.content.strip()
    )


def cut(text: str, maximum: int) -> str:
    """The beginning of a text, of at most that many tokens together with `CUT`;
    the whole text if it fits."""
    if tokens.count(text) <= maximum:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high)
            if tokens.count(text[:middle].rstrip() + CUT) <= maximum
            else (low, middle - 1)
        )
    return text[:low].rstrip() + CUT if low else ""
