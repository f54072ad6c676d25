"""Scopes over HTTP: the seven routes, scopes of new sessions, and where the name of a scope is
refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from memservice.domain.records import SCOPE_PREFIX, Peer, ScopeSession
from memservice.services.retrieval import representation
from memservice.worker.polling import Worker

if TYPE_CHECKING:
    from api.conftest import Api
    from memservice.spi.storage import Transaction

pytestmark = pytest.mark.every_index

UPDATED_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00")


def scope(api: Api, name: str = "x", **fields: Any) -> Any:
    return api.ok(api.post("/scopes", {"id": name, **fields}), 201)


def add(api: Api, *sessions: str, to: str = "x") -> None:
    api.ok(api.post(f"/scopes/{to}/sessions", {"session_ids": list(sessions)}), 204)


def remove(api: Api, session: str, of: str = "x") -> None:
    api.ok(api.delete(f"/scopes/{of}/sessions/{session}"), 204)


def status(api: Api, name: str = "x") -> Any:
    return api.ok(api.get(f"/scopes/{name}/status"))["backfill_status"]


def work(api: Api) -> None:
    Worker(api.runtime).run_until_idle()


def conclusions_of(api: Api, name: str = "x") -> list[tuple[str, str]]:
    """What the scope knows, oldest first: whom of, and what."""
    conclusions = api.ok(
        api.post(
            "/conclusions/list",
            {"filters": {"observer_id": SCOPE_PREFIX + name, "level": "explicit"}},
        )
    )
    return [(item["observed_id"], item["content"]) for item in reversed(conclusions["items"])]


def test_create_get_and_update(api: Api) -> None:
    new_scope = scope(api, metadata={"a": 1})
    assert list(new_scope) == ["id", "metadata", "created_at"]
    assert new_scope["id"] == "x"
    assert new_scope["metadata"] == {"a": 1}
    assert api.ok(api.post("/scopes", {"id": "x"})) == new_scope
    assert api.ok(api.get("/scopes/x")) == new_scope
    assert api.ok(api.post("/scopes", {"name": "x", "metadata": {"b": 2}}))["metadata"] == {"b": 2}
    assert api.ok(api.post("/scopes", {"id": "x", "metadata": {}}))["metadata"] == {}
    api.missing(api.get("/scopes/y"), "y", api.workspace)


def test_a_scope_creates_its_workspace(api: Api) -> None:
    scope(api)
    assert api.ids("//v3/workspaces/list", {"filters": {"id": api.workspace}}) == [api.workspace]


@pytest.mark.parametrize("name", ["", "a b", "scope.x", "a\0", "x" * 507, "ä", "a\n"])
def test_bad_names_are_refused(api: Api, name: str) -> None:
    api.refused(api.post("/scopes", {"id": name}), ["body", "id"])


def test_the_longest_name_has_506_characters(api: Api) -> None:
    name = "x" * 506
    assert scope(api, name)["id"] == name
    assert api.ok(api.get(f"/scopes/{name}"))["id"] == name
    assert api.ids("/scopes/list") == [name]


@pytest.mark.parametrize(
    "body", [{}, {"id": None}, {"id": 5}, {"id": "x", "metadata": []}, [], "x"]
)
def test_bodies_of_the_wrong_shape_are_refused(api: Api, body: object) -> None:
    api.refused(api.post("/scopes", body))


def test_scopes_are_listed_in_order_of_creation(api: Api) -> None:
    assert api.ids("/scopes/list") == []
    for name in ("b", "a", "c"):
        scope(api, name)
    api.peer("ordinary")
    assert api.ids("/scopes/list") == ["b", "a", "c"]
    assert api.ids("/scopes/list", reverse="true") == ["c", "a", "b"]
    page = api.ok(api.post("/scopes/list", query_string={"page": 2, "size": 2}))
    assert [item["id"] for item in page.pop("items")] == ["c"]
    assert page == {"total": 3, "page": 2, "size": 2, "pages": 2}


def test_a_scope_is_not_an_ordinary_peer(api: Api) -> None:
    scope(api)
    api.peer("alice")
    assert api.ids("/peers/list") == ["alice"]
    assert api.ids("/peers/list", {"kind": "scope"}) == ["scope.x"]
    assert sorted(api.ids("/peers/list", {"kind": "all"})) == ["alice", "scope.x"]
    api.refused(api.post("/peers/list", {"kind": "peer"}), ["body", "kind"])


def test_the_name_of_a_peer_is_a_conflict(api: Api) -> None:
    """Only the name and the kind together make a scope: an older peer of such a name stays an
    ordinary one."""
    api.session("s", peers={"alice": {}})

    def rename(tx: Transaction) -> None:
        workspace = tx.workspaces.by_slug(api.workspace)
        assert workspace is not None
        alice = tx.peers.by_slug(workspace.key, "alice")
        assert alice is not None
        tx.peers.put([replace(alice, key=0, uid="u" * 21, v1_name="other", slug="scope.taken")])

    api.runtime.storage.write(rename)
    assert "scope.taken" in api.ok(api.post("/scopes", {"id": "taken"}), 409)["detail"]
    api.missing(api.get("/scopes/taken"), "taken")
    api.ok(api.post("/sessions", {"id": "s", "scopes": ["taken"]}), 409)
    assert api.ok(api.put("/peers/scope.taken", {"metadata": {"a": 1}}))["metadata"] == {"a": 1}
    assert "scope.taken" in api.ids("/peers/list")


def test_adding_sessions_is_all_or_nothing(api: Api) -> None:
    scope(api)
    for name in ("a", "b", "gone"):
        api.session(name)
    api.ok(api.delete("/sessions/gone"), 202)
    for unknown in ("gone", "nobody", "bad name"):
        api.missing(api.post("/scopes/x/sessions", {"session_ids": ["a", unknown]}), unknown)
    assert api.ids("/scopes/x/sessions/list") == []
    add(api, "b", "a", "b")
    add(api, "a")
    assert sorted(api.ids("/scopes/x/sessions/list")) == ["a", "b"]
    api.missing(api.post("/scopes/y/sessions", {"session_ids": ["a"]}), "y")


@pytest.mark.parametrize("ids", [[], ["s"] * 101, "s", [5], None])
def test_lists_of_sessions_of_the_wrong_shape_are_refused(api: Api, ids: object) -> None:
    scope(api)
    api.refused(api.post("/scopes/x/sessions", {"session_ids": ids}))


def test_sessions_are_listed_in_the_order_in_which_they_joined(api: Api) -> None:
    scope(api)
    for name in ("a", "b", "c"):
        api.session(name)
    for name in ("c", "a", "b"):
        add(api, name)
    sessions = api.ok(api.post("/scopes/x/sessions/list"))["items"]
    assert [item["id"] for item in sessions] == ["c", "a", "b"]
    assert sessions[0] == api.ok(api.post("/sessions", {"id": "c"}))
    assert api.ids("/scopes/x/sessions/list", reverse="true") == ["b", "a", "c"]
    remove(api, "c")
    assert api.ids("/scopes/x/sessions/list") == ["a", "b"]
    add(api, "c")
    assert api.ids("/scopes/x/sessions/list") == ["a", "b", "c"], "who comes back comes last"
    api.ok(api.delete("/sessions/a"), 202)
    assert api.ids("/scopes/x/sessions/list") == ["b", "c"], "active sessions only"
    for path in ("sessions/list", "sessions"):
        api.missing(api.post(f"/scopes/y/{path}", {"session_ids": ["a"]}), "y")


def test_a_scope_is_not_a_visible_member_and_counts_toward_no_limit(api: Api) -> None:
    limit = api.runtime.settings.app.session_observers_limit
    observers = {f"p{n}": {"observe_others": True} for n in range(limit)}
    api.session("s", peers=observers, scopes=["x"])
    assert sorted(peer["id"] for peer in api.ok(api.get("/sessions/s/peers"))["items"]) == sorted(
        observers
    )
    api.ok(api.put("/sessions/s/peers", {"p0": {}}))
    assert api.ids("/scopes/x/sessions/list") == ["s"], "replacing the peers leaves the scopes"


def test_removing_is_idempotent(api: Api) -> None:
    scope(api)
    api.session("s")
    remove(api, "s")
    add(api, "s")
    remove(api, "s")
    remove(api, "s")
    assert api.ids("/scopes/x/sessions/list") == []
    api.missing(api.delete("/scopes/x/sessions/nobody"), "nobody")
    api.missing(api.delete("/scopes/y/sessions/s"), "y")


@pytest.mark.slow
def test_joining_copies_conclusions_and_leaving_removes_them(api: Api) -> None:
    api.say("s", ("alice", "I live in Oslo."), ("bob", "I play the violin."))
    api.say("other", ("alice", "I work as a nurse."))
    scope(api)
    assert status(api) == {}
    add(api, "s")
    assert status(api)["s"]["state"] == "pending"
    assert "docs_copied" not in status(api)["s"]
    work(api)
    entry = status(api)["s"]
    assert list(entry) == ["state", "updated_at", "docs_copied"]
    assert entry["state"] == "completed"
    assert UPDATED_AT.fullmatch(entry["updated_at"])
    assert conclusions_of(api) == [("alice", "I live in Oslo."), ("bob", "I play the violin.")]

    api.say("s", ("alice", "I have two cats."))
    work(api)
    assert conclusions_of(api)[2:] == [("alice", "I have two cats.")], (
        "what is said later is derived for the scope as well"
    )

    remove(api, "s")
    work(api)
    assert conclusions_of(api) == []
    assert status(api) == {}
    own = api.ok(
        api.post("/conclusions/list", {"filters": {"observer_id": "alice", "session_id": "s"}})
    )
    assert own["total"] == 2, "what others hold stays"


@pytest.mark.slow
def test_messages_of_a_session_that_left_are_no_longer_in_the_scope(api: Api) -> None:
    api.say("s", ("alice", "I keep a tortoise in Oslo."))
    api.say("t", ("alice", "Good morning."))
    scope(api)
    add(api, "s", "t")
    work(api)

    def read(path: str, **body: Any) -> int:
        evidence = api.ok(api.post(path, {"query": "tortoise", "include_evidence": True, **body}))[
            "evidence"
        ]
        return len(evidence["conclusions"]) + len(evidence["messages"])

    def recalled() -> list[bool]:
        chats = [
            read(path, scope=selector) > 0
            for path in ("/peers/alice/chat", "/chat")
            for selector in ("x", ["x"])
        ]
        bodies = [{"scope": selector, "search_query": "tortoise"} for selector in ("x", ["x"])]
        mentions = [
            "tortoise" in api.ok(api.post("/peers/alice/representation", body))["representation"]
            for body in bodies
        ]
        return [
            *chats,
            *mentions,
            "s"
            in {
                row["session_id"]
                for row in api.ok(api.post("/search", {"query": "tortoise", "scope": "x"}))
            },
        ]

    assert recalled() == [True] * 7
    remove(api, "s")
    work(api)
    assert recalled() == [False] * 7


def test_a_session_without_conclusions_completes_without_copies(api: Api) -> None:
    api.say("s", ("alice", "hi"))
    work(api)
    scope(api)
    add(api, "s")
    work(api)
    assert {key: value for key, value in status(api)["s"].items() if key != "updated_at"} == {
        "state": "completed",
        "docs_copied": 0,
    }


def test_a_session_without_messages_needs_no_backfill(api: Api) -> None:
    scope(api)
    api.session("s")
    add(api, "s")
    assert status(api) == {}
    api.say("s", ("alice", "I live in Oslo."))
    work(api)
    assert conclusions_of(api) == [("alice", "I live in Oslo.")]


def test_scopes_of_a_new_session(api: Api) -> None:
    api.session("s", scopes=["a", "b", "a"])
    assert api.ids("/scopes/list") == ["a", "b"]
    assert api.ids("/scopes/a/sessions/list") == ["s"]
    api.say("s", ("alice", "I live in Oslo."))
    work(api)
    api.ok(api.post("/sessions", {"id": "s", "scopes": ["c"]}))
    assert status(api, "c")["s"]["state"] == "pending"
    assert status(api, "a") == {}
    api.ok(api.post("/sessions", {"id": "s", "scopes": []}))
    work(api)
    assert [conclusions_of(api, name) for name in "abc"] == [[("alice", "I live in Oslo.")]] * 3


@pytest.mark.parametrize("name", ["", "a b", "scope.x", "x" * 507, "a\0"])
def test_bad_names_of_scopes_create_no_session(api: Api, name: str) -> None:
    api.create()
    api.refused(api.post("/sessions", {"id": "s", "scopes": ["ok", name]}), ["body", "scopes", 1])
    api.refused(
        api.post("/sessions", {"id": "s", "scopes": [f"n{n}" for n in range(101)]}),
        ["body", "scopes"],
    )
    assert api.ids("/sessions/list") == []
    assert api.ids("/scopes/list") == []


@pytest.mark.slow
def test_a_list_of_scopes_has_a_maximum_length(api: Api) -> None:
    api.say("s", ("alice", "I live in Oslo."))
    names = [f"n{number}" for number in range(101)]
    for name in names[:100]:
        scope(api, name)
    for path, body in (
        ("/peers/alice/representation", {}),
        ("/peers/alice/chat", {"query": "x"}),
    ):
        api.ok(api.post(path, {**body, "scope": names[:100]}))
        (problem,) = api.refused(api.post(path, {**body, "scope": names}), ["body", "scope"])
        assert "1 to 100" in problem["msg"]


def test_scopes_of_too_many_sessions_are_not_searched_together(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as an allowlist may name. One scope by itself may have any number: it is asked for
    what it holds."""
    monkeypatch.setattr(representation, "MAX_SESSIONS", 2)
    for name, sessions in (("x", ("a", "b")), ("y", ("b", "c"))):
        scope(api, name)
        for session in sessions:
            api.say(session, ("alice", f"I have been to {session}."))
            add(api, session, to=name)
    for path, body in (
        ("/peers/alice/representation", {}),
        ("/peers/alice/chat", {"query": "x"}),
        ("/chat", {"query": "x"}),
    ):
        (problem,) = api.refused(api.post(path, {**body, "scope": ["x", "y"]}), ["body", "scope"])
        assert "3" in problem["msg"]
        assert "at most 2" in problem["msg"]
        api.ok(api.post(path, {**body, "scope": ["x"]}))
    monkeypatch.setattr(representation, "MAX_SESSIONS", 1)
    api.ok(api.post("/peers/alice/representation", {"scope": "x"}))


def test_scopes_of_different_workspaces_are_separate(api: Api) -> None:
    scope(api)
    other = replace_workspace(api)
    other.session("s")
    other.missing(other.get("/scopes/x"), "x", other.workspace)
    other.missing(other.post("/scopes/x/sessions", {"session_ids": ["s"]}), "x")
    assert other.ids("/scopes/list") == []


def replace_workspace(api: Api) -> Api:
    return type(api)(api.app, api.runtime, api.workspace + "-other")


# Where a scope may be named

REFUSED: dict[str, tuple[str, str, Any, list[str | int]]] = {
    "peer update": ("PUT", "/peers/{}", {"metadata": {}}, ["path", "peer_id"]),
    "representation": ("POST", "/peers/{}/representation", {}, ["path", "peer_id"]),
    "representation target": (
        "POST",
        "/peers/alice/representation",
        {"target": "{}"},
        ["body", "target"],
    ),
    "peer context": ("GET", "/peers/{}/context", None, ["path", "peer_id"]),
    "peer context target": ("GET", "/peers/alice/context?target={}", None, ["query", "target"]),
    "card target": ("PUT", "/peers/alice/card?target={}", {"peer_card": []}, ["query", "target"]),
    "session context target": (
        "GET",
        "/sessions/s/context?peer_target={}",
        None,
        ["query", "peer_target"],
    ),
    "session create": (
        "POST",
        "/sessions",
        {"id": "s", "peers": {"{}": {}}},
        ["body", "peers", "{}"],
    ),
    "session peers add": ("POST", "/sessions/s/peers", {"{}": {}}, ["body", "{}"]),
    "session peers set": ("PUT", "/sessions/s/peers", {"{}": {}}, ["body", "{}"]),
    "message author": (
        "POST",
        "/sessions/s/messages",
        {"messages": [{"peer_id": "{}", "content": "hello"}]},
        ["body", "messages", 0, "peer_id"],
    ),
    "peer create": ("POST", "/peers", {"id": "{}"}, ["body", "id"]),
    "chat": ("POST", "/peers/{}/chat", {"query": "x"}, ["path", "peer_id"]),
    "chat target": (
        "POST",
        "/peers/alice/chat",
        {"query": "x", "target": "{}"},
        ["body", "target"],
    ),
    "dream observed": (
        "POST",
        "/schedule_dream",
        {"observer": "alice", "observed": "{}", "dream_type": "omni"},
        ["body", "observed"],
    ),
}
"""Refused whether there is such a scope or not."""

REFUSED_IF_THERE: dict[str, tuple[str, str, Any, int]] = {
    "conclusion observed": (
        "POST",
        "/conclusions",
        {
            "conclusions": [
                {"content": "x", "observer_id": "alice", "observed_id": "{}", "session_id": "s"}
            ]
        },
        404,
    ),
    "session context perspective": (
        "GET",
        "/sessions/s/context?peer_target=alice&peer_perspective={}",
        None,
        404,
    ),
    "peer config get": ("GET", "/sessions/s/peers/{}/config", None, 404),
    "peer config put": ("PUT", "/sessions/s/peers/{}/config", {"observe_me": True}, 404),
    "session peers remove": ("DELETE", "/sessions/s/peers", ["{}"], 200),
}
"""With what is answered where there is no such scope."""

ALLOWED: dict[str, tuple[str, str, Any, int]] = {
    "conclusion observer": (
        "POST",
        "/conclusions",
        {
            "conclusions": [
                {"content": "x", "observer_id": "{}", "observed_id": "alice", "session_id": "s"}
            ]
        },
        201,
    ),
    "card get": ("GET", "/peers/{}/card?target=alice", None, 200),
    "card put": ("PUT", "/peers/{}/card?target=alice", {"peer_card": ["likes tea"]}, 200),
    "dream observer": (
        "POST",
        "/schedule_dream",
        {"observer": "{}", "observed": "alice", "dream_type": "omni"},
        204,
    ),
    "queue status observer": ("GET", "/queue/status?observer_id={}", None, 200),
    "queue status sender": ("GET", "/queue/status?sender_id={}", None, 200),
    "peer search": ("POST", "/peers/{}/search", {"query": "hello"}, 200),
    "peer sessions": ("POST", "/peers/{}/sessions", {}, 200),
    "conclusions list": ("POST", "/conclusions/list", {"filters": {"observer_id": "{}"}}, 200),
    "conclusions query": (
        "POST",
        "/conclusions/query",
        {"query": "tea", "filters": {"observer_id": "{}", "observed_id": "alice"}},
        200,
    ),
}


def ask(api: Api, method: str, path: str, body: Any, name: str) -> Any:
    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {named(key): named(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [named(inner) for inner in value]
        return name if value == "{}" else value

    return api.call(method, path.format(name), ... if body is None else named(body))


def populated(api: Api) -> None:
    api.say("s", ("alice", "hello"))
    api.session("other")
    scope(api)
    add(api, "s")


@pytest.mark.slow
@pytest.mark.parametrize("where", REFUSED)
@pytest.mark.parametrize("name", ["scope.x", "scope.nobody"])
def test_a_scope_is_refused_as_an_ordinary_peer(api: Api, where: str, name: str) -> None:
    populated(api)
    method, path, body, loc = REFUSED[where]
    api.refused(
        ask(api, method, path, body, name), [name if step == "{}" else step for step in loc]
    )


@pytest.mark.parametrize("where", REFUSED_IF_THERE)
def test_an_existing_scope_is_refused_and_an_unknown_one_is_missing(api: Api, where: str) -> None:
    populated(api)
    method, path, body, otherwise = REFUSED_IF_THERE[where]
    api.refused(ask(api, method, path, body, "scope.x"))
    assert ask(api, method, path, body, "scope.nobody").status_code == otherwise


@pytest.mark.slow
@pytest.mark.parametrize("where", ALLOWED)
def test_a_scope_is_accepted_as_observer(api: Api, where: str) -> None:
    populated(api)
    method, path, body, status = ALLOWED[where]
    assert ask(api, method, path, body, "scope.x").status_code == status


@pytest.mark.slow
def test_refused_requests_change_nothing(api: Api) -> None:
    populated(api)
    for where in REFUSED:
        method, path, body, _ = REFUSED[where]
        ask(api, method, path, body, "scope.x")
        ask(api, method, path, body, "scope.nobody")
    assert sorted(api.ids("/peers/list", {"kind": "all"})) == ["alice", "scope.x"]
    assert api.ids("/scopes/x/sessions/list") == ["s"]
    assert api.ids("/sessions/s/messages/list") != []
    with api.runtime.storage.read() as tx:
        workspace = tx.workspaces.by_slug(api.workspace)
        assert workspace is not None
        peers: list[Peer] = tx.peers.page(workspace.key)
        entries = tx.rows.count(ScopeSession)
    assert [peer.configuration for peer in peers if peer.slug == "scope.x"] == [
        {"observe_me": False}
    ]
    assert entries >= 1
