"""Short ids of conclusions and messages in prompts: they cost a model few tokens and are hard to
mistype."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

CONCLUSION, MESSAGE = "c", "m"

_ID = re.compile(r"([cm])(\d{1,6})")
_CITATION = re.compile(r"(?<!\w)\[([cm]\d{1,6}(?:\s?[,;]\s?[cm]\d{1,6})*)\]")
_OPEN_CITATION = re.compile(r"\[[cm\d,;\s]{0,200}\Z")
"""The end of a text in which a citation may begin."""


class ShortIds:
    """`c1`, `c2` … for conclusions and `m1`, `m2` … for messages, in the order in which a model is
    first sees them. They last as long as this object: for one answer, or one dream."""

    def __init__(self) -> None:
        self._uids: dict[str, list[str]] = {CONCLUSION: [], MESSAGE: []}
        self._ids: dict[tuple[str, str], str] = {}

    def conclusion(self, uid: str) -> str:
        return self._id(CONCLUSION, uid)

    def message(self, uid: str) -> str:
        return self._id(MESSAGE, uid)

    def _id(self, kind: str, uid: str) -> str:
        if (kind, uid) not in self._ids:
            self._uids[kind].append(uid)
            self._ids[kind, uid] = f"{kind}{len(self._uids[kind])}"
        return self._ids[kind, uid]

    def uid(self, written: str, kind: str) -> str | None:
        """The uid of an id as a model writes it (`c17`, `[c17]`, `C17`); None for an unknown
        one, and for one of another kind."""
        match = _ID.fullmatch(written.strip().strip("[]").strip().lower())
        if match is None or match[1] != kind:
            return None
        number = int(match[2])
        return self._uids[kind][number - 1] if 0 < number <= len(self._uids[kind]) else None

    def range(self, kind: str) -> str:
        """The known ids of a kind, in words."""
        count = len(self._uids[kind])
        if not count:
            return "none so far"
        return f"{kind}1" if count == 1 else f"{kind}1 to {kind}{count}"

    def restored(self, text: str) -> str:
        """The text with uids in its citations, such as `[c17]` or `[c1, m4]`."""

        def replace(match: re.Match[str]) -> str:
            uids = [self.uid(part, part[0]) for part in re.findall(r"[cm]\d+", match[1])]
            resolved = [uid for uid in uids if uid is not None]
            return f"[{', '.join(resolved)}]" if len(resolved) == len(uids) else match[0]

        return _CITATION.sub(replace, text)

    def restored_id(self, written: object) -> object:
        """The uid of an id; any other value is returned unchanged."""
        if not isinstance(written, str):
            return written
        return self.uid(written, CONCLUSION) or self.uid(written, MESSAGE) or written

    def restored_pieces(self, pieces: Iterable[str]) -> Iterator[str]:
        """The pieces of a text that arrives bit by bit, with uids in its citations. The beginning
        of a citation is held back until its end arrives."""
        buffer = ""
        for piece in pieces:
            text = buffer + piece
            match = _OPEN_CITATION.search(text)
            buffer = match[0] if match else ""
            if ready := self.restored(text[: len(text) - len(buffer)]):
                yield ready
        if buffer:
            yield self.restored(buffer)
