"""The budget of a session's context, compared with the rule in its plainest form."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memservice.domain import tokens
from memservice.domain.errors import NotFound
from memservice.domain.filters import TRUE
from memservice.domain.records import LONG, SHORT, Message, Summary
from services.conftest import OpenServices
from support.examples import examples
from support.services.services import Services, contents

WORD = "cat"
HEADINGS = tokens.count("EXPLICIT:\n\n\nDEDUCTIVE:\n\n\nINDUCTIVE:\n\n\nCONTRADICTION:\n\n")


def expected(
    messages: Sequence[Message],
    budget: int,
    short: tuple[int, int] | None,
    long: tuple[int, int] | None,
) -> tuple[str | None, list[str]]:
    """Kind of summary and messages; summaries are (index of the last covered message, tokens)."""
    if budget <= 0:
        return None, []
    cap, kind, chosen = int(budget * 0.4), None, None
    if long is not None and long[1] <= cap and long[1] > (short[1] if short else 0):
        kind, chosen = LONG, long
    elif short is not None and 0 < short[1] <= cap:
        kind, chosen = SHORT, short
    candidates = messages[chosen[0] :] if chosen else messages
    left = budget - (chosen[1] if chosen else 0)
    contents_chosen: list[str] = []
    total = 0
    for message in reversed(candidates):
        total += message.tokens
        if total > left:
            break
        contents_chosen.append(message.content)
    return kind, contents_chosen[::-1]


SUMMARY = st.none() | st.tuples(st.integers(0, 100), st.integers(0, 40))


@pytest.mark.slow
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    lengths=st.lists(st.integers(0, 6), max_size=15),
    short=SUMMARY,
    long=SUMMARY,
    budgets=st.lists(st.integers(-3, 80), min_size=1, max_size=6),
    number=st.integers(0, 2**62),
)
def test_summary_and_messages_follow_the_budget_rule(
    services: Services,
    lengths: list[int],
    short: tuple[int, int] | None,
    long: tuple[int, int] | None,
    budgets: list[int],
    number: int,
) -> None:
    session = f"s{number}-{len(lengths)}"
    services.join(session)
    before = services.context(session, summary=False).messages
    messages = [
        *before,
        *(
            services.say(session, *[("ann", " ".join([WORD] * length)) for length in lengths])
            if lengths
            else []
        ),
    ]
    chosen = {
        kind: (answer[0] % len(messages), answer[1])
        for kind, answer in ((SHORT, short), (LONG, long))
        if answer is not None and messages
    }
    services.rt.storage.write(lambda tx: tx.rows.delete(Summary, TRUE))
    for kind, (index, cost) in chosen.items():
        services.summarise(messages[index], kind, cost)
    for budget in budgets:
        answer = services.context(session, tokens=budget)
        summary, newest = expected(messages, budget, chosen.get(SHORT), chosen.get(LONG))
        assert (answer.summary.kind if answer.summary else None, contents(answer.messages)) == (
            summary,
            newest,
        ), budget


def test_empty_messages_cost_nothing(services: Services) -> None:
    services.say("s", ("ann", "one two three"), *[("ann", "")] * 5)
    assert len(services.context("s", tokens=1).messages) == 5
    assert len(services.context("s", tokens=50).messages) == 6


def test_a_target_without_conclusions_costs_its_headings(services: Services) -> None:
    (message,) = services.say("s", ("ann", "hello"))
    answer = services.context("s", tokens=HEADINGS + message.tokens, peer_target="ann")
    assert contents(answer.messages) == ["hello"]
    assert answer.representation == ""
    assert (
        services.context("s", tokens=HEADINGS + message.tokens - 1, peer_target="ann").messages
        == []
    )


def test_card_lines_cost_their_joined_tokens(services: Services) -> None:
    from memservice.services import cards
    from support.services.services import ME, WORKSPACE

    (message,) = services.say("s", ("ann", "hello"))
    lines = ["Name: Ann", "Plays the viola da gamba"]
    cards.put(services.rt, ME, WORKSPACE, "ann", None, lines)
    cost = HEADINGS + tokens.count("\n".join(lines)) + message.tokens
    assert services.context("s", tokens=cost, peer_target="ann").messages == [message]
    poor = services.context("s", tokens=cost - 1, peer_target="ann")
    assert (poor.messages, poor.card) == ([], lines), (
        "what is known of the target is paid for first"
    )
    assert services.context(
        "s", tokens=cost - tokens.count("\n".join(lines)), peer_target="ann", limit_to_session=True
    ).messages == [message]


def test_a_spent_budget_leaves_no_summary_either(services: Services) -> None:
    (message,) = services.say("s", ("ann", "hello"))
    services.summarise(message, SHORT, 1)
    services.conclude("ann", "ann", " ".join(["likes tea"] * 40))
    rich = services.context("s", tokens=1000, peer_target="ann")
    assert rich.summary is not None
    poor = services.context("s", tokens=30, peer_target="ann")
    assert (poor.summary, poor.messages) == (None, [])
    assert "likes tea" in (poor.representation or "")


def test_unknown_observers_are_an_error_only_if_a_card_is_needed(
    open_services: OpenServices,
) -> None:
    services = open_services()
    for setting in ({"limit_to_session": True}, {"sessions": ["s"]}):
        nowhere = services.context("s", peer_target="ann", **setting)
        assert (nowhere.representation, nowhere.card, nowhere.messages) == ("", None, []), (
            "an unknown workspace"
        )
    with pytest.raises(NotFound, match="ann"):
        services.context("s", peer_target="ann")
    services.say("s", ("bob", "hello"))
    assert services.context("s", peer_target="ann", limit_to_session=True).representation == ""
    with pytest.raises(NotFound, match="ann"):
        services.context("s", peer_target="ann")
    with pytest.raises(NotFound, match="ann"):
        services.context("s", peer_target="bob", peer_perspective="ann")
    assert services.context("s", peer_target="ann", peer_perspective="bob").representation == "", (
        "an unknown target is known nothing of"
    )
