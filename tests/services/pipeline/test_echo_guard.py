"""An agent that repeats facts from the service adds no conclusions about itself."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.pipeline.derive import echo
from memservice.services import cards, conclusions, sessions
from memservice.services.conclusions import ConclusionDraft
from memservice.services.sessions import MemberConfig, SessionFields
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

FACT = "Ada's sister Clara sails around Crete every summer with two old friends."


@pytest.fixture(params=("one search each", "one search for all"), autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which conclusions are found."""
    monkeypatch.setattr(echo, "AT_ONCE", 0 if request.param == "one search each" else 1_000)


def test_an_agent_that_repeats_facts_about_the_user_adds_no_conclusions(pipeline: Pipeline) -> None:
    pipeline.say("s", ("user", FACT))
    pipeline.work()
    pipeline.say("s", ("agent", f"{FACT}\nI can look for ferries."))
    pipeline.work()
    assert pipeline.texts("user") == [FACT]
    assert pipeline.texts("agent") == ["I can look for ferries."]
    assert pipeline.outcome("echo") == 1


def test_a_message_that_is_only_an_echo_stores_nothing(pipeline: Pipeline) -> None:
    pipeline.say("s", ("user", FACT))
    pipeline.work()
    pipeline.say("s", ("agent", FACT.upper().replace(".", "!")))
    pipeline.work()
    assert pipeline.conclusions("agent") == []
    task = pipeline.tasks()[-1]
    assert (task.outcome["statements"], task.outcome["echo"], task.outcome["stored"]) == (1, 1, 0)


def test_a_user_that_repeats_a_fact_reinforces_it(pipeline: Pipeline) -> None:
    pipeline.say("s", ("user", FACT), ("agent", "I see."))
    pipeline.work()
    pipeline.say("s", ("user", FACT))
    pipeline.work()
    (conclusion,) = [c for c in pipeline.conclusions("user") if c.content == FACT]
    assert conclusion.times_derived == 2
    assert pipeline.outcome("echo") == 0


def test_the_first_statement_is_not_an_echo_in_any_order_of_processing(pipeline: Pipeline) -> None:
    pipeline.say("s", ("agent", FACT), ("user", FACT))
    first, second = pipeline.ready()
    # The second speaker's unit before the first one's.
    pipeline.run(second)
    pipeline.run(first)
    assert pipeline.texts("agent") == [FACT]
    assert pipeline.texts("user") == [FACT]
    assert pipeline.outcome("echo") == 0


def test_a_sentence_that_only_resembles_a_fact_is_kept(pipeline: Pipeline) -> None:
    pipeline.say("s", ("user", FACT))
    pipeline.work()
    changed = "Ada's sister Clara sails around Malta every winter with two old friends."
    pipeline.say("s", ("agent", changed))
    pipeline.work()
    assert pipeline.texts("agent") == [changed]


def test_facts_about_a_peer_of_another_session_do_not_make_an_echo(pipeline: Pipeline) -> None:
    pipeline.say("elsewhere", ("stranger", FACT))
    pipeline.work()
    pipeline.say("s", ("agent", FACT))
    pipeline.work()
    assert pipeline.texts("agent") == [FACT]


def test_conclusions_stored_by_callers_make_an_echo(pipeline: Pipeline) -> None:
    pipeline.join("s", user=MemberConfig(), agent=MemberConfig())
    conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft(FACT, "agent", "user")])
    pipeline.say("s", ("agent", FACT))
    pipeline.work()
    assert pipeline.texts("agent") == []
    assert pipeline.outcome("echo") == 1


def test_a_line_of_a_card_is_an_echo(pipeline: Pipeline) -> None:
    pipeline.join("s", user=MemberConfig(), agent=MemberConfig())
    cards.put(pipeline.rt, PRINCIPAL, WORKSPACE, "agent", "user", ["Name: Ada", FACT])
    pipeline.say("s", ("agent", FACT), ("user", FACT))
    pipeline.work()
    assert pipeline.texts("agent") == []
    assert pipeline.texts("user") == [FACT]


def test_a_line_of_a_summary_is_an_echo_only_after_the_summary(pipeline: Pipeline) -> None:
    sessions.get_or_create(
        pipeline.rt,
        PRINCIPAL,
        WORKSPACE,
        "s",
        SessionFields(configuration={"reasoning": {"enabled": False}}),
    )
    line = "m0 and m9 were all that was said in the beginning of it"
    pipeline.say("s", *[("user", f"m{n}") for n in range(19)], ("user", "the end"))
    pipeline.work()
    summary = pipeline.summaries("s")["short"]
    assert summary.content == "short of 20, m0 to the end"
    with_line = conclusions_of_agent(pipeline, summary.content)
    assert with_line == [], "the agent repeats the summary"
    assert conclusions_of_agent(pipeline, line) == [line]


def conclusions_of_agent(pipeline: Pipeline, content: str) -> list[str]:
    sessions.update(pipeline.rt, PRINCIPAL, WORKSPACE, "s", None, {"reasoning": {"enabled": True}})
    pipeline.say("s", ("agent", content))
    pipeline.work()
    return pipeline.texts("agent")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "I'm a vegetarian and I live in Berlin.",
        "We have two cats.",
        "Ich bin Vegetarierin und wohne in Berlin.",
        "Je suis végétarienne et j'habite à Berlin.",
        "Soy vegetariano y vivo en Berlín.",
        "Sou vegetariano e moro em Berlim.",
        "Sono vegetariano e abito a Berlino.",
        "我是素食者，住在柏林。",
        "ベルリンに住んでいます。",
    ],
)
def test_two_peers_may_state_the_same_about_themselves(pipeline: Pipeline, text: str) -> None:
    pipeline.say("s", ("alice", text))
    pipeline.work()
    pipeline.say("s", ("bob", text))
    pipeline.work()
    assert pipeline.texts("alice") == pipeline.texts("bob") == [text]
    assert pipeline.outcome("echo") == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        '"I keep three beehives near the old mill."\nIs that still so?',
        "What I know of you:\n- I keep three beehives near the old mill.\n- More to come.",
        "「I keep three beehives near the old mill.」",
    ],
)
def test_a_quotation_is_an_echo_though_it_is_in_the_first_person(
    pipeline: Pipeline, message: str
) -> None:
    fact = "I keep three beehives near the old mill."
    pipeline.say("s", ("alice", fact))
    pipeline.work()
    pipeline.say("s", ("agent", message))
    pipeline.work()
    assert not [text for text in pipeline.texts("agent") if "beehives" in text]


def test_all_sentences_are_compared_after_one_search(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.say("s", ("user", FACT))
    pipeline.work()
    pipeline.say(
        "s", ("agent", f"{FACT}\nBoats are slow.\nTrains are loud.\nPlanes are expensive.")
    )
    search = pipeline.rt.storage.text.search
    searches: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        searches.append(len(args[3]))
        return search(*args, **kwargs)

    monkeypatch.setattr(pipeline.rt.storage.text, "search", counted)
    pipeline.work()
    assert pipeline.texts("agent") == [
        "Boats are slow.",
        "Trains are loud.",
        "Planes are expensive.",
    ]
    at_once: int = echo.AT_ONCE
    assert len(searches) == (1 if at_once > 0 else 5)
