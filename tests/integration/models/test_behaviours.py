"""Each task of a language model against each way in which a model misbehaves: what comes of it, and
in how many requests."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from memservice.plugins import Plugins, load_plugins
from memservice.reasoning import probe
from memservice.reasoning.choice import DERIVE, LLM, WITHOUT_MODEL, models_of
from memservice.reasoning.models import Models
from memservice.reasoning.reasoner import LlmReasoner
from memservice.settings import Settings, load_settings
from memservice.settings.families import transport_key
from memservice.spi.llm import ModelFailure, ToolCall
from memservice.spi.providers import Context
from memservice.spi.reasoner import (
    Answered,
    AnswerRequest,
    ConsolidateRequest,
    DeriveRequest,
    Known,
    SummarizeRequest,
    Utterance,
)
from memservice.testing.badmodel import (
    BEHAVIOURS,
    DRAFT,
    FORBIDDEN,
    PREFACE,
    REFUSAL,
    RETRY_AFTER,
    BadModel,
    ModelRequest,
    bad_model,
    good_answer,
)
from memservice.testing.llm import Say
from support.reasoning.toolbox import FakeToolbox, conclusion_evidence

AT = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)
TIMEOUT = 20.0
TIMEOUT_OF_HANGING = 0.4
"""Seconds. Only a model that never answers needs a short one: on a busy machine, answers can take
longer."""
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
CONFIGS = (
    "DERIVER",
    "SUMMARY",
    "DREAM_DEDUCTION",
    "DREAM_INDUCTION",
    "DIALECTIC_LEVELS__LOW_",
)


def say(key: int, author: str, content: str) -> Utterance:
    return Utterance(key, f"uid-{key}", author, content, AT + timedelta(minutes=key))


TALK = [
    say(1, "alice", "I keep bees. I live in Oslo."),
    say(2, "bob", "Since when?"),
    say(3, "alice", "I moved in March."),
]
STATED = {"alice: I keep bees.", "alice: I live in Oslo.", "alice: I moved in March."}
SUMMARY = "Alice keeps bees. Bob asked about them."
ANSWER = "Alice keeps bees."


def reasoner(
    model: BadModel, plugins: Plugins, transport: str = "openai", **settings: str
) -> LlmReasoner:
    """A reasoner whose tasks all use this model, without earlier knowledge about it."""
    name = transport_key(transport).upper()
    environ = {
        f"LLM_{name}_BASE_URL": model.url + ("/v1" if transport.startswith("openai") else ""),
        f"LLM_{name}_API_KEY": "sk-test",
        "LLM_MAX_ATTEMPTS": "1",
    }
    timeout = str(TIMEOUT_OF_HANGING if model.behaviour == "hang" else TIMEOUT)
    for config in CONFIGS:
        environ[f"{config}_MODEL_CONFIG__TRANSPORT"] = transport
        environ[f"{config}_MODEL_CONFIG__MODEL"] = "model-1"
        environ[f"{config}_MODEL_CONFIG__OVERRIDES__PROVIDER_PARAMS__TIMEOUT"] = timeout
    loaded = loaded_from(**environ | settings)
    context = Context(lambda: datetime.now(UTC), logging.getLogger("memservice"))
    return LlmReasoner(Models(loaded, plugins, context, sleep=lambda seconds: None))


@lru_cache(maxsize=16)
def loaded_from(**environ: str) -> Settings:
    """The tasks of a behaviour have the same settings, which take 3 ms to read."""
    return load_settings(environ=environ, cwd=Path(__file__).parent)


def derive(llm: LlmReasoner) -> str:
    derived = llm.derive(DeriveRequest("alice", TALK))
    contents = {statement.content for statement in derived.statements}
    assert contents <= STATED, contents
    if derived.refused:
        return f"refused {len(derived.refused)}"
    if derived.unfinished:
        return f"{len(contents)} of {len(STATED)}, unfinished {len(derived.unfinished)}"
    return "all" if contents == STATED else f"{len(contents)} of {len(STATED)}"


def summary(llm: LlmReasoner) -> str:
    content = llm.summarize(SummarizeRequest("short", TALK, "They met.", 300)).content
    assert DRAFT not in content
    if not content:
        return "previous stays"
    return "summary" if content == SUMMARY else content


def chat(llm: LlmReasoner, **options: Any) -> str:
    request = AnswerRequest(
        "Does Alice keep bees?",
        "alice",
        [],
        asker="alice",
        tools=FakeToolbox(conclusion_evidence("c-1", ANSWER)),
        asked_at=AT,
        **options,
    )
    text = "".join(piece for piece in llm.answer(request) if not isinstance(piece, Answered))
    assert DRAFT not in text, "a draft is no answer"
    if "response_format" in options:
        return "document" if json.loads(text) == {"answer": ANSWER} else text
    return ("answer" if text == ANSWER else text) or "null"


def streamed(llm: LlmReasoner) -> str:
    return chat(llm, stream=True)


def structured(llm: LlmReasoner) -> str:
    return chat(llm, response_format=SCHEMA)


def dream(llm: LlmReasoner) -> str:
    conclusions = [
        Known(f"uid-{n}", content, "explicit", AT, 1, "alice", "alice")
        for n, content in enumerate(sorted(STATED))
    ]
    written = llm.consolidate(
        ConsolidateRequest("alice", "alice", conclusions, [], tools=FakeToolbox(), asked_at=AT)
    )
    assert all(statement.content == "Alice is a beekeeper." for statement in written.created)
    return "dream" if written.created else "nothing"


TASKS: dict[str, Callable[[LlmReasoner], str]] = {
    "derive": derive,
    "summary": summary,
    "chat": chat,
    "streamed": streamed,
    "structured": structured,
    "dream": dream,
}


USUAL = {
    "derive": "all, 1",
    "summary": "summary, 1",
    "chat": "answer, 2",
    "streamed": "answer, 2",
    "structured": "document, 3",
    "dream": "dream, 4",
}
"""What comes of each task, and in how many requests."""


def same(text: str) -> dict[str, str]:
    return dict.fromkeys(TASKS, text)


AWAY = same("fails (provider), 1")
REFUSED = same("fails (content), 1") | {
    "derive": "refused 2, 4",
    "summary": "previous stays, 1",
    "dream": "fails (content), 2",
}
PROSE = f"{PREFACE}\n\n{ANSWER}\n\nAnything else?, 2"
NO_TOOLS = {"chat": "answer, 3", "streamed": "answer, 3", "dream": "dream, 3"}
CUT = {"derive": "2 of 3, unfinished 1, 3", "structured": "fails (content), 4"}

OUTCOMES: dict[str, dict[str, str]] = {
    "ok": {},
    "prose": {
        "summary": f"{PREFACE}\n\n{SUMMARY}\n\nAnything else?, 1",
        "chat": PROSE,
        "streamed": PROSE,
    },
    "fence": {},
    "think": {},
    "think, empty list inside": {},
    "think, other tag": {},
    "think, unclosed": {
        "derive": "fails (content), 4",
        "summary": "previous stays, 4",
        "chat": "null, 6",
        "streamed": "null, 4",
        "structured": "fails (content), 6",
        "dream": "dream, 6",
    },
    "think, closing tag only": {},
    "trailing comma": {},
    "single quotes": {},
    "string ids": {},
    "bad citations": {},
    "list of strings": {"derive": "all, 4"},
    "missing messages": {"derive": "all, 4"},
    "wrong details": {},
    "details first": {},
    "unknown details": {},
    "cut JSON": CUT
    | {
        "summary": "Alice keeps bees., 2",
        "chat": "Alice keepsAlice keeps, 3",
        "streamed": "Alice keepsAlice keeps, 3",
    },
    "cut JSON, said to be whole": CUT,
    "wrong schema": {"derive": "fails (content), 2", "structured": "fails (content), 4"},
    "empty": {
        "derive": "fails (content), 2",
        "summary": "previous stays, 1",
        "chat": "null, 4",
        "streamed": "null, 4",
        "structured": "fails (content), 4",
    },
    "null": {
        "derive": "fails (content), 2",
        "summary": "previous stays, 1",
        "chat": "null, 3",
        "streamed": "null, 3",
        "structured": "fails (content), 3",
        "dream": "nothing, 2",
    },
    "refusal": {
        "derive": "refused 2, 4",
        "summary": "previous stays, 1",
        "chat": f"{REFUSAL}, 2",
        "streamed": f"{REFUSAL}, 2",
        "structured": "fails (content), 3",
    },
    "refusal, in its field": REFUSED,
    "content filter": REFUSED,
    "refuses one": {},
    "401": AWAY,
    "403": AWAY,
    "404": AWAY,
    "429": AWAY,
    "quota": AWAY,
    "500": AWAY,
    "HTML": AWAY,
    "context too long": {},
    "no tools": NO_TOOLS,
    "no tools, without the flag": NO_TOOLS,
    "no schema": {"derive": "all, 3", "structured": "document, 5"},
    "call written as text, Hermes": {},
    "call written as text, Llama": {},
    "call written as text, Mistral": {},
    "40 calls": {},
    "wrong tools": {"dream": "nothing, 4"},
    "never stops calling": {
        "chat": "answer, 7",
        "streamed": "answer, 7",
        "structured": "document, 6",
        "dream": "dream, 22",
    },
    "wrong arguments": {"dream": "nothing, 4"},
    "NaN as an argument": {"dream": "nothing, 4"},
    "hang": AWAY,
    "slow": {},
    "cut connection": AWAY,
    "error in stream": AWAY,
    "schema refused with tools": {},
    "effort refused with tools": {
        "chat": "answer, 3",
        "streamed": "answer, 3",
        "structured": "document, 4",
        "dream": "dream, 5",
    },
    "adaptive thinking only": {},
    "obeys max_tokens": {},
    "thinks within the limit": {"summary": "summary, 2"},
}
"""Behaviour → what differs from `USUAL`. No draft is ever part of an outcome."""

IN_EVERY_PROTOCOL = (
    "think",
    "think, closing tag only",
    "think, unclosed",
    "list of strings",
    "wrong details",
    "cut JSON",
    "refusal, in its field",
    "429",
    "no tools",
    "call written as text, Hermes",
    "NaN as an argument",
    "never stops calling",
    "cut connection",
    "error in stream",
    "thinks within the limit",
)


OF_ONE_PROTOCOL = ("cut JSON", "refusal, in its field", "429", "no tools", "cut connection")
"""By default, these run in every protocol: each has words of its own for them. The contract of
language models (tests/contracts) tests the rest of what a protocol translates."""


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_plugins()


def outcomes(plugins: Plugins, behaviour: str, transport: str) -> dict[str, str]:
    result = {}
    with bad_model(behaviour) as model:
        for task, run in TASKS.items():
            model.requests.clear()
            try:
                outcome = run(reasoner(model, plugins, transport))
            except ModelFailure as error:
                outcome = f"fails ({error.fault})"
            result[task] = f"{outcome}, {len(model.requests)}"
    return result


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_each_behaviour_has_the_documented_result(plugins: Plugins, behaviour: str) -> None:
    assert outcomes(plugins, behaviour, "openai") == USUAL | OUTCOMES[behaviour]


@pytest.mark.parametrize("transport", ["openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(name, marks=() if name in OF_ONE_PROTOCOL else pytest.mark.heavy)
        for name in IN_EVERY_PROTOCOL
    ],
)
def test_results_are_equal_in_every_protocol(
    plugins: Plugins, behaviour: str, transport: str
) -> None:
    expected = USUAL | OUTCOMES[behaviour]
    if behaviour == "think, unclosed" and transport in ("gemini", "openai-responses"):
        # The server counts the tokens of reasoning, so the first answer already leads to more room.
        expected |= {"chat": "null, 5", "structured": "fails (content), 5", "dream": "dream, 5"}
    assert outcomes(plugins, behaviour, transport) == expected


PARAGRAPH = "On day {} I walked to the old mill by the river and counted {} herons there. "
LONG = [" ".join(PARAGRAPH.format(n * 10 + m, m + 2) for m in range(10)) for n in range(28)]


def test_a_long_message_is_derived_in_parts(plugins: Plugins) -> None:
    """And nothing of it is lost, though the model obeys its limit of tokens."""
    text = "\n\n".join(LONG)
    assert len(text) > 21_000
    with bad_model("obeys max_tokens") as model:
        derived = reasoner(model, plugins).derive(DeriveRequest("alice", [say(1, "alice", text)]))
        requests = len(model.requests)
    contents = {" ".join(statement.content.split()) for statement in derived.statements}
    whole = {
        f"alice: {PARAGRAPH.format(n * 10 + m, m + 2).strip()}"
        for n in range(28)
        for m in range(10)
    }
    assert contents == whole
    assert not derived.unfinished
    assert requests <= 12


def test_a_small_output_limit_loses_nothing(plugins: Plugins) -> None:
    talk = [say(n, "alice", f"I was in town number {n}. I liked it.") for n in range(1, 9)]
    with bad_model("obeys max_tokens") as model:
        llm = reasoner(model, plugins, DERIVER_MODEL_CONFIG__MAX_OUTPUT_TOKENS="80")
        derived = llm.derive(DeriveRequest("alice", talk))
    assert {key for statement in derived.statements for key in statement.message_keys} == set(
        range(1, 9)
    )


def test_a_refused_message_does_not_affect_the_others(plugins: Plugins) -> None:
    talk = [say(n, "alice", f"I was in town number {n}.") for n in range(1, 17)]
    talk[11] = say(12, "alice", f"I know a {FORBIDDEN} word.")
    with bad_model("refuses one") as model:
        derived = reasoner(model, plugins).derive(DeriveRequest("alice", talk))
        assert len(model.requests) <= 10
    assert derived.refused == (12,)
    cited = {key for statement in derived.statements for key in statement.message_keys}
    assert cited == set(range(1, 17)) - {12}


def test_a_message_of_another_peer_can_be_refused(plugins: Plugins) -> None:
    talk = [say(1, "bob", f"{FORBIDDEN}!"), say(2, "alice", "I keep bees.")]
    with bad_model("refuses one") as model:
        derived = reasoner(model, plugins).derive(DeriveRequest("alice", talk))
    assert [statement.content for statement in derived.statements] == ["alice: I keep bees."]
    assert derived.refused == ()


def test_a_small_context_window_gets_smaller_parts(plugins: Plugins) -> None:
    text = "\n\n".join(LONG)
    with bad_model("context too long") as model:
        derived = reasoner(model, plugins, DERIVER_MAX_INPUT_TOKENS="20000").derive(
            DeriveRequest("alice", [say(1, "alice", text)])
        )
    assert len(derived.statements) == 280


def test_an_overloaded_provider_sets_the_pause(plugins: Plugins) -> None:
    with bad_model("429") as model, pytest.raises(ModelFailure) as caught:
        reasoner(model, plugins).derive(DeriveRequest("alice", TALK))
    assert caught.value.retry_after == RETRY_AFTER


def test_a_stream_needs_no_request_beyond_a_plain_answer(plugins: Plugins) -> None:
    """The first piece comes out of the request that answers: there is none after it."""
    with bad_model("slow") as model:
        pieces = reasoner(model, plugins).answer(
            AnswerRequest("Bees?", "alice", [], asker="alice", tools=FakeToolbox(), stream=True)
        )
        assert next(iter(pieces)) == ANSWER
        assert len(model.requests) == 2


def test_an_anthropic_budget_becomes_an_effort_for_adaptive_thinking(
    plugins: Plugins,
) -> None:
    settings = {"DERIVER_MODEL_CONFIG__THINKING_BUDGET_TOKENS": "4096"}
    with bad_model("adaptive thinking only") as model:
        llm = reasoner(model, plugins, "anthropic", **settings)
        assert derive(llm) == "all"
        refused, accepted = [request.body for request in model.requests]
        derive(llm)
        assert len(model.requests) == 3, "remembered"
    assert refused["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    assert accepted["thinking"] == {"type": "adaptive"}
    assert accepted["output_config"]["effort"] == "medium"
    assert accepted["output_config"]["format"], "the schema is still sent"


def test_the_effort_is_none_only_in_requests_with_tools(plugins: Plugins) -> None:
    settings = {"DIALECTIC_LEVELS__LOW__MODEL_CONFIG__THINKING_EFFORT": "high"}
    with bad_model("effort refused with tools") as model:
        llm = reasoner(model, plugins, **settings)
        assert chat(llm, response_format=SCHEMA) == "document"
        efforts = [
            (bool(request.tools), request.body["reasoning_effort"]) for request in model.requests
        ]
    assert efforts == [(True, "high"), (True, "none"), (True, "none"), (False, "high")]


@pytest.mark.parametrize(
    ("behaviour", "capabilities"),
    [
        ("ok", "JSON schema yes, tools yes, streaming yes, reasoning not seen"),
        ("think", "JSON schema yes, tools yes, streaming yes, reasoning yes"),
        ("no tools", "JSON schema yes, tools no, streaming yes, reasoning not seen"),
        ("no schema", "JSON schema in words, tools yes, streaming yes, reasoning not seen"),
        (
            "call written as text, Hermes",
            "JSON schema yes, tools as text, streaming yes, reasoning not seen",
        ),
    ],
)
def test_a_probe_reports_the_features_of_a_model(
    plugins: Plugins, behaviour: str, capabilities: str
) -> None:
    def answer(request: ModelRequest) -> Say:
        if "note" in request.tools:
            return Say((), (ToolCall("call-1", "note", {"text": "yes"}),), "tool_calls")
        return good_answer(request)

    with bad_model(behaviour, answer) as model:
        models = reasoner(model, plugins)._models
        chosen = dict.fromkeys(models_of(models.settings), WITHOUT_MODEL)
        (result,) = probe.ask(models, chosen | {DERIVE: LLM})
    assert result.ok
    assert result.text.endswith(f" s: {capabilities}")


def test_every_behaviour_has_a_row() -> None:
    assert set(OUTCOMES) == set(BEHAVIOURS)
