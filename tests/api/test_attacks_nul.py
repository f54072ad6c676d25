"""NUL, which some stores can neither keep nor look for, in every text and every key that a body may
hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from api.conftest import Api

FILTERS = {
    "id": "al",
    "metadata": {"k": "v", "m": {"contains": "x"}, "n": {"in": ["q"]}},
    "OR": [{"id": {"contains": "x"}}],
}
MESSAGE = {
    "content": "hello",
    "peer_id": "al",
    "metadata": {"a": ["b"]},
    "configuration": {"reasoning": {"custom_instructions": "x"}},
}
PAIR = {"observer_id": "al", "observed_id": "bo"}
BODIES: list[tuple[str, str, Any]] = [
    (
        "POST",
        "//v3/workspaces",
        {"id": "nul", "metadata": {"a": {"b": ["c"]}}, "configuration": {"other": {"z": "y"}}},
    ),
    (
        "PUT",
        "",
        {
            "metadata": {"a": "b"},
            "configuration": {"summary": {"custom_instructions": "x"}, "other": "x"},
        },
    ),
    ("POST", "/peers", {"id": "pp", "metadata": {"name": "b"}, "configuration": {"other": ["x"]}}),
    ("PUT", "/peers/pp", {"metadata": {"name": "b"}, "configuration": {"other": "x"}}),
    ("POST", "/peers/list", {"filters": FILTERS, "kind": "all"}),
    (
        "POST",
        "/sessions",
        {
            "id": "ss",
            "metadata": {"a": "b"},
            "peers": {"al": {}},
            "configuration": {"x": "y"},
            "scopes": ["sc"],
        },
    ),
    ("POST", "/sessions/s/peers", {"al": {}}),
    ("PUT", "/sessions/s/peers", {"al": {}}),
    ("DELETE", "/sessions/s/peers", ["al"]),
    ("POST", "/sessions/s/messages", {"messages": [MESSAGE]}),
    (
        "POST",
        "/sessions/s/messages/list",
        {"filters": {"peer_id": "al", "session_id": ["s"], "workspace_id": "w"}},
    ),
    (
        "POST",
        "/sessions/s/search",
        {"query": "hi", "filters": {"peer_perspective": "al", "peer_id": "al"}},
    ),
    ("POST", "/search", {"query": "hi", "scope": "sc"}),
    ("POST", "/chat", {"query": "hi?", "session_id": "s"}),
    (
        "POST",
        "/peers/al/chat",
        {"query": "hi?", "session_id": "s", "target": "bo", "filters": {"session_id": ["s"]}},
    ),
    ("POST", "/peers/al/representation", {"session_id": "s", "target": "bo", "search_query": "x"}),
    ("PUT", "/peers/al/card", {"peer_card": ["x y"]}),
    ("POST", "/conclusions", {"conclusions": [{"content": "c", "session_id": "s", **PAIR}]}),
    (
        "POST",
        "/conclusions/query",
        {
            "query": "c",
            "filters": {**PAIR, "source_ids": {"contains": "x"}, "metadata": {"k": "v"}},
        },
    ),
    ("POST", "/scopes", {"id": "other", "metadata": {"a": "b"}}),
    ("POST", "/scopes/sc/sessions", {"session_ids": ["s"]}),
    (
        "POST",
        "/schedule_dream",
        {"observer": "al", "observed": "bo", "dream_type": "omni", "session_id": "s"},
    ),
]


def spoilt(value: Any, spoil: Callable[[str], str]) -> Iterator[Any]:
    """The value with one of its texts or keys spoilt, once for each of them."""
    if isinstance(value, str):
        yield spoil(value)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from (
                [*value[:index], other, *value[index + 1 :]] for other in spoilt(item, spoil)
            )
    elif isinstance(value, dict):
        for key, item in value.items():
            yield {spoil(name) if name == key else name: inner for name, inner in value.items()}
            yield from ({**value, key: other} for other in spoilt(item, spoil))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "body"), BODIES, ids=[f"{method} {path}" for method, path, _ in BODIES]
)
def test_nul_in_a_body_is_stripped_or_refused(api: Api, method: str, path: str, body: Any) -> None:
    api.say("s", ("al", "hi there"), ("bo", "good morning"))
    api.ok(api.post("/scopes", {"id": "sc"}), 201)
    assert api.call(method, path, body).status_code < 300, "the body is good before it is spoilt"
    for spoil in (lambda text: f"{text}\0", lambda text: "\0"):
        for wrong in spoilt(body, spoil):
            answer = api.call(method, path, wrong)
            assert answer.status_code in (200, 201, 204, 404, 422), f"{wrong}: {answer.text}"
            assert "\\u0000" not in answer.text or answer.status_code == 422, (
                f"{wrong}: {answer.text}"
            )


def test_the_error_for_a_member_with_nul_names_its_field(api: Api) -> None:
    api.create()
    for answer, loc in (
        (api.post("/sessions", {"id": "s", "peers": {"al\0": {}}}), ["peers"]),
        (api.post("/sessions/s/peers", {"al\0": {}}), []),
        (api.put("/sessions/s/peers", {"al\0": {}}), []),
    ):
        problem = api.refused(answer, ["body", *loc, "al\0"])[0]
        assert problem["msg"] == "Names must not contain NUL"
    assert api.ids("/sessions/list") == []


def test_nul_in_filter_names_is_stripped(api: Api) -> None:
    api.say("s", ("al", "hi there"), ("bo", "good morning"))
    api.conclude("al", "bo", "bo likes tea")
    hits = api.ok(
        api.post("/search", {"query": "hi there", "filters": {"peer_perspective": "al\0"}})
    )
    assert hits[0]["content"] == "hi there"
    filters = {"observer_id": "a\0l", "observed_id": "bo\0"}
    assert [
        item["content"]
        for item in api.ok(api.post("/conclusions/query", {"query": "tea", "filters": filters}))
    ] == ["bo likes tea"]
