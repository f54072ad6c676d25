"""How large may be what a caller sends: the same in all generations, said before it costs anything,
and never in the way of older rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from api.conftest import Api
from memservice.api import generations
from memservice.api.routing import walk
from memservice.domain import sizes
from memservice.domain.records import Card
from support.api.all_generations import ALICE, AllGenerations
from support.api.all_generations import all_generations as all_generations

LONG = "x" * (sizes.MAX_QUERY + 1)
SEARCHES = ("/search", "/peers/alice/search", "/sessions/s1/search")


def later(all_generations: AllGenerations) -> dict[str, Api]:
    return {"v2": all_generations.v2, "v3": all_generations.newest}


@pytest.fixture
def talk(all_generations: AllGenerations) -> AllGenerations:
    all_generations.newest.ok(
        all_generations.newest.post("/sessions", {"id": "s1", "peers": {ALICE: {}}}), 201
    )
    return all_generations


@pytest.mark.slow
def test_the_length_of_a_query_is_limited(talk: AllGenerations) -> None:
    for name, api in later(talk).items():
        memory = "/conclusions/query" if name == "v3" else "/observations/query"
        about = {"observer": ALICE, "observed": ALICE}
        for path in (*SEARCHES, memory):
            body = {"query": LONG, "filters": about} if path == memory else {"query": LONG}
            (problem,) = api.refused(api.post(path, body), ["body", "query"])
            assert (problem["type"], "at most 10000 characters" in problem["msg"]) == (
                "string_too_long",
                True,
            )
            assert api.post(path, {**body, "query": LONG[1:]}).status_code == 200, path
        (problem,) = api.refused(
            api.post("/peers/alice/representation", {"search_query": LONG}),
            ["body", "search_query"],
        )
        assert problem["type"] == "string_too_long"
        words = {
            "/peers/alice/context": "search_query",
            "/sessions/s1/context": "last_message" if name == "v2" else "search_query",
        }
        for path, word in words.items():
            api.refused(api.get(path, query_string={word: LONG}), ["query", word])
    # the bare text of the first clients
    (problem,) = talk.v2.refused(talk.v2.post("/search", LONG))
    assert problem["type"] == "string_too_long"


def test_the_first_generation_has_a_smaller_limit(talk: AllGenerations) -> None:
    user = talk.user()
    collection = talk.v1.post(f"{user}/collections", {"name": "c"})["id"]
    loc, _ = talk.v1.problem(
        "POST", f"{user}/collections/{collection}/documents/query", {"query": "x" * 1_001}
    )
    assert loc == ["body", "query"]


def test_the_length_of_a_card_line_is_limited(talk: AllGenerations) -> None:
    for api in later(talk).values():
        line = "x" * (sizes.MAX_CARD_LINE + 1)
        api.refused(
            api.put("/peers/alice/card", {"peer_card": ["short", line]}), ["body", "peer_card", 1]
        )
        assert api.ok(api.put("/peers/alice/card", {"peer_card": [line[1:]]})) == {
            "peer_card": [line[1:]]
        }


def test_an_older_card_with_longer_lines_is_readable(talk: AllGenerations) -> None:
    talk.newest.ok(talk.newest.put("/peers/alice/card", {"peer_card": ["short"]}))
    longer: list[str] = ["y" * 5_000]

    def lengthen(tx: Any) -> None:
        alice = tx.peers.by_slug(tx.workspaces.by_slug(talk.workspace).key, ALICE)
        at = talk.runtime.clock()
        tx.cards.save(
            Card(
                workspace_key=alice.workspace_key,
                observer_key=alice.key,
                target=ALICE,
                lines=longer,
                given=longer,
                updated_at=at,
            )
        )

    talk.runtime.storage.write(lengthen)
    assert [api.ok(api.get("/peers/alice/card"))["peer_card"] for api in later(talk).values()] == [
        longer,
        longer,
    ]


@pytest.mark.slow
def test_the_size_of_metadata_is_limited(talk: AllGenerations) -> None:
    fits = {"a": "ü" * ((sizes.MAX_METADATA - 8) // 2)}
    assert (
        len(json.dumps(fits, ensure_ascii=False, separators=(",", ":")).encode())
        == sizes.MAX_METADATA
    )
    large = {"a": fits["a"] + "x"}
    for api in later(talk).values():
        for path in ("", "/peers/alice", "/sessions/s1"):
            (problem,) = api.refused(api.put(path, {"metadata": large}), ["body", "metadata"])
            assert problem["msg"] == "Metadata may have at most 65536 bytes as JSON"
            assert api.put(path, {"metadata": fits}).status_code == 200
        message = {"peer_id": ALICE, "content": "x", "metadata": large}
        api.refused(
            api.post("/sessions/s1/messages", {"messages": [message]}),
            ["body", "messages", 0, "metadata"],
        )
        api.refused(api.put("/peers/alice", {"configuration": large}), ["body", "configuration"])
    assert talk.v1.problem("PUT", talk.user(), {"metadata": large})[0] == ["body", "metadata"]
    assert talk.v1.problem("POST", f"{talk.user()}/sessions", {"metadata": large})[0] == [
        "body",
        "metadata",
    ]


LARGE = {
    ("POST", "/v3/workspaces/<workspace_id>/sessions/<session_id>/messages"),
    ("POST", "/v3/workspaces/<workspace_id>/sessions/<session_id>/messages/upload"),
    ("POST", "/v3/workspaces/<workspace_id>/conclusions"),
    ("PUT", "/v3/workspaces/<workspace_id>/conclusions/<conclusion_id>"),
    ("POST", "/v2/workspaces/<workspace_id>/sessions/<session_id>/messages/"),
    ("POST", "/v2/workspaces/<workspace_id>/sessions/<session_id>/messages/upload"),
    ("POST", "/v2/workspaces/<workspace_id>/peers/<peer_id>/messages"),
    ("POST", "/v2/workspaces/<workspace_id>/observations"),
    ("POST", "/v1/apps/<app_id>/users/<user_id>/sessions/<session_id>/messages/batch"),
    ("POST", "/v1/apps/<app_id>/users/<user_id>/sessions/<session_id>/chat"),
    ("POST", "/v1/apps/<app_id>/users/<user_id>/collections/<collection_id>/documents"),
    (
        "PUT",
        "/v1/apps/<app_id>/users/<user_id>/collections/<collection_id>/documents/<document_id>",
    ),
}
"""All that carry long texts. A question of `/v1` may be 25 of 10,000 characters, each of which
takes up to twelve bytes."""


def test_only_routes_for_long_texts_accept_large_bodies() -> None:
    assert {
        (operation.method, operation.rule)
        for operation, _ in walk(generations.GROUPS)
        if operation.large
    } == LARGE


@pytest.mark.slow
def test_large_bodies_of_other_routes_are_refused_without_reading_them(
    talk: AllGenerations,
) -> None:
    for name, api in later(talk).items():
        length = {"CONTENT_LENGTH": str(sizes.MAX_BODY + 1)}
        answer = api.post(
            "/peers/list", data=b"{}", content_type="application/json", environ_overrides=length
        )
        assert api.ok(answer, 413) == {
            "detail": "The request's body is too large: at most 1048576 bytes are read here"
        }, name
        many = {"messages": [{"peer_id": ALICE, "content": "😀" * 10_000} for _ in range(60)]}
        assert len(json.dumps(many).encode()) > 5 * sizes.MAX_BODY
        assert api.post("/sessions/s1/messages", many).status_code == (201 if name == "v3" else 200)
        length = {"CONTENT_LENGTH": str(sizes.MAX_LARGE_BODY + 1)}
        answer = api.post(
            "/sessions/s1/messages",
            data=b"{}",
            content_type="application/json",
            environ_overrides=length,
        )
        assert api.ok(answer, 413) == {
            "detail": "The request's body is too large: at most 100663296 bytes are read here"
        }


def test_the_operations_page_lists_the_sizes() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.partition("\n## Request limits\n")[2].partition("\n## ")[0]
    shown = [
        int(number.replace(",", ""))
        for number in re.findall(r"^\| [^|]+ \| ([\d,]+) \|$", section, re.M)
    ]
    assert shown == [value for name, value in vars(sizes).items() if name.startswith("MAX_")]
