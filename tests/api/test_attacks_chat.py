"""What a model may look up while it answers stays within what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from memservice.services.chat import chat
from memservice.services.chat.tools import Tools

if TYPE_CHECKING:
    from api.conftest import Api


def test_cards_are_not_available_within_a_scope(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written from everything, also from sessions outside the scope."""
    offered: list[bool] = []

    def tools(*arguments: Any, has_cards: bool, **named: Any) -> Tools:
        offered.append(has_cards)
        return Tools(*arguments, has_cards=has_cards, **named)

    monkeypatch.setattr(chat, "Tools", tools)
    api.post("/sessions", {"id": "inside", "peers": {"alice": {}}})
    api.post("/scopes", {"id": "team"})
    api.post("/scopes/team/sessions", {"session_ids": ["inside"]})
    assert api.post("/chat", {"query": "Where does alice live?"}).status_code == 200
    assert (
        api.post("/chat", {"query": "Where does alice live?", "scope": "team"}).status_code == 200
    )
    assert (
        api.post("/chat", {"query": "Where does alice live?", "scope": ["team"]}).status_code == 200
    )
    assert offered == [True, False, False]
