"""Reasoning that a model writes into its answer between tags, as servers without a reasoning parser
pass it on. None of it is part of the answer."""

from __future__ import annotations

import re

_NAME = r"(?:think|thinking|reasoning|thought)"
_OPENING = re.compile(rf"\s*(?:<({_NAME})>|\[(think)\])", re.IGNORECASE)
_CLOSING = re.compile(rf"(?:</{_NAME}>|\[/think\])", re.IGNORECASE)
_CLOSING_OF_LINE = re.compile(
    rf"(?:</{_NAME}>|\[/think\])(?=[^\S\n]*(?:\n|\Z|[{{\[]|```))", re.IGNORECASE
)
"""A closing tag without an opening one counts at the end of its line or before JSON: elsewhere it
may be quoted from a message."""
_MAX_TAG = len("</reasoning>")
_OPENINGS = ("<think>", "<thinking>", "<reasoning>", "<thought>", "[think]")


def without_reasoning(text: str) -> tuple[str, bool]:
    """The answer without the reasoning in front of it, and whether there was any.

    Removed are leading blocks (an unclosed one to the end of the text) and everything before a
    closing tag that has no opening one. Text that begins as JSON is left as it is.
    """
    rest, removed = text, False
    while opening := _OPENING.match(rest):
        closing = _closing_of(opening).search(rest, opening.end())
        rest, removed = rest[closing.end() :] if closing else "", True
    if not removed and not rest.lstrip().startswith(("{", "[")):
        ends = [match.end() for match in _CLOSING_OF_LINE.finditer(rest)]
        if ends:
            rest, removed = rest[ends[-1] :], True
    return (rest.lstrip() if removed else text), removed


def has_bare_closing_tag(text: str) -> bool:
    """Whether the reasoning of this answer ends with a tag but does not begin with one: the
    server's template opens it."""
    return (
        _OPENING.match(text) is None
        and not text.lstrip().startswith(("{", "["))
        and _CLOSING_OF_LINE.search(text) is not None
    )


def _closing_of(opening: re.Match[str]) -> re.Pattern[str]:
    return re.compile(
        rf"</{opening[1]}>" if opening[1] else r"\[/think\]",
        re.IGNORECASE,
    )


class ReasoningFilter:
    """`without_reasoning` for an answer that arrives in pieces. It holds text back only until it is
    clear whether reasoning begins; of reasoning itself it keeps the last few characters."""

    def __init__(self, *, is_open: bool = False) -> None:
        """`is_open`: the answer begins inside of reasoning, whose opening tag the server's template
        contains. If no closing tag arrives, the text was the answer."""
        self.removed = False
        """Whether there was reasoning."""
        self._held = ""
        self._searched = 0
        """Characters of `_held` in which no closing tag begins."""
        self._closing = _CLOSING if is_open else None
        self._is_open_from_start = is_open
        self._is_answer = False

    def take(self, piece: str) -> str:
        """The text that is certainly part of the answer now; often empty."""
        if self._is_answer:
            return piece
        self._held += piece
        while True:
            if self._closing is not None and not self._close(self._closing):
                return ""
            opening = _OPENING.match(self._held)
            if opening is None:
                break
            self._held, self._closing = self._held[opening.end() :], _closing_of(opening)
            self.removed = True
        beginning = self._held.lstrip()
        if any(tag.startswith(beginning[:_MAX_TAG].lower()) for tag in _OPENINGS):
            return ""
        self._is_answer = True
        text = beginning if self.removed else self._held
        self._held = ""
        return text

    def _close(self, closing: re.Pattern[str]) -> bool:
        """Drop the reasoning if its closing tag arrived."""
        match = closing.search(self._held, self._searched)
        if match is None:
            if not self._is_open_from_start:
                self._held = self._held[-_MAX_TAG:]
            self._searched = max(0, len(self._held) - _MAX_TAG)
            return False
        self._held, self._searched = self._held[match.end() :], 0
        self._closing, self._is_open_from_start, self.removed = None, False, True
        return True

    def end(self) -> str:
        """The text that is still held back and belongs to the answer."""
        if self._closing is not None and not self._is_open_from_start:
            return ""
        held, self._held = self._held, ""
        return held
