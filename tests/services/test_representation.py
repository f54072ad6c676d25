"""Which conclusions a representation chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import tokens
from memservice.domain.filters import TRUE, Condition
from memservice.domain.records import DEDUCTIVE, Message
from memservice.services import conclusions, scopes
from memservice.services.retrieval import context
from memservice.services.retrieval.representation import RepresentationOptions
from memservice.spi.repositories.messages import Messages
from services.conftest import OpenServices
from support.services.services import ME, WORKSPACE, Services


@pytest.fixture
def ten_facts(services: Services) -> Services:
    """Ten facts about ann, a minute apart; the oldest ones were derived most often."""
    services.peer("ann", "bob")
    for number in range(10):
        services.clock.advance(minutes=1)
        (conclusion,) = services.conclude("ann", "ann", f"fact {number}")
        frequent = replace(conclusion, times_derived=10 - number)
        services.rt.storage.write(lambda tx, row=frequent: tx.conclusions.put([row]))  # type: ignore[misc]
    return services


def facts(*numbers: int) -> list[str]:
    return [f"fact {number}" for number in numbers]


def test_the_newest_are_chosen_and_shown_oldest_first(ten_facts: Services) -> None:
    assert ten_facts.represented("ann", max_conclusions=3) == facts(7, 8, 9)
    assert ten_facts.represented("ann") == facts(*range(10))
    assert ten_facts.represented("ann", target="bob") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "chosen"),
    [
        (1, (9,)),
        (2, (0, 9)),
        (3, (0, 8, 9)),
        (4, (0, 1, 8, 9)),
        (5, (0, 1, 7, 8, 9)),
        (20, range(10)),
    ],
)
def test_half_are_the_most_frequent_on_request(
    ten_facts: Services, most: int, chosen: tuple[int, ...]
) -> None:
    assert ten_facts.represented("ann", include_most_frequent=True, max_conclusions=most) == facts(
        *chosen
    )


def test_exact_duplicates_are_shown_once_and_do_not_count_twice(services: Services) -> None:
    services.peer("ann")
    services.conclude("ann", "ann", "first", "Likes tea", " likes TEA ", "likes tea", "last")
    assert services.represented("ann", max_conclusions=10) == ["first", "likes tea", "last"]
    services.derive("ann", "ann", "likes tea", DEDUCTIVE)
    assert "## Deductive Observations" in services.represent("ann"), (
        "the same words at another level are another conclusion"
    )


def test_allowlists_allow_explicit_conclusions_of_their_sessions_only(services: Services) -> None:
    services.say("s", ("ann", "hello"))
    services.say("t", ("ann", "hello"))
    services.conclude("ann", "ann", "in s", session="s")
    services.conclude("ann", "ann", "in t", session="t")
    services.conclude("ann", "ann", "anywhere")
    stamped = services.conclude("ann", "ann", "deduced", session="s")[0]
    services.rt.storage.write(lambda tx: tx.conclusions.put([replace(stamped, level=DEDUCTIVE)]))
    assert services.represented("ann", session="s") == ["in s"]
    assert services.represented("ann", filters={"session_id": ["s", "t"]}) == ["in s", "in t"]
    assert services.represented("ann", filters={"session_id": {"in": ["t"]}}) == ["in t"]
    assert services.represented("ann", filters={"session_id": []}) == []
    assert services.represented("ann", session="nowhere") == []
    assert "deduced" in services.represent("ann")
    for options in ({"session": "s"}, {"filters": {"session_id": ["s"]}}):
        assert services.represented("ann", search_query="anywhere in t, deduced", **options)[
            -1:
        ] == ["in s"]
        assert not {"in t", "anywhere", "deduced"} & set(
            services.represented("ann", search_query="anywhere in t, deduced", **options)
        )


def test_a_text_of_exactly_the_remaining_budget_is_taken(open_services: OpenServices) -> None:
    def lines(limit: int) -> list[str]:
        services = open_services(REPRESENTATION_MAX_TOKENS=str(limit))
        services.peer("ann")
        for text in ("the lighthouse is white", "the lighthouse has a red roof"):
            services.conclude("ann", "ann", text)
        text = services.represent("ann", search_query="lighthouse")
        return [line for line in text.splitlines() if line.startswith("[")]

    # A line costs what it has in the text, with its time.
    budget = sum(tokens.count(f"{line}\n") for line in lines(1000))
    assert (len(lines(budget)), len(lines(budget - 1))) == (2, 1)


@pytest.mark.slow
def test_a_query_spends_the_budget_on_the_best(open_services: OpenServices) -> None:
    services = open_services(REPRESENTATION_MAX_TOKENS="140")
    services.peer("ann")
    for number in range(30):
        services.clock.advance(minutes=1)
        services.conclude(
            "ann",
            "ann",
            f"went past the lighthouse number {number}"
            if number % 6 == 0
            else f"ate meal number {number} at noon",
        )
    assert tokens.count(services.represent("ann", search_query="lighthouse")) <= 150, (
        "and a heading"
    )
    text = services.represented("ann", search_query="lighthouse")
    assert {f"went past the lighthouse number {number}" for number in range(0, 30, 6)} <= set(text)
    assert text == sorted(text, key=lambda line: int("".join(filter(str.isdigit, line)))), (
        "by time, once chosen"
    )
    assert len(services.represented("ann", search_query="lighthouse", max_conclusions=2)) == 2
    assert len(services.represented("ann", max_conclusions=30)) == 30, (
        "without a query there is no budget"
    )


def test_messages_are_quoted_beside_conclusions(services: Services) -> None:
    services.peer("ann", metadata={"name": "Ann Lee"})
    services.say(
        "s",
        ("ann", "The lighthouse is red."),
        ("bob", "A green lighthouse stands there."),
        ("ann", "Good night."),
    )
    assert "Ann Lee: The lighthouse is red." in services.represented(
        "ann", search_query="lighthouse"
    )
    assert not any(
        "green" in line for line in services.represented("ann", search_query="lighthouse")
    ), "only by the observed"
    services.conclude("ann", "ann", "saw a lighthouse")
    assert "saw a lighthouse" in services.represented("ann", search_query="lighthouse")
    assert not any(":" in line for line in services.represented("ann")), (
        "messages come with a query only"
    )


def test_messages_of_others_are_not_read(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [(name, f"The lighthouse is red, {n}.") for n in range(9) for name in ("ann", "bob")]
    messages = services.say("s", *turns)
    matching, read = Messages.matching, set[int]()

    def watched(
        self: Messages, workspace_key: int, keys: Sequence[int], condition: Condition
    ) -> dict[int, Message]:
        if condition != TRUE:  # else it looks for questions
            read.update(keys)
        return matching(self, workspace_key, keys, condition)

    monkeypatch.setattr(Messages, "matching", watched)
    assert len(services.represented("ann", search_query="lighthouse")) == 9
    assert read == {message.key for message in messages if message.author == "ann"}


def test_a_message_is_quoted_whole_instead_of_its_sentences(services: Services) -> None:
    text = "Guess what I saw. The lighthouse is red. It was white before."
    (message,) = services.say("s", ("ann", text))
    for sentence in ("The lighthouse is red.", "It was white before."):
        services.derive("ann", "ann", sentence, message_keys=[message.key])
    services.derive("ann", "ann", "Ann likes lighthouses", message_keys=[message.key])
    lines = services.represented("ann", search_query="red lighthouse")
    assert sorted(lines) == ["Ann likes lighthouses", f"ann: {text}"], (
        "a conclusion in other words stays"
    )
    assert "The lighthouse is red." in services.represented("ann"), (
        "nothing is quoted without a query"
    )


def test_a_sentence_brings_in_a_message_that_the_search_did_not_return(services: Services) -> None:
    """Search returns one message; the second conclusion's is quoted all the same."""
    texts = ["Red lighthouse, red lighthouse.", "By the way. The red lighthouse is old. Bye then."]
    messages = services.say("s", *(("ann", text) for text in texts))
    services.derive("ann", "ann", "The red lighthouse is old.", message_keys=[messages[1].key])
    services.derive("ann", "ann", "The lighthouse is red.", message_keys=[])
    lines = services.represented("ann", search_query="red lighthouse old", search_top_k=1)
    assert f"ann: {texts[1]}" in lines


def test_a_sentence_stands_for_a_message_that_does_not_fit(open_services: OpenServices) -> None:
    services = open_services(REPRESENTATION_MAX_TOKENS="60")
    (message,) = services.say("s", ("ann", "The lighthouse is red. " + "And so on. " * 50))
    services.derive("ann", "ann", "The lighthouse is red.", message_keys=[message.key])
    assert services.represented("ann", search_query="lighthouse") == ["The lighthouse is red."]


def test_a_sentence_does_not_reveal_a_message_that_the_observer_missed(services: Services) -> None:
    (message,) = services.say("s", ("ann", "Nobody heard this. My lighthouse is green."))
    services.peer("bob")
    services.derive("bob", "ann", "My lighthouse is green.", message_keys=[message.key])
    assert services.represented("bob", target="ann", search_query="lighthouse") == [
        "My lighthouse is green."
    ]


def test_messages_of_others_are_quoted_if_the_observer_was_present(services: Services) -> None:
    services.say("s", ("ann", "The lighthouse is red."))
    services.say("t", ("ann", "My lighthouse is green."), ("bob", "Really?"))
    assert services.represented("bob", target="ann", search_query="lighthouse") == [
        "ann: My lighthouse is green."
    ]


def test_with_a_session_restriction_only_its_messages_are_quoted(services: Services) -> None:
    services.say("s", ("ann", "The lighthouse is red."))
    services.say("t", ("ann", "The lighthouse is green."))
    for name, inside in (("one", ["t"]), ("none", [])):
        scopes.get_or_create(services.rt, ME, WORKSPACE, name, None)
        scopes.add_sessions(services.rt, ME, WORKSPACE, name, inside)
    narrowings: list[dict[str, Any]] = [
        {"session": "t"},
        {"filters": {"session_id": ["t"]}},
        {"scope": ["one", "none"]},
        {"scope": "one"},
    ]
    for options in narrowings:
        assert services.represented("ann", search_query="lighthouse", **options) == [
            "ann: The lighthouse is green."
        ]
    for options in ({"filters": {"session_id": []}}, {"scope": ["none"]}, {"scope": "none"}):
        assert services.represented("ann", search_query="lighthouse", **options) == []
    assert len(services.represented("ann", search_query="lighthouse")) == 2


def test_a_distance_keeps_messages_out(services: Services) -> None:
    services.say("s", ("ann", "The lighthouse is red."))
    services.conclude("ann", "ann", "saw a lighthouse")
    assert services.represented("ann", search_query="lighthouse", search_max_distance=0.9) == [
        "saw a lighthouse"
    ]


def test_search_top_k_bounds_what_the_query_adds(ten_facts: Services) -> None:
    assert ten_facts.represented(
        "ann", search_query="fact 3", search_top_k=1, max_conclusions=3
    ) == facts(3, 8, 9)


def test_a_third_are_the_most_frequent_on_request_with_a_query(ten_facts: Services) -> None:
    chosen = ten_facts.represented(
        "ann", search_query="fact 3", search_top_k=1, include_most_frequent=True, max_conclusions=6
    )
    assert chosen == facts(0, 1, 3, 7, 8, 9)


def test_a_peers_context_includes_the_most_frequent_on_request(ten_facts: Services) -> None:
    options = RepresentationOptions(max_conclusions=2, include_most_frequent=True)
    answer = context.of_peer(ten_facts.rt, ME, WORKSPACE, "ann", options)
    assert [
        line.partition("] ")[2]
        for line in answer.representation.splitlines()
        if line.startswith("[")
    ] == facts(0, 9)
    assert (answer.peer, answer.target, answer.card) == ("ann", "ann", None)


def test_deleted_conclusions_are_in_no_representation(ten_facts: Services) -> None:
    with ten_facts.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(WORKSPACE)
        assert workspace is not None
        uids = {row.content: row.uid for row in tx.conclusions.page(workspace.key)}
    conclusions.delete(ten_facts.rt, ME, WORKSPACE, uids["fact 9"])
    conclusions.delete(ten_facts.rt, ME, WORKSPACE, uids["fact 0"])
    assert ten_facts.represented("ann", max_conclusions=2, include_most_frequent=True) == facts(
        1, 8
    )
    assert "fact 9" not in ten_facts.represented("ann", search_query="fact 9")
