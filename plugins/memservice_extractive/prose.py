"""From a message to its author's own prose: code, quotations, pasted transcripts and injected
memory are left out."""

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
_STAMPED = re.compile(r"^\[?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2})?\]?\s")
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
    r".*;$|[\w.]+\(.*\);?$|[{}\[\]();,]+$|\"[\w-]+\": ?.*,?$)|[{}]$|^\w+ ?=(?!=) ?\S+$"
)
_LABEL = re.compile(
    r"^(?P<clock>\[?\d{1,2}:\d{2}(?::\d{2})?(?: "
    r"?[AaPp][Mm])?\]?\s*-?\s*)?(?P<name>[^\W\d_][\w.' -]{0,40}?)\s*[:：]\s+(?=\S)"
)
_ROLES = frozenset(
    {"user", "assistant", "system", "human", "ai", "bot", "tool", "chatgpt", "claude"}
)


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


def own_lines(content: str, author: str = "", names: Collection[str] = ()) -> list[str]:
    """The author's own text, one paragraph (soft-wrapped lines joined) an entry, white space
    normalised.

    `author` and `names` are the names that label lines of a transcript: a line labelled with
    another's name is that other's.
    """
    lines = _unfenced(_untagged(content))
    others = {_fold(name) for name in names} - {_fold(author)} | _ROLES
    labels = Counter(_fold(match["name"]) for match in map(_LABEL.match, lines) if match)
    transcript = len(labels) >= 2 and max(labels.values()) >= 2 and sum(labels.values()) >= 3
    paragraphs: list[list[str]] = []
    joinable = False
    for line in lines:
        text, bullet = _own(line, author, others, transcript)
        if not text:
            joinable = False
            continue
        if (
            joinable
            and not bullet
            and text[0].islower()
            and paragraphs[-1][-1][-1:] not in ".!?:;。！？…"
        ):
            paragraphs[-1].append(text)
        else:
            paragraphs.append([text])
        joinable = True
    return [" ".join(parts) for parts in paragraphs]


def _untagged(content: str) -> str:
    """The text without what stands between a tag of injected memory and the next that closes it, in
    one pass."""
    opened: list[re.Match[str]] = []
    # by name: where its closing tags begin and end
    closed: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
    for tag in _TAG.finditer(content):
        if not tag[1]:
            opened.append(tag)
        elif end := _TAG_END.match(content, tag.end()):
            closed[tag[2].casefold()].append((tag.start(), end.end()))
    kept: list[str] = []
    start = body = 0
    for tag in opened:
        if tag.start() < start:
            continue
        if body <= tag.end():
            body = content.find(">", tag.end()) + 1
        if not body:
            break
        ends = closed[tag[2].casefold()]
        while ends and ends[0][0] < body:
            ends.popleft()
        if ends:
            kept.append(content[start : tag.start()])
            start = ends[0][1]
    return "\n\n".join([*kept, content[start:]])


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


def _own(line: str, author: str, others: set[str], transcript: bool) -> tuple[str, bool]:
    """What is the author's own in one line ("" if nothing), and whether it was an item of a
    list."""
    if (
        not line
        or line.startswith((">", "|", "#", "＞"))
        or _STAMPED.match(line)
        or _CARD.match(line)
        or _MAIL.match(line)
    ):
        return "", False
    item = _BULLET.match(line)
    if item:
        line = line[item.end() :]
    if not line or line.startswith(">") or _STAMPED.match(line) or _is_code(line):
        return "", False
    label = _LABEL.match(line)
    if label:
        name = _fold(label["name"])
        mine = bool(author) and name == _fold(author)
        if not mine and (label["clock"] or name in others or transcript):
            return "", False
        if mine:
            line = line[label.end() :]
    return line, bool(item)


def _is_code(line: str) -> bool:
    return bool(_CODE.search(line)) or (line.endswith(";") and ("=" in line or ")" in line))
