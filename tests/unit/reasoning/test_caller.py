"""Asking a model: tries, pauses, the fallback, and what is noted of each try."""

from __future__ import annotations

import pytest

from memservice.domain.errors import ConfigurationError
from memservice.reasoning.client import ModelClient
from memservice.spi.llm import Completion, ModelFailure, Refusal, Tool, ToolCall, Turn
from memservice.spi.reasoner import Origin, Spent
from support.reasoning.model import ModelHarness, Reply, ScriptedModel

ASK = [Turn("user", "How are you?")]
BUSY = ModelFailure("busy", retryable=True, status=529)
WRONG = ModelFailure("no such model", retryable=False, status=404)
FALLBACK = {
    "DERIVER_MODEL_CONFIG__FALLBACK__TRANSPORT": "spare",
    "DERIVER_MODEL_CONFIG__FALLBACK__MODEL": "spare-1",
}
FIRST = {"DERIVER_MODEL_CONFIG__TRANSPORT": "scripted", "DERIVER_MODEL_CONFIG__MODEL": "first-1"}


def scripted_harness(
    *replies: Reply, spare: ScriptedModel | None = None, **settings: str
) -> tuple[ModelHarness, ScriptedModel]:
    model = ScriptedModel(*replies)
    fallback = FALLBACK if spare is not None else {}
    return ModelHarness(model, *([spare] if spare else []), **FIRST, **fallback, **settings), model


def caller(harness: ModelHarness, origin: Origin | None = None) -> ModelClient:
    return ModelClient(
        harness.models,
        "deriver.representation",
        harness.models.settings.deriver.model_config,
        origin or Origin(),
    )


def test_an_answer_is_returned_and_recorded() -> None:
    harness, model = scripted_harness("Fine.")
    asker = caller(harness, Origin(7, "w", "run-1"))
    assert asker.complete(ASK, max_output_tokens=77, iteration=3).content == "Fine."
    assert (model.last.model, list(model.last.turns), model.last.max_output_tokens) == (
        "first-1",
        ASK,
        77,
    )
    (call,) = harness.calls
    assert (call.purpose, call.transport, call.model, call.outcome) == (
        "deriver.representation",
        "scripted",
        "first-1",
        "success",
    )
    assert (call.workspace_key, call.workspace, call.run_id, call.iteration) == (7, "w", "run-1", 3)
    assert (
        call.input_tokens,
        call.output_tokens,
        call.cache_read_tokens,
        call.cache_write_tokens,
    ) == (100, 10, 1, 2)
    assert (call.attempt, call.attempts, call.is_fallback, call.is_stream, call.finish_reason) == (
        1,
        3,
        False,
        False,
        "stop",
    )
    assert (call.max_output_tokens, call.embedding, call.error_class) == (77, False, None)
    assert asker.spent == Spent("first-1", 100, 10, 1, 2, 1)
    assert harness.pauses == []


def test_a_retryable_failure_is_retried_after_growing_pauses() -> None:
    harness, model = scripted_harness(BUSY, BUSY, "Fine.")
    asker = caller(harness)
    assert asker.complete(ASK).content == "Fine."
    assert harness.pauses == [4.0, 8.0]
    assert [(call.outcome, call.attempt, call.error_class) for call in harness.calls] == [
        ("error", 1, "ModelFailure 529"),
        ("error", 2, "ModelFailure 529"),
        ("success", 3, None),
    ]
    assert asker.spent.calls == 1
    assert len(model.requests) == 3


def test_pauses_are_limited() -> None:
    harness, _ = scripted_harness(*[BUSY] * 4, "Fine.", LLM_MAX_ATTEMPTS="5")
    caller(harness).complete(ASK)
    assert harness.pauses == [4.0, 8.0, 10.0, 10.0]


def test_the_last_failure_is_raised() -> None:
    last = ModelFailure("still busy", retryable=True)
    harness, model = scripted_harness(BUSY, BUSY, last, "too late")
    with pytest.raises(ModelFailure) as raised:
        caller(harness).complete(ASK)
    assert raised.value is last
    assert len(model.requests) == len(harness.calls) == 3


@pytest.mark.parametrize(("seconds", "pause"), [(2.0, 4.0), (30.0, 30.0), (60.0, 60.0)])
def test_a_pause_requested_by_the_provider_is_kept(seconds: float, pause: float) -> None:
    harness, _ = scripted_harness(
        ModelFailure("slow down", retryable=True, status=429, retry_after=seconds), "Fine."
    )
    caller(harness).complete(ASK)
    assert harness.pauses == [pause]


def test_a_pause_that_is_too_long_is_not_waited_for() -> None:
    harness, model = scripted_harness(
        ModelFailure("tomorrow", retryable=True, status=429, retry_after=3600)
    )
    with pytest.raises(ModelFailure, match="tomorrow"):
        caller(harness).complete(ASK)
    assert (harness.pauses, len(model.requests)) == ([], 1)


@pytest.mark.parametrize("failure", [WRONG, Refusal("I will not")])
def test_a_failure_that_is_not_retryable_is_raised_at_once(failure: ModelFailure) -> None:
    harness, model = scripted_harness(failure, "never")
    with pytest.raises(ModelFailure) as raised:
        caller(harness).complete(ASK)
    assert raised.value is failure
    assert (len(model.requests), harness.pauses) == (1, [])


def test_the_last_try_is_made_with_the_fallback() -> None:
    spare = ScriptedModel("From the spare one.", name="spare")
    harness, model = scripted_harness(BUSY, BUSY, spare=spare)
    asker = caller(harness)
    assert asker.complete(ASK).content == "From the spare one."
    assert (len(model.requests), spare.last.model) == (2, "spare-1")
    assert [(call.model, call.attempt, call.is_fallback) for call in harness.calls] == [
        ("first-1", 1, False),
        ("first-1", 2, False),
        ("spare-1", 3, True),
    ]
    assert asker.spent.model == "spare-1"


@pytest.mark.parametrize(
    "failure", [WRONG, ModelFailure("tomorrow", retryable=True, retry_after=3600)]
)
def test_the_fallback_is_called_at_once_after_a_permanent_failure(failure: ModelFailure) -> None:
    spare = ScriptedModel("From the spare one.", name="spare")
    harness, model = scripted_harness(failure, spare=spare)
    assert caller(harness).complete(ASK).content == "From the spare one."
    assert (len(model.requests), harness.pauses) == (1, [])


def test_a_refusal_is_not_retried_with_another_model() -> None:
    spare = ScriptedModel(name="spare")
    harness, _ = scripted_harness(Refusal("I will not"), spare=spare)
    with pytest.raises(Refusal):
        caller(harness).complete(ASK)
    assert spare.requests == []


def test_a_fallback_is_called_even_if_there_is_only_one_try() -> None:
    spare = ScriptedModel("Here.", name="spare")
    harness, _ = scripted_harness(BUSY, spare=spare, LLM_MAX_ATTEMPTS="1")
    assert caller(harness).complete(ASK).content == "Here."


def test_the_fallback_inherits_no_options() -> None:
    spare = ScriptedModel("Here.", name="spare")
    settings = {
        "DERIVER_MODEL_CONFIG__TEMPERATURE": "0.3",
        "DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY": "secret-1",
    }
    harness, model = scripted_harness(WRONG, spare=spare, **settings)
    caller(harness).complete(ASK)
    assert (model.last.temperature, spare.last.temperature) == (0.3, None)
    assert (model.opened[0]["api_key"], spare.opened[0]["api_key"]) == ("secret-1", None)


def test_an_unexpected_error_of_a_provider_is_recorded_and_not_retried() -> None:
    harness, _ = scripted_harness(ZeroDivisionError("oops"), "never")
    with pytest.raises(ZeroDivisionError):
        caller(harness).complete(ASK)
    assert [(call.outcome, call.error_class) for call in harness.calls] == [
        ("error", "ZeroDivisionError")
    ]


def test_the_models_own_limit_overrides_that_of_the_task() -> None:
    harness, model = scripted_harness("a", DERIVER_MODEL_CONFIG__MAX_OUTPUT_TOKENS="5")
    caller(harness).complete(ASK, max_output_tokens=100)
    assert model.last.max_output_tokens == 5
    harness, model = scripted_harness("a")
    caller(harness).complete(ASK)
    assert model.last.max_output_tokens == 2500


def test_tools_are_passed_on_and_counted() -> None:
    tool = Tool("look", "Look something up.", {"type": "object"})
    harness, model = scripted_harness(Completion("", [ToolCall("1", "look", {})], "tool_calls"))
    caller(harness).complete(ASK, tools=[tool], tool_choice="auto")
    assert (list(model.last.tools), model.last.tool_choice) == ([tool], "auto")
    assert (harness.calls[0].has_tools, harness.calls[0].tool_call_count) == (True, 1)


# Streams


def test_a_stream_yields_pieces_and_then_the_completion() -> None:
    harness, _ = scripted_harness("Fine, thank you.")
    asker = caller(harness)
    *pieces, done = asker.stream(ASK)
    assert pieces == ["Fine,", "thank", "you."]
    assert isinstance(done, Completion)
    assert done.content == "Fine, thank you."
    assert [(call.outcome, call.is_stream) for call in harness.calls] == [("success", True)]
    assert asker.spent.calls == 1


def test_a_stream_without_a_piece_is_retried() -> None:
    harness, model = scripted_harness(BUSY, "Fine.")
    assert list(caller(harness).stream(ASK))[:-1] == ["Fine."]
    assert (len(model.requests), harness.pauses) == (2, [4.0])


def test_a_stream_that_breaks_off_is_not_retried() -> None:
    harness, model = scripted_harness("never")
    model.replies.insert(0, ["Fi", BUSY])
    pieces = caller(harness).stream(ASK)
    assert next(pieces) == "Fi"
    with pytest.raises(ModelFailure):
        next(pieces)
    assert (len(model.requests), [call.outcome for call in harness.calls]) == (1, ["error"])


def test_a_stream_that_just_ends_has_failed() -> None:
    harness, model = scripted_harness()
    model.replies = [["Fi"]]
    pieces = caller(harness).stream(ASK)
    assert next(pieces) == "Fi"
    with pytest.raises(ModelFailure, match="ended before the answer was complete"):
        next(pieces)


def test_an_abandoned_stream_is_closed_and_recorded() -> None:
    harness, model = scripted_harness("one two three")
    pieces = caller(harness).stream(ASK)
    assert next(pieces) == "one"
    pieces.close()  # type: ignore[attr-defined]  # a generator
    assert model.closed == 1
    assert [call.outcome for call in harness.calls] == ["cancelled"]


def test_a_stream_closed_after_its_end_was_a_success() -> None:
    harness, _ = scripted_harness("one")
    pieces = caller(harness).stream(ASK)
    assert [next(pieces), next(pieces)][0] == "one"
    pieces.close()  # type: ignore[attr-defined]  # a generator
    assert [call.outcome for call in harness.calls] == ["success"]


# Where models are


def test_each_connection_is_opened_once() -> None:
    harness, model = scripted_harness(
        DERIVER_MODEL_CONFIG__OVERRIDES__BASE_URL="http://one",
        SUMMARY_MODEL_CONFIG__TRANSPORT="scripted",
    )
    settings = harness.models.settings
    for config in (
        settings.deriver.model_config,
        settings.summary.model_config,
        settings.deriver.model_config,
    ):
        ModelClient(harness.models, "x", config, Origin()).complete(ASK)
    assert [opened["base_url"] for opened in model.opened] == ["http://one", None]


def test_the_error_for_an_unknown_transport_lists_the_known_ones() -> None:
    harness = ModelHarness(ScriptedModel(), DERIVER_MODEL_CONFIG__TRANSPORT="skripted")
    with pytest.raises(
        ConfigurationError, match=r"skripted.*known: .*scripted.*did you mean scripted"
    ):
        caller(harness).complete(ASK)
