"""Versions of conclusions over HTTP: correct, invalidate, restore, history, and reads `as_of`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from memservice.worker.polling import Worker

if TYPE_CHECKING:
    from api.conftest import Api

PAIR = {"observer_id": "alice", "observed_id": "alice"}

READS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "list": ("POST", "/conclusions/list", None),
    "query": ("POST", "/conclusions/query", {"query": "lives", "filters": PAIR}),
    "representation": ("POST", "/peers/alice/representation", {"search_query": "lives"}),
    "peer context": ("GET", "/peers/alice/context", None),
    "session context": ("GET", "/sessions/s/context", None),
    "chat": ("POST", "/peers/alice/chat", {"query": "Where does alice live?"}),
    "chat with the workspace": ("POST", "/chat", {"query": "Where does alice live?"}),
}
IN_BODY = ("query", "representation", "chat", "chat with the workspace")


def read(api: Api, name: str, as_of: object) -> Any:
    method, path, body = READS[name]
    if name in IN_BODY:
        return api.call(method, path, {**(body or {}), "as_of": as_of})
    return api.call(method, path, query_string={"as_of": as_of, "peer_target": "alice"})


@pytest.fixture
def moved(api: Api) -> dict[str, Any]:
    """A conclusion that was corrected."""
    api.peer("alice")
    api.session("s")
    api.say("s", ("alice", "hello"))
    (old,) = api.conclude("alice", "alice", "alice lives in Ghent", session="s")
    new = api.ok(api.put(f"/conclusions/{old['id']}", {"content": "alice lives in Bruges"}))
    return {"old": old, "new": new}


@pytest.mark.parametrize("name", READS)
def test_reads_as_of_a_time_answer_what_was_known_then(
    api: Api, moved: dict[str, Any], name: str
) -> None:
    old, new = moved["old"], moved["new"]
    before = read(api, name, old["created_at"])
    assert ("Ghent" in before.text, "Bruges" in before.text) == (True, False), before.text
    after = read(api, name, new["created_at"])
    assert ("Ghent" in after.text, "Bruges" in after.text) == (False, True), after.text
    assert "Ghent" not in read(api, name, "2020-01-01").text


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize(
    ("as_of", "message"),
    [
        ("2999-01-01", "future"),
        ("2024-01-01T10:00:00", "zone"),
        ("noon", "Write a time"),
        ("", "Write a time"),
    ],
)
def test_other_times_are_refused_by_name(api: Api, name: str, as_of: str, message: str) -> None:
    api.peer("alice")
    api.session("s")
    where = "body" if name in IN_BODY else "query"
    (problem,) = api.refused(read(api, name, as_of), [where, "as_of"])
    assert message in problem["msg"]


@pytest.mark.parametrize("as_of", [1_700_000_000, True, ["2024-01-01"], {}])
@pytest.mark.parametrize("name", IN_BODY)
def test_a_time_is_text(api: Api, name: str, as_of: object) -> None:
    api.peer("alice")
    api.refused(read(api, name, as_of), ["body", "as_of"])


def test_a_list_of_a_time_is_not_combined_with_superseded_conclusions(api: Api) -> None:
    api.create()
    (problem,) = api.refused(
        api.post("/conclusions/list", {"as_of": "2024-01-01"}), ["body", "as_of"]
    )
    assert "?as_of=" in problem["msg"]
    answer = api.post("/conclusions/list?include=superseded&as_of=2024-01-01")
    (problem,) = api.refused(answer, ["query", "as_of"])
    assert "include=superseded" in problem["msg"]


def test_listed_conclusions_name_their_successor(api: Api, moved: dict[str, Any]) -> None:
    old, new = moved["old"], moved["new"]
    rows = api.ok(api.post("/conclusions/list?include=superseded"))["items"]
    listed = {row["id"]: row for row in rows}
    assert listed[new["id"]] == {
        **new,
        "state": "live",
        "superseded_at": None,
        "superseded_by": None,
        "message_ids": None,
    }
    of_old = {
        **old,
        "state": "superseded",
        "superseded_at": new["created_at"],
        "superseded_by": new["id"],
    }
    assert listed[old["id"]] == {**of_old, "message_ids": None}
    (row,) = api.ok(read(api, "query", old["created_at"]))
    assert row == of_old


def test_listed_conclusions_name_their_messages_on_request(api: Api, moved: dict[str, Any]) -> None:
    path = "/conclusions/list?include=superseded&include_messages=true"
    listed = {row["id"]: row["message_ids"] for row in api.ok(api.post(path))["items"]}
    history = api.ok(api.get(f"/conclusions/{moved['new']['id']}/history"))["versions"]
    assert {row["id"]: row["message_ids"] for row in history}.items() <= listed.items()


class TestCorrection:
    def test_a_new_conclusion_of_the_caller_supersedes_the_old_one(
        self, api: Api, moved: dict[str, Any]
    ) -> None:
        old, new = moved["old"], moved["new"]
        assert new["id"] != old["id"]
        assert new["content"] == "alice lives in Bruges"
        assert (new["said_at"], new["session_id"]) == (old["said_at"], "s")
        assert api.ids("/conclusions/list") == [new["id"]]
        api.missing(api.get(f"/conclusions/{old['id']}"), old["id"])

    @pytest.mark.parametrize(
        "content", ["", "  ", None, 7, "x" * 65_536, "alice lives in Bruges"], ids=repr
    )
    def test_a_text_that_changes_nothing_is_refused(
        self, api: Api, moved: dict[str, Any], content: object
    ) -> None:
        new = moved["new"]["id"]
        api.refused(api.put(f"/conclusions/{new}", {"content": content}), ["body", "content"])
        assert api.ids("/conclusions/list") == [new]

    def test_only_a_live_conclusion_is_corrected(self, api: Api, moved: dict[str, Any]) -> None:
        body = {"content": "alice lives in Antwerp"}
        answer = api.put(f"/conclusions/{moved['old']['id']}", body)
        assert "is superseded: restore it first" in api.ok(answer, 409)["detail"]
        api.missing(api.put("/conclusions/unknown", body), "unknown")
        api.refused(api.put(f"/conclusions/{moved['new']['id']}", {}), ["body", "content"])


class TestInvalidation:
    def test_it_can_be_restored(self, api: Api, moved: dict[str, Any]) -> None:
        at = f"/conclusions/{moved['new']['id']}"
        invalidated = api.ok(api.post(f"{at}/invalidate", {"reason": "said in jest"}))
        assert (invalidated["state"], invalidated["superseded_by"]) == ("superseded", None)
        assert invalidated["superseded_at"] > moved["new"]["created_at"]
        assert api.ids("/conclusions/list") == []
        assert api.ok(api.post(f"{at}/restore")) == moved["new"]
        assert api.ids("/conclusions/list") == [moved["new"]["id"]]
        api.ok(api.post(f"{at}/invalidate"))
        reasons = [row["reason"] for row in api.ok(api.get(f"{at}/history"))["versions"]]
        assert reasons == ["corrected by hand", "invalidated by hand"]

    def test_bad_input_is_refused(self, api: Api, moved: dict[str, Any]) -> None:
        at = f"/conclusions/{moved['new']['id']}/invalidate"
        for reason in ("x" * 501, 7):
            api.refused(api.post(at, {"reason": reason}), ["body", "reason"])
        api.missing(api.post("/conclusions/unknown/invalidate"), "unknown")
        assert api.ids("/conclusions/list") == [moved["new"]["id"]]


def test_the_history_has_the_versions_in_order(api: Api, moved: dict[str, Any]) -> None:
    old, new = moved["old"], moved["new"]
    answer = api.ok(api.get(f"/conclusions/{old['id']}/history"))
    assert answer == api.ok(api.get(f"/conclusions/{new['id']}/history"))
    assert answer["complete"] is True
    provenance: dict[str, Any] = {
        "made_by": "caller",
        "reasoner": "api",
        "model": None,
        "message_ids": [],
        "lapses": [],
    }
    assert answer["versions"] == [
        {
            **old,
            "state": "superseded",
            "superseded_at": new["created_at"],
            "superseded_by": new["id"],
            "reason": "corrected by hand",
            **provenance,
        },
        {
            **new,
            "state": "live",
            "superseded_at": None,
            "superseded_by": None,
            "reason": None,
            **provenance,
        },
    ]
    api.missing(api.get("/conclusions/unknown/history"), "unknown")


def test_the_history_of_a_derived_conclusion_names_its_messages(api: Api) -> None:
    (message,) = api.say("s", ("alice", "I live in Ghent with two cats."))
    Worker(api.runtime).run_until_idle()
    row = api.ok(api.post("/conclusions/list"))["items"][0]
    (version,) = api.ok(api.get(f"/conclusions/{row['id']}/history"))["versions"]
    assert version["made_by"] == "derivation"
    assert version["reasoner"] == "extractive"
    assert version["message_ids"] == [message["id"]]
    assert version["said_at"] == message["created_at"]
