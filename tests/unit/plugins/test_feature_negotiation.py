"""Which field of a request a server rejects, how long that is remembered, and the warning to the
operator."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from memservice.spi.llm import ModelFailure
from memservice_anthropic.chat import AnthropicModel
from memservice_gemini.chat import GeminiModel
from memservice_http.failures import Rejected
from memservice_http.features import REMEMBERED, FeatureNegotiation
from memservice_openai.chat import OpenAiModel
from memservice_openai.responses import ResponsesModel

LOG = logging.getLogger("memservice")
MODELS = {
    "openai": OpenAiModel,
    "openai-responses": ResponsesModel,
    "anthropic": AnthropicModel,
    "gemini": GeminiModel,
}


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def negotiation(protocol: str, clock: Clock | None = None) -> FeatureNegotiation:
    return FeatureNegotiation(protocol, MODELS[protocol].parts, LOG, clock or Clock())


def rejecting(message: str, part: str) -> Callable[[frozenset[str]], str]:
    """A server that rejects requests with that part."""

    def send(lacking: frozenset[str]) -> str:
        if part not in lacking:
            failure = ModelFailure("rejected", retryable=False, status=400)
            raise Rejected(failure, message.lower())
        return "ok"

    return send


@pytest.mark.parametrize(
    ("protocol", "message", "part"),
    [
        (
            "anthropic",
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" '
            'and "output_config.effort" to control thinking behavior.',
            "thinking budget",
        ),
        ("anthropic", "output_config: Extra inputs are not permitted", "json_schema"),
        ("anthropic", "output_config.effort: this model does not support effort", "effort"),
        ("openai", "registry.ollama.ai/library/gemma:2b does not support tools", "tools"),
        ("openai", "No endpoints found that support tool use", "tools"),
        (
            "openai",
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser',
            "tools",
        ),
        (
            "openai",
            "Function tools with reasoning_effort are not supported for gpt-5.5 in "
            "/v1/chat/completions. Please use /v1/responses instead.",
            "reasoning_effort with tools",
        ),
        (
            "openai",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
        ),
        ("openai", "Unsupported value: 'temperature' does not support 0.2", "temperature"),
        ("openai", "'response_format.type' must be 'json_schema' or 'text'", "json_object"),
        (
            "openai-responses",
            "Encrypted content is not supported with this model.",
            "reasoning.encrypted_content",
        ),
        (
            "openai-responses",
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            "reasoning",
        ),
        ("openai-responses", "Unknown parameter: 'stop'.", "stop"),
        ("openai-responses", "Unknown parameter: 'text.format'.", "json_schema"),
        ("gemini", "Function calling is not enabled for this model", "tools"),
    ],
)
def test_the_first_named_field_counts(protocol: str, message: str, part: str) -> None:
    """What the server recommends instead does not."""
    parts = {feature.name for feature in MODELS[protocol].parts}
    if part == "json_object":
        parts.remove("json_schema")
    features = negotiation(protocol)
    answer = features.ask("m", rejecting(message, part), lambda lacking: parts - lacking)
    assert answer == "ok"
    assert features.lacking("m") == {part}
    assert features.lacking("other") == frozenset()


def test_a_field_is_retried_after_a_day() -> None:
    clock = Clock()
    features = negotiation("openai", clock)
    features.ask("m", rejecting("seed is not supported", "seed"), lambda lacking: {"seed"})
    assert features.lacking("m") == {"seed"}
    clock.now += REMEMBERED - timedelta(seconds=1)
    assert features.lacking("m") == {"seed"}
    clock.now += timedelta(seconds=1)
    assert features.lacking("m") == frozenset()


@pytest.mark.parametrize(("options", "level"), [({"seed"}, "WARNING"), (set(), "INFO")])
def test_the_operator_is_warned_of_a_setting_that_is_left_out(
    options: set[str], level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "memservice")
    send = rejecting("seed is not supported", "seed")
    negotiation("openai").ask("model-1", send, lambda lacking: {"seed"} - lacking, options)
    (record,) = caplog.records
    assert record.levelname == level
    assert "model-1" in record.getMessage()
    assert "seed" in record.getMessage()
