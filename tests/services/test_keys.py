"""Keys: minting, listing, revoking, and noting their use."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memservice.compose import open_runtime
from memservice.domain.errors import (
    ConfigurationError,
    Disabled,
    InvalidInput,
    NotFound,
    Unauthorised,
    Unavailable,
)
from memservice.domain.filters.ast import TRUE, equals
from memservice.domain.records import DELETING, ApiKey, Session, Workspace
from memservice.runtime import Runtime
from memservice.services import deletion, peers, sessions
from memservice.services.auth import api_keys
from memservice.services.auth.api_keys import KeyRequest
from memservice.services.auth.key_usage import KeyUsage
from memservice.services.auth.principal import Principal
from memservice.services.paging import Paging
from memservice.settings import load_settings
from support.api.auth_client import ALL, OTHER_SECRET, settings_with_auth, signed
from support.stores.stores import sqlite_store_at

START = datetime(2026, 5, 1, 12, 0, 0, 654_321, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **span: float) -> None:
        self.now += timedelta(**span)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rt(local_storage_name: str, tmp_path: Path, clock: Clock) -> Iterator[Runtime]:
    settings = settings_with_auth(
        "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "keys.db")
    )
    opened = open_runtime(settings, clock=clock)
    opened.storage.migrate()
    yield opened
    opened.close()


def recognise(rt: Runtime, token: str) -> ApiKey | None:
    """As a request that shows the token does it."""
    claims = api_keys.signer_of(rt.settings).read(token, rt.clock())
    with rt.storage.read() as tx:
        return api_keys.recognise(tx, claims, token)


def test_a_key_is_stored_without_its_token(rt: Runtime) -> None:
    minted = api_keys.mint(
        rt,
        ALL,
        KeyRequest(workspace_id="acme", peer_id="alice"),
        START + timedelta(days=1),
        "for the kitchen",
    )
    assert len(minted.key.uid) == 21
    assert not minted.key.uid.startswith("-")
    assert minted.key.expires_at == (START + timedelta(days=1)).replace(microsecond=0)
    assert (minted.key.label, minted.key.workspace, minted.key.peer, minted.key.admin) == (
        "for the kitchen",
        "acme",
        "alice",
        False,
    )
    assert recognise(rt, minted.token) == minted.key
    with rt.storage.read() as tx:
        stored = repr(tx.rows.page(ApiKey))
    assert all(part not in stored for part in minted.token.split("."))


def test_a_key_works_until_it_expires(rt: Runtime, clock: Clock) -> None:
    minted = api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme"), START + timedelta(minutes=10))
    clock.pass_(minutes=9, seconds=59)
    assert recognise(rt, minted.token) == minted.key
    clock.pass_(seconds=1)
    with pytest.raises(Unauthorised, match="JWT expired"):
        recognise(rt, minted.token)


def test_a_key_without_names_is_labelled_as_admin_key(
    rt: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "memservice.keys"):
        minted = api_keys.mint(rt, ALL, KeyRequest())
    assert (minted.key.admin, minted.key.label) == (True, "admin")
    assert [
        (record.levelname, minted.key.uid in record.getMessage()) for record in caplog.records
    ] == [("WARNING", True)]
    assert minted.token not in caplog.text
    assert api_keys.signer_of(rt.settings).read(minted.token, START).admin
    assert api_keys.mint(rt, ALL, KeyRequest(), label="root").key.label == "root"
    assert api_keys.mint(rt, ALL, KeyRequest(), label="x" * 200).key.label == "x" * 200
    narrow = api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme", session_id="room"))
    claims = api_keys.signer_of(rt.settings).read(narrow.token, START)
    assert (claims.admin, claims.workspace, claims.peer, claims.session, claims.id) == (
        False,
        "acme",
        None,
        "room",
        narrow.key.uid,
    )
    assert narrow.key.label is None


@pytest.mark.parametrize(
    ("key_request", "expires_at", "label", "field"),
    [
        (KeyRequest(peer_id="alice"), None, None, "workspace_id"),
        (KeyRequest(session_id="room"), None, None, "workspace_id"),
        (KeyRequest(workspace_id=""), None, None, "workspace_id"),
        (KeyRequest(workspace_id="acme", peer_id=""), None, None, "peer_id"),
        (KeyRequest(workspace_id="no name"), None, None, "workspace_id"),
        (KeyRequest(workspace_id="acme", session_id="x" * 513), None, None, "session_id"),
        (KeyRequest(workspace_id="acme"), START, None, "expires_at"),
        (KeyRequest(workspace_id="acme"), START.replace(microsecond=999_999), None, "expires_at"),
        (KeyRequest(workspace_id="acme"), None, "x" * 201, "label"),
        (KeyRequest(workspace_id="acme"), None, "a\0b", "label"),
    ],
)
def test_invalid_keys_are_not_minted(
    rt: Runtime, key_request: KeyRequest, expires_at: datetime | None, label: str | None, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        api_keys.mint(rt, ALL, key_request, expires_at, label)
    assert [problem.loc for problem in refused.value.problems] == [(field,)]
    assert api_keys.page(rt, ALL, Paging()).total == 0


def test_only_administrators_manage_keys(rt: Runtime) -> None:
    key = api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme")).key
    for principal in (
        Principal(),
        Principal(workspace_id="acme"),
        Principal(workspace_id="acme", peer_id="alice"),
    ):
        with pytest.raises(Unauthorised):
            api_keys.mint(rt, principal, KeyRequest(workspace_id="acme"))
        with pytest.raises(Unauthorised):
            api_keys.page(rt, principal, Paging())
        with pytest.raises(Unauthorised):
            api_keys.revoke(rt, principal, key.uid)
    assert api_keys.page(rt, ALL, Paging()).items == [key]


def test_a_revoked_key_stays_revoked(rt: Runtime, clock: Clock) -> None:
    first, second = (api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme")) for _ in range(2))
    api_keys.revoke(rt, ALL, first.key.uid)
    clock.pass_(hours=1)
    api_keys.revoke(rt, ALL, first.key.uid)
    with pytest.raises(Unauthorised, match="JWT revoked"):
        recognise(rt, first.token)
    assert recognise(rt, second.token) == second.key
    assert [key.revoked_at for key in api_keys.page(rt, ALL, Paging()).items] == [START, None]
    with pytest.raises(NotFound, match="Key nope not found"):
        api_keys.revoke(rt, ALL, "nope")


def delete(rt: Runtime, record: type[Any], slug: str) -> None:
    """As a deletion at the same moment would: the key that is minted is not there yet to be
    revoked."""
    rt.storage.write(lambda tx: tx.rows.change(record, equals(slug=slug), state=DELETING))


def test_a_key_that_a_deletion_missed_is_not_recognised(rt: Runtime) -> None:
    sessions.get_or_create(rt, ALL, "acme", "room")
    peers.get_or_create(rt, ALL, "acme", "alice", None, None)
    every = [
        KeyRequest(workspace_id="acme", **more)
        for more in (
            {},
            {"peer_id": "alice"},
            {"session_id": "room"},
            {"peer_id": "alice", "session_id": "room"},
        )
    ]
    whole, alice, of_session, both = (api_keys.mint(rt, ALL, request).token for request in every)
    delete(rt, Session, "room")
    for token in (of_session, both):
        with pytest.raises(Unauthorised, match="JWT revoked"):
            recognise(rt, token)
    for token in (whole, alice):
        assert recognise(rt, token) is not None
    delete(rt, Workspace, "acme")
    sessions.get_or_create(rt, ALL, "acme", "room")
    peers.get_or_create(rt, ALL, "acme", "alice", None, None)
    for token in (whole, alice, of_session, both):
        with pytest.raises(Unauthorised, match="JWT revoked"):
            recognise(rt, token)


def test_keys_are_revoked_in_the_transaction_that_deletes(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.get_or_create(rt, ALL, "acme", "room")
    of_session, of_workspace, other = (
        api_keys.mint(rt, ALL, request)
        for request in (
            KeyRequest(workspace_id="acme", session_id="room"),
            KeyRequest(workspace_id="acme"),
            KeyRequest(workspace_id="other", session_id="room"),
        )
    )
    writes = 0
    original = rt.storage.write

    def counting(change: Callable[..., object]) -> object:
        nonlocal writes
        writes += 1
        return original(change)

    monkeypatch.setattr(rt.storage, "write", counting)
    deletion.delete_session(rt, ALL, "acme", "room")
    assert [key.revoked_at for key in api_keys.page(rt, ALL, Paging()).items] == [START, None, None]
    deletion.delete_workspace(rt, ALL, "acme")
    assert [key.revoked_at for key in api_keys.page(rt, ALL, Paging()).items] == [
        START,
        START,
        None,
    ]
    assert writes == 2
    assert recognise(rt, other.token) == other.key
    for minted in (of_session, of_workspace):
        with pytest.raises(Unauthorised, match="JWT revoked"):
            recognise(rt, minted.token)


def test_keys_of_other_servers_can_be_revoked(rt: Runtime) -> None:
    token = signed({"t": "", "w": "acme", "s": "room"})
    assert recognise(rt, token) is None
    key = api_keys.revoke_token(rt, ALL, token)
    assert (key.workspace, key.session, key.admin, key.revoked_at) == ("acme", "room", False, START)
    assert len(key.uid) == 64
    with pytest.raises(Unauthorised, match="JWT revoked"):
        recognise(rt, token)
    assert api_keys.revoke_token(rt, ALL, token) == key
    assert api_keys.page(rt, ALL, Paging()).items == [key]
    assert recognise(rt, signed({"t": "", "w": "acme", "s": "hall"})) is None


def test_a_key_is_revoked_by_its_token(rt: Runtime) -> None:
    minted = api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme"))
    assert api_keys.revoke_token(rt, ALL, minted.token).uid == minted.key.uid
    with pytest.raises(Unauthorised, match="JWT revoked"):
        recognise(rt, minted.token)
    for refused in (
        signed({"ad": True}, OTHER_SECRET),
        "garbage",
        signed({"ad": True, "jti": "unheard-of"}),
    ):
        with pytest.raises(Unauthorised):
            api_keys.revoke_token(rt, ALL, refused)
    assert api_keys.page(rt, ALL, Paging()).total == 1


def test_a_key_that_is_not_in_the_store_is_refused(rt: Runtime) -> None:
    """Of another store, or minted after the backup that this one was restored from."""
    minted = api_keys.mint(rt, ALL, KeyRequest())
    rt.storage.write(lambda tx: tx.rows.delete(ApiKey, TRUE))
    with pytest.raises(Unauthorised, match="JWT unknown"):
        recognise(rt, minted.token)


def test_keys_are_listed_in_pages(rt: Runtime, clock: Clock) -> None:
    keys = []
    for number in range(5):
        keys.append(api_keys.mint(rt, ALL, KeyRequest(workspace_id=f"w{number}")).key)
        clock.pass_(seconds=number % 2)
    assert api_keys.page(rt, ALL, Paging(1, 3)).items == keys[:3]
    last = api_keys.page(rt, ALL, Paging(2, 3))
    assert (last.items, last.total, last.pages) == (keys[3:], 5, 2)
    assert api_keys.page(rt, ALL, Paging(1, 50, reverse=True)).items == keys[::-1]


def test_without_authentication_there_are_no_keys(tmp_path: Path) -> None:
    settings = load_settings(environ={"DB_CONNECTION_URI": "memory://"}, cwd=tmp_path)
    opened = open_runtime(settings)
    with pytest.raises(Disabled, match="Feature is disabled"):
        api_keys.require_enabled(opened)
    with pytest.raises(ConfigurationError, match="token_urlsafe"):
        api_keys.mint(opened, ALL, KeyRequest())
    opened.close()


# When a key was used


def eventually(rt: Runtime, uid: str, at: datetime | None) -> None:
    deadline = time.monotonic() + 30
    while True:
        with rt.storage.read() as tx:
            key = tx.keys.by_uid(uid)
        assert key is not None
        if key.last_used_at == at:
            return
        assert time.monotonic() < deadline, f"last used {key.last_used_at}, not {at}"
        time.sleep(0.01)


def test_a_key_that_expires_this_very_second_is_refused(rt: Runtime, clock: Clock) -> None:
    clock.now = START.replace(microsecond=0)
    with pytest.raises(InvalidInput):
        api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme"), clock.now)
    second = timedelta(seconds=1)
    minted = api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme"), clock.now + second)
    assert minted.key.expires_at == clock.now + second


def test_use_is_recorded_at_most_once_a_minute(
    rt: Runtime, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = KeyUsage()
    minted = api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme"))
    writes = 0
    original = rt.storage.write

    def counting(change: Callable[..., object]) -> object:
        nonlocal writes
        writes += 1
        return original(change)

    monkeypatch.setattr(rt.storage, "write", counting)

    def use() -> None:
        key = recognise(rt, minted.token)
        assert key is not None
        usage.note(rt, key, clock.now)

    use()
    eventually(rt, minted.key.uid, START)
    for _ in range(20):
        clock.pass_(seconds=2.9)
        use()
    assert writes == 1
    clock.pass_(seconds=2.1)
    use()
    eventually(rt, minted.key.uid, START + timedelta(seconds=60.1))
    assert writes == 2
    usage.close()


def test_many_concurrent_uses_are_recorded_once(rt: Runtime, clock: Clock) -> None:
    """Many threads, with the records of two processes: the first one updates the row, and none
    waits."""
    usages = [KeyUsage(), KeyUsage()]
    minted = [api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme")) for _ in range(3)]
    threads = [
        threading.Thread(
            target=lambda usage=usage: [usage.note(rt, each.key, START) for each in minted * 20]
        )
        for usage in usages
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for usage in usages:
        usage.close()
    for each in minted:
        eventually(rt, each.key.uid, START)


def test_closing_writes_what_is_pending(rt: Runtime) -> None:
    for _ in range(10):
        usage = KeyUsage()
        minted = api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme"))
        usage.note(rt, minted.key, START)
        usage.close()
        with rt.storage.read() as tx:
            key = tx.keys.by_uid(minted.key.uid)
        assert key is not None
        assert key.last_used_at == START
        usage.note(rt, minted.key, START)  # afterwards nothing happens


@pytest.mark.parametrize("error", [Unavailable("the store is away"), ValueError("a mistake")])
def test_a_failed_record_of_use_is_logged_and_fails_no_request(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    usage = KeyUsage()
    minted = api_keys.mint(rt, ALL, KeyRequest(workspace_id="acme"))

    def failing(change: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(rt.storage, "write", failing)
        usage.note(rt, minted.key, START)
        deadline = time.monotonic() + 30
        while "could not store the last use of 1 keys" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    usage.note(rt, minted.key, START + timedelta(seconds=1))
    eventually(rt, minted.key.uid, START + timedelta(seconds=1))
    usage.close()
