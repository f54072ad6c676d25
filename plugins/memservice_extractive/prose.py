"""Extracts the author's own prose from a message, without code, quotations, pasted transcripts and
injected memory."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict, deque
from collections.abc import Collection

_FENCE = re.compile(r"^\s*(```+|~~~+)")
_TAG = re.compile(
    r"<(/?)(context|memory|memories|document|system|instructions|representation|peer_card|summary)\b",
    re.I,
)
_TAG_END = re.compile(r"\s*+>")
_BULLET = re.compile(r"^(?:[-*+•‣◦·–]|\(?\d{1,3}[.)]|\[[ xX]\])\s+")
_TIMESTAMP = re.compile(r"^\[?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2})?\]?\s")
_CARD = re.compile(
    r"^(IDENTITY|ATTRIBUTE|RELATIONSHIP|INSTRUCTION|EXPLICIT|DEDUCTIVE|INDUCTIVE|CONTRADICTION): ?"
)
_MAIL = re.compile(
    (
        r"^(-{2,}+ "
        r"*(original|forwarded|ursprüngliche|weitergeleitete).*|(on|am|le|el)\b.{5,120}\b(wrote|schrieb|écrit"
        r"|escribió)\b[^:]{0,60}:"
        r"|(from|to|cc|subject|date|sent|von|an|betreff|gesendet): .*)$"
    ),
    re.I,
)
_CODE = re.compile(
    r"^(\$ |>>> |#!|#include\b|import [\w.]+$|from [\w.]+ import |def \w+\(|class "
    r"\w+[(:]|function \w*\(|const \w+ ?=|let \w+ ?="
    r"|var \w+ ?="
    r"|(public|private|protected) (static|class|void|int|string|final)\b.*|return\b.*;$|if "
    r"?\(.*\) ?\{|for ?\(.*\) ?\{|Traceback \("
    r"|File \".*\", line \d|at [\w.$]+\(.*\)$"
    r"|(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER) "
    r".*;$|[\w.]+\(.*\);?$|[{}\[\]();,]+$|\"[\w-]+\": ?.*,?$)|^\w+ ?=(?!=) ?\S+$"
)
_SPEAKER_LABEL = re.compile(
    r"^(?P<clock>\[?\d{1,2}:\d{2}(?::\d{2})?(?: "
    r"?[AaPp][Mm])?\]?\s*-?\s*)?(?P<name>[^\W\d_][\w.' -]{0,40}?)\s*[:：]\s+(?=\S)"
)
_ROLES = frozenset(
    {"user", "assistant", "system", "human", "ai", "bot", "tool", "chatgpt", "claude"}
)


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


def own_lines(content: str, author: str = "", names: Collection[str] = ()) -> list[str]:
    """The author's own text, one paragraph per entry. Soft-wrapped lines are joined, and white
    space is normalised.

    `author` and `names` are the names that can label lines of a transcript. A line with another
    peer's label is not the author's.
    """
    lines = _unfenced(_untagged(content))
    others = {_fold(name) for name in names} - {_fold(author)} | _ROLES
    labels = Counter(_fold(match["name"]) for match in map(_SPEAKER_LABEL.match, lines) if match)
    is_transcript = len(labels) >= 2 and max(labels.values()) >= 2 and sum(labels.values()) >= 3
    paragraphs: list[list[str]] = []
    can_continue = False
    for line in lines:
        text, bullet = _own_text(line, author, others, is_transcript)
        if not text:
            can_continue = False
            continue
        if (
            can_continue
            and not bullet
            and text[0].islower()
            and paragraphs[-1][-1][-1:] not in ".!?:;。！？…"
        ):
            paragraphs[-1].append(text)
        else:
            paragraphs.append([text])
        can_continue = True
    return [" ".join(parts) for parts in paragraphs]


def _untagged(content: str) -> str:
    """The text without the content between a tag of injected memory and the next closing tag. One
    pass."""
    opening_tags: list[re.Match[str]] = []
    # by name: the spans of its closing tags
    closing_spans: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
    for tag in _TAG.finditer(content):
        if not tag[1]:
            opening_tags.append(tag)
        elif end := _TAG_END.match(content, tag.end()):
            closing_spans[tag[2].casefold()].append((tag.start(), end.end()))
    parts: list[str] = []
    start = body = 0
    for tag in opening_tags:
        if tag.start() < start:
            continue
        if body <= tag.end():
            body = content.find(">", tag.end()) + 1
        if not body:
            break
        ends = closing_spans[tag[2].casefold()]
        while ends and ends[0][0] < body:
            ends.popleft()
        if ends:
            parts.append(content[start : tag.start()])
            start = ends[0][1]
    return "\n\n".join([*parts, content[start:]])


def _unfenced(content: str) -> list[str]:
    lines: list[str] = []
    fence = ""
    for raw in textwrap.dedent(content).splitlines():
        match = _FENCE.match(raw)
        if fence:
            if match and match.group(1).startswith(fence):
                fence = ""
            continue
        if match:
            fence = match.group(1)
            lines.append("")
        elif raw.startswith(("    ", "\t")) and not _BULLET.match(raw.lstrip()):
            lines.append("")
        else:
            lines.append(" ".join(raw.split()))
    return lines


def _own_text(line: str, author: str, others: set[str], transcript: bool) -> tuple[str, bool]:
    """The author's own text in one line ("" if there is none), and whether it is a list item."""
    if (
        not line
        or line.startswith((">", "|", "#", "＞"))
        or _TIMESTAMP.match(line)
        or _CARD.match(line)
        or _MAIL.match(line)
    ):
        return "", False
    item = _BULLET.match(line)
    if item:
        line = line[item.end() :]
    if not line or line.startswith(">") or _TIMESTAMP.match(line) or _is_code(line):
        return "", False
    label = _SPEAKER_LABEL.match(line)
    if label:
        name = _fold(label["name"])
        is_author = bool(author) and name == _fold(author)
        if not is_author and (label["clock"] or name in others or transcript):
            return "", False
        if is_author:
            line = line[label.end() :]
    return line, bool(item)


def _is_code(line: str) -> bool:
    return (
        line[-1:] in ("{", "}")
        or bool(_CODE.match(line))
        or (line.endswith(";") and ("=" in line or ")" in line))
    )
