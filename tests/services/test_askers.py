"""A question in the first person is about the one who asks it: in a talk with an assistant, that
one's messages are preferred."""

from __future__ import annotations

from typing import Any

from memservice.domain.records import Message
from memservice.services.auth.principal import Principal
from memservice.services.retrieval import search
from memservice.services.retrieval.explain import Explained
from memservice.services.retrieval.search import SearchOptions
from services.conftest import OpenServices
from support.services.services import ME, WORKSPACE, Services

ANSWER = "The budget of a long run depends on your long run. Plan a budget. " * 3
QUESTION = "What is my budget for the long run?"


def explain(
    services: Services, query: str, limit: int = 10, principal: Principal = ME, **where: Any
) -> Explained[Message]:
    return search.explain(services.rt, principal, WORKSPACE, SearchOptions(query, limit), **where)


def authors(services: Services, query: str, limit: int = 3) -> list[str]:
    return [row.author for row in explain(services, query, limit).rows]


def preferred(services: Services, query: str, principal: Principal = ME, **where: Any) -> set[str]:
    """The authors with a boost."""
    result = explain(services, query, 100, principal, **where)
    return {row.author for row, parts in result.explained if parts.boosts.asker > 0}


def talk(services: Services, session: str = "s") -> None:
    for number in range(4):
        services.say(
            f"{session}{number}",
            ("user", f"My knee is fine. The long run may cost {number + 80} dollars."),
            ("assistant", f"{ANSWER} That is answer {number}."),
        )


def test_the_asker_is_preferred_to_the_assistant(services: Services) -> None:
    talk(services)
    assert preferred(services, QUESTION) == {"user"}
    assert authors(services, "budget long run") == ["assistant"] * 3


def test_the_boost_is_the_one_of_names(open_services: OpenServices) -> None:
    services = open_services(SEARCH_NAME_BOOST="1")
    talk(services)
    assert authors(services, QUESTION) == ["user"] * 3
    result = explain(services, QUESTION).explained
    assert {(row.author, parts.boosts.asker) for row, parts in result} == {
        ("user", 1.0),
        ("assistant", 0.0),
    }


def test_nobody_is_preferred_for_a_question_about_the_assistant(services: Services) -> None:
    talk(services)
    assert preferred(services, "What budget did you give me for my long run?") == set()


def test_a_named_peer_is_preferred_instead(services: Services) -> None:
    talk(services)
    services.say("s0", ("carol", "I went on a long run with a budget"))
    assert preferred(services, "What did I tell Carol about the long run?") == set()


def test_between_people_all_are_preferred_alike(services: Services) -> None:
    for number in range(4):
        services.say(
            f"s{number}",
            ("ann", "My long run was fine"),
            ("bob", "My budget for the long run is small"),
        )
    assert preferred(services, QUESTION) == {"ann", "bob"}
    scores = [row.author for row in explain(services, QUESTION).rows]
    assert scores == [row.author for row in explain(services, "budget for the long run?").rows]


def test_messages_that_the_caller_may_not_read_do_not_tell_who_asks(services: Services) -> None:
    """The user speaks of itself in another session than the one that the key opens."""
    services.say("private", ("user", "My long run, my budget"), ("user", "My long run"))
    services.say("open", ("user", "The long run"), ("assistant", ANSWER))
    assert preferred(services, QUESTION) == {"user"}
    key = Principal(workspace_id=WORKSPACE, session_id="open")
    assert preferred(services, QUESTION, key, session_id="open") == set()
