"""The tools that models are offered: their names, what they are told about them, and what they may
be given."""

from __future__ import annotations

from typing import Any

from memservice.domain.derived_rules import CONFIDENCES, PATTERNS
from memservice.spi.llm import Tool


def _tool(name: str, description: str, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    return Tool(
        name,
        description,
        {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
    )


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _limit(usual: int, maximum: int) -> dict[str, Any]:
    return {
        "type": "integer",
        "minimum": 1,
        "maximum": maximum,
        "description": f"{usual} if left out.",
    }


_QUERY = _text("What to look for, in words that it may have been said in. Names and dates help.")
_SINCE = _text("First time, ISO 8601.")
_UNTIL = _text("Last time, ISO 8601; a day alone means until its end.")
_ID = _text("The id of a conclusion, as in brackets in front of it: c17.")

MAX_CALCULATED = 100
"""Dates, and items, of one call."""

LIMITS = {
    "search_memory": (20, 40),
    "search_messages": (10, 20),
    "grep_messages": (10, 30),
    "get_messages_by_date_range": (20, 20),
    "search_messages_temporal": (10, 10),
    "get_recent_conclusions": (50, 100),
}
"""How many things a look-up gives if nothing is said, and at most."""

SEARCH_MEMORY = _tool(
    "search_memory",
    "Search the conclusions, best first; messages if there is no conclusion.",
    ("query",),
    query=_QUERY,
    limit=_limit(*LIMITS["search_memory"]),
)
SEARCH_MESSAGES = _tool(
    "search_messages",
    "Search what was said, by anyone, best first, with the messages around each hit (>).",
    ("query",),
    query=_QUERY,
    limit=_limit(*LIMITS["search_messages"]),
)
GREP_MESSAGES = _tool(
    "grep_messages",
    "Find messages with exactly this text, in any case, newest first: names, numbers, rare words.",
    ("text",),
    text=_text("The text, letter for letter."),
    limit=_limit(*LIMITS["grep_messages"]),
)
MESSAGES_BY_DATE = _tool(
    "get_messages_by_date_range",
    "Read the messages of a span of time. Give at least one of its ends.",
    since=_SINCE,
    until=_UNTIL,
    order={
        "type": "string",
        "enum": ["newest", "oldest"],
        "description": "Which end to read first (newest if left out).",
    },
    limit=_limit(*LIMITS["get_messages_by_date_range"]),
)
SEARCH_MESSAGES_TEMPORAL = _tool(
    "search_messages_temporal",
    "As search_messages, within a span of time.",
    ("query",),
    query=_QUERY,
    since=_SINCE,
    until=_UNTIL,
    limit=_limit(*LIMITS["search_messages_temporal"]),
)
OBSERVATION_CONTEXT = _tool(
    "get_observation_context",
    "Read the messages behind a conclusion, or around a message.",
    ("id",),
    id=_text("The id of a conclusion (c17) or of a message (m4)."),
)
REASONING_CHAIN = _tool(
    "get_reasoning_chain",
    "See what a conclusion rests on, what rests on it, and what it replaced.",
    ("conclusion_id",),
    conclusion_id=_ID,
)
PEER_CARD = _tool(
    "get_peer_card",
    "Read the card of a peer: a few lines on who it is.",
    ("peer",),
    peer=_text("The peer's id, as it stands in the results of other tools."),
)
CALCULATE_DATES = _tool(
    "calculate_dates",
    "Put dates in order; gives weekdays, the time between them, and to today.",
    ("dates",),
    dates={
        "type": "array",
        "items": {"type": "string"},
        "description": "Each an ISO date and what happened: '2024-05-17 moved to Braga'.",
    },
)
COUNT_ITEMS = _tool(
    "count_items",
    "Count different things; the same thing named twice counts once.",
    ("items",),
    items={
        "type": "array",
        "items": {"type": "string"},
        "description": "Each thing, in a few words.",
    },
)

RECENT_CONCLUSIONS = _tool(
    "get_recent_conclusions",
    "List the newest conclusions that are held, newest first.",
    level={
        "type": "string",
        "enum": ["explicit", "deductive", "inductive", "contradiction"],
        "description": "Only those of this level.",
    },
    skip={
        "type": "integer",
        "minimum": 0,
        "description": "Leave out so many of the newest, to read on where an earlier list ended.",
    },
    limit=_limit(*LIMITS["get_recent_conclusions"]),
)
CREATE_CONCLUSIONS = "create_conclusions"
SUPERSEDE_CONCLUSIONS = _tool(
    "supersede_conclusions",
    (
        "Let conclusions give way: because they say the same as another, because a later one "
        "replaces them, or because they no longer hold. "
        "They are kept, but no longer found."
    ),
    ("conclusions",),
    conclusions={
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "id": _ID,
                "replaced_by": _text(
                    "The id of the conclusion that holds in its place, or #n of one that "
                    "you created. Leave it out only if none does."
                ),
                "reason": _text("Why, in a few words."),
            },
            "required": ["id", "reason"],
            "additionalProperties": False,
        },
    },
)
UPDATE_PEER_CARD = _tool(
    "update_peer_card",
    (
        "Write the card anew, as a whole: lines that you leave out are dropped, except those "
        "that a person wrote."
    ),
    ("lines",),
    lines={
        "type": "array",
        "items": {"type": "string"},
        "description": "All lines of the new card, the most important first.",
    },
)


def create_conclusions(levels: tuple[str, ...]) -> Tool:
    """The tool for the levels that a phase may make."""
    properties: dict[str, Any] = {
        "content": _text("The conclusion, in one sentence that is understood by itself."),
        "level": {"type": "string", "enum": list(levels)},
        "source_ids": {
            "type": "array",
            "items": {"type": "string"},
            "description": (
                "Ids of the conclusions that it rests on, or #n of ones that you created. A "
                "contradiction needs two."
            ),
        },
        "premises": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What it follows from, in words, if not the sources' own.",
        },
    }
    if "inductive" in levels:
        properties["pattern_type"] = {"type": "string", "enum": list(PATTERNS)}
        properties["confidence"] = {"type": "string", "enum": list(CONFIDENCES)}
    item = {
        "type": "object",
        "properties": properties,
        "required": ["content", "level", "source_ids"],
        "additionalProperties": False,
    }
    return _tool(
        CREATE_CONCLUSIONS,
        (
            f"Note new conclusions ({', '.join(levels)}). Each is answered with its number, or "
            "with what is wrong about it."
        ),
        ("conclusions",),
        conclusions={"type": "array", "items": item},
    )
