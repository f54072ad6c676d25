"""Asking a model: tries, pauses, the fallback, and what is noted of each try."""

from __future__ import annotations

import pytest

from memservice.domain.errors import ConfigurationError
from memservice.reasoning.client import ModelClient
from memservice.spi.llm import Completion, ModelFailure, Refusal, Tool, ToolCall, Turn
from memservice.spi.reasoner import Origin, Spent
from support.reasoning.model import Bench, Reply, ScriptedModel

ASK = [Turn("user", "How are you?")]
BUSY = ModelFailure("busy", retryable=True, status=529)
WRONG = ModelFailure("no such model", retryable=False, status=404)
FALLBACK = {
    "DERIVER_MODEL_CONFIG__FALLBACK__TRANSPORT": "spare",
    "DERIVER_MODEL_CONFIG__FALLBACK__MODEL": "spare-1",
}
FIRST = {"DERIVER_MODEL_CONFIG__TRANSPORT": "scripted", "DERIVER_MODEL_CONFIG__MODEL": "first-1"}


def bench(
    *replies: Reply, spare: ScriptedModel | None = None, **settings: str
) -> tuple[Bench, ScriptedModel]:
    model = ScriptedModel(*replies)
    fallback = FALLBACK if spare is not None else {}
    return Bench(model, *([spare] if spare else []), **FIRST, **fallback, **settings), model


def caller(bench: Bench, origin: Origin | None = None) -> ModelClient:
    return ModelClient(
        bench.models,
        "deriver.representation",
        bench.models.settings.deriver.model_config,
        origin or Origin(),
    )


def test_an_answer_is_returned_and_recorded() -> None:
    place, model = bench("Fine.")
    asker = caller(place, Origin(7, "w", "run-1"))
    assert asker.complete(ASK, max_output_tokens=77, iteration=3).content == "Fine."
    assert (model.last.model, list(model.last.turns), model.last.max_output_tokens) == (
        "first-1",
        ASK,
        77,
    )
    (call,) = place.calls
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
    assert place.pauses == []


def test_a_retryable_failure_is_retried_after_growing_pauses() -> None:
    place, model = bench(BUSY, BUSY, "Fine.")
    asker = caller(place)
    assert asker.complete(ASK).content == "Fine."
    assert place.pauses == [4.0, 8.0]
    assert [(call.outcome, call.attempt, call.error_class) for call in place.calls] == [
        ("error", 1, "ModelFailure 529"),
        ("error", 2, "ModelFailure 529"),
        ("success", 3, None),
    ]
    assert asker.spent.calls == 1
    assert len(model.requests) == 3


def test_pauses_are_limited() -> None:
    place, _ = bench(*[BUSY] * 4, "Fine.", LLM_MAX_ATTEMPTS="5")
    caller(place).complete(ASK)
    assert place.pauses == [4.0, 8.0, 10.0, 10.0]


def test_the_last_failure_is_raised() -> None:
    last = ModelFailure("still busy", retryable=True)
    place, model = bench(BUSY, BUSY, last, "too late")
    with pytest.raises(ModelFailure) as raised:
        caller(place).complete(ASK)
    assert raised.value is last
    assert len(model.requests) == len(place.calls) == 3


@pytest.mark.parametrize(("asked", "pause"), [(2.0, 4.0), (30.0, 30.0), (60.0, 60.0)])
def test_a_pause_requested_by_the_provider_is_kept(asked: float, pause: float) -> None:
    place, _ = bench(
        ModelFailure("slow down", retryable=True, status=429, retry_after=asked), "Fine."
    )
    caller(place).complete(ASK)
    assert place.pauses == [pause]


def test_a_pause_that_is_too_long_is_not_waited_for() -> None:
    place, model = bench(ModelFailure("tomorrow", retryable=True, status=429, retry_after=3600))
    with pytest.raises(ModelFailure, match="tomorrow"):
        caller(place).complete(ASK)
    assert (place.pauses, len(model.requests)) == ([], 1)


@pytest.mark.parametrize("failure", [WRONG, Refusal("I will not")])
def test_a_failure_that_is_not_retryable_is_raised_at_once(failure: ModelFailure) -> None:
    place, model = bench(failure, "never")
    with pytest.raises(ModelFailure) as raised:
        caller(place).complete(ASK)
    assert raised.value is failure
    assert (len(model.requests), place.pauses) == (1, [])


def test_the_last_try_is_made_with_the_fallback() -> None:
    spare = ScriptedModel("From the spare one.", name="spare")
    place, model = bench(BUSY, BUSY, spare=spare)
    asker = caller(place)
    assert asker.complete(ASK).content == "From the spare one."
    assert (len(model.requests), spare.last.model) == (2, "spare-1")
    assert [(call.model, call.attempt, call.is_fallback) for call in place.calls] == [
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
    place, model = bench(failure, spare=spare)
    assert caller(place).complete(ASK).content == "From the spare one."
    assert (len(model.requests), place.pauses) == (1, [])


def test_a_refusal_is_not_retried_with_another_model() -> None:
    spare = ScriptedModel(name="spare")
    place, _ = bench(Refusal("I will not"), spare=spare)
    with pytest.raises(Refusal):
        caller(place).complete(ASK)
    assert spare.requests == []


def test_a_fallback_is_called_even_if_there_is_only_one_try() -> None:
    spare = ScriptedModel("Here.", name="spare")
    place, _ = bench(BUSY, spare=spare, LLM_MAX_ATTEMPTS="1")
    assert caller(place).complete(ASK).content == "Here."


def test_the_fallback_inherits_no_options() -> None:
    spare = ScriptedModel("Here.", name="spare")
    settings = {
        "DERIVER_MODEL_CONFIG__TEMPERATURE": "0.3",
        "DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY": "secret-1",
    }
    place, model = bench(WRONG, spare=spare, **settings)
    caller(place).complete(ASK)
    assert (model.last.temperature, spare.last.temperature) == (0.3, None)
    assert (model.opened[0]["api_key"], spare.opened[0]["api_key"]) == ("secret-1", None)


def test_an_unexpected_error_of_a_provider_is_recorded_and_not_retried() -> None:
    place, _ = bench(ZeroDivisionError("oops"), "never")
    with pytest.raises(ZeroDivisionError):
        caller(place).complete(ASK)
    assert [(call.outcome, call.error_class) for call in place.calls] == [
        ("error", "ZeroDivisionError")
    ]


def test_the_models_own_limit_overrides_that_of_the_task() -> None:
    place, model = bench("a", DERIVER_MODEL_CONFIG__MAX_OUTPUT_TOKENS="5")
    caller(place).complete(ASK, max_output_tokens=100)
    assert model.last.max_output_tokens == 5
    place, model = bench("a")
    caller(place).complete(ASK)
    assert model.last.max_output_tokens == 2500


def test_tools_are_passed_on_and_counted() -> None:
    tool = Tool("look", "Look something up.", {"type": "object"})
    place, model = bench(Completion("", [ToolCall("1", "look", {})], "tool_calls"))
    caller(place).complete(ASK, tools=[tool], tool_choice="auto")
    assert (list(model.last.tools), model.last.tool_choice) == ([tool], "auto")
    assert (place.calls[0].has_tools, place.calls[0].tool_call_count) == (True, 1)


# Streams


def test_a_stream_yields_pieces_and_then_the_completion() -> None:
    place, _ = bench("Fine, thank you.")
    asker = caller(place)
    *pieces, done = asker.stream(ASK)
    assert pieces == ["Fine,", "thank", "you."]
    assert isinstance(done, Completion)
    assert done.content == "Fine, thank you."
    assert [(call.outcome, call.is_stream) for call in place.calls] == [("success", True)]
    assert asker.spent.calls == 1


def test_a_stream_without_a_piece_is_retried() -> None:
    place, model = bench(BUSY, "Fine.")
    assert list(caller(place).stream(ASK))[:-1] == ["Fine."]
    assert (len(model.requests), place.pauses) == (2, [4.0])


def test_a_stream_that_breaks_off_is_not_retried() -> None:
    place, model = bench("never")
    model.replies.insert(0, ["Fi", BUSY])
    pieces = caller(place).stream(ASK)
    assert next(pieces) == "Fi"
    with pytest.raises(ModelFailure):
        next(pieces)
    assert (len(model.requests), [call.outcome for call in place.calls]) == (1, ["error"])


def test_a_stream_that_just_ends_has_failed() -> None:
    place, model = bench()
    model.replies = [["Fi"]]
    pieces = caller(place).stream(ASK)
    assert next(pieces) == "Fi"
    with pytest.raises(ModelFailure, match="without an end"):
        next(pieces)


def test_an_abandoned_stream_is_closed_and_recorded() -> None:
    place, model = bench("one two three")
    pieces = caller(place).stream(ASK)
    assert next(pieces) == "one"
    pieces.close()  # type: ignore[attr-defined]  # a generator
    assert model.closed == 1
    assert [call.outcome for call in place.calls] == ["cancelled"]


def test_a_stream_closed_after_its_end_was_a_success() -> None:
    place, _ = bench("one")
    pieces = caller(place).stream(ASK)
    assert [next(pieces), next(pieces)][0] == "one"
    pieces.close()  # type: ignore[attr-defined]  # a generator
    assert [call.outcome for call in place.calls] == ["success"]


# Where models are


def test_each_connection_is_opened_once() -> None:
    place, model = bench(
        DERIVER_MODEL_CONFIG__OVERRIDES__BASE_URL="http://one",
        SUMMARY_MODEL_CONFIG__TRANSPORT="scripted",
    )
    settings = place.models.settings
    for config in (
        settings.deriver.model_config,
        settings.summary.model_config,
        settings.deriver.model_config,
    ):
        ModelClient(place.models, "x", config, Origin()).complete(ASK)
    assert [opened["base_url"] for opened in model.opened] == ["http://one", None]


def test_the_error_for_an_unknown_transport_lists_the_known_ones() -> None:
    place = Bench(ScriptedModel(), DERIVER_MODEL_CONFIG__TRANSPORT="skripted")
    with pytest.raises(
        ConfigurationError, match=r"skripted.*known: .*scripted.*did you mean scripted"
    ):
        caller(place).complete(ASK)
