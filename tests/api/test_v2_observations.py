"""Observations of the second generation."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain.ids import new_uid
from memservice.spi.storage import Transaction
from support.api.v2_client import V2Client
from support.api.v2_client import v2 as v2

pytestmark = pytest.mark.every_index


GLOBAL = "__global_observations__"


OBSERVATION = ["id", "content", "observer_id", "observed_id", "session_id", "created_at"]


class TestObservations:
    @pytest.mark.parametrize(
        ("path", "key"), [("/observations", "observations"), ("/conclusions", "conclusions")]
    )
    def test_are_served_under_both_names(self, v2: V2Client, path: str, key: str) -> None:
        for name in ("a", "b"):
            v2.peer(name)
        v2.session("s")
        pair = {"observer_id": "a", "observed_id": "b", "session_id": "s"}
        texts = ["b plays the cello", "b is allergic to peanuts"]
        conclusions = v2.ok(v2.post(path, {key: [{"content": text, **pair} for text in texts]}))
        assert [list(item) for item in conclusions] == [OBSERVATION, OBSERVATION]
        assert [item["content"] for item in conclusions] == texts
        assert {
            (item["observer_id"], item["observed_id"], item["session_id"]) for item in conclusions
        } == {("a", "b", "s")}
        assert v2.ids(f"{path}/list") == [conclusions[1]["id"], conclusions[0]["id"]], (
            "newest first"
        )
        assert v2.ids(f"{path}/list", reverse="true") == [
            conclusions[0]["id"],
            conclusions[1]["id"],
        ]
        filters = {"observer": "a", "observed_id": "b"}
        query = {"query": "allergic to peanuts", "top_k": 1, "filters": filters}
        assert v2.ok(v2.post(f"{path}/query", query)) == [conclusions[1]]
        (problem,) = v2.refused(
            v2.post(f"{path}/query", {"query": "x", "filters": {"observer": "a"}})
        )
        assert problem["msg"] == "observer and observed must be specified for semantic search"
        assert v2.ok(v2.delete(f"{path}/{conclusions[0]['id']}")) == {
            "message": "Observation deleted successfully"
        }
        first, second = (conclusion["id"] for conclusion in conclusions)
        answer = v2.delete(f"{path}/{first}")
        assert v2.ok(answer, 404)["detail"] == (
            f"Document {first} not found or does not belong to workspace {v2.workspace}"
        )
        assert v2.ids(f"{path}/list") == [second]

    def test_have_a_session_field_even_without_a_session(self, v2: V2Client) -> None:
        v2.peer("a")
        v2.session("s")
        v2.conclude("a", "a", "from the session", session="s")
        (alone,) = v2.conclude("a", "a", "from nowhere", session=GLOBAL)
        assert alone["session_id"] == GLOBAL
        (there,) = v2.ok(v2.newest.post("/conclusions/list", {"filters": {"session_id": None}}))[
            "items"
        ]
        assert (there["id"], there["session_id"]) == (alone["id"], None)

        def contents(filters: Any) -> list[str]:
            return [
                item["content"]
                for item in v2.ok(v2.post("/observations/list", {"filters": filters}))["items"]
            ]

        for is_global in (GLOBAL, [GLOBAL], {"in": [GLOBAL]}):
            assert contents({"session_id": is_global}) == ["from nowhere"]
        assert (
            contents({"session_id": {"ne": GLOBAL}})
            == contents({"NOT": [{"session_name": GLOBAL}]})
            == ["from the session"]
        )
        assert contents({"session_id": {"in": [GLOBAL, "s"]}}) == [
            "from nowhere",
            "from the session",
        ]
        (nearest,) = v2.ok(
            v2.post(
                "/observations/query",
                {
                    "query": "nowhere",
                    "filters": {"observer": "a", "observed": "a", "session_id": GLOBAL},
                },
            )
        )
        assert nearest["session_id"] == GLOBAL

    def test_unknown_peers_and_sessions_are_named(self, v2: V2Client) -> None:
        v2.peer("a")
        draft = {"content": "x", "observer_id": "a", "observed_id": "a", "session_id": "none"}
        v2.missing(v2.post("/observations", {"observations": [draft]}), "none")
        for key in draft:
            less = {name: value for name, value in draft.items() if name != key}
            v2.refused(
                v2.post("/observations", {"observations": [less]}),
                ["body", "observations", 0, key],
            )
        v2.refused(v2.post("/observations", {"observations": []}), ["body", "observations"])

    def test_of_scopes_are_not_shown(self, v2: V2Client) -> None:
        v2.peer("a")
        v2.session("s")
        v2.conclude("a", "a", "seen", session="s")
        v2.ok(v2.newest.post("/scopes", {"id": "team"}), 201)

        def copied(tx: Transaction) -> None:
            workspace = tx.workspaces.by_slug(v2.workspace)
            assert workspace is not None
            scope = tx.peers.by_slug(workspace.key, "scope.team")
            (row,) = tx.conclusions.page(workspace.key)
            assert scope is not None
            tx.conclusions.put(
                [replace(row, key=0, uid=new_uid(), observer_key=scope.key, observer=scope.slug)]
            )

        v2.runtime.storage.write(copied)
        assert v2.ok(v2.newest.post("/conclusions/list"))["total"] == 2
        answer = v2.ok(v2.post("/observations/list"))
        assert ([item["observer_id"] for item in answer["items"]], answer["total"]) == (["a"], 1)
