"""Our document against what clients published after that document send and read."""

from __future__ import annotations

from typing import Any

import pytest

from api.test_openapi import W
from support.api.documents import REFUSAL, differences, document, ours

TEXT = {"types": ["string"]}
NULLABLE_TEXT = {"types": ["null", "string"]}
TEXTS = {"types": ["array"], "items": TEXT}
TIME = {"types": ["string"], "format": "date-time"}
FLAG = {"types": ["boolean"]}
FREE = {"types": ["object"], "open": {}}
LEVEL = {"types": ["string"], "enum": ["explicit", "deductive", "inductive", "contradiction"]}


def record(required: str, /, **fields: Any) -> dict[str, Any]:
    return {"types": ["object"], "fields": fields, "required": sorted(required.split())}


def optional(shape: dict[str, Any]) -> dict[str, Any]:
    return {**shape, "types": ["null", *shape["types"]]}


def many(item: dict[str, Any]) -> dict[str, Any]:
    return {"types": ["array"], "items": item}


CONCLUSION = record(
    "id content observer_id observed_id level created_at",
    id=TEXT,
    content=TEXT,
    observer_id=TEXT,
    observed_id=TEXT,
    session_id=NULLABLE_TEXT,
    level=LEVEL,
    source_ids={"types": ["array", "null"], "items": TEXT},
    times_derived={"types": ["integer"], "minimum": 1},
    created_at=TIME,
)
EVIDENCE = record(
    "conclusions messages tool_calls",
    conclusions=many(
        record(
            "id content level created_at source_ids",
            id=TEXT,
            content=TEXT,
            level=LEVEL,
            created_at=TIME,
            session_id=NULLABLE_TEXT,
            observer_id=NULLABLE_TEXT,
            observed_id=NULLABLE_TEXT,
            source_ids=TEXTS,
        )
    ),
    messages=many(
        record(
            "id session_id peer_id created_at",
            id=TEXT,
            session_id=TEXT,
            peer_id=TEXT,
            created_at=TIME,
        )
    ),
    tool_calls=many(record("tool_name tool_input", tool_name=TEXT, tool_input=FREE)),
    reasoning_trace_id=NULLABLE_TEXT,
)
CHAT = record("content", content=NULLABLE_TEXT, evidence=optional(EVIDENCE))
QUESTION = record(
    "query",
    query={**TEXT, "minLength": 1, "maxLength": 10_000},
    stream={**FLAG, "default": False},
    session_id=NULLABLE_TEXT,
    reasoning_level={**TEXT, "enum": ["minimal", "low", "medium", "high", "max"], "default": "low"},
    scope={"types": ["array", "null", "string"], "items": TEXT, "minItems": 1, "maxItems": 100},
    response_format=optional(FREE),
    include_evidence={**FLAG, "default": False},
)
SECTION = optional(record("", custom_instructions=NULLABLE_TEXT))
CONFIGURATION = {
    **record(
        "",
        custom_instructions=NULLABLE_TEXT,
        **dict.fromkeys(("reasoning", "peer_card", "summary", "dream", "dialectic"), SECTION),
    ),
    "open": {},
}
BACKFILL = record(
    "state updated_at",
    state={**TEXT, "enum": ["pending", "completed", "failed"]},
    updated_at=TIME,
    docs_copied={"types": ["integer"]},
)
WITH_UID = record("id uid", id=TEXT, uid=TEXT)

ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    f"POST {W}/chat": ("200", CHAT),
    f"POST {W}/peers/{{peer_id}}/chat": ("200", CHAT),
    f"GET {W}/conclusions/{{conclusion_id}}": ("200", CONCLUSION),
    f"POST {W}/conclusions": ("201", many(CONCLUSION)),
    f"POST {W}/conclusions/list": ("200", record("items", items=many(CONCLUSION))),
    f"POST {W}/conclusions/query": ("200", many(CONCLUSION)),
    "POST /v3/workspaces": ("201", WITH_UID),
    "PUT /v3/workspaces/{workspace_id}": ("200", WITH_UID),
    "POST /v3/workspaces/list": ("200", record("items", items=many(WITH_UID))),
    f"POST {W}/peers": ("201", WITH_UID),
    f"PUT {W}/peers/{{peer_id}}": ("200", WITH_UID),
    f"POST {W}/peers/list": ("200", record("items", items=many(WITH_UID))),
    f"GET {W}/sessions/{{session_id}}/peers": ("200", record("items", items=many(WITH_UID))),
    f"POST {W}/sessions": ("201", WITH_UID),
    f"PUT {W}/sessions/{{session_id}}": ("200", WITH_UID),
    f"POST {W}/sessions/list": ("200", record("items", items=many(WITH_UID))),
    f"POST {W}/sessions/{{session_id}}/clone": ("201", WITH_UID),
    f"POST {W}/peers/{{peer_id}}/sessions": ("200", record("items", items=many(WITH_UID))),
    f"POST {W}/scopes/{{scope_id}}/sessions/list": ("200", record("items", items=many(WITH_UID))),
    f"GET {W}/scopes/{{scope_id}}/status": (
        "200",
        record("", backfill_status={"types": ["object"], "open": BACKFILL}),
    ),
}
BODIES: dict[str, dict[str, Any]] = {
    f"POST {W}/chat": QUESTION,
    f"POST {W}/peers/{{peer_id}}/chat": {
        **QUESTION,
        "fields": {**QUESTION["fields"], "target": NULLABLE_TEXT, "filters": optional(FREE)},
    },
    "POST /v3/workspaces": record("id", id=TEXT, configuration=CONFIGURATION),
    "PUT /v3/workspaces/{workspace_id}": record("", configuration=optional(CONFIGURATION)),
    f"POST {W}/sessions": record("id", id=TEXT, configuration=optional(CONFIGURATION)),
    f"PUT {W}/sessions/{{session_id}}": record("", configuration=optional(CONFIGURATION)),
}


def missing(want: dict[str, Any], have: dict[str, Any], path: str, *, request: bool) -> list[str]:
    return [
        where for kind, where in differences(want, have, path, request=request) if kind == "missing"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_have_the_fields_that_newer_clients_read(name: str) -> None:
    status, want = ANSWERS[name]
    assert (
        missing(want, ours("v3")[name]["answers"][status], f"{name} answer {status}", request=False)
        == []
    )


@pytest.mark.parametrize("name", BODIES)
def test_requests_allow_the_fields_that_newer_clients_send(name: str) -> None:
    assert missing(BODIES[name], ours("v3")[name]["body"], f"{name} body", request=True) == []


@pytest.mark.parametrize(
    ("name", "parameters", "body"),
    [
        (f"POST {W}/chat", {"path workspace_id"}, "application/json"),
        (
            f"GET {W}/conclusions/{{conclusion_id}}",
            {"path workspace_id", "path conclusion_id"},
            None,
        ),
    ],
)
def test_newer_operations_allow_no_other_fields(
    name: str, parameters: set[str], body: str | None
) -> None:
    have = ours("v3")[name]
    assert have["parameters"].keys() == parameters
    assert all(parameter["must"] for parameter in have["parameters"].values())
    assert have["media"].get("body") == body
    assert have.get("body", {}).get("must") == (True if body else None)
    assert have["answers"].keys() == {"200", "401", "422", "default"}
    assert missing(REFUSAL, have["answers"]["422"], f"{name} answer 422", request=False) == []


@pytest.mark.parametrize("path", [f"{W}/chat", f"{W}/peers/{{peer_id}}/chat"])
def test_chats_may_answer_as_a_stream(path: str) -> None:
    assert document("v3")["paths"][path]["post"]["responses"]["200"]["content"].keys() == {
        "application/json",
        "text/event-stream",
    }


def test_workspace_chat_has_neither_target_nor_filters() -> None:
    assert not {"target", "filters"} & ours("v3")[f"POST {W}/chat"]["body"]["fields"].keys()
