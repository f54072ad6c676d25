"""Conclusions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from memservice.domain.ids import new_uid
from memservice.domain.records import SUPERSEDED
from memservice.services import indexing

if TYPE_CHECKING:
    from api.conftest import Api
    from memservice.spi.storage import Transaction

pytestmark = pytest.mark.every_index

ORDER = [
    "id",
    "content",
    "observer_id",
    "observed_id",
    "session_id",
    "level",
    "source_ids",
    "times_derived",
    "created_at",
    "kind",
    "when",
    "certainty",
    "said_at",
]
LISTED = [*ORDER, "state", "superseded_at", "superseded_by"]


@pytest.fixture(autouse=True)
def peers(api: Api) -> None:
    api.peer("alice")
    api.peer("bob")
    api.session("s")


def draft(**fields: Any) -> dict[str, Any]:
    return {"content": "likes tea", "observer_id": "alice", "observed_id": "bob", **fields}


def derive(api: Api, source: str, level: str = "deductive") -> str:
    """Store a conclusion of this level that rests on `source`, as the background work does; its
    id."""

    def change(tx: Transaction) -> str:
        workspace = tx.workspaces.by_slug(api.workspace)
        assert workspace is not None
        row = tx.conclusions.by_uid(workspace.key, source)
        assert row is not None
        derived_row = replace(
            row,
            key=0,
            uid=new_uid(),
            level=level,
            source_ids=[source],
            content=f"so {row.content}",
            times_derived=3,
            fingerprint=new_uid(),
        )
        conclusion_rows = tx.conclusions.put([derived_row])
        indexing.index_conclusions(
            api.runtime,
            tx,
            workspace.key,
            conclusion_rows,
            indexing.embed_inline(api.runtime, [derived_row.content]),
        )
        return conclusion_rows[0].uid

    return api.runtime.storage.write(change)


def test_create_answers_all_fields_in_order(api: Api) -> None:
    created = api.ok(
        api.post(
            "/conclusions", {"conclusions": [draft(), draft(session_id="s", level="deductive")]}
        ),
        201,
    )
    assert [list(item) for item in created] == [ORDER, ORDER]
    assert created[0]["said_at"] == created[0]["created_at"]
    assert created[0] | {"id": "", "created_at": "", "said_at": ""} == {
        "id": "",
        "content": "likes tea",
        "observer_id": "alice",
        "observed_id": "bob",
        "session_id": None,
        "level": "explicit",
        "source_ids": None,
        "times_derived": 1,
        "created_at": "",
        "kind": None,
        "when": None,
        "certainty": None,
        "said_at": "",
    }
    assert created[1]["session_id"] == "s"
    assert created[1]["level"] == "explicit", "what is sent as level is ignored"
    assert created[0]["id"] != created[1]["id"], "equal ones are not merged"


def test_observations_is_an_alias(api: Api) -> None:
    assert len(api.ok(api.post("/conclusions", {"observations": [draft()]}), 201)) == 1


def test_peers_and_session_must_exist_and_nothing_is_stored_otherwise(api: Api) -> None:
    for wrong, name in (
        ({"observer_id": "nobody"}, "nobody"),
        ({"observed_id": "noone"}, "noone"),
        ({"session_id": "nowhere"}, "nowhere"),
    ):
        api.missing(api.post("/conclusions", {"conclusions": [draft(), draft(**wrong)]}), name)
    assert api.ids("/conclusions/list") == []
    assert sorted(api.ids("/peers/list")) == ["alice", "bob"]
    api.missing(
        api.post("//v3/workspaces/nowhere-at-all/conclusions", {"conclusions": [draft()]}),
        "nowhere-at-all",
    )


@pytest.mark.parametrize(
    ("fields", "loc"),
    [
        ({"content": ""}, ["content"]),
        ({"content": "x" * 65_536}, ["content"]),
        ({"content": None}, ["content"]),
        ({"content": 1}, ["content"]),
        ({"observer_id": None}, ["observer_id"]),
        ({"observed_id": 5}, ["observed_id"]),
        ({"session_id": []}, ["session_id"]),
        ({"content": "\0"}, ["content"]),
    ],
)
def test_drafts_of_the_wrong_shape_are_refused(
    api: Api, fields: dict[str, Any], loc: list[str]
) -> None:
    api.refused(
        api.post("/conclusions", {"conclusions": [draft(**fields)]}),
        ["body", "conclusions", 0, *loc],
    )


def test_one_to_a_hundred_conclusions_are_accepted(api: Api) -> None:
    api.refused(api.post("/conclusions", {"conclusions": []}), ["body", "conclusions"])
    api.refused(api.post("/conclusions", {"conclusions": [draft()] * 101}), ["body", "conclusions"])
    assert len(api.ok(api.post("/conclusions", {"conclusions": [draft()] * 100}), 201)) == 100


def test_content_is_bounded_in_tokens(api: Api) -> None:
    api.refused(
        api.post("/conclusions", {"conclusions": [draft(content="tea " * 9000)]}),
        ["body", "conclusions", 0, "content"],
    )


def test_a_scope_is_never_observed(api: Api) -> None:
    api.session("t", scopes=["mine"])
    api.refused(
        api.post("/conclusions", {"conclusions": [draft(observed_id="scope.mine")]}),
        ["body", "conclusions", 0, "observed_id"],
    )
    conclusions = api.ok(
        api.post("/conclusions", {"conclusions": [draft(observer_id="scope.mine")]}), 201
    )
    assert conclusions[0]["observer_id"] == "scope.mine"


def test_list_is_newest_first(api: Api) -> None:
    ids = [api.conclude("alice", "bob", text)[0]["id"] for text in ("one", "two", "three")]
    assert api.ids("/conclusions/list") == ids[::-1]
    assert api.ids("/conclusions/list", reverse="true") == ids


def test_list_filters(api: Api) -> None:
    one = api.conclude("alice", "bob", "one")[0]["id"]
    two = api.conclude("bob", "alice", "two", session="s")[0]["id"]
    three = derive(api, one)

    def ids(filters: dict[str, Any]) -> set[str]:
        return set(api.ids("/conclusions/list", {"filters": filters}))

    assert ids({"observer_id": "alice"}) == {one, three}
    assert ids({"observer": "alice", "observed": "bob"}) == {one, three}
    assert ids({"session_id": "s"}) == {two}
    assert ids({"session_id": None}) == {one, three}
    assert ids({"session_id": {"ne": "s"}}) == {one, three}
    assert ids({"level": "deductive"}) == {three}
    assert ids({"level": {"in": ["explicit"]}}) == {one, two}
    assert ids({"id": {"in": [one, two, "none"]}}) == {one, two}
    assert ids({"times_derived": {"gte": 2}}) == {three}
    assert ids({"content": {"icontains": "ONE"}}) == {one, three}
    assert ids({"source_ids": {"contains": one}}) == {three}
    assert ids({"source_ids": {"contains": "unknown"}}) == set()
    assert ids({"source_ids": {"contains": one}, "level": "inductive"}) == set()
    for wrong in (
        {"level": "fifth"},
        {"embedding": [1]},
        {"nonsense": 1},
        {"source_ids": {"contains": 5}},
        {"source_ids": one},
    ):
        api.refused(api.post("/conclusions/list", {"filters": wrong}))


def test_derived_conclusions_show_where_they_come_from(api: Api) -> None:
    one = api.conclude("alice", "bob", "one")[0]["id"]
    conclusion = api.ok(api.get(f"/conclusions/{derive(api, one)}"))
    assert list(conclusion) == ORDER
    assert conclusion["source_ids"] == [one]
    assert conclusion["times_derived"] == 3
    assert conclusion["level"] == "deductive"


def test_a_conclusion_is_read_by_its_id(api: Api) -> None:
    conclusion = api.conclude("alice", "bob", "one")[0]
    assert api.ok(api.get(f"/conclusions/{conclusion['id']}")) == conclusion
    api.missing(api.get("/conclusions/none"), "none")
    api.missing(
        api.get(f"//v3/workspaces/elsewhere/conclusions/{conclusion['id']}"), conclusion["id"]
    )


def test_deleted_conclusions_are_not_found(api: Api) -> None:
    conclusions = api.conclude("alice", "bob", "gone tea", "kept tea")
    answer = api.delete(f"/conclusions/{conclusions[0]['id']}")
    assert answer.status_code == 204
    assert answer.data == b""
    api.missing(api.delete(f"/conclusions/{conclusions[0]['id']}"), conclusions[0]["id"])
    api.missing(api.get(f"/conclusions/{conclusions[0]['id']}"), conclusions[0]["id"])
    api.missing(api.delete("/conclusions/none"), "none")
    assert api.ids("/conclusions/list") == [conclusions[1]["id"]]
    filters = {"observer": "alice", "observed": "bob"}
    assert [
        item["id"]
        for item in api.ok(api.post("/conclusions/query", {"query": "tea", "filters": filters}))
    ] == [conclusions[1]["id"]]
    representation = api.ok(api.post("/peers/alice/representation", {"target": "bob"}))[
        "representation"
    ]
    assert "kept tea" in representation
    assert "gone tea" not in representation


def test_superseded_conclusions_are_hidden(api: Api) -> None:
    uid = api.conclude("alice", "bob", "old")[0]["id"]

    def change(tx: Transaction) -> None:
        workspace = tx.workspaces.by_slug(api.workspace)
        assert workspace is not None
        row = tx.conclusions.by_uid(workspace.key, uid)
        assert row is not None
        tx.conclusions.put([replace(row, state=SUPERSEDED)])

    api.runtime.storage.write(change)
    assert api.ids("/conclusions/list") == []
    api.missing(api.get(f"/conclusions/{uid}"))


class TestQuery:
    PAIR = {"observer_id": "alice", "observed_id": "bob"}  # noqa: RUF012 - never changed

    def test_nearest_first(self, api: Api) -> None:
        api.conclude(
            "alice",
            "bob",
            "owns a small sailing boat in Kiel",
            "likes green tea in the morning",
            "plays chess on Sundays",
        )
        api.conclude("bob", "alice", "likes green tea in the morning")
        hits = api.ok(
            api.post(
                "/conclusions/query", {"query": "green tea in the morning", "filters": self.PAIR}
            )
        )
        assert hits[0]["content"] == "likes green tea in the morning"
        assert {(item["observer_id"], item["observed_id"]) for item in hits} == {("alice", "bob")}
        assert list(hits[0]) == LISTED

    def test_top_k_bounds_the_answer(self, api: Api) -> None:
        api.conclude("alice", "bob", *[f"likes tea number {number}" for number in range(15)])
        assert (
            len(api.ok(api.post("/conclusions/query", {"query": "tea", "filters": self.PAIR})))
            == 10
        )
        assert (
            len(
                api.ok(
                    api.post(
                        "/conclusions/query", {"query": "tea", "top_k": 3, "filters": self.PAIR}
                    )
                )
            )
            == 3
        )
        for wrong in (0, 101, "x", 1.5, None):
            api.refused(
                api.post(
                    "/conclusions/query", {"query": "tea", "top_k": wrong, "filters": self.PAIR}
                ),
                ["body", "top_k"],
            )

    def test_distance_is_a_maximum(self, api: Api) -> None:
        api.conclude("alice", "bob", "likes green tea", "completely different words here")
        near = api.ok(
            api.post(
                "/conclusions/query",
                {"query": "likes green tea", "distance": 0.2, "filters": self.PAIR},
            )
        )
        assert [item["content"] for item in near] == ["likes green tea"]
        for wrong in (-0.1, 1.1, "x", True):
            api.refused(
                api.post(
                    "/conclusions/query", {"query": "tea", "distance": wrong, "filters": self.PAIR}
                ),
                ["body", "distance"],
            )

    @pytest.mark.parametrize(
        "filters",
        [
            None,
            {},
            {"observer": "alice"},
            {"observed_id": "bob"},
            {"observer": ["alice"], "observed": "bob"},
        ],
    )
    def test_observer_and_observed_are_required(self, api: Api, filters: object) -> None:
        api.refused(api.post("/conclusions/query", {"query": "tea", "filters": filters}))

    def test_further_filters_apply(self, api: Api) -> None:
        one = api.conclude("alice", "bob", "likes tea")[0]["id"]
        two = derive(api, one)
        hits = api.ok(
            api.post(
                "/conclusions/query",
                {"query": "tea", "filters": {**self.PAIR, "level": "deductive"}},
            )
        )
        assert [item["id"] for item in hits] == [two]
        hits = api.ok(
            api.post(
                "/conclusions/query",
                {"query": "tea", "filters": {**self.PAIR, "source_ids": {"contains": one}}},
            )
        )
        assert [item["id"] for item in hits] == [two]

    def test_query_is_required_but_may_be_empty(self, api: Api) -> None:
        api.conclude("alice", "bob", "likes tea")
        api.refused(api.post("/conclusions/query", {"filters": self.PAIR}), ["body", "query"])
        api.ok(api.post("/conclusions/query", {"query": "", "filters": self.PAIR}))

    def test_unknown_pairs_have_no_results(self, api: Api) -> None:
        assert (
            api.ok(
                api.post(
                    "/conclusions/query",
                    {"query": "x", "filters": {"observer": "nobody", "observed": "noone"}},
                )
            )
            == []
        )
