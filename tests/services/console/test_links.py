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
from support.services.console import COMMAND_LINE, HOME, PASSWORD, Club, Open


def accept(club: Club, token: str, name: str = "new", password: str = PASSWORD) -> ConsoleMember:
    return links.accept(club.rt, HOME, token, name, password)


def test_the_set_up_link_makes_an_owner(club: Club) -> None:
    visitor = club.visitor(club.owner)
    assert (visitor.name, visitor.role, visitor.workspaces) == ("olga", Role.OWNER, None)
    assert club.actions() == [
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


def test_a_link_works_once(club: Club) -> None:
    token = links.set_up(club.rt, COMMAND_LINE).token
    accept(club, token, "second")
    with pytest.raises(NotFound, match="was used"):
        accept(club, token, "third")
    with pytest.raises(NotFound):
        links.read(club.rt, token)


def test_a_link_works_once_even_at_the_same_moment(club: Club) -> None:
    token = links.set_up(club.rt, COMMAND_LINE).token
    start = threading.Barrier(4)
    outcomes: list[str] = []

    def use(name: str) -> None:
        start.wait(30)
        try:
            accept(club, token, name)
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


def test_a_set_up_link_works_for_an_hour(club: Club) -> None:
    late, in_time = (links.set_up(club.rt, COMMAND_LINE).token for _ in range(2))
    club.clock.advance(minutes=59, seconds=59)
    assert links.read(club.rt, in_time).role is Role.OWNER
    club.clock.advance(seconds=1)
    for token in (late, in_time):
        with pytest.raises(NotFound):
            accept(club, token)


def test_a_new_set_up_link_replaces_the_one_before(club: Club) -> None:
    first, second = (links.set_up(club.rt, COMMAND_LINE).token for _ in range(2))
    with pytest.raises(NotFound):
        links.read(club.rt, first)
    assert links.read(club.rt, second).kind == "set-up"


def test_to_look_at_a_link_does_not_use_it_up(club: Club) -> None:
    token = links.set_up(club.rt, COMMAND_LINE).token
    for _ in range(3):
        links.read(club.rt, token)
    assert accept(club, token).name == "new"


def test_a_refused_form_does_not_use_the_link_up(club: Club) -> None:
    token = links.set_up(club.rt, COMMAND_LINE).token
    for name, password in (("new", "short"), ("", PASSWORD), ("olga", PASSWORD)):
        with pytest.raises(InvalidInput):
            accept(club, token, name, password)
    assert accept(club, token).name == "new"


def test_the_store_has_no_token(club: Club) -> None:
    token = links.set_up(club.rt, COMMAND_LINE).token
    with club.rt.storage.read() as tx:
        for link in tx.rows.page(ConsoleLink, TRUE):
            assert token not in repr(link)


def test_an_invitation_gives_its_role_and_workspaces(club: Club) -> None:
    for name in ("a", "b"):
        workspaces.get_or_create(club.rt, COMMAND_LINE, name, None, None)
    visitor = club.visitor(club.invite("rita", "reader", "b", "a"))
    assert (visitor.role, visitor.workspaces) == (Role.READER, ("a", "b"))


@pytest.mark.parametrize("role", ["", "admin", "OWNER", "owner "])
def test_an_invitation_has_a_known_role(club: Club, role: str) -> None:
    with pytest.raises(InvalidInput, match="reader, operator, owner"):
        links.invite(club.rt, club.visitor(club.owner), HOME, role)


def test_an_invitation_names_workspaces_that_exist(club: Club) -> None:
    visitor = club.visitor(club.owner)
    with pytest.raises(InvalidInput, match="no workspace 'nowhere'"):
        links.invite(club.rt, visitor, HOME, "reader", ["nowhere"])
    with pytest.raises(InvalidInput, match="1 to 100"):
        links.invite(club.rt, visitor, HOME, "reader", [])


def test_an_invitation_ends_with_the_rights_of_its_maker(club: Club) -> None:
    """A dismissed member cannot come back by an invitation."""
    other = club.invite("oscar", "owner")
    token = links.invite(club.rt, club.visitor(other), HOME, "owner").token
    uid = club.uid(other)
    owner = club.visitor(club.owner)
    accounts.change(club.rt, owner, HOME, uid, "operator", None)
    with pytest.raises(NotFound):
        accept(club, token)
    accounts.change(club.rt, owner, HOME, uid, "owner", None)
    assert links.read(club.rt, token).role is Role.OWNER
    accounts.deactivate(club.rt, owner, HOME, uid)
    with pytest.raises(NotFound):
        accept(club, token)


def test_a_withdrawn_invitation_does_not_work(club: Club) -> None:
    visitor = club.visitor(club.owner)
    made = links.invite(club.rt, visitor, HOME, "reader")
    assert [link.uid for link in links.pending(club.rt, visitor.principal)] == [made.link.uid]
    links.withdraw(club.rt, visitor, HOME, made.link.uid)
    assert links.pending(club.rt, visitor.principal) == []
    with pytest.raises(NotFound):
        accept(club, made.token)
    with pytest.raises(NotFound):
        links.withdraw(club.rt, visitor, HOME, made.link.uid)


def test_a_link_for_a_new_password_ends_the_sessions(club: Club) -> None:
    reader = club.invite("rita", "reader")
    made = links.new_password(club.rt, club.visitor(club.owner), HOME, club.uid(reader))
    opened = links.read(club.rt, made.token)
    assert (opened.kind, opened.name, opened.role) == ("new-password", "rita", None)
    member = accept(club, made.token, "ignored", "another long password")
    assert member.name == "rita"
    assert not club.is_open(reader)
    with pytest.raises(Unauthorised):
        club.sign_in("rita")
    assert club.is_open(club.sign_in("rita", "another long password").session_id)


def test_the_command_line_gives_a_member_a_new_password(club: Club) -> None:
    made = links.for_member(club.rt, COMMAND_LINE, " OLGA ")
    accept(club, made.token, "", "another long password")
    assert club.is_open(club.sign_in("olga", "another long password").session_id)
    with pytest.raises(NotFound):
        links.for_member(club.rt, COMMAND_LINE, "unknown")


def test_a_deactivated_member_gets_no_new_password(club: Club) -> None:
    reader = club.invite("rita", "reader")
    owner, uid = club.visitor(club.owner), club.uid(reader)
    made = links.new_password(club.rt, owner, HOME, uid)
    accounts.deactivate(club.rt, owner, HOME, uid)
    with pytest.raises(NotFound):
        accept(club, made.token)
    with pytest.raises(Conflict):
        links.new_password(club.rt, owner, HOME, uid)


@pytest.mark.parametrize(
    "name",
    ["", "   ", "x" * 201, "a\0b", "a\u202eb", "everyone", "memservice console", "Key abc"],
)
def test_a_name_can_be_read_and_imitates_nothing(club: Club, name: str) -> None:
    with pytest.raises(InvalidInput):
        accept(club, links.set_up(club.rt, COMMAND_LINE).token, name)


def test_names_that_look_the_same_are_the_same(club: Club) -> None:
    with pytest.raises(InvalidInput, match="Another member"):
        accept(club, links.set_up(club.rt, COMMAND_LINE).token, " \uff2f\uff4c\uff47\uff41 ")


@pytest.mark.parametrize(
    "password", ["short", "a" * 11, "a" * 201, "ababababababab", "Long-Member-Name"]
)
def test_a_password_cannot_be_guessed_at_once(club: Club, password: str) -> None:
    with pytest.raises(InvalidInput):
        accept(club, links.set_up(club.rt, COMMAND_LINE).token, "long-member-name", password)


def test_keys_make_no_members(club: Club) -> None:
    """Not even an admin key: members would outlive its revocation."""
    with pytest.raises(Unauthorised):
        links.set_up(club.rt, Principal(admin=True))
    with pytest.raises(Unauthorised):
        accounts.browse(club.rt, Principal(admin=True))


def test_there_are_no_members_while_authentication_is_off(open_runtime: Open) -> None:
    """An account that anyone could make would work once authentication is on."""
    rt = open_runtime(AUTH_USE_AUTH="false")
    with pytest.raises(Disabled, match="AUTH_USE_AUTH"):
        links.set_up(rt, COMMAND_LINE)
