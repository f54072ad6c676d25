"""Chat over HTTP about something that no single message says: the model searches again with what it
has read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from api.conftest import Api
from api.test_chat_model import ChatWithModel, open_chat
from memservice.spi.llm import Completion, CompletionRequest, ToolsUnsupported
from support.reasoning.model import calling

QUESTION = "What does alice's climbing partner do for a living?"
LINK = "I always go climbing with Oona."
FACT = "Oona runs a bakery by the harbour."
_COMPANION = re.compile(r"climbing with (\w+)")


def say_hops(api: Api) -> None:
    """The two messages, between so many others that the second one is in no search for the
    question."""
    api.say("hall", ("bob", "Who holds the rope?"), ("alice", LINK))
    api.say("harbour", ("alice", FACT))
    for number in range(20):
        api.say(f"talk-{number}", ("alice", f"What does a partner do for a living? Idea {number}."))


def texts(request: CompletionRequest) -> str:
    return "\n".join(turn.content for turn in request.turns)


def next_search(request: CompletionRequest) -> str | None:
    """What a model searches for next, from what it has read; None: nothing is missing."""
    read = texts(request)
    if FACT in read:
        return None
    companion = _COMPANION.search(read)
    return "climbing" if companion is None else companion[1]


def with_tools(request: CompletionRequest) -> Completion | str:
    query = next_search(request)
    if query is None or not request.tools:
        return "She runs a bakery." if query is None else "Nothing is known."
    return calling(("search_messages", {"query": query}))


def by_plans(request: CompletionRequest) -> Completion | str | dict[str, Any]:
    if request.tools:
        raise ToolsUnsupported("no tools here")
    query = next_search(request)
    if request.response_schema is None:
        return "She runs a bakery." if query is None else "Nothing is known."
    searches = [] if query is None else [{"query": query, "in": "messages"}]
    return {"searches": searches, "done": query is None}


def ask(chat: ChatWithModel, say: Any, **body: Any) -> Any:
    chat.model.say = say
    return chat.ask(query=QUESTION, **body)


@pytest.mark.slow
@pytest.mark.parametrize("say", [with_tools, by_plans], ids=["tools", "plan"])
def test_the_model_searches_for_what_it_has_read(tmp_path: Path, say: Any) -> None:
    with open_chat(tmp_path) as chat:
        say_hops(chat.api)
        answer = ask(chat, say)
        assert answer["content"] == "She runs a bakery."
        first = texts(chat.model.requests[0])
        assert FACT not in first
        sessions = [message["session_id"] for message in answer["evidence"]["messages"]]
        assert {"hall", "harbour"} <= set(sessions)


@pytest.mark.slow
@pytest.mark.parametrize("say", [with_tools, by_plans], ids=["tools", "plan"])
def test_a_further_search_stays_within_the_session(tmp_path: Path, say: Any) -> None:
    with open_chat(tmp_path) as chat:
        say_hops(chat.api)
        answer = ask(chat, say, session_id="hall")
        assert answer["content"] == "Nothing is known."
        assert all(FACT not in texts(request) for request in chat.model.requests)
