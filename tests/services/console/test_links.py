"""One-time links: the set-up, invitations, new passwords."""

from __future__ import annotations

import threading

import pytest

from memservice.domain.errors import Conflict, Disabled, InvalidInput, NotFound, Unauthorised
from memservice.domain.filters.ast import TRUE
from memservice.domain.records import ConsoleLink, ConsoleMember
from memservice.services import workspaces
from memservice.services.auth.permissions import Role
from memservice.services.auth.principal import Principal
from memservice.services.members import accounts, links
from support.services.console import COMMAND_LINE, HOME, PASSWORD, Console, Open


def accept(
    console: Console, token: str, name: str = "new", password: str = PASSWORD
) -> ConsoleMember:
    return links.accept(console.rt, HOME, token, name, password)


def test_the_set_up_link_makes_an_owner(console: Console) -> None:
    visitor = console.visitor(console.owner)
    assert (visitor.name, visitor.role, visitor.workspaces) == ("olga", Role.OWNER, None)
    assert console.actions() == [
        ("memservice console", "link.create"),
        ("olga", "set-up.accept"),
        ("olga", "session.sign-in"),
    ]


def test_a_first_set_up_link_is_made_while_there_is_no_member_only(open_runtime: Open) -> None:
    rt = open_runtime()
    assert links.first_set_up(rt, COMMAND_LINE) is not None
    second = links.first_set_up(rt, COMMAND_LINE)
    assert second is not None
    links.accept(rt, HOME, second.token, "olga", PASSWORD)
    assert links.first_set_up(rt, COMMAND_LINE) is None


def test_a_link_works_once(console: Console) -> None:
    token = links.set_up(console.rt, COMMAND_LINE).token
    accept(console, token, "second")
    with pytest.raises(NotFound, match="was used"):
        accept(console, token, "third")
    with pytest.raises(NotFound):
        links.read(console.rt, token)


def test_a_link_works_once_even_at_the_same_moment(console: Console) -> None:
    token = links.set_up(console.rt, COMMAND_LINE).token
    start = threading.Barrier(4)
    outcomes: list[str] = []

    def use(name: str) -> None:
        start.wait(30)
        try:
            accept(console, token, name)
        except NotFound:
            outcomes.append("refused")
        else:
            outcomes.append("made")

    threads = [threading.Thread(target=use, args=(f"m{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["made", "refused", "refused", "refused"]


def test_a_set_up_link_works_for_an_hour(console: Console) -> None:
    late, in_time = (links.set_up(console.rt, COMMAND_LINE).token for _ in range(2))
    console.clock.advance(minutes=59, seconds=59)
    assert links.read(console.rt, in_time).role is Role.OWNER
    console.clock.advance(seconds=1)
    for token in (late, in_time):
        with pytest.raises(NotFound):
            accept(console, token)


def test_a_new_set_up_link_replaces_the_one_before(console: Console) -> None:
    first, second = (links.set_up(console.rt, COMMAND_LINE).token for _ in range(2))
    with pytest.raises(NotFound):
        links.read(console.rt, first)
    assert links.read(console.rt, second).kind == "set-up"


def test_to_look_at_a_link_does_not_use_it_up(console: Console) -> None:
    token = links.set_up(console.rt, COMMAND_LINE).token
    for _ in range(3):
        links.read(console.rt, token)
    assert accept(console, token).name == "new"


def test_a_refused_form_does_not_use_the_link_up(console: Console) -> None:
    token = links.set_up(console.rt, COMMAND_LINE).token
    for name, password in (("new", "short"), ("", PASSWORD), ("olga", PASSWORD)):
        with pytest.raises(InvalidInput):
            accept(console, token, name, password)
    assert accept(console, token).name == "new"


def test_the_store_has_no_token(console: Console) -> None:
    token = links.set_up(console.rt, COMMAND_LINE).token
    with console.rt.storage.read() as tx:
        for link in tx.rows.page(ConsoleLink, TRUE):
            assert token not in repr(link)


def test_an_invitation_gives_its_role_and_workspaces(console: Console) -> None:
    for name in ("a", "b"):
        workspaces.get_or_create(console.rt, COMMAND_LINE, name, None, None)
    visitor = console.visitor(console.invite("rita", "reader", "b", "a"))
    assert (visitor.role, visitor.workspaces) == (Role.READER, ("a", "b"))


@pytest.mark.parametrize("role", ["", "admin", "OWNER", "owner "])
def test_an_invitation_has_a_known_role(console: Console, role: str) -> None:
    with pytest.raises(InvalidInput, match="reader, operator, owner"):
        links.invite(console.rt, console.visitor(console.owner), HOME, role)


def test_an_invitation_names_workspaces_that_exist(console: Console) -> None:
    visitor = console.visitor(console.owner)
    with pytest.raises(InvalidInput, match="no workspace 'nowhere'"):
        links.invite(console.rt, visitor, HOME, "reader", ["nowhere"])
    with pytest.raises(InvalidInput, match="1 to 100"):
        links.invite(console.rt, visitor, HOME, "reader", [])


def test_an_invitation_ends_with_the_rights_of_its_maker(console: Console) -> None:
    """A dismissed member cannot come back by an invitation."""
    other = console.invite("oscar", "owner")
    token = links.invite(console.rt, console.visitor(other), HOME, "owner").token
    uid = console.uid(other)
    owner = console.visitor(console.owner)
    accounts.change(console.rt, owner, HOME, uid, "operator", None)
    with pytest.raises(NotFound):
        accept(console, token)
    accounts.change(console.rt, owner, HOME, uid, "owner", None)
    assert links.read(console.rt, token).role is Role.OWNER
    accounts.deactivate(console.rt, owner, HOME, uid)
    with pytest.raises(NotFound):
        accept(console, token)


def test_a_withdrawn_invitation_does_not_work(console: Console) -> None:
    visitor = console.visitor(console.owner)
    invitation = links.invite(console.rt, visitor, HOME, "reader")
    assert [link.uid for link in links.pending(console.rt, visitor.principal)] == [
        invitation.link.uid
    ]
    links.withdraw(console.rt, visitor, HOME, invitation.link.uid)
    assert links.pending(console.rt, visitor.principal) == []
    with pytest.raises(NotFound):
        accept(console, invitation.token)
    with pytest.raises(NotFound):
        links.withdraw(console.rt, visitor, HOME, invitation.link.uid)


def test_a_link_for_a_new_password_ends_the_sessions(console: Console) -> None:
    reader = console.invite("rita", "reader")
    link = links.new_password(console.rt, console.visitor(console.owner), HOME, console.uid(reader))
    opened = links.read(console.rt, link.token)
    assert (opened.kind, opened.name, opened.role) == ("new-password", "rita", None)
    member = accept(console, link.token, "ignored", "another long password")
    assert member.name == "rita"
    assert not console.is_open(reader)
    with pytest.raises(Unauthorised):
        console.sign_in("rita")
    assert console.is_open(console.sign_in("rita", "another long password").session_id)


def test_the_command_line_gives_a_member_a_new_password(console: Console) -> None:
    link = links.for_member(console.rt, COMMAND_LINE, " OLGA ")
    accept(console, link.token, "", "another long password")
    assert console.is_open(console.sign_in("olga", "another long password").session_id)
    with pytest.raises(NotFound):
        links.for_member(console.rt, COMMAND_LINE, "unknown")


def test_a_deactivated_member_gets_no_new_password(console: Console) -> None:
    reader = console.invite("rita", "reader")
    owner, uid = console.visitor(console.owner), console.uid(reader)
    link = links.new_password(console.rt, owner, HOME, uid)
    accounts.deactivate(console.rt, owner, HOME, uid)
    with pytest.raises(NotFound):
        accept(console, link.token)
    with pytest.raises(Conflict):
        links.new_password(console.rt, owner, HOME, uid)


@pytest.mark.parametrize(
    "name",
    ["", "   ", "x" * 201, "a\0b", "a\u202eb", "everyone", "memservice console", "Key abc"],
)
def test_a_name_can_be_read_and_imitates_nothing(console: Console, name: str) -> None:
    with pytest.raises(InvalidInput):
        accept(console, links.set_up(console.rt, COMMAND_LINE).token, name)


def test_names_that_look_the_same_are_the_same(console: Console) -> None:
    with pytest.raises(InvalidInput, match="Another member"):
        accept(console, links.set_up(console.rt, COMMAND_LINE).token, " \uff2f\uff4c\uff47\uff41 ")


@pytest.mark.parametrize(
    "password", ["short", "a" * 11, "a" * 201, "ababababababab", "Long-Member-Name"]
)
def test_a_password_cannot_be_guessed_at_once(console: Console, password: str) -> None:
    with pytest.raises(InvalidInput):
        accept(console, links.set_up(console.rt, COMMAND_LINE).token, "long-member-name", password)


def test_keys_make_no_members(console: Console) -> None:
    """Not even an admin key: members would outlive its revocation."""
    with pytest.raises(Unauthorised):
        links.set_up(console.rt, Principal(admin=True))
    with pytest.raises(Unauthorised):
        accounts.browse(console.rt, Principal(admin=True))


def test_there_are_no_members_while_authentication_is_off(open_runtime: Open) -> None:
    """An account that anyone could make would work once authentication is on."""
    rt = open_runtime(AUTH_USE_AUTH="false")
    with pytest.raises(Disabled, match="AUTH_USE_AUTH"):
        links.set_up(rt, COMMAND_LINE)
