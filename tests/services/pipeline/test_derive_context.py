"""What the deriver's model is shown beside the new messages, and what it may not make of it."""

from __future__ import annotations

import re

import pytest

from memservice.domain.errors import ConfigurationError
from memservice.domain.records import LONG, SHORT, Card, Message, Summary
from memservice.services import conclusions, messages, peers, scopes
from memservice.services.conclusions import ConclusionDraft
from memservice.services.messages import Draft
from memservice.services.sessions import MemberConfig
from memservice.spi.llm import CompletionRequest
from services.pipeline.conftest import OpenPipeline
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.reasoning.model import Reply, ScriptedModel

NOTHING: Reply = {"statements": []}


def with_model(open_pipeline: OpenPipeline, model: ScriptedModel, **settings: str) -> Pipeline:
    environ = {
        "REASONER": "auto",
        "DERIVER_MODEL_CONFIG__TRANSPORT": "scripted",
        "DERIVER_FLUSH_ENABLED": "true",
        **settings,
    }
    return open_pipeline(model, **environ)


def silent() -> ScriptedModel:
    model = ScriptedModel()
    model.say = lambda request: NOTHING
    return model


def about_alice(model: ScriptedModel) -> str:
    """What the last request that derives from messages of alice said."""
    return [text for text in model.prompts() if text.startswith("Observed peer: alice\n")][-1]


def hold(pipeline: Pipeline, observer: str, *contents: str, session: str | None = None) -> None:
    drafts = [ConclusionDraft(content, observer, "alice", session) for content in contents]
    conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, drafts)


def write_card(pipeline: Pipeline, *lines: str) -> None:
    with pipeline.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(WORKSPACE)
        assert workspace is not None
        alice = tx.peers.by_slug(workspace.key, "alice")
    assert alice is not None
    card = Card(
        workspace_key=workspace.key,
        observer_key=alice.key,
        target="alice",
        lines=list(lines),
        updated_at=pipeline.clock(),
    )
    pipeline.rt.storage.write(lambda tx: tx.cards.save(card))


def summarise(pipeline: Pipeline, last: Message, kind: str, content: str) -> None:
    summary = Summary(
        workspace_key=last.workspace_key,
        session_key=last.session_key,
        kind=kind,
        message_key=last.key,
        message_uid=last.uid,
        content=content,
        tokens=5,
        reasoner="llm",
        created_at=pipeline.clock(),
    )
    pipeline.rt.storage.write(lambda tx: tx.summaries.save(summary))


def entries(prompt: str) -> list[str]:
    return re.findall(r"^\[([A-Z]+|\d+)\] ", prompt, re.M)


def test_pronouns_are_shown_with_what_was_said_before(open_pipeline: OpenPipeline) -> None:
    """Each message comes in a batch of its own, as after a pause."""
    model = silent()
    pipeline = with_model(open_pipeline, model)
    for content in (
        "My brother Tom moved to Oslo.",
        "He hates it there, but he stays because of Ingrid.",
        "They marry next Saturday.",
    ):
        pipeline.say("s", ("alice", content))
        pipeline.work()
    prompt = about_alice(model)
    assert "[A] Fri 2024-03-01 12:00 UTC alice: My brother Tom moved to Oslo." in prompt
    assert "[B] Fri 2024-03-01 12:00 UTC alice: He hates it there" in prompt
    assert "[1] Fri 2024-03-01 12:00 UTC alice: They marry next Saturday." in prompt


@pytest.mark.slow
def test_the_last_ten_messages_are_context(open_pipeline: OpenPipeline) -> None:
    model = silent()
    pipeline = with_model(open_pipeline, model)
    pipeline.say("s", *[(f"peer-{n % 3}", f"Sentence number {n}.") for n in range(20)])
    pipeline.say("s", ("alice", "I agree with all of it."))
    pipeline.work()
    prompt = next(text for text in model.prompts() if "I agree" in text).partition("Conversation")[
        2
    ]
    assert entries(prompt) == [*"ABCDEFGHIJ", "1"]
    assert "Sentence number 10." in prompt
    assert "Sentence number 9." not in prompt


def test_summary_card_and_related_conclusions_are_shown(open_pipeline: OpenPipeline) -> None:
    model = silent()
    pipeline = with_model(open_pipeline, model)
    (first, *_) = pipeline.say("s", ("alice", "Hello."), ("bob", "Hi."))
    pipeline.work()
    summarise(pipeline, first, SHORT, "They greeted each other.")
    summarise(pipeline, first, LONG, "A long story.")
    hold(pipeline, "alice", "alice lives in Oslo with two cats.", "alice plays the bassoon.")
    write_card(pipeline, "IDENTITY: Alice Larsen, pilot")
    pipeline.say("s", ("alice", "The cats like the new flat in Bergen."))
    pipeline.work()
    prompt = about_alice(model)
    before, conversation = prompt.split("Conversation:")
    assert "They greeted each other." in before
    assert "- IDENTITY: Alice Larsen, pilot" in before
    assert "[c1] 2024-03-01: alice lives in Oslo with two cats." in before
    assert "Oslo" not in conversation


def test_a_summary_that_covers_the_new_messages_is_not_shown(open_pipeline: OpenPipeline) -> None:
    model = silent()
    pipeline = with_model(open_pipeline, model)
    (message,) = pipeline.say("s", ("alice", "Hello."))
    summarise(pipeline, message, SHORT, "She greets.")
    pipeline.work()
    assert "She greets." not in about_alice(model)


def test_without_a_model_no_context_is_read(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline()
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    hold(pipeline, "alice", "alice lives in Oslo.")
    pipeline.say("s", ("alice", "Oslo is cold."))
    pipeline.work()
    context = pipeline.reasoner.requests[-1].context
    assert (context.summary, list(context.card), list(context.held)) == (None, [], [])


@pytest.mark.slow
def test_another_observer_learns_nothing_from_the_context(open_pipeline: OpenPipeline) -> None:
    """Carol observes alice here. What carol does not hold is not shown, nor is alice's card, nor
    what was said before carol came."""
    model = silent()
    pipeline = with_model(open_pipeline, model)
    pipeline.say("s", ("alice", "My secret is Zanzibar."), ("bob", "I see."))
    pipeline.join("s", carol=MemberConfig(observe_others=True))
    pipeline.work()
    hold(pipeline, "alice", "alice lives in Oslo.", "alice owns a yacht at Oslo.")
    hold(pipeline, "carol", "alice lives in Oslo.")
    write_card(pipeline, "IDENTITY: Alice Larsen, pilot")
    pipeline.say("s", ("bob", "Where to?"), ("alice", "To Oslo, by yacht."))
    pipeline.work()
    prompt = about_alice(model)
    assert "[c1] 2024-03-01: alice lives in Oslo." in prompt
    assert "[c2]" not in prompt
    assert "Larsen" not in prompt
    assert "Zanzibar" not in prompt
    assert "bob: Where to?" in prompt


def test_a_scope_learns_nothing_from_the_context(open_pipeline: OpenPipeline) -> None:
    model = silent()
    pipeline = with_model(open_pipeline, model)
    pipeline.say("s", ("alice", "Hello."))
    pipeline.work()
    scopes.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, "team", None)
    scopes.add_sessions(pipeline.rt, PRINCIPAL, WORKSPACE, "team", ["s"])
    pipeline.work()
    hold(pipeline, "alice", "alice owns a yacht at Oslo.")
    write_card(pipeline, "IDENTITY: Alice Larsen, pilot")
    pipeline.say("s", ("alice", "To Oslo, by yacht."))
    pipeline.work()
    prompt = about_alice(model)
    assert "[c1]" not in prompt
    assert "Larsen" not in prompt


def leaks(request: CompletionRequest) -> Reply:
    """Takes what is stored for what was said."""
    text = request.turns[-1].content
    if "Oslo" in text:
        return {
            "statements": [
                {"content": "alice moved from Oslo to Bergen.", "messages": [1]},
                {"content": "alice has a cat.", "messages": [2]},
            ]
        }
    return {"statements": [{"content": "alice moved to Bergen.", "messages": [1]}]}


def test_names_from_another_session_do_not_get_into_a_conclusion(
    open_pipeline: OpenPipeline,
) -> None:
    """Conclusions of a session are read, deleted and shared with it."""
    model = ScriptedModel()
    model.say = leaks
    pipeline = with_model(open_pipeline, model)
    pipeline.say("other", ("alice", "Hm."))
    pipeline.say("s", ("alice", "Hm."))
    model.say = lambda request: NOTHING
    pipeline.work()
    hold(pipeline, "alice", "alice lives in Oslo, and moved there.", session="other")
    model.say = leaks
    pipeline.say("s", ("alice", "I moved to Bergen."), ("alice", "I have a cat."))
    pipeline.work()
    assert {row.content for row in pipeline.conclusions("alice") if row.session == "s"} == {
        "alice has a cat.",
        "alice moved to Bergen.",
    }
    assert pipeline.outcome("derived_again") == 1


def test_names_from_the_same_session_may_be_used(open_pipeline: OpenPipeline) -> None:
    model = silent()
    pipeline = with_model(open_pipeline, model)
    pipeline.say("s", ("alice", "Hm."))
    pipeline.work()
    hold(pipeline, "alice", "alice lives in Oslo, and moved there.", session="s")
    model.say = leaks
    pipeline.say("s", ("alice", "I moved to Bergen."), ("alice", "I have a cat."))
    pipeline.work()
    assert "alice moved from Oslo to Bergen." in pipeline.texts("alice")
    assert pipeline.outcome("derived_again") == 0


def test_other_sessions_can_be_left_out(open_pipeline: OpenPipeline) -> None:
    model = silent()
    pipeline = with_model(open_pipeline, model, DERIVER_CONTEXT_ACROSS_SESSIONS="false")
    pipeline.say("s", ("alice", "Hm."))
    pipeline.say("other", ("alice", "Hm."))
    pipeline.work()
    hold(pipeline, "alice", "alice lives in Oslo.", session="other")
    hold(pipeline, "alice", "alice owns a yacht at Oslo.", session="s")
    write_card(pipeline, "IDENTITY: Alice Larsen, pilot")
    pipeline.say("s", ("alice", "Oslo is far."))
    pipeline.work()
    prompt = about_alice(model)
    assert re.findall(r"^\[c\d+\] \S+ (.*)$", prompt, re.M) == ["alice owns a yacht at Oslo."]
    assert "Larsen" not in prompt


def test_what_is_stored_is_not_derived_again(open_pipeline: OpenPipeline) -> None:
    """A careless model ascribes the context to the new message."""
    model = silent()
    pipeline = with_model(open_pipeline, model)
    pipeline.say("s", ("alice", "My brother Tom lives in Oslo."))
    pipeline.work()
    hold(pipeline, "alice", "alice plays the bassoon in an orchestra.", session="s")
    model.say = lambda request: {
        "statements": [
            {"content": "alice's brother Tom lives in Oslo.", "messages": [1]},
            {"content": "alice plays the bassoon in an orchestra.", "messages": [1]},
            {"content": "alice is tired after the orchestra.", "messages": [1]},
        ]
    }
    pipeline.say("s", ("alice", "The orchestra made me tired, so I sleep early."))
    pipeline.work()
    assert pipeline.texts("alice")[1:] == ["alice is tired after the orchestra."]
    assert pipeline.outcome("misattributed") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_message", "of_peer", "setting", "stamp"),
    [
        (None, None, None, "Fri 2024-03-01 12:00 UTC"),
        (None, None, "Asia/Tokyo", "Fri 2024-03-01 21:00 +09:00"),
        (None, "Europe/Oslo", "Asia/Tokyo", "Fri 2024-03-01 13:00 +01:00"),
        ("+13:00", "Europe/Oslo", "Asia/Tokyo", "Sat 2024-03-02 01:00 +13:00"),
        ("Mars/Base", "Europe/Oslo", None, "Fri 2024-03-01 13:00 +01:00"),
        (7, ["Europe/Oslo"], None, "Fri 2024-03-01 12:00 UTC"),
    ],
)
def test_a_message_has_weekday_and_time_in_its_zone(
    open_pipeline: OpenPipeline,
    of_message: object,
    of_peer: object,
    setting: str | None,
    stamp: str,
) -> None:
    model = silent()
    pipeline = with_model(
        open_pipeline, model, **({"DERIVER_TIMEZONE": setting} if setting else {})
    )
    metadata = {} if of_peer is None else {"timezone": of_peer}
    peers.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", metadata, None)
    draft = Draft("See you next Friday.", "alice", metadata={"timezone": of_message})
    messages.create(pipeline.rt, PRINCIPAL, WORKSPACE, "s", [draft])
    pipeline.work()
    assert f"[1] {stamp} alice: See you next Friday." in about_alice(model)


def test_an_unknown_time_zone_is_a_mistake_in_the_settings(open_pipeline: OpenPipeline) -> None:
    with pytest.raises(ConfigurationError, match="DERIVER_TIMEZONE = Mars/Base: an unknown"):
        open_pipeline(DERIVER_TIMEZONE="Mars/Base")
