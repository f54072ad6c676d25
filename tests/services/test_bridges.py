"""Searches find the messages that derived conclusions rest on, within what the caller may read."""

from __future__ import annotations

import pytest

from memservice.domain.records import EXPLICIT, Conclusion
from memservice.services.auth.principal import Principal
from memservice.services.retrieval import bridges, search
from memservice.services.retrieval.recall import RecallOptions, recall
from memservice.services.retrieval.search import SearchOptions
from support.services.services import ME, WORKSPACE, Services

pytestmark = pytest.mark.every_storage("sqlite")

QUESTION = "What does ann's climbing partner do for a living?"
LINK = "Up the wall with Oona, always."
FACT = "Oona runs a bakery."
DEDUCTION = "The climbing partner of ann runs a bakery for a living."
ANN = Principal(workspace_id=WORKSPACE, peer_id="ann")


@pytest.fixture
def premises(services: Services) -> list[Conclusion]:
    """Two messages without a word of the question, and a conclusion from each of them."""
    (link,) = services.say("wall", ("ann", LINK))
    (fact,) = services.say("town", ("ann", FACT))
    for number in range(12):
        services.say(
            f"talk-{number}", ("ann", f"What does a partner do for a living? Idea {number}.")
        )
    services.say("talk", ("bob", "What does bob do for a living?"))
    return [
        services.derive("ann", "ann", "ann climbs with Oona.", message_keys=[link.key]),
        services.derive("ann", "ann", "Oona runs a bakery.", message_keys=[fact.key]),
    ]


def deduce(
    services: Services,
    premises: list[Conclusion],
    content: str = DEDUCTION,
    level: str = "deductive",
    observer: str = "ann",
) -> None:
    services.deduce(content, premises, level, observer)


def find(services: Services, limit: int = 5, **where: str) -> set[str]:
    options = SearchOptions(QUESTION, limit)
    return {row.content for row in search.search(services.rt, ME, WORKSPACE, options, **where)}


def test_a_search_finds_what_a_conclusion_rests_on(
    services: Services, premises: list[Conclusion]
) -> None:
    assert not {LINK, FACT} & find(services)
    deduce(services, premises)
    assert {LINK, FACT} <= find(services)


def test_explicit_conclusions_bring_in_no_message(
    services: Services, premises: list[Conclusion]
) -> None:
    deduce(services, premises, level=EXPLICIT)
    assert not {LINK, FACT} & find(services)


def test_a_conclusion_has_at_least_half_of_the_words(
    services: Services, premises: list[Conclusion]
) -> None:
    deduce(services, premises, "A partner of ann runs a bakery.")
    assert not {LINK, FACT} & find(services)


def test_only_the_best_conclusions_count(services: Services, premises: list[Conclusion]) -> None:
    for number in range(bridges.MAX_CONCLUSIONS):
        deduce(services, premises[:1], f"{DEDUCTION} {number}")
    deduce(services, premises[1:], "The climbing partner of ann is tall.")
    contents = find(services)
    assert LINK in contents
    assert FACT not in contents


def test_a_conclusion_of_several_observers_counts_once(
    services: Services, premises: list[Conclusion]
) -> None:
    for observer in ("bob", "cleo", "dan", "eve"):
        deduce(services, premises[:1], observer=observer)
    deduce(services, premises[1:], "The climbing partner of ann is tall.")
    assert {LINK, FACT} <= find(services)


def test_the_sources_are_within_the_search(services: Services, premises: list[Conclusion]) -> None:
    deduce(services, premises)
    assert find(services, session_id="wall") == {LINK}
    assert not {LINK, FACT} & find(services, peer_id="bob")
    assert {LINK, FACT} <= find(services, peer_id="ann")


@pytest.mark.slow
def test_a_key_of_a_peer_uses_its_own_conclusions_and_messages(
    services: Services, premises: list[Conclusion]
) -> None:
    def recalled(limit: int = 5) -> set[str]:
        result = recall(services.rt, ANN, WORKSPACE, "ann", RecallOptions(QUESTION, limit))
        return {row.content for row in result.messages}

    deduce(services, premises, observer="bob")
    assert not {LINK, FACT} & recalled()
    deduce(services, premises)
    assert {LINK, FACT} <= recalled()
    services.leave("town", "ann")
    (later,) = services.say("town", ("bob", "Oona sold the shop."))
    hidden = services.derive("ann", "ann", "Oona sold it.", message_keys=[later.key])
    deduce(services, [hidden], f"{DEDUCTION} Not now.")
    assert later.content in find(services, 20)
    assert {LINK, FACT} <= recalled()
    assert later.content not in recalled(20)


def test_a_key_of_a_session_uses_no_conclusion_over_several(
    services: Services, premises: list[Conclusion]
) -> None:
    deduce(services, premises)
    key = Principal(workspace_id=WORKSPACE, session_id="wall")
    for_key = search.explain(
        services.rt, key, WORKSPACE, SearchOptions(QUESTION, 5), session_id="wall"
    )
    assert "source" not in for_key.lists


def test_the_parts_of_a_score_name_the_source(
    services: Services, premises: list[Conclusion]
) -> None:
    deduce(services, premises)
    explained = search.explain(services.rt, ME, WORKSPACE, SearchOptions(QUESTION, 5))
    assert list(explained.lists) == ["text", "source"]
    parts = {row.content: parts for row, parts in explained.explained}
    first, second = parts[LINK].source, parts[FACT].source
    assert first is not None
    assert second is not None
    assert (first.rank, second.rank) == (1, 2)
    assert first.covered is not None
    assert first.similarity is None
    assert first.covered >= bridges.MIN_COVERED
    assert first.share == pytest.approx(first.covered / (explained.fusion_k + 1))
    text = parts[LINK].text
    assert text is not None
    assert parts[LINK].score == pytest.approx(text.share + first.share)
    scores = [each.score for each in explained.parts]
    assert scores == sorted(scores, reverse=True)
