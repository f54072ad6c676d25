"""Sessions: how they begin, what they are worth, and what ends them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.errors import Disabled, InvalidInput, NotFound, Unauthorised
from memservice.domain.filters.ast import TRUE, equals
from memservice.domain.records import BrowserSession, ConsoleMember
from memservice.services import deletion, workspaces
from memservice.services.auth import api_keys
from memservice.services.auth.permissions import (
    OF_ADMIN_KEY,
    OF_WORKSPACE_KEY,
    Permission,
)
from memservice.services.members import accounts, passwords, sign_ins, visitors
from support.services.console import COMMAND_LINE, ELSEWHERE, HOME, PASSWORD, Console, Open


def stored(console: Console) -> list[BrowserSession]:
    with console.rt.storage.read() as tx:
        return tx.rows.page(BrowserSession, TRUE)


# --- with a password


def test_a_member_signs_in_by_any_spelling_of_the_name(console: Console) -> None:
    for name in ("olga", "OLGA", "  Olga "):
        assert console.visitor(console.sign_in(name).session_id).name == "olga"


@pytest.mark.parametrize(
    ("name", "password"),
    [("olga", "wrong password"), ("olga", ""), ("unknown", PASSWORD), ("", ""), ("a\0b", "x")],
)
def test_every_refusal_says_the_same(console: Console, name: str, password: str) -> None:
    with pytest.raises(Unauthorised) as caught:
        console.sign_in(name, password)
    assert str(caught.value) == sign_ins.WRONG


@pytest.mark.slow
def test_an_unknown_account_costs_as_much_as_a_wrong_password(
    hashes_at_full_cost: None, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: each attempt verifies exactly one hash of the same parameters."""
    verified: list[str] = []

    class Counting:
        def verify(self, password_hash: str, password: bytes) -> bool:
            verified.append(password_hash.rpartition("$")[0].rpartition("$")[0])
            return hasher.verify(password_hash, password)

        def __getattr__(self, name: str) -> object:
            return getattr(hasher, name)

    hasher = passwords._hasher()
    monkeypatch.setattr(passwords, "_hasher", Counting)
    for name in ("olga", "unknown"):
        with pytest.raises(Unauthorised):
            console.sign_in(name, "wrong password")
    assert verified == ["$argon2id$v=19$m=19456,t=2,p=1"] * 2


def test_an_unknown_account_causes_the_same_work_in_the_store(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: the entry of the audit log took 2 ms, for names that exist alone."""
    calls: list[str] = []
    for name in ("read", "write"):
        run = getattr(console.rt.storage, name)

        def counted(
            *arguments: object, run: Callable[..., object] = run, name: str = name
        ) -> object:
            calls.append(name)
            return run(*arguments)

        monkeypatch.setattr(console.rt.storage, name, counted)
    work = []
    for account in ("olga", "unknown", "a\0b"):
        calls.clear()
        before = len(console.log())
        with pytest.raises(Unauthorised):
            console.sign_in(account, "wrong password")
        work.append((list(calls), len(console.log()) - before))
    assert work[0] == work[1] == work[2]


def test_a_typed_name_that_no_member_has_is_not_kept(console: Console) -> None:
    with pytest.raises(Unauthorised):
        console.sign_in("my secret passphrase", "x")
    assert (console.log()[-1].actor, console.log()[-1].actor_uid) == ("unknown name", None)
    assert "passphrase" not in str(console.log())
    with pytest.raises(InvalidInput):
        console.invite("Unknown Name", "reader")


def test_a_session_ends_after_twelve_hours(console: Console) -> None:
    session_id = console.sign_in("olga").session_id
    console.clock.advance(hours=11, minutes=59)
    assert console.is_open(session_id)
    console.clock.advance(minutes=1)
    assert not console.is_open(session_id)


def test_the_store_has_no_session_id(console: Console) -> None:
    session_id = console.sign_in("olga").session_id
    assert len(session_id) == 43
    assert all(session_id not in repr(row) for row in stored(console))


@pytest.mark.parametrize("forged", [None, "", "x", "x" * 43, "\0", "\ud800", "olga"])
def test_a_forged_session_id_opens_nothing(console: Console, forged: str | None) -> None:
    assert not console.is_open(forged)


def test_what_the_store_has_is_no_session_id(console: Console) -> None:
    """A copy of the store opens no session."""
    for row in stored(console):
        for value in (row.digest, row.uid, row.member_uid):
            assert not console.is_open(value)


def test_a_session_id_of_another_purpose_opens_nothing(console: Console) -> None:
    browser_id = console.sign_in("olga").browser_id
    assert browser_id is not None
    assert not console.is_open(browser_id)
    assert not console.is_open(browser_id.partition(".")[0])


def test_each_sign_in_makes_a_new_session_and_ends_the_one_before(console: Console) -> None:
    """A session id that was planted in the browser is worth nothing after the sign-in."""
    planted = console.invite("mallory", "reader")
    signed_in = console.sign_in("olga", previous=planted)
    assert signed_in.session_id != planted
    assert not console.is_open(planted)
    assert console.visitor(signed_in.session_id).name == "olga"
    unknown = console.sign_in("olga", previous="chosen by an attacker")
    assert not console.is_open("chosen by an attacker")
    assert console.is_open(unknown.session_id)


def test_changing_the_secret_ends_sessions_unless_the_old_one_is_kept(
    console: Console, open_runtime: Open, local_storage_name: str
) -> None:
    session_id = console.sign_in("olga").session_id
    storage = console.rt.storage
    changed = open_runtime(AUTH_JWT_SECRET="n" * 40)
    unchanged = open_runtime(AUTH_JWT_SECRET="n" * 40, AUTH_JWT_SECRET_PREVIOUS="s" * 40)
    for runtime in (changed, unchanged):
        runtime.storage = storage
    assert visitors.visitor_of(changed, session_id) is None
    assert visitors.visitor_of(unchanged, session_id) is not None


@pytest.mark.slow
def test_a_hash_of_older_parameters_is_replaced_at_the_next_sign_in(
    hashes_at_full_cost: None, console: Console
) -> None:
    from argon2 import PasswordHasher

    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    console.rt.storage.write(
        lambda tx: tx.rows.change(ConsoleMember, equals(name="olga"), password_hash=weak)
    )
    console.sign_in("olga")
    with console.rt.storage.read() as tx:
        member = tx.console_members.by_name("olga")
    assert member is not None
    assert not passwords.is_outdated(member.password_hash)
    assert console.is_open(console.sign_in("olga").session_id)


def test_a_password_that_changes_while_it_is_verified_opens_nothing(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = passwords.verify

    def slow(password_hash: str | None, password: str) -> bool:
        right = verify(password_hash, password)
        console.rt.storage.write(
            lambda tx: tx.rows.change(ConsoleMember, equals(name="olga"), password_hash="new")
        )
        return right

    monkeypatch.setattr(passwords, "verify", slow)
    before = len(stored(console))
    with pytest.raises(Unauthorised):
        console.sign_in("olga")
    assert len(stored(console)) == before


# --- ending sessions


def test_signing_out_ends_the_session(console: Console) -> None:
    here, there = console.sign_in("olga").session_id, console.sign_in("olga").session_id
    sign_ins.sign_out(console.rt, console.visitor(here), HOME)
    assert (console.is_open(here), console.is_open(there)) == (False, True)


def test_a_member_lists_and_ends_its_own_sessions(console: Console) -> None:
    here = console.sign_in("olga").session_id
    there = console.sign_in("olga", browser=ELSEWHERE).session_id
    visitor = console.visitor(here)
    page = sign_ins.sessions(console.rt, visitor)
    assert {(row.address, row.client) for row in page} == {
        ("203.0.113.7", "Firefox"),
        ("198.51.100.9", "curl"),
    }
    sign_ins.end(console.rt, visitor, HOME, console.visitor(there).session_uid or "")
    assert (console.is_open(here), console.is_open(there)) == (True, False)


def test_signing_out_everywhere_ends_all_sessions_of_the_member_alone(console: Console) -> None:
    reader = console.invite("rita", "reader")
    here, there = (console.sign_in("olga").session_id for _ in range(2))
    assert sign_ins.sign_out_everywhere(console.rt, console.visitor(here), HOME, but_here=True) == 2
    assert (console.is_open(here), console.is_open(there)) == (True, False)
    assert sign_ins.sign_out_everywhere(console.rt, console.visitor(here), HOME) == 1
    assert (console.is_open(here), console.is_open(reader)) == (False, True)


def test_another_members_session_cannot_be_ended(console: Console) -> None:
    reader = console.invite("rita", "reader")
    owners = console.visitor(console.owner).session_uid or ""
    with pytest.raises(NotFound):
        sign_ins.end(console.rt, console.visitor(reader), HOME, owners)
    assert console.is_open(console.owner)


def test_deactivating_a_member_ends_its_sessions_at_once(console: Console) -> None:
    reader = console.invite("rita", "reader")
    accounts.deactivate(console.rt, console.visitor(console.owner), HOME, console.uid(reader))
    assert not console.is_open(reader)
    with pytest.raises(Unauthorised):
        console.sign_in("rita")


def test_a_session_of_a_deactivated_member_opens_nothing_even_if_it_is_still_stored(
    console: Console,
) -> None:
    reader = console.invite("rita", "reader")
    console.rt.storage.write(
        lambda tx: tx.rows.change(ConsoleMember, equals(name="rita"), state="deactivated")
    )
    assert not console.is_open(reader)


def test_changing_the_password_ends_all_other_sessions(console: Console) -> None:
    here, there = (console.sign_in("olga").session_id for _ in range(2))
    visitor = console.visitor(here)
    accounts.change_password(console.rt, visitor, HOME, PASSWORD, "another long password")
    assert (console.is_open(here), console.is_open(there)) == (True, False)
    with pytest.raises(Unauthorised):
        console.sign_in("olga")
    assert console.is_open(console.sign_in("olga", "another long password").session_id)


def test_changing_the_password_needs_the_present_one(console: Console) -> None:
    with pytest.raises(InvalidInput, match="not your current password"):
        accounts.change_password(
            console.rt, console.visitor(console.owner), HOME, "wrong", "another long password"
        )


# --- with an API key


def test_a_session_with_a_key_has_the_bounds_of_the_key(console: Console) -> None:
    workspaces.get_or_create(console.rt, COMMAND_LINE, "w", None, None)
    for names, permissions, limit in (
        ({}, OF_ADMIN_KEY, None),
        ({"workspace_id": "w"}, OF_WORKSPACE_KEY, ("w",)),
    ):
        minted = console.key(**names)
        visitor = console.visitor(sign_ins.with_key(console.rt, HOME, minted.token).session_id)
        assert visitor.name == f"key {minted.key.uid}"
        assert visitor.permissions == permissions
        assert visitor.workspaces == limit
        assert not visitor.may(Permission.MANAGE_MEMBERS)
        assert not visitor.may(Permission.VIEW_AUDIT_LOG)


def test_revoking_a_key_ends_its_sessions_at_once(console: Console) -> None:
    minted = console.key()
    session_id = sign_ins.with_key(console.rt, HOME, minted.token).session_id
    api_keys.revoke(console.rt, COMMAND_LINE, minted.key.uid)
    assert not console.is_open(session_id)
    with pytest.raises(Unauthorised):
        sign_ins.with_key(console.rt, HOME, minted.token)


def test_revoking_a_token_of_another_server_ends_its_sessions(console: Console) -> None:
    token = api_keys.signer_of(console.rt.settings).sign(Claims(workspace="w"))
    session_id = sign_ins.with_key(console.rt, HOME, token).session_id
    assert console.is_open(session_id)
    api_keys.revoke_token(console.rt, COMMAND_LINE, token)
    assert not console.is_open(session_id)


def test_a_session_ends_with_its_key(console: Console) -> None:
    expires_at = console.clock() + timedelta(hours=1)
    minted = api_keys.mint(console.rt, COMMAND_LINE, api_keys.KeyRequest(), expires_at)
    session_id = sign_ins.with_key(console.rt, HOME, minted.token).session_id
    console.clock.advance(minutes=59)
    assert console.is_open(session_id)
    console.clock.advance(minutes=1)
    assert not console.is_open(session_id)


def test_a_session_ends_with_the_workspace_of_its_key(console: Console) -> None:
    workspaces.get_or_create(console.rt, COMMAND_LINE, "w", None, None)
    session_id = sign_ins.with_key(console.rt, HOME, console.key(workspace_id="w").token).session_id
    deletion.delete_workspace(console.rt, COMMAND_LINE, "w", with_sessions=True)
    assert not console.is_open(session_id)


def test_a_session_with_a_key_of_the_old_secret_ends_when_that_is_dropped(
    console: Console, open_runtime: Open
) -> None:
    token = console.key().token
    rotating = open_runtime(AUTH_JWT_SECRET="n" * 40, AUTH_JWT_SECRET_PREVIOUS="s" * 40)
    rotated = open_runtime(AUTH_JWT_SECRET="n" * 40)
    for runtime in (rotating, rotated):
        runtime.storage = console.rt.storage
    session_id = sign_ins.with_key(rotating, HOME, token).session_id
    assert visitors.visitor_of(rotating, session_id) is not None
    assert visitors.visitor_of(rotated, session_id) is None


@pytest.mark.parametrize("key", ["", "x", "a.b.c", "\0", "Bearer x"])
def test_what_is_no_key_is_refused(console: Console, key: str) -> None:
    with pytest.raises(Unauthorised, match="not a valid API key"):
        sign_ins.with_key(console.rt, HOME, key)


@pytest.mark.parametrize(
    "claims",
    [
        Claims(workspace="w", peer="p"),
        Claims(workspace="w", session="s"),
        Claims(app_uid="a", user_uid="u"),
        Claims(collection_uid="c"),
        Claims(),
    ],
)
def test_a_key_of_less_than_a_workspace_is_refused(console: Console, claims: Claims) -> None:
    token = api_keys.signer_of(console.rt.settings).sign(claims)
    with pytest.raises(Unauthorised, match="a whole workspace"):
        sign_ins.with_key(console.rt, HOME, token)


def test_there_is_no_sign_in_while_authentication_is_off(open_runtime: Open) -> None:
    rt = open_runtime(AUTH_USE_AUTH="false")
    with pytest.raises(Disabled):
        sign_ins.with_password(rt, HOME, "olga", PASSWORD)
    with pytest.raises(Disabled):
        sign_ins.with_key(rt, HOME, "x")
    assert visitors.visitor_of(rt, "x") is None


def test_a_session_without_member_and_key_opens_nothing(console: Console) -> None:
    (row, *_) = stored(console)
    console.rt.storage.write(lambda tx: tx.rows.put([replace(row, member_uid=None)]))
    assert not console.is_open(console.owner)
