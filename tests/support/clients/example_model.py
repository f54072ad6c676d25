"""A scripted model for the examples: it can only repeat what reaches it."""

from __future__ import annotations

import json
import re

from memservice.spi.llm import ToolCall
from memservice.testing.badmodel import ModelRequest
from memservice.testing.llm import Say

TOLD = "I moved to Porto in May."
ASKED = "Where do I live?"


def answer(request: ModelRequest) -> Say:
    """With tools: remember what was told, and recall before answering. Then repeat the sentence
    about Porto, if it is anywhere in the request but in what the user said last."""
    turns = request.body["messages"]
    own = [str(turn["content"]) for turn in turns if turn["role"] == "user"][-1]
    if request.tools and not request.has_results:
        if TOLD in own and "remember" in request.tools:
            return _call("remember", text=f"The user says: {TOLD}")
        if ASKED in own and "recall" in request.tools:
            return _call("recall", query="the city where the user lives: Porto, moved")
    others = [turn for turn in turns if turn["role"] != "user" or str(turn["content"]) != own]
    match = re.search(r"I moved to Porto in \w+\.", json.dumps(others))
    if ASKED in own:
        return Say((f"You said: {match[0]}" if match else "I do not know.",))
    return Say(("Noted.",))


def _call(name: str, **arguments: str) -> Say:
    return Say((), (ToolCall("call-1", name, arguments),), "tool_calls")
