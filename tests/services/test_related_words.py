"""A search for words that no readable text has finds those of the same beginning, and tells nothing
about the words of other texts."""

from __future__ import annotations

from memservice.services.auth.principal import Principal
from memservice.services.retrieval import search
from memservice.services.retrieval.search import SearchOptions
from support.services.services import ME, WORKSPACE, Services

ANN = Principal(workspace_id=WORKSPACE, peer_id="ann")
QUERY = "allergy river"


def contents(services: Services, principal: Principal) -> list[str]:
    options = SearchOptions(QUERY)
    rows = search.search(services.rt, principal, WORKSPACE, options, peer_id="ann")
    return [message.content for message in rows]


def fill(services: Services) -> None:
    """Sessions of their own, so that no message is found because of its neighbours."""
    services.say("s", ("ann", "a heron by the river"))
    services.say("t", ("ann", "the allergist has called"))
    services.say("u", ("ann", "we had tea"))


def test_a_peer_is_not_told_whether_others_used_a_word(services: Services) -> None:
    fill(services)
    before = contents(services, ANN)
    assert set(before) == {"a heron by the river", "the allergist has called"}
    services.say("secret", ("bob", "it is an allergy"))
    assert contents(services, ANN) == before
    services.leave("t", "ann")
    services.say("t", ("bob", "an allergy after all"))
    assert contents(services, ANN) == before


def test_a_word_of_the_workspace_needs_no_related_ones(services: Services) -> None:
    fill(services)
    services.say("other", ("bob", "it is an allergy"))
    assert contents(services, ME) == ["a heron by the river"]
