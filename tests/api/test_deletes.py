"""Deleting sessions and workspaces over HTTP. What the erasure does in detail is tested with the
pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.records import ARCHIVED, FAILED, PENDING, Task
from memservice.worker.polling import Worker

if TYPE_CHECKING:
    from api.conftest import Api
    from memservice.spi.storage import Transaction

pytestmark = [pytest.mark.every_storage("postgres"), pytest.mark.every_index]


def work(api: Api) -> None:
    Worker(api.runtime).run_until_idle()


def delete_session(api: Api, session: str = "s") -> None:
    assert api.ok(api.delete(f"/sessions/{session}"), 202) == {
        "message": "Session deleted successfully"
    }


def delete_workspace(api: Api) -> None:
    assert api.ok(api.delete(), 202) == {"message": "Workspace deletion accepted"}


def total(api: Api, **filters: Any) -> int:
    count: int = api.ok(api.post("/conclusions/list", {"filters": filters}))["total"]
    return count


@pytest.mark.slow
def test_each_erasure_has_a_receipt(api: Api) -> None:
    api.say("s", ("alice", "I live in Oslo."))
    work(api)
    answer = api.delete("/sessions/s")
    session = api.ok(api.client.get(answer.headers["Location"]))
    assert session | {"id": "", "job_id": "", "created_at": ""} == {
        "id": "",
        "kind": "session",
        "workspace_id": api.workspace,
        "session_id": "s",
        "target_id": "s",
        "requested_by": "anyone: authentication is off",
        "options": {},
        "state": "accepted",
        "reason": None,
        "counts": {},
        "job_id": "",
        "created_at": "",
        "finished_at": None,
    }
    assert answer.headers["Location"].endswith(f"/erasures/{session['id']}")
    work(api)
    finished = api.ok(api.get(f"/erasures/{session['id']}"))
    assert finished["state"] == "done"
    assert finished["counts"]["messages"] == finished["counts"]["sessions"] == 1
    assert finished["finished_at"] >= session["created_at"]
    assert "Oslo" not in str(finished)
    assert api.ok(api.get("/erasures"))["items"] == [finished]
    api.missing(api.get("/erasures/nope"), "nope")

    answer = api.delete()
    workspace = api.ok(api.client.get(answer.headers["Location"]))
    assert (workspace["kind"], workspace["target_id"]) == ("workspace", api.workspace)
    api.missing(api.get(f"/erasures/{workspace['id']}"), workspace["id"])
    work(api)
    everything = api.ok(api.client.get("/v3/erasures"))["items"]
    assert [receipt["kind"] for receipt in everything] == ["workspace", "session"]
    assert {receipt["state"] for receipt in everything} == {"done"}
    assert api.ok(api.get("/erasures"))["items"] == [], "those of a workspace go with it"


@pytest.mark.slow
def test_the_receipt_of_a_message_and_of_a_peer_is_named(api: Api) -> None:
    message, _ = api.say("s", ("alice", "I live in Oslo."), ("alice", "I like tea."))
    for path in (f"/sessions/s/messages/{message['id']}", "/peers/alice"):
        answer = api.delete(path)
        receipt = api.ok(answer, 202)
        assert api.ok(api.client.get(answer.headers["Location"])) == receipt
        work(api)
        assert api.ok(api.client.get(answer.headers["Location"]))["state"] == "done"


def test_a_failed_erasure_says_so_and_goes_on_when_it_is_retried(api: Api) -> None:
    api.say("s", ("alice", "I live in Oslo."))
    work(api)
    location = api.delete("/sessions/s").headers["Location"]
    rt = api.runtime

    def set_state(state: str) -> None:
        job = api.ok(api.client.get(location))["job_id"]
        rt.storage.write(lambda tx: tx.rows.change(Task, equals(uid=job), state=state))

    set_state(FAILED)
    assert api.ok(api.client.get(location))["state"] == "failed"
    work(api)
    assert api.ok(api.client.get(location))["state"] == "failed"
    set_state(PENDING)
    work(api)
    assert api.ok(api.client.get(location))["state"] == "done"


def test_a_deleted_session_cannot_be_written_to_but_read(api: Api) -> None:
    messages = api.say("s", ("alice", "I live in Oslo."))
    api.session("copy-of")
    delete_session(api)
    message = f"/sessions/s/messages/{messages[0]['id']}"
    for answer in (
        api.post("/sessions", {"id": "s"}),
        api.post("/sessions", {"id": "s", "metadata": {"a": 1}}),
        api.put("/sessions/s", {"metadata": {}}),
        api.post("/sessions/s/messages", {"messages": [{"peer_id": "alice", "content": "x"}]}),
        api.put(message, {"metadata": {"a": 1}}),
        api.post("/sessions/s/peers", {"bob": {}}),
        api.put("/sessions/s/peers", {"bob": {}}),
        api.delete("/sessions/s/peers", ["alice"]),
        api.put("/sessions/s/peers/alice/config", {"observe_me": True}),
        api.post("/sessions/s/clone"),
        api.delete("/sessions/s"),
    ):
        assert answer.status_code == 404, answer.request.path
    conclusion = {"content": "x", "observer_id": "alice", "observed_id": "alice", "session_id": "s"}
    api.missing(api.post("/conclusions", {"conclusions": [conclusion]}), "s")
    assert api.ids("/sessions/list") == ["copy-of"]
    response = api.ok(api.post("/peers/alice/sessions"))["items"]
    assert [(item["id"], item["is_active"]) for item in response] == [("s", False)]
    assert [item["content"] for item in api.ok(api.post("/sessions/s/messages/list"))["items"]] == [
        "I live in Oslo."
    ]
    assert api.ok(api.get(message))["content"] == "I live in Oslo."
    assert len(api.ok(api.get("/sessions/s/context"))["messages"]) == 1
    assert [peer["id"] for peer in api.ok(api.get("/sessions/s/peers"))["items"]] == ["alice"]


def test_messages_of_a_deleted_session_are_not_found(api: Api) -> None:
    api.say("s", ("alice", "The heron nests in Oslo."))
    api.say("stays", ("alice", "The heron nests in Bergen."))
    delete_session(api)
    for path, cities in (
        ("", ["Bergen"]),
        ("/sessions/stays", ["Bergen"]),
        ("/peers/alice", ["Bergen"]),
        ("/sessions/s", []),
    ):
        hits = api.ok(api.post(f"{path}/search", {"query": "Where does the heron nest?"}))
        assert [hit["content"].split()[-1].rstrip(".") for hit in hits] == cities, path
    representation = {"search_query": "Where does the heron nest?"}
    assert (
        "Oslo"
        not in api.ok(api.post("/peers/alice/representation", representation))["representation"]
    )
    assert (
        "Oslo"
        not in api.ok(api.post("/peers/alice/chat", {"query": "Where does the heron nest?"}))[
            "content"
        ]
    )


@pytest.mark.slow
def test_after_the_erasure_no_row_is_left_and_the_name_is_free(api: Api) -> None:
    first = api.session("s", metadata={"old": True})
    api.say("s", ("alice", "I live in Oslo."), ("bob", "I play the violin."))
    api.say("other", ("alice", "I have two cats."))
    work(api)
    api.conclude("alice", "bob", "is a friend", session="s")
    api.conclude("alice", "bob", "plays well")
    assert total(api, session_id="s") == 3
    delete_session(api)
    work(api)
    assert total(api, session_id="s") == 0
    assert total(api) == 2, "what was said elsewhere, and what has no session, stays"
    assert api.ok(api.post("/search", {"query": "Oslo violin"})) == []
    assert [item["content"] for item in api.ok(api.post("/search", {"query": "cats"}))] == [
        "I have two cats."
    ]
    assert api.ids("/peers/alice/sessions") == ["other"]
    assert sorted(api.ids("/peers/list")) == ["alice", "bob"]
    assert api.ids("/sessions/s/messages/list") == []
    assert api.ok(api.get("/queue/status"))["sessions"].keys() == {
        api.ok(api.post("/sessions", {"id": "other"}))["uid"]
    }
    api.missing(api.delete("/sessions/s"), "s")
    second = api.session("s")
    assert second["uid"] != first["uid"]
    assert second["metadata"] == {}
    assert api.ids("/sessions/s/messages/list") == []


def test_a_representation_leaves_out_a_deleted_session(api: Api) -> None:
    api.say("s", ("alice", "I live in Oslo."))
    work(api)
    assert "Oslo" in api.ok(api.post("/peers/alice/representation", {}))["representation"]
    delete_session(api)
    work(api)
    for body in ({}, {"search_query": "where does alice live, Oslo?"}):
        assert "Oslo" not in api.ok(api.post("/peers/alice/representation", body))["representation"]


def test_pending_tasks_of_a_deleted_session_are_skipped(api: Api) -> None:
    api.say("s", *(("alice", f"I live in city number {n}.") for n in range(20)))
    delete_session(api)
    status = api.ok(api.get("/queue/status"))
    assert status["pending_work_units"] == 21
    work(api)
    assert api.ok(api.get("/queue/status"))["total_work_units"] == 0
    assert total(api) == 0


def test_unknown_sessions_cannot_be_deleted(api: Api) -> None:
    api.missing(api.delete("/sessions/s"), "s", api.workspace)
    api.create()
    api.missing(api.delete("/sessions/s"), "s", api.workspace)
    api.session("s")

    def archive(tx: Transaction) -> None:
        session = tx.workspaces.locate(api.workspace, session_id="s").session
        assert session is not None
        tx.sessions.save(replace(session, state=ARCHIVED))

    api.runtime.storage.write(archive)
    api.missing(api.delete("/sessions/s"), "s")


def test_a_workspace_with_active_sessions_is_not_deleted(api: Api) -> None:
    api.say("s", ("alice", "hello"))
    assert "1 active" in api.ok(api.delete(), 409)["detail"]
    assert api.ids("/sessions/list") == ["s"]
    delete_session(api)
    delete_workspace(api)
    api.missing(api.delete(), api.workspace)


def test_archived_sessions_do_not_prevent_the_deletion_of_a_workspace(api: Api) -> None:
    api.say("s", ("alice", "hello"))

    def archive(tx: Transaction) -> None:
        session = tx.workspaces.locate(api.workspace, session_id="s").session
        assert session is not None
        tx.sessions.save(replace(session, state=ARCHIVED))

    api.runtime.storage.write(archive)
    delete_workspace(api)
    work(api)
    assert api.ids("//v3/workspaces/list", {"filters": {"id": api.workspace}}) == []


@pytest.mark.slow
def test_a_deleted_workspace_is_hidden_at_once_and_its_id_free(api: Api) -> None:
    api.say("s", ("alice", "I live in Oslo."))
    api.put("/peers/alice/card", {"peer_card": ["likes tea"]})
    api.post("/scopes", {"id": "x"})
    delete_session(api)
    delete_workspace(api)
    assert api.ids("//v3/workspaces/list", {"filters": {"id": api.workspace}}) == []
    assert api.ids("/peers/list") == []
    assert api.ids("/sessions/s/messages/list") == []
    assert api.ok(api.post("/search", {"query": "Oslo"})) == []
    assert total(api) == 0
    api.missing(api.get("/peers/alice/card"), "alice")

    workspace = api.create()
    assert workspace["metadata"] == {}
    api.session("s", peers={"alice": {}}, scopes=["x"])
    api.say("s", ("alice", "I live in Rome."))
    work(api)
    assert api.ids("/sessions/s/messages/list") != [], (
        "erasing the old one leaves the new one alone"
    )
    assert [
        item["content"] for item in api.ok(api.post("/search", {"query": "live Oslo Rome"}))
    ] == ["I live in Rome."]
    assert total(api, observer_id="alice") == 1
    assert api.ok(api.post("//v3/workspaces", {"id": api.workspace}))["uid"] == workspace["uid"]
    card = api.ok(api.get("/peers/alice/card"))["peer_card"]
    assert card == ["ATTRIBUTE: I live in Rome."], "nothing of the deleted workspace"


def test_an_unknown_workspace_cannot_be_deleted(api: Api) -> None:
    api.missing(api.delete(), api.workspace)
    api.refused(api.delete("//v3/workspaces/bad%20name"), ["path", "workspace_id"])


def test_an_empty_workspace_can_be_deleted(api: Api) -> None:
    api.create()
    delete_workspace(api)
    work(api)
    api.missing(api.delete(), api.workspace)


def test_mentions_of_an_erased_peer_are_kept_or_replaced(api: Api) -> None:
    api.say("talk", ("alice", "Hi."), ("bob", "Alice is tall."))
    counted = api.ok(api.delete("/peers/alice?dry_run=true&mentions=redact"))
    assert counted["counts"]["mentions"] == 1
    assert counted["options"] == {"mentions": "redact"}
    assert "mentions" not in api.ok(api.delete("/peers/alice?dry_run=true"))["counts"]
    refused = api.delete("/peers/alice?mentions=hide")
    assert refused.status_code == 422
    (problem,) = refused.get_json()["detail"]
    assert problem["loc"] == ["query", "mentions"]
    assert problem["msg"] == "Input should be 'keep' or 'redact'"
    receipt = api.ok(api.delete("/peers/alice?mentions=redact"), 202)
    assert receipt["options"] == {"mentions": "redact"}


@pytest.mark.parametrize(
    ("target", "query", "loc"),
    [
        ("message", {"dry_run": "true"}, ["query", "dry_run"]),
        ("peer", {"dryrun": "true"}, ["query", "dryrun"]),
        ("peer", {"mention": "redact"}, ["query", "mention"]),
    ],
)
def test_a_misspelt_option_erases_nothing(
    api: Api, target: str, query: dict[str, str], loc: list[str | int]
) -> None:
    (message,) = api.say("talk", ("alice", "Hi."))
    path = {"message": f"/sessions/talk/messages/{message['id']}", "peer": "/peers/alice"}[target]
    api.refused(api.call("DELETE", path, query_string=query), loc)
    if target == "peer":
        api.refused(api.call("DELETE", path, {"dry_run": True}), ["body", "dry_run"])
    assert api.ok(api.get(f"/sessions/talk/messages/{message['id']}"))["content"] == "Hi."
    assert api.ok(api.get("/erasures"))["items"] == []


def test_a_session_or_workspace_with_dry_run_is_not_deleted(api: Api) -> None:
    api.say("talk", ("alice", "Hi."))
    for path in ("/sessions/talk", ""):
        api.refused(api.delete(f"{path}?dry_run=true"), ["query", "dry_run"])
    assert api.ok(api.get("/erasures"))["items"] == []
    assert len(api.ids("/sessions/talk/messages/list")) == 1
    api.ok(api.delete("/sessions/talk?other=true"), 202)
