"""Removes reasoning that a model writes into its answer between tags. Servers without a reasoning
parser pass it on."""

from __future__ import annotations

import re

_NAME = r"(?:think|thinking|reasoning|thought)"
_OPENING = re.compile(rf"\s*(?:<({_NAME})>|\[(think)\])", re.IGNORECASE)
_CLOSING = re.compile(rf"(?:</{_NAME}>|\[/think\])", re.IGNORECASE)
_CLOSING_OF_LINE = re.compile(
    rf"(?:</{_NAME}>|\[/think\])(?=[^\S\n]*(?:\n|\Z|[{{\[]|```))", re.IGNORECASE
)
"""A closing tag without an opening one counts only at the end of its line or before JSON: elsewhere
it may be quoted from a message."""
_MAX_TAG = len("</reasoning>")
_OPENINGS = ("<think>", "<thinking>", "<reasoning>", "<thought>", "[think]")


def without_reasoning(text: str) -> tuple[str, bool]:
    """The answer without the reasoning in front of it, and whether there was any.

    This removes leading blocks (an unclosed one to the end of the text) and everything before a
    closing tag that has no opening one. Text that begins as JSON is not changed.
    """
    position, removed = 0, False
    while opening := _OPENING.match(text, position):
        closing = _closing_of(opening).search(text, opening.end())
        position, removed = closing.end() if closing else len(text), True
    if not removed and not text.lstrip().startswith(("{", "[")):
        for match in _CLOSING_OF_LINE.finditer(text):
            position, removed = match.end(), True
    return (text[position:].lstrip() if removed else text), removed


def has_bare_closing_tag(text: str) -> bool:
    """Whether the reasoning of this answer ends with a tag but does not begin with one, because the
    server's template contains the opening tag."""
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
    """`without_reasoning` for an answer that arrives in pieces. It delays text only until it is
    clear whether reasoning begins. Of reasoning itself it stores only the last few characters."""

    def __init__(self, *, is_open: bool = False) -> None:
        """`is_open`: the answer begins inside reasoning, whose opening tag is in the server's
        template. If no closing tag arrives, the text was the answer."""
        self.removed = False
        """Whether there was reasoning."""
        self._before: list[str] = []
        """Text in front of `_pending` that belongs to the answer unless reasoning follows it. A
        list, because adding each piece to one text costs the square of its length."""
        self._pending = ""
        """The last characters, in which a tag may begin: never more than the length of a tag."""
        self._closing = _CLOSING if is_open else None
        self._is_open_from_start = is_open
        self._is_answer = False

    def take(self, piece: str) -> str:
        """The text that is known to be part of the answer now; often empty."""
        if self._is_answer:
            return piece
        text, position = self._pending + piece, 0
        while True:
            if self._closing is not None:
                closing = self._closing.search(text, position)
                if closing is None:
                    self._hold_end(text, position)
                    return ""
                position, self._closing = closing.end(), None
                self._remove()
            opening = _OPENING.match(text, position)
            if opening is None:
                return self._begin(text[position:])
            position, self._closing = opening.end(), _closing_of(opening)
            self._remove()

    def _remove(self) -> None:
        """Drop the text so far: it was reasoning, or the blanks in front of it."""
        self._before.clear()
        self._is_open_from_start, self.removed = False, True

    def _hold_end(self, text: str, position: int) -> None:
        """Hold the end of reasoning, in which its closing tag may begin."""
        end = max(position, len(text) - _MAX_TAG)
        if self._is_open_from_start:
            self._before.append(text[position:end])
        self._pending = text[end:]

    def _begin(self, text: str) -> str:
        """The beginning of the answer; empty while it may still become an opening tag."""
        beginning = text.lstrip()
        if not self.removed:
            self._before.append(text[: len(text) - len(beginning)])
        self._pending = beginning
        if any(tag.startswith(beginning[:_MAX_TAG].lower()) for tag in _OPENINGS):
            return ""
        self._is_answer = True
        return self._release()

    def _release(self) -> str:
        text = "".join(self._before) + self._pending
        self._before.clear()
        self._pending = ""
        return text

    def end(self) -> str:
        """The delayed text that belongs to the answer."""
        if self._closing is not None and not self._is_open_from_start:
            return ""
        return self._release()
