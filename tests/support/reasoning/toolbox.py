"""A toolbox of which a test decides what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memservice.spi.toolbox import Chain, Evidence, Passage, ToolRefused
from support.reasoning.model import NOW


def conclusion_evidence(uid: str, content: str, **values: Any) -> Evidence:
    fields: dict[str, Any] = {"about": "alice", "observer": "alice", "level": "explicit"}
    return Evidence("conclusion", uid, content, NOW, **(fields | {"session": "s"} | values))


def message_evidence(author: str, content: str, **values: Any) -> Evidence:
    return Evidence(
        "message", f"m-{content[:8]}", content, NOW, author=author, session="s", **values
    )


class FakeToolbox:
    """Finds everything that it was given, and keeps what it was asked for."""

    def __init__(
        self,
        *stored: Evidence,
        passages: Sequence[Passage] = (),
        has_chains: bool = True,
        has_cards: bool = False,
    ) -> None:
        self.stored, self.passages = stored, passages
        self.has_chains, self.has_cards = has_chains, has_cards
        self.calls: list[tuple[Any, ...]] = []

    def conclusions(self, query: str, limit: int) -> Sequence[Evidence]:
        self.calls.append(("conclusions", query, limit))
        return self.stored[:limit]

    def messages(
        self, query: str, limit: int, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[Passage]:
        self.calls.append(("messages", query, limit, since, until))
        return self.passages

    def containing(self, text: str, limit: int) -> Sequence[Passage]:
        self.calls.append(("containing", text, limit))
        return self.passages

    def between(
        self, since: datetime | None, until: datetime | None, limit: int, newest_first: bool = True
    ) -> Sequence[Passage]:
        self.calls.append(("between", since, until, limit, newest_first))
        return self.passages

    def behind(self, uid: str) -> Sequence[Passage]:
        self.calls.append(("behind", uid))
        return self.passages

    def around(self, uid: str) -> Sequence[Passage]:
        self.calls.append(("around", uid))
        return self.passages

    def chain(self, uid: str) -> Chain:
        for item in self.stored:
            if item.uid == uid:
                return Chain(item, [other for other in self.stored if other.uid in item.source_ids])
        raise ToolRefused(f"There is no conclusion with the id {uid!r}.")

    def card(self, peer_id: str) -> Sequence[str]:
        self.calls.append(("card", peer_id))
        return ["IDENTITY: Alice"]
