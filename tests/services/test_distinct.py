"""Messages that their author repeats come last."""

from __future__ import annotations

import pytest

from services.conftest import OpenServices
from support.services.services import Services


def test_each_text_of_an_author_is_shown_once_while_there_are_others(services: Services) -> None:
    for number in range(5):
        services.say(f"s{number}", ("ann", "The heron again!"), ("bob", "the  heron AGAIN!"))
    services.say("t", ("ann", "A heron, that is a long story about which I could say much."))
    texts = services.search("heron again", limit=3)
    assert len(set(texts)) == 3
    assert services.search("heron again", limit=11)[:3] == texts
    repeated = services.search("heron again", limit=11)[3:]
    assert sorted(repeated) == ["The heron again!"] * 4 + ["the  heron AGAIN!"] * 4


def test_repetitions_fill_a_page_that_has_no_other_results(services: Services) -> None:
    services.say("s", *[("ann", "The heron!")] * 4)
    assert services.search("heron", limit=3) == ["The heron!"] * 3


@pytest.mark.parametrize(("others", "depth"), [(2, 100), (60, 1)], ids=["by rank", "one by one"])
def test_repetitions_come_last_among_the_messages_of_a_filter(
    open_services: OpenServices, others: int, depth: int
) -> None:
    services = open_services(SEARCH_DEPTH=str(depth))
    for number in range(others):
        services.say(f"t{number}", ("bob", f"Heron, heron {number}, heron!"))
    services.say("s", *[("ann", "By the river stood the heron of yesterday.")] * 4)
    services.say("s", ("ann", "Some heron or other, I think it was, stood by a bridge today."))
    texts = services.search("heron", limit=2, filters={"peer_id": "ann"})
    assert sorted(text[:4] for text in texts) == ["By t", "Some"]
