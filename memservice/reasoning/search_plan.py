"""Searches for a model without tools: it writes a list of them."""

from __future__ import annotations

from typing import Any

from memservice.domain.answers.json_text import Unreadable
from memservice.domain.ids import new_uid
from memservice.reasoning import structured
from memservice.reasoning.client import ModelClient
from memservice.reasoning.prompts import answer as prompt
from memservice.reasoning.prompts import tools
from memservice.reasoning.tool_loop import ToolLoop
from memservice.spi.llm import Refusal, ToolCall

MAX_ROUNDS = 3
MAX_SEARCHES = 6
"""Searches of one round; more are ignored."""
TOOLS = {"memory": tools.SEARCH_MEMORY.name, "messages": tools.SEARCH_MESSAGES.name}


def look_up(client: ModelClient, loop: ToolLoop) -> None:
    """Run the searches that the model plans, round by round. An unreadable plan ends them: the
    results so far are enough for an answer."""
    previous: set[tuple[str, str]] = set()
    for number in range(1, min(MAX_ROUNDS, loop.rounds) + 1):
        before = client.spent
        completion = client.complete(
            loop.transcript(prompt.PLAN), schema=prompt.PLAN_SCHEMA, iteration=number
        )
        loop.spend(before)
        try:
            plan = structured.parsed(completion, prompt.PLAN_SCHEMA, _shaped).value
        except (Unreadable, Refusal):
            return
        searches = [
            (TOOLS[search["in"]], search["query"].strip())
            for search in plan["searches"]
            if search["query"].strip()
        ]
        searches = [search for search in dict.fromkeys(searches) if search not in previous]
        if not searches:
            return
        searches = searches[:MAX_SEARCHES]
        loop.perform([ToolCall(new_uid(), name, {"query": query}) for name, query in searches])
        previous.update(searches)
        if plan["done"]:
            return


def _shaped(value: Any) -> Any:
    """Accepts a bare list of searches, searches as texts, and a plan without `done`."""
    plan = {"searches": value} if isinstance(value, list) else value
    if not isinstance(plan, dict) or not isinstance(plan.get("searches", []), list):
        return value
    return {
        "searches": [_shaped_search(search) for search in plan.get("searches", [])],
        "done": plan.get("done") is True,
    }


def _shaped_search(search: Any) -> Any:
    if isinstance(search, str):
        return {"query": search, "in": "memory"}
    if isinstance(search, dict) and search.get("in") not in TOOLS:
        return {"query": search.get("query"), "in": "memory"}
    return search
