"""Any history of creations, renamings, archivings, deletions, erasures and re-creations by three
generations: every step is answered as the model says, and whenever they are looked at, and in the
end, so is every list of each generation, with totals that fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.runtime import Runtime
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.api.three_model import ACTIVE, ARCHIVED, DELETING, Note, Peer, Session, Workspace
from support.examples import examples
from support.stores.stores import sqlite_store_at, store_of

LATER = st.sampled_from(["v2", "v3"])
PLACES = st.sampled_from(["acme", "globex", "Acme & Sons"])
PEERS = st.sampled_from(["ann", "bob", "cat", "dan", "eve"])
USERS = st.sampled_from(["ann", "bob", "cat", "dan", "Ann B.", ""])
SESSIONS = st.sampled_from(["talk", "room"])
PICK = st.integers(0, 1_000)
MANY = 2
"""Workspaces at most; and a few more sessions in each: what is read as a whole shall stay short."""


class Histories(RuleBasedStateMachine):
    """All histories of a test share a store, which each leaves empty."""

    runtime: ClassVar[Runtime]
    client: ClassVar[FlaskClient]

    @initialize(furnished=st.booleans())
    def open(self, furnished: bool) -> None:
        self.workspaces: list[Workspace] = []
        self.deleted_workspaces: list[Workspace] = []
        self.texts = 0
        if furnished:
            self.make_app("acme", gets=False)
            self.make_user(0, "ann", gets=False)
            self.make_owned_session(0)
            self.make_session(0, "room", "v3", ["ann", "bob"])

    def teardown(self) -> None:
        try:
            if hasattr(self, "workspaces"):
                self.look()
        finally:
            self.clear()

    def clear(self) -> None:
        for item in self.client.post("/v3/workspaces/list?size=100").get_json()["items"]:
            self.client.delete(f"/v2/workspaces/{item['id']}")
        Worker(self.runtime).run_until_idle()

    # Asking

    def ask(self, method: str, path: str, body: Any = ..., *, status: int) -> Any:
        options: dict[str, Any] = {} if body is ... else {"json": body}
        answer = self.client.open(path, method=method, **options)
        assert answer.status_code == status, (
            f"{method} {path} {body}: {answer.status_code} instead of {status}: {answer.text[:300]}"
        )
        return answer.get_json() if answer.data else None

    def items(self, path: str, body: Any = ..., query: str = "") -> list[Any]:
        """All of a list, after looking at its totals."""
        page = self.ask("POST", f"{path}?size=100{query}", body, status=200)
        assert (page["total"], page["pages"]) == (len(page["items"]), 1 if page["items"] else 0)
        return list(page["items"])

    def learn(self, workspace: Workspace) -> None:
        """The uids of what the last step made, as the third generation shows them."""
        shown = {
            item["id"]: item["uid"]
            for item in self.items(f"/v3/workspaces/{workspace.slug}/peers/list")
        }
        for peer in workspace.peers:
            if not peer.uid and peer.given_slug is not None:
                peer.uid = shown[peer.given_slug]
        for peer in workspace.peers:
            if not peer.uid:
                (slug,) = shown.keys() - {other.slug for other in workspace.peers}
                peer.uid, peer.given_slug, peer.given_name = shown[slug], slug, slug
        rooms = {
            item["id"]: item["uid"]
            for item in self.items(f"/v3/workspaces/{workspace.slug}/sessions/list")
        }
        for session in workspace.sessions:
            if not session.uid:
                session.uid = rooms[session.slug]

    def workspace(self, pick: int) -> Workspace:
        return self.workspaces[pick % len(self.workspaces)]

    def of(self, pick: int, things: list[Any]) -> Any:
        return things[pick % len(things)]

    def named(self, name: str) -> Workspace | None:
        return next((workspace for workspace in self.workspaces if workspace.name == name), None)

    def slugged(self, slug: str) -> Workspace | None:
        return next((workspace for workspace in self.workspaces if workspace.slug == slug), None)

    def has_place(self) -> bool:
        return bool(self.workspaces)

    def has_user(self) -> bool:
        return any(workspace.users for workspace in self.workspaces)

    def has_session(self) -> bool:
        return any(workspace.sessions and workspace.users for workspace in self.workspaces)

    def inhabited(self, pick: int) -> tuple[Workspace, Peer]:
        workspace = self.of(pick, [workspace for workspace in self.workspaces if workspace.users])
        return workspace, self.of(pick // 7, workspace.users)

    def pick_session(self, pick: int) -> tuple[Workspace, Session, Peer]:
        """A session, and usually a peer that may write to it."""
        workspace = self.of(
            pick,
            [workspace for workspace in self.workspaces if workspace.sessions and workspace.users],
        )
        session = self.of(pick // 7, workspace.sessions)
        shown = [user for user in workspace.users if session.is_shown_to(user)]
        return (
            workspace,
            session,
            self.of(pick // 77, shown if shown and pick % 5 else workspace.users),
        )

    def at(self, workspace: Workspace, user: Peer, session: Session | None = None) -> str:
        path = f"/v1/apps/{workspace.uid}/users/{user.uid}"
        return path if session is None else f"{path}/sessions/{session.uid}"

    def text(self) -> str:
        self.texts += 1
        return f"line {self.texts}"

    # Workspaces

    @precondition(lambda self: len(self.workspaces) < MANY)
    @rule(name=PLACES, gets=st.booleans())
    def make_app(self, name: str, gets: bool) -> None:
        app = self.named(name)
        if gets:
            answer = self.ask("GET", f"/v1/apps/get_or_create/{name}", status=200)
        else:
            answer = self.ask("POST", "/v1/apps", {"name": name}, status=409 if app else 200)
        if app is None:
            slug = name if "&" not in name and self.slugged(name) is None else None
            self.workspaces.append(Workspace(answer["id"], slug, name))
        elif gets:
            assert answer["id"] == app.uid

    @precondition(lambda self: len(self.workspaces) < MANY)
    @rule(slug=PLACES.filter(lambda name: "&" not in name), by=LATER)
    def make_workspace(self, slug: str, by: str) -> None:
        workspace = self.slugged(slug)
        self.ask(
            "POST",
            f"/{by}/workspaces",
            {"id": slug},
            status=201 if workspace is None and by == "v3" else 200,
        )
        uid = self.ask("POST", "/v3/workspaces", {"id": slug}, status=200)["uid"]
        if workspace is None:
            self.workspaces.append(Workspace(uid, slug, slug if self.named(slug) is None else None))
        else:
            assert uid == workspace.uid

    @precondition(has_place)
    @rule(pick=PICK, name=PLACES)
    def rename_app(self, pick: int, name: str) -> None:
        workspace = self.workspace(pick)
        other = self.named(name)
        self.ask(
            "PUT",
            f"/v1/apps/{workspace.uid}",
            {"name": name},
            status=200 if other in (None, workspace) else 409,
        )
        if other is None:
            workspace.given_name = name

    @precondition(lambda self: any(len(workspace.sessions) > MANY for workspace in self.workspaces))
    @rule(pick=PICK, by=LATER)
    def delete_workspace(self, pick: int, by: str) -> None:
        workspace = self.workspace(pick)
        busy = any(session.state == ACTIVE for session in workspace.sessions)
        if by == "v3" and busy:
            self.ask("DELETE", f"/v3/workspaces/{workspace.slug}", status=409)
            return
        self.ask("DELETE", f"/{by}/workspaces/{workspace.slug}", status=202 if by == "v3" else 200)
        self.workspaces.remove(workspace)
        self.deleted_workspaces.append(workspace)

    # Peers

    @precondition(has_place)
    @rule(pick=PICK, name=USERS.filter(bool), gets=st.booleans())
    def make_user(self, pick: int, name: str, gets: bool) -> None:
        workspace = self.workspace(pick)
        users, user = f"/v1/apps/{workspace.uid}/users", workspace.by_name(name)
        if gets:
            answer = self.ask("GET", f"{users}/get_or_create/{name}", status=200)
        else:
            answer = self.ask("POST", users, {"name": name}, status=409 if user else 200)
        if user is None:
            workspace.add_user(name).uid = answer["id"]
        elif gets:
            assert answer["id"] == user.uid

    @precondition(has_place)
    @rule(pick=PICK, slug=PEERS, by=LATER)
    def make_peer(self, pick: int, slug: str, by: str) -> None:
        workspace = self.workspace(pick)
        created = workspace.by_slug(slug) is None
        self.ask(
            "POST",
            f"/{by}/workspaces/{workspace.slug}/peers",
            {"id": slug},
            status=201 if created and by == "v3" else 200,
        )
        workspace.ensure([slug])
        self.learn(workspace)

    @precondition(has_user)
    @rule(pick=PICK, name=USERS)
    def rename_user(self, pick: int, name: str) -> None:
        workspace, user = self.inhabited(pick)
        other = workspace.by_name(name)
        self.ask(
            "PUT",
            self.at(workspace, user),
            {"name": name},
            status=200 if other in (None, user) else 409,
        )
        if other is None:
            user.given_name = name

    # Sessions

    @precondition(has_user)
    @rule(pick=PICK)
    def make_owned_session(self, pick: int) -> None:
        workspace, user = self.inhabited(pick)
        answer = self.ask("POST", f"{self.at(workspace, user)}/sessions", {}, status=200)
        session = Session(user, uid=answer["id"])
        session.join([user, workspace.the_assistant()])
        workspace.sessions.append(session)
        self.learn(workspace)

    @precondition(has_place)
    @rule(pick=PICK, slug=SESSIONS, by=LATER, members=st.lists(PEERS, max_size=2))
    def make_session(self, pick: int, slug: str, by: str, members: list[str]) -> None:
        workspace = self.workspace(pick)
        session = workspace.session(slug)
        status = (
            404
            if session is not None and session.state != ACTIVE
            else 201
            if session is None and by == "v3"
            else 200
        )
        body = {"id": slug, "peers": {name: {} for name in members}}
        self.ask("POST", f"/{by}/workspaces/{workspace.slug}/sessions", body, status=status)
        if status != 404:
            self._joined(workspace, slug, members)

    def _joined(self, workspace: Workspace, slug: str, members: list[str]) -> Session:
        peers = workspace.ensure(members)
        session = workspace.session(slug)
        if session is None:
            session = Session(None, slug)
            workspace.sessions.append(session)
        session.join(peers)
        self.learn(workspace)
        return session

    @precondition(has_session)
    @rule(
        pick=PICK,
        names=st.lists(PEERS, min_size=1, max_size=2, unique=True),
        by=LATER,
        how=st.sampled_from(["POST", "PUT"]),
    )
    def add_or_set_members(self, pick: int, names: list[str], by: str, how: str) -> None:
        workspace, session, _ = self.pick_session(pick)
        path = f"/{by}/workspaces/{workspace.slug}/sessions/{session.slug}/peers"
        self.ask(
            how, path, {name: {} for name in names}, status=200 if session.state == ACTIVE else 404
        )
        if session.state == ACTIVE:
            session.leave(list(session.members) if how == "PUT" else [])
            session.join(workspace.ensure(names))
            self.learn(workspace)

    @precondition(has_session)
    @rule(pick=PICK, also=PEERS, by=LATER)
    def remove_members(self, pick: int, also: str, by: str) -> None:
        workspace, session, user = self.pick_session(pick)
        path = f"/{by}/workspaces/{workspace.slug}/sessions/{session.slug}/peers"
        self.ask("DELETE", path, [user.slug, also], status=200 if session.state == ACTIVE else 404)
        if session.state == ACTIVE:
            session.leave(
                [
                    peer
                    for slug in (user.slug, also)
                    if (peer := workspace.by_slug(slug)) is not None
                ]
            )

    @precondition(has_session)
    @rule(pick=PICK)
    def archive(self, pick: int) -> None:
        workspace, session, user = self.pick_session(pick)
        allowed = session.is_shown_to(user) and session.state != DELETING
        self.ask("DELETE", self.at(workspace, user, session), status=200 if allowed else 404)
        if allowed:
            session.state = ARCHIVED

    @precondition(has_session)
    @rule(pick=PICK, by=LATER)
    def delete_session(self, pick: int, by: str) -> None:
        workspace, session, _ = self.pick_session(pick)
        active = session.state == ACTIVE
        self.ask(
            "DELETE",
            f"/{by}/workspaces/{workspace.slug}/sessions/{session.slug}",
            status=202 if active else 404,
        )
        if active:
            session.state = DELETING

    @precondition(has_session)
    @rule(
        pick=PICK, upto=st.none() | PICK, deep=st.booleans(), by=st.sampled_from(["v1", "v2", "v3"])
    )
    def clone(self, pick: int, upto: int | None, deep: bool, by: str) -> None:
        workspace, session, user = self.pick_session(pick)
        if len(workspace.sessions) >= 4 * MANY:
            return
        until = upto % len(session.messages) if upto is not None and session.messages else None
        query = f"?deep_copy={str(deep).lower()}"
        if until is not None:
            query += f"&message_id={self.message_ids(workspace, session)[until]}"
        if by == "v1":
            allowed = session.is_shown_to(user) and session.state != DELETING
            answer = self.ask(
                "GET",
                f"{self.at(workspace, user, session)}/clone{query}",
                status=200 if allowed else 404,
            )
        else:
            allowed, method = session.state == ACTIVE, "GET" if by == "v2" else "POST"
            path = f"/{by}/workspaces/{workspace.slug}/sessions/{session.slug}/clone{query}"
            answer = self.ask(
                method, path, status=404 if not allowed else 201 if by == "v3" else 200
            )
        if allowed:
            workspace.clone(session, until, deep and by == "v1").uid = answer["id"]

    def message_ids(self, workspace: Workspace, session: Session) -> list[str]:
        if session.state == ACTIVE:
            path = f"/v3/workspaces/{workspace.slug}/sessions/{session.slug}/messages/list"
        else:
            viewers = [user for user in workspace.users if session.is_shown_to(user)]
            if not viewers:
                return ["unknown"] * len(session.messages)
            path = f"{self.at(workspace, viewers[0], session)}/messages/list"
        return [item["id"] for item in self.items(path)]

    # What is said

    @precondition(has_session)
    @rule(pick=PICK, by=st.lists(st.booleans(), min_size=1, max_size=2))
    def say_as_user(self, pick: int, by: list[bool]) -> None:
        workspace, session, user = self.pick_session(pick)
        messages = [(self.text(), is_user) for is_user in by]
        allowed = session.is_shown_to(user) and session.state != DELETING
        body = {
            "messages": [{"content": content, "is_user": is_user} for content, is_user in messages]
        }
        self.ask(
            "POST",
            f"{self.at(workspace, user, session)}/messages/batch",
            body,
            status=200 if allowed else 404,
        )
        if allowed:
            authors = [user if is_user else workspace.the_assistant() for is_user in by]
            session.messages += zip((content for content, _ in messages), authors, strict=True)
            session.join(authors)
            self.learn(workspace)

    @precondition(has_place)
    @rule(pick=PICK, slug=SESSIONS, author=PEERS, by=LATER)
    def say_as_peer(self, pick: int, slug: str, author: str, by: str) -> None:
        workspace = self.workspace(pick)
        session = workspace.session(slug)
        if session is None and len(workspace.sessions) >= 4 * MANY:
            return
        text = self.text()
        allowed = session is None or session.state == ACTIVE
        body = {"messages": [{"peer_id": author, "content": text}]}
        path = f"/{by}/workspaces/{workspace.slug}/sessions/{slug}/messages"
        self.ask("POST", path, body, status=404 if not allowed else 201 if by == "v3" else 200)
        if allowed:
            (peer,) = workspace.ensure([author])
            self._joined(workspace, slug, [author]).messages.append((text, peer))

    @precondition(has_session)
    @rule(pick=PICK)
    def note(self, pick: int) -> None:
        workspace, session, user = self.pick_session(pick)
        allowed = session.is_shown_to(user) and session.state != DELETING
        body = {"label": self.text(), "content": "", "session_id": session.uid}
        self.ask(
            "POST",
            f"{self.at(workspace, user)}/metamessages",
            body,
            status=200 if allowed else 404,
        )
        if allowed:
            workspace.notes.append(Note(user, session, body["label"]))

    @rule()
    def work(self) -> None:
        Worker(self.runtime).run_until_idle()
        for workspace in self.workspaces:
            workspace.erase()

    # What is seen

    @rule()
    def look(self) -> None:
        self.see_workspaces()
        for workspace in self.workspaces:
            self.see_peers(workspace)
            self.see_sessions(workspace)
            for session in workspace.sessions:
                self.see_messages(workspace, session)
                self.see_members(workspace, session)

    def see_workspaces(self) -> None:
        apps = [(item["id"], item["name"]) for item in self.items("/v1/apps/list")]
        assert apps == [(workspace.uid, workspace.name) for workspace in self.workspaces]
        for by in ("v2", "v3"):
            assert [item["id"] for item in self.items(f"/{by}/workspaces/list")] == [
                workspace.slug for workspace in self.workspaces
            ]
        for workspace in self.deleted_workspaces:
            self.ask("GET", f"/v1/apps?app_id={workspace.uid}", status=404)
            assert self.items(f"/v1/apps/{workspace.uid}/users/list") == []

    def see_peers(self, workspace: Workspace) -> None:
        users = [
            (item["id"], item["name"])
            for item in self.items(f"/v1/apps/{workspace.uid}/users/list")
        ]
        assert users == [(user.uid, user.name) for user in workspace.users]
        for by in ("v2", "v3"):
            assert [
                item["id"] for item in self.items(f"/{by}/workspaces/{workspace.slug}/peers/list")
            ] == [peer.slug for peer in workspace.peers]

    def see_sessions(self, workspace: Workspace) -> None:
        active = [session.slug for session in workspace.sessions if session.state == ACTIVE]
        for by in ("v2", "v3"):
            at = f"/{by}/workspaces/{workspace.slug}"
            assert [item["id"] for item in self.items(f"{at}/sessions/list")] == active
            for peer in workspace.peers:
                joined = [
                    session.slug
                    for session in workspace.sessions
                    if session.state != ARCHIVED and peer in session.members
                ]
                assert [
                    item["id"] for item in self.items(f"{at}/peers/{peer.slug}/sessions")
                ] == joined
        for user in workspace.users:
            shown = [
                (session.uid, session.state == ACTIVE)
                for session in workspace.sessions
                if session.is_shown_to(user)
            ]
            path = f"{self.at(workspace, user)}/sessions"
            listed = self.items(f"{path}/list")
            assert [(item["id"], item["is_active"]) for item in listed] == shown
            assert {item["user_id"] for item in listed} <= {user.uid}
            only = [item["id"] for item in self.items(f"{path}/list", {"is_active": True})]
            assert only == [uid for uid, is_active in shown if is_active]
            labels = [
                item["label"]
                for item in self.items(f"{self.at(workspace, user)}/metamessages/list")
            ]
            assert labels == [note.label for note in workspace.notes if note.owner is user]

    def see_messages(self, workspace: Workspace, session: Session) -> None:
        for user in workspace.users:
            self.ask(
                "GET",
                f"{self.at(workspace, user)}/sessions?session_id={session.uid}",
                status=200 if session.is_shown_to(user) else 404,
            )
            shown_messages = [
                (item["content"], item["is_user"])
                for item in self.items(f"{self.at(workspace, user, session)}/messages/list")
            ]
            mine = [(content, author is user) for content, author in session.messages]
            assert shown_messages == (mine if session.is_shown_to(user) else [])
        for by in ("v2", "v3"):
            path = f"/{by}/workspaces/{workspace.slug}/sessions/{session.slug}/messages/list"
            shown_to_peers = [(item["content"], item["peer_id"]) for item in self.items(path)]
            messages = [(content, author.slug) for content, author in session.messages]
            assert shown_to_peers == ([] if session.state == ARCHIVED else messages)

    def see_members(self, workspace: Workspace, session: Session) -> None:
        present = {peer.slug for peer, inside in session.members.items() if inside}
        for by in ("v2", "v3"):
            page = self.ask(
                "GET",
                f"/{by}/workspaces/{workspace.slug}/sessions/{session.slug}/peers?size=100",
                status=200,
            )
            assert page["total"] == len(page["items"])
            assert {item["id"] for item in page["items"]} == (
                set() if session.state == ARCHIVED else present
            )


def run(uri: str, number: int, steps: int) -> None:
    overrides = {"DB_CONNECTION_URI": uri, "DERIVER_ENABLED": "false", "SUMMARY_ENABLED": "false"}
    opened = open_runtime(load_settings(environ={}, overrides=overrides), "api")
    opened.storage.migrate()

    class OnStore(Histories):
        runtime = opened
        client = create_app(runtime=opened).test_client()

    bounds = settings(
        max_examples=number,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(OnStore, settings=bounds)
    finally:
        opened.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_any_history_reads_the_same_in_every_generation() -> None:
    run("memory://", examples(15), 20)


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_any_history_in_a_file(tmp_path: Path) -> None:
    run(sqlite_store_at(tmp_path / "m.db"), examples(6), 30)


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_any_history_on_postgres(tmp_path: Path) -> None:
    with store_of("postgres", tmp_path) as uri:
        run(uri, examples(5), 30)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
def test_many_long_histories() -> None:
    run("memory://", 400, 60)
