"""The part of the contract of a language model that a real server can fulfil, whose answers are not
scripted.

Subclass `LiveModelContract` and give it the fixtures `model` and `named`. Every test makes one or
two short requests, which may cost something. None depends on the content of an answer, except that
the model has to call the required tool.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from memservice.spi.llm import (
    Completion,
    CompletionRequest,
    LanguageModel,
    ModelFailure,
    Tool,
    Turn,
)

SECONDS = 60.0
TOKENS = 2_000
"""Output limit, with enough tokens for models that reason first."""
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
CLOCK = Tool("clock", "Tells the time.", {"type": "object", "properties": {}})


class LiveModelContract:
    """The requirements of every language model, whatever it answers."""

    @pytest.fixture
    def model(self) -> LanguageModel:
        raise NotImplementedError(
            "give your subclass of LiveModelContract a fixture `model` that returns the "
            "opened language model"
        )

    @pytest.fixture
    def named(self) -> str:
        raise NotImplementedError(
            "give your subclass of LiveModelContract a fixture `named` that returns the "
            "name of the model to ask"
        )

    @staticmethod
    def ask(named: str, text: str = "Say the word yes.") -> CompletionRequest:
        return CompletionRequest(
            model=named, turns=(Turn("user", text),), max_output_tokens=TOKENS, timeout=SECONDS
        )

    def test_it_answers_and_counts(self, model: LanguageModel, named: str) -> None:
        completion = model.complete(self.ask(named))
        assert completion.content.strip()
        assert completion.finish_reason
        assert completion.input_tokens >= 0
        assert completion.output_tokens >= 0

    def test_a_streamed_answer_is_the_sum_of_its_pieces(
        self, model: LanguageModel, named: str
    ) -> None:
        *pieces, completion = list(model.stream(self.ask(named, "Count from one to ten.")))
        assert isinstance(completion, Completion), "a stream ends with the whole Completion"
        assert completion.content.strip()
        assert "".join(map(str, pieces)) == completion.content

    def test_any_script_may_be_sent(self, model: LanguageModel, named: str) -> None:
        assert model.complete(
            self.ask(named, "Grüße, 世界 🧺 \u2028 \\ \" ' — say the word yes.")
        ).content.strip()

    def test_a_structured_answer_is_json(self, model: LanguageModel, named: str) -> None:
        completion = model.complete(
            replace(self.ask(named, 'Answer {"answer": "yes"}, as JSON.'), response_schema=ANSWER)
        )
        assert "answer" in json.loads(completion.content)

    def test_a_tool_is_called_when_it_has_to_be(self, model: LanguageModel, named: str) -> None:
        completion = model.complete(
            replace(self.ask(named, "What time is it?"), tools=(CLOCK,), tool_choice="required")
        )
        assert [call.name for call in completion.tool_calls] == ["clock"] * len(
            completion.tool_calls
        )
        assert completion.tool_calls

    @pytest.mark.parametrize("way", ["complete", "stream"])
    def test_an_exchange_that_takes_too_long_is_cancelled(
        self, model: LanguageModel, named: str, way: str
    ) -> None:
        completion_request = replace(
            self.ask(named, "Count from one to a thousand."), timeout=0.001
        )
        with pytest.raises(ModelFailure) as caught:
            if way == "complete":
                model.complete(completion_request)
            else:
                list(model.stream(completion_request))
        assert caught.value.retryable
