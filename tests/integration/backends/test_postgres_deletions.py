"""What is deleted while a request is in the middle of changing it. Only where writers do not wait
for each other can that happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from types import ModuleType
from typing import Any

import pytest

from memservice.compose import open_runtime
from memservice.domain.errors import Conflict, NotFound
from memservice.domain.filters import equals
from memservice.domain.records import ACTIVE, DELETING, Member, Message, Workspace
from memservice.runtime import Runtime
from memservice.services import cloning, deletion, messages, sessions, workspaces
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.services.sessions import MemberConfig, SessionFields
from memservice.services.v1 import messages as v1_messages
from memservice.services.v1.resolve import Path
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.stores.postgres_server import connect
from support.stores.stores import store_of

ME = Principal(admin=True)


@pytest.fixture
def runtime(tmp_path: FilePath) -> Iterator[Runtime]:
    with store_of("postgres", tmp_path) as uri:
        opened = open_runtime(
            load_settings(
                environ={},
                cwd=tmp_path,
                overrides={"DB_CONNECTION_URI": uri, "DB_POOL_TIMEOUT": "60"},
            )
        )
        yield opened
        opened.close()


class Meanwhile:
    """Lets others do something right after the first call of a function: until they are done, or
    wait for a lock."""

    def __init__(self, rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        self._rt, self._monkeypatch = rt, monkeypatch
        self._others: threading.Thread | None = None

    def after(self, module: ModuleType, name: str, act: Callable[[], Any]) -> None:
        real = getattr(module, name)

        def call(*args: Any, **options: Any) -> Any:
            result = real(*args, **options)
            if self._others is None:
                self._others = threading.Thread(target=act)
                self._others.start()
                self._wait(self._others)
            return result

        self._monkeypatch.setattr(module, name, call)

    def _wait(self, others: threading.Thread) -> None:
        deadline = time.monotonic() + 60
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
            "wait_event_type = 'Lock'"
        )
        with connect(self._rt.settings.db.connection_uri) as connection:
            while others.is_alive() and connection.execute(waiting).fetchone() == (0,):
                assert time.monotonic() < deadline, "neither done nor waiting"
                time.sleep(0.01)

    def join(self) -> None:
        assert self._others is not None, "it was not called"
        self._others.join(60)
        assert not self._others.is_alive()


@pytest.fixture
def meanwhile(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    return Meanwhile(runtime, monkeypatch)


def test_a_workspace_that_is_deleted_while_it_is_changed_stays_deleted(
    runtime: Runtime, meanwhile: Meanwhile
) -> None:
    before = workspaces.update(runtime, ME, "w", {"n": 0}, None)
    meanwhile.after(workspaces, "ensure", lambda: deletion.delete_workspace(runtime, ME, "w"))
    workspaces.update(runtime, ME, "w", {"n": 1}, None)
    meanwhile.join()
    with runtime.storage.read() as tx:
        states = {row.uid: row.state for row in tx.rows.page(Workspace, equals(slug="w"))}
    assert states.pop(before.uid) == DELETING
    assert set(states.values()) <= {ACTIVE}


def test_a_concurrent_message_never_disappears_with_its_deleted_workspace(
    runtime: Runtime, meanwhile: Meanwhile
) -> None:
    before = workspaces.update(runtime, ME, "w", {"n": 0}, None)
    meanwhile.after(workspaces, "ensure", lambda: deletion.delete_workspace(runtime, ME, "w"))
    (message,) = messages.create(runtime, ME, "w", "s", [Draft("hello", "ann")])
    meanwhile.join()
    Worker(runtime).run_until_idle()
    assert messages.get(runtime, ME, "w", "s", message.uid).content == "hello"
    with runtime.storage.read() as tx:
        after = tx.workspaces.by_slug("w")
    assert after is not None
    assert after.uid != before.uid


def test_a_workspace_with_an_uncommitted_session_is_not_deleted(
    runtime: Runtime, meanwhile: Meanwhile
) -> None:
    workspaces.update(runtime, ME, "w", {}, None)
    refused: list[Conflict] = []

    def delete() -> None:
        with pytest.raises(Conflict) as conflict:
            deletion.delete_workspace(runtime, ME, "w")
        refused.append(conflict.value)

    meanwhile.after(sessions, "ensure", delete)  # stored, not yet committed
    session, _ = sessions.get_or_create(runtime, ME, "w", "s", SessionFields(metadata={"n": 1}))
    meanwhile.join()
    assert [str(error) for error in refused] == [
        "Workspace w has 1 active session(s): delete them first"
    ]
    assert sessions.get_or_create(runtime, ME, "w", "s") == (session, False)


def test_a_session_is_not_cloned_into_a_workspace_being_deleted(
    runtime: Runtime, meanwhile: Meanwhile
) -> None:
    messages.create(runtime, ME, "w", "s", [Draft("hello", "ann")])

    def delete() -> None:
        deletion.delete_session(runtime, ME, "w", "s")
        deletion.delete_workspace(runtime, ME, "w")

    meanwhile.after(cloning, "original_of", delete)
    with pytest.raises(NotFound):
        cloning.clone(runtime, ME, "w", "s")
    meanwhile.join()


def test_no_peer_joins_a_session_being_deleted(runtime: Runtime, meanwhile: Meanwhile) -> None:
    session = sessions.add_peers(runtime, ME, "w", "s", {"ann": MemberConfig()})
    meanwhile.after(
        sessions, "_peers_to_join", lambda: deletion.delete_session(runtime, ME, "w", "s")
    )
    with pytest.raises(NotFound):
        sessions.set_peers(runtime, ME, "w", "s", {"bob": MemberConfig()})
    meanwhile.join()
    with runtime.storage.read() as tx:
        members = tx.rows.page(Member, equals(session_key=session.key))
    assert [(member.peer, member.left_at) for member in members] == [("ann", None)]


def test_a_change_of_a_message_precedes_the_deletion_of_its_session(
    runtime: Runtime, meanwhile: Meanwhile
) -> None:
    (message,) = messages.create(runtime, ME, "w", "s", [Draft("hello", "ann")])

    def erase() -> None:
        deletion.delete_session(runtime, ME, "w", "s")
        Worker(runtime).run_until_idle()

    meanwhile.after(messages, "replace", erase)  # between the look and the write
    changed = messages.update(runtime, ME, "w", "s", message.uid, {"seen": True})
    meanwhile.join()
    assert changed.metadata == {"seen": True}
    with pytest.raises(NotFound):
        messages.get(runtime, ME, "w", "s", message.uid)


def test_a_message_of_generation_1_is_changed_before_its_session_is_deleted(
    runtime: Runtime, meanwhile: Meanwhile
) -> None:
    """The deletion waits for the lock on the session: a change that the client sees as done was
    done."""
    (message,) = messages.create(runtime, ME, "w", "s", [Draft("hello", "ann")])
    with runtime.storage.read() as tx:
        located = tx.workspaces.locate("w", "s", "ann")
    assert located.workspace is not None
    assert located.session is not None
    assert located.peer is not None
    path = Path(located.workspace.uid, located.peer.uid, located.session.uid)

    metadata: list[object] = []

    def delete() -> None:
        deletion.delete_session(runtime, ME, "w", "s")
        with runtime.storage.read() as tx:
            metadata.extend(row.metadata for row in tx.rows.page(Message, equals(uid=message.uid)))

    meanwhile.after(v1_messages, "replace", delete)  # between reading and writing
    changed = v1_messages.update(runtime, ME, path, message.uid, {"seen": True})
    meanwhile.join()
    assert changed.message.metadata == {"seen": True}
    assert metadata == [{"seen": True}]
