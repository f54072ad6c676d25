"""Members of a session, and the limit of observers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memservice.domain.errors import InvalidInput, Refused
from memservice.domain.records import SCOPE, Member
from memservice.services import sessions
from memservice.services.sessions import MemberConfig, SessionFields
from memservice.spi.storage import Transaction
from services.conftest import OpenServices
from support.services.services import ME, WORKSPACE, Services

OBSERVES = MemberConfig(observe_others=True)


def several(*names: str) -> dict[str, MemberConfig]:
    return dict.fromkeys(names, OBSERVES)


@pytest.fixture
def full(open_services: OpenServices) -> Services:
    """Three observers, as many as may be, one scope, and one member that does not observe."""
    services = open_services(SESSION_OBSERVERS_LIMIT="3")
    sessions.get_or_create(
        services.rt,
        ME,
        WORKSPACE,
        "s",
        SessionFields(members={**several("a", "b", "c"), "quiet": MemberConfig()}, scopes=["mine"]),
    )
    return services


def config(services: Services, peer: str) -> MemberConfig:
    return sessions.get_peer_config(services.rt, ME, WORKSPACE, "s", peer)


def count_writes(services: Services) -> Callable[[], int]:
    """A function that returns the number of writing transactions from now on."""
    storage, writes = services.rt.storage, []
    write = storage.write

    def counted(fn: Callable[[Transaction], Any]) -> Any:
        writes.append(fn)
        return write(fn)

    storage.write = counted  # type: ignore[method-assign]
    return lambda: len(writes)


def inside(services: Services) -> dict[str, Member]:
    with services.rt.storage.read() as tx:
        session = tx.workspaces.locate(WORKSPACE, session_id="s").session
        assert session is not None
        return {member.peer: member for member in tx.members.of_session(session.key)}


def test_no_request_adds_an_observer_beyond_the_limit(full: Services) -> None:
    before = inside(full)
    with pytest.raises(Refused):
        sessions.get_or_create(full.rt, ME, WORKSPACE, "s", SessionFields(members=several("d")))
    with pytest.raises(Refused):
        sessions.add_peers(full.rt, ME, WORKSPACE, "s", several("d"))
    with pytest.raises(Refused):
        sessions.set_peers(full.rt, ME, WORKSPACE, "s", several("a", "b", "c", "d"))
    with pytest.raises(Refused):
        sessions.set_peer_config(full.rt, ME, WORKSPACE, "s", "quiet", OBSERVES)
    full.peer("stranger")
    with pytest.raises(Refused):
        sessions.set_peer_config(full.rt, ME, WORKSPACE, "s", "stranger", OBSERVES)
    assert inside(full) == before


def test_members_that_left_do_not_count_until_they_return(full: Services) -> None:
    full.leave("s", "a")
    sessions.add_peers(full.rt, ME, WORKSPACE, "s", several("d"))
    with pytest.raises(Refused):
        sessions.add_peers(full.rt, ME, WORKSPACE, "s", several("a"))
    full.join("s", "a")
    assert config(full, "a") == MemberConfig(), "one that returns takes the new configuration"
    full.leave("s", "b")
    sessions.set_peer_config(full.rt, ME, WORKSPACE, "s", "b", MemberConfig(observe_me=False))
    assert config(full, "b") == MemberConfig(False, True), (
        "those that left are configured, and stay outside"
    )
    assert "b" not in inside(full)


def test_an_author_that_returns_by_writing_gets_the_default_configuration(full: Services) -> None:
    full.leave("s", "a")
    full.say("s", ("a", "I am back"))
    assert config(full, "a") == MemberConfig()
    assert inside(full)["a"].left_at is None


def test_setting_members_replaces_ordinary_members_and_keeps_scopes(full: Services) -> None:
    sessions.set_peers(full.rt, ME, WORKSPACE, "s", several("d", "e", "f"))
    assert {name: member.kind == SCOPE for name, member in inside(full).items()} == {
        "scope.mine": True,
        "d": False,
        "e": False,
        "f": False,
    }
    sessions.set_peers(
        full.rt, ME, WORKSPACE, "s", {"d": MemberConfig(), "a": MemberConfig(observe_me=True)}
    )
    assert config(full, "d") == OBSERVES, "one that stays keeps its configuration"
    assert config(full, "a") == MemberConfig(observe_me=True)


def test_changes_without_a_new_observer_are_accepted_at_the_limit(full: Services) -> None:
    sessions.add_peers(full.rt, ME, WORKSPACE, "s", {**several("a"), "more": MemberConfig()})
    sessions.set_peer_config(full.rt, ME, WORKSPACE, "s", "a", OBSERVES)
    assert "more" in inside(full)


@pytest.mark.slow
def test_writes_do_not_read_all_members_of_a_large_session(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing, joining and leaving read only the memberships concerned, not all members of the
    session."""
    crowd = [f"peer{number}" for number in range(300)]
    services.join("s", *crowd)
    services.say("s", ("ann", "hello"))
    with services.rt.storage.read() as tx:
        kind = type(tx.rows)
    real, read = kind.page, [0]

    def page(self: Any, record: type[Any], *args: Any, **options: Any) -> list[Any]:
        rows = real(self, record, *args, **options)
        read[0] += len(rows) if record is Member else 0
        return rows

    monkeypatch.setattr(kind, "page", page)
    for job in (
        lambda: services.say("s", ("ann", "again"), ("peer7", "and I")),
        lambda: services.say("s", ("newcomer", "hello")),
        lambda: services.join("s", "peer8", "another"),
        lambda: sessions.add_peers(services.rt, ME, WORKSPACE, "s", several("observer")),
        lambda: services.leave("s", "peer9", "nobody"),
    ):
        read[0] = 0
        job()
        assert read[0] <= 5


def test_a_write_reads_memberships_once(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session's row is locked meanwhile."""
    services.say("s", ("ann", "hello"))
    with services.rt.storage.read() as tx:
        kind = type(tx.rows)
    real, read = kind.page, list[type[Any]]()

    def page(self: Any, record: type[Any], *args: Any, **options: Any) -> list[Any]:
        read.append(record)
        return real(self, record, *args, **options)

    monkeypatch.setattr(kind, "page", page)
    for author in ("ann", "newcomer"):
        read.clear()
        services.say("s", (author, "again"))
        assert read.count(Member) == 1


def test_a_request_for_a_session_with_its_members_writes_nothing(full: Services) -> None:
    """It is the most frequent one. Whoever is missing, or left, joins nevertheless."""
    fields = SessionFields(members=several("a", "b"))

    def ask(fields: SessionFields) -> set[str]:
        session, created = sessions.get_or_create(full.rt, ME, WORKSPACE, "s", fields)
        assert (session.slug, created) == ("s", False)
        return set(inside(full))

    before = inside(full)
    (scope,) = [name for name, member in before.items() if member.kind == SCOPE]
    writes = count_writes(full)
    assert ask(fields) == set(before)
    assert inside(full) == before
    assert writes() == 0
    sessions.remove_peers(full.rt, ME, WORKSPACE, "s", ["a"])
    assert "a" not in inside(full)
    assert "a" in ask(fields)
    assert "new" in ask(SessionFields(members={"new": MemberConfig()}))
    assert writes() >= 3
    with pytest.raises(InvalidInput):
        ask(SessionFields(members={scope: MemberConfig()}))
