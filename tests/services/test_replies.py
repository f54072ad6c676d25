"""The short reply to a short question stands behind it in the results."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from memservice.domain.positions import Position, PositionTable
from memservice.domain.ranking import MAX_SHORT
from memservice.domain.records import Message
from memservice.services.retrieval.replies import FIRST, replies, with_replies
from services.conftest import OpenServices
from support.services.services import Services

QUESTION = "Who lives with you?"
REPLY = "That ended. Two students moved in."
LONG = "Herons " * MAX_SHORT


def placed(
    services: Services,
    messages: Sequence[Message],
    ranked: Sequence[int],
    authors: Collection[int] = (),
    times: bool = False,
) -> dict[int, int]:
    """Of messages by their number in the session: which replies are placed behind which."""
    number = {message.key: index for index, message in enumerate(messages)}
    keys = [message.key for message in messages]
    with services.rt.storage.read() as tx:
        positions = tx.messages.positions(keys, times=times)
        by_key: dict[int, Position] | PositionTable = {each.key: each for each in positions}
        if not times:
            by_key = PositionTable.of(positions)
        workspace = messages[0].workspace_key
        pairs = replies(tx, workspace, [[keys[index] for index in ranked]], by_key, authors)
    return {number[question]: number[reply] for question, reply in pairs.items()}


@pytest.mark.parametrize("times", [False, True], ids=["arrays", "objects"])
def test_the_message_after_a_question_is_its_reply(services: Services, times: bool) -> None:
    messages = services.say("s", ("bob", QUESTION), ("ann", REPLY), ("bob", "Good for you."))
    services.say("t", ("ann", "Of another session."))
    assert placed(services, messages, [2, 0, 1], times=times) == {0: 1}
    assert placed(services, messages, [2, 1], times=times) == {}, "the question did not match"
    assert placed(services, messages[:1], [0], times=times) == {}, "the reply may not be read"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("bob", "Two live with you."), ("ann", REPLY)),
        (("bob", f"{LONG} {QUESTION}"), ("ann", REPLY)),
        (("bob", QUESTION), ("ann", f"{REPLY} {LONG}")),
        (("bob", QUESTION), ("bob", REPLY)),
    ],
    ids=["no question", "a long question", "a long reply", "by the same author"],
)
def test_what_is_no_reply_to_a_question(
    services: Services, first: tuple[str, str], second: tuple[str, str]
) -> None:
    assert placed(services, services.say("s", first, second), [0]) == {}


def test_only_replies_by_some_authors_are_placed_if_there_are_any(services: Services) -> None:
    messages = services.say(
        "s", ("bob", QUESTION), ("ann", "Two. And with you?"), ("bob", "Nobody.")
    )
    ann, bob = messages[1].author_key, messages[0].author_key
    assert placed(services, messages, [0, 1]) == {0: 1, 1: 2}
    assert placed(services, messages, [0, 1], authors={ann}) == {0: 1}
    assert placed(services, messages, [0, 1], authors={bob}) == {1: 2}


def test_only_the_first_messages_of_a_list_are_looked_at(services: Services) -> None:
    messages = services.say("s", *[("bob", "A heron."), ("ann", "A swan.")] * FIRST)
    messages += services.say("s", ("bob", QUESTION), ("ann", REPLY))
    question, others = len(messages) - 2, list(range(FIRST))
    assert placed(services, messages, [*others[1:], question]) == {question: question + 1}
    assert placed(services, messages, [*others, question]) == {}


def test_a_reply_stays_before_its_question() -> None:
    assert with_replies([2, 1, 3], {1: 2, 3: 9}) == [2, 1, 3, 9]
    assert with_replies([1, 3, 2], {1: 2}) == [1, 2, 3]


def talk(services: Services) -> None:
    """Two questions of the same words, one to ann and one by her, among other talk."""
    for number in range(20):
        services.say(f"s{number}", ("ann", "No hurry."), ("bob", "Have you eaten?"))
    services.say("t", ("bob", "And who lives with you, ann?"), ("ann", "My old teacher."))
    services.say("u", ("ann", "Bob, who lives with you?"), ("bob", "Nobody at all."))


def test_a_search_finds_the_reply_of_the_one_that_it_asks_about(services: Services) -> None:
    talk(services)
    texts = services.search("Who lives with ann?", 4)
    assert texts.index("My old teacher.") == texts.index("And who lives with you, ann?") + 1
    assert texts.index("Nobody at all.") != texts.index("Bob, who lives with you?") + 1
    assert "My old teacher." in services.search("Who lives with ann?", 2, peer_id="ann")


def test_messages_that_are_ranked_one_by_one_have_replies_too(open_services: OpenServices) -> None:
    services = open_services(SEARCH_DEPTH="1")
    for number in range(60):
        services.say(
            f"s{number}", ("bob", f"Who lives with you, heron {number}, and who with them?")
        )
    for number in range(5):
        services.say(f"t{number}", ("ann", f"I saw who lives in house {number}."))
    services.say("u", ("bob", "Who lives with you?"), ("ann", "My old teacher."))
    of_ann = services.search("Who lives with you?", 2, {"peer_id": "ann"})
    assert of_ann[0] == "My old teacher."
