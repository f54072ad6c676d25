"""Pauses between attempts to sign in."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from memservice.domain.errors import InvalidInput, Unauthorised
from memservice.domain.filters.ast import TRUE
from memservice.domain.records import SignInFailures
from memservice.services.members import accounts, links, pauses, sign_ins
from memservice.services.members.pauses import Paused
from memservice.services.members.visitors import Browser
from support.services.console import COMMAND_LINE, ELSEWHERE, HOME, PASSWORD, Console, Open


def fail(console: Console, name: str = "olga", browser: Browser = ELSEWHERE, **more: str) -> None:
    with pytest.raises(Unauthorised):
        console.sign_in(name, "wrong password", browser, **more)


def pause(console: Console, name: str = "olga", browser: Browser = ELSEWHERE, **more: str) -> int:
    """The seconds for which an attempt with the right password is refused."""
    with pytest.raises(Paused) as caught:
        console.sign_in(name, PASSWORD, browser, **more)
    return caught.value.retry_after


def attack(console: Console, number: int, name: str = "olga") -> None:
    """Failures from many addresses, as fast as the pauses permit."""
    for attempt in range(number):
        browser = Browser(f"192.0.2.{attempt % 250}")
        while True:
            try:
                console.sign_in(name, "wrong password", browser)
            except Paused as paused:
                console.clock.advance(seconds=paused.retry_after)
            except Unauthorised:
                break


def test_pauses_of_an_account_grow_to_half_a_minute(console: Console) -> None:
    seconds = []
    for _ in range(12):
        fail(console)
        with console.rt.storage.read() as tx:
            (row,) = tx.sign_ins.failures([pauses.of_account("olga").name])
        length = (row.paused_until - console.clock()).total_seconds()
        seconds.append(length)
        console.clock.advance(minutes=1)
    assert seconds == [0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30]


def test_an_attempt_in_a_pause_is_refused_unread_and_not_counted(console: Console) -> None:
    for _ in range(5):
        fail(console)
    assert pause(console) == 1
    assert pause(console) == 1
    console.clock.advance(seconds=1)
    assert console.is_open(console.sign_in("olga", browser=ELSEWHERE).session_id)


def test_an_account_that_does_not_exist_pauses_alike(console: Console) -> None:
    """Whether there is such an account cannot be learned from its pauses."""
    for _ in range(5):
        fail(console, "unknown")
    assert pause(console, "unknown") == 1


def test_an_address_pauses_whatever_the_account(console: Console) -> None:
    for number in range(20):
        fail(console, f"guess {number}")
    assert pause(console) == 1
    assert console.is_open(console.sign_in("olga", browser=HOME).session_id)


def test_pauses_of_an_address_grow_to_a_quarter_of_an_hour() -> None:
    subject = pauses.of_address("192.0.2.1")
    assert [subject.pause(failures).total_seconds() for failures in (19, 20, 21, 30, 10**9)] == [
        0,
        1,
        2,
        900,
        900,
    ]


def test_an_ipv6_subscriber_is_one_address() -> None:
    def of(address: str) -> str:
        return pauses.of_address(address).name

    assert of("2001:db8::1") == of("2001:db8::ffff:2") == of("2001:DB8::3%eth0")
    assert of("2001:db8:0:1::1") != of("2001:db8::1")
    assert of("::ffff:192.0.2.1") == of("192.0.2.1") != of("192.0.2.2")
    assert of("unix:") != of("")


@pytest.mark.slow
def test_an_attacker_does_not_lock_the_owner_out_of_a_known_browser(console: Console) -> None:
    browser_id = console.sign_in("olga").browser_id
    assert browser_id is not None
    attack(console, 40)
    assert pause(console) > 0
    assert console.is_open(console.sign_in("olga", browser_id=browser_id).session_id)


def test_an_attacker_who_shares_the_address_does_not_lock_the_owner_out(console: Console) -> None:
    """Behind a proxy that does not name its clients, all have one address."""
    browser_id = console.sign_in("olga").browser_id
    assert browser_id is not None
    for number in range(20):
        fail(console, f"guess {number}", HOME)
    assert pause(console, browser=HOME) > 0
    assert console.is_open(console.sign_in("olga", browser=HOME, browser_id=browser_id).session_id)


@pytest.mark.slow
def test_an_attacker_does_not_lock_the_owner_out_of_a_link(console: Console) -> None:
    attack(console, 40)
    link = links.for_member(console.rt, COMMAND_LINE, "olga")
    member = links.accept(console.rt, HOME, link.token, "", "another long password")
    assert console.is_open(sign_ins.after_link(console.rt, HOME, member).session_id)


@pytest.mark.slow
def test_no_pause_of_an_account_outlasts_half_a_minute(console: Console) -> None:
    attack(console, 40)
    console.clock.advance(seconds=30)
    assert console.is_open(console.sign_in("olga").session_id)


def test_a_known_browser_is_paused_by_its_own_failures(console: Console) -> None:
    browser_id = console.sign_in("olga").browser_id
    assert browser_id is not None
    for _ in range(5):
        fail(console, browser_id=browser_id)
    assert pause(console, browser_id=browser_id) == 1
    assert console.is_open(console.sign_in("olga").session_id)


def test_a_browser_is_known_for_its_own_account_only(console: Console) -> None:
    """A reader cannot guess the owner's password without the pauses of an unknown browser."""
    console.invite("rita", "reader")
    browser_id = console.sign_in("rita").browser_id
    assert browser_id is not None
    for _ in range(5):
        fail(console, browser_id=browser_id)
    assert pause(console, browser_id=browser_id) == 1


@pytest.mark.parametrize("forged", ["", ".", "x.y", "x", "\0.\0", "x." + "0" * 64])
def test_a_forged_browser_id_makes_no_browser_known(console: Console, forged: str) -> None:
    for _ in range(5):
        fail(console, browser_id=forged)
    assert pause(console, browser_id=forged) == 1


def test_attempts_at_the_same_moment_are_all_counted(console: Console) -> None:
    """Many guesses at once get no more tries than one after the other."""
    start = threading.Barrier(12)
    outcomes: list[str] = []

    def guess() -> None:
        start.wait(30)
        try:
            console.sign_in("olga", "wrong password", ELSEWHERE)
        except Paused:
            outcomes.append("paused")
        except Unauthorised:
            outcomes.append("wrong")

    threads = [threading.Thread(target=guess) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (outcomes.count("wrong"), outcomes.count("paused")) == (5, 7)


def test_pauses_are_shared_by_server_processes(console: Console, open_runtime: Open) -> None:
    other = open_runtime()
    other.storage = console.rt.storage
    for _ in range(5):
        fail(console)
    with pytest.raises(Paused):
        sign_ins.with_password(other, ELSEWHERE, "olga", PASSWORD)


def test_failures_are_forgotten_after_a_day(console: Console) -> None:
    attack(console, 20)
    console.clock.advance(hours=24, seconds=31)
    fail(console)
    with console.rt.storage.read() as tx:
        rows = tx.rows.page(SignInFailures, TRUE)
    assert [row.failures for row in rows] == [1, 1]


def test_a_success_takes_its_own_attempt_back_and_forgets_those_of_the_account(
    console: Console,
) -> None:
    for _ in range(4):
        fail(console, browser=HOME)
    console.sign_in("olga")
    with console.rt.storage.read() as tx:
        (row,) = tx.rows.page(SignInFailures, TRUE)
    assert row.subject == pauses.of_address(HOME.address).name
    assert row.failures == 4


def test_the_store_has_neither_names_nor_addresses_of_failures(console: Console) -> None:
    """A password that was typed into the field of the name does not become readable."""
    fail(console, "correct horse battery")
    with console.rt.storage.read() as tx:
        rows = repr(tx.rows.page(SignInFailures, TRUE))
    assert "horse" not in rows
    assert ELSEWHERE.address not in rows
    assert all("horse" not in repr(entry) for entry in console.log())


def test_the_present_password_cannot_be_guessed_with_a_stolen_session(console: Console) -> None:
    visitor = console.visitor(console.owner)
    for _ in range(5):
        with pytest.raises(InvalidInput):
            accounts.change_password(console.rt, visitor, HOME, "wrong", "another long password")
    with pytest.raises(Paused):
        accounts.change_password(console.rt, visitor, HOME, PASSWORD, "another long password")
    assert timedelta(minutes=15) == pauses.of_browser("x").longest
